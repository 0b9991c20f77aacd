"""Rows searched, filtered and sorted, without any widget."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from planner.records.catalogue import CatalogueList
from tools.registry import find
from tui.actions import ACTIONS
from tui.screens import find_screen
from tui.screens.hardware import COLUMNS
from tui.screens.list_table import Head, whole, within
from tui.screens.listing import Column, Listing, text

LISTING = Listing((text("ID", "id"), Column("SIZE", lambda row: row.size, str, right=True)))
ROWS = st.lists(
    st.builds(
        SimpleNamespace,
        id=st.text(max_size=8),
        size=st.none() | st.integers(-5, 5),
        kind=st.sampled_from(["a", "b"]),
    ),
    max_size=12,
)


def test_bars_set_figures_against_the_largest() -> None:
    column = Column("COST", lambda row: row, lambda value: f"${value}", right=True, bar=True)
    cells = column.cells([100, 50, None, 0])
    assert cells == ["$100 ━━━━━━", " $50 ━━━   ", "   –       ", "  $0       "]
    assert column.cells([]) == []
    assert {len(text) for text in cells} == {11}


@given(ROWS, st.integers(0, 1), st.booleans())
def test_sorting_loses_nothing_and_puts_what_is_unknown_last(
    rows: list[SimpleNamespace], column: int, twice: bool
) -> None:
    listing = replace(LISTING, rows=tuple(rows)).by(column)
    shown = (listing.by(column) if twice else listing).shown()
    assert sorted(map(str, shown)) == sorted(map(str, rows))
    name = ("id", "size")[column]
    known = [getattr(row, name) for row in shown if getattr(row, name) not in (None, "")]
    assert all(getattr(row, name) in (None, "") for row in shown[len(known) :])
    if name == "size":
        assert known == sorted(known, reverse=not twice)


@given(ROWS)
def test_a_filter_goes_through_every_value_and_back_to_all(rows: list[SimpleNamespace]) -> None:
    listing = replace(LISTING, rows=tuple(rows))
    seen = []
    for _ in range(len(listing.values_of("kind")) + 1):
        listing = listing.turned("kind")
        seen.append(len(listing.shown()))
    assert seen[-1] == len(rows)
    assert sum(seen[:-1]) == len(rows)


def test_words_are_found_whatever_their_case_and_punctuation() -> None:
    listing = replace(
        LISTING, rows=(SimpleNamespace(id="meta-llama/Llama-3.1-8B", size=1), SimpleNamespace(id="gpt2", size=2))
    )
    assert [row.id for row in replace(listing, query="LLAMA3.1 8b").shown()] == ["meta-llama/Llama-3.1-8B"]
    assert replace(listing, query="llama nothing").shown() == []
    assert len(replace(listing, query=" -").shown()) == 2


def test_the_whole_catalogue_is_narrowed_in_a_few_milliseconds() -> None:
    found = find("list_catalogue").run({"kind": "hardware", "limit": 500})
    assert isinstance(found, CatalogueList)
    rows = found.hardware
    listing = Listing(COLUMNS, tuple(rows))
    times = []
    for query in ("h", "h1", "h100", "amd mi", ""):
        started = time.thread_time()
        replace(listing, query=query).by(1).shown()
        times.append(time.thread_time() - started)
    assert sorted(times)[2] < 0.025


def test_keys_are_free_and_names_are_unique() -> None:
    keys = [key.key for row in ACTIONS for key in row.keys]
    assert len(set(keys)) == len(keys)
    assert len({row.name for row in ACTIONS}) == len(ACTIONS)
    assert find_screen("nothing") is None


HEADS = st.lists(st.builds(Head, st.just("T"), st.booleans(), st.integers(2, 60)), min_size=1, max_size=8)


@given(HEADS, st.integers(10, 200))
def test_words_give_way_to_numbers_and_the_row_stays_known(heads: list[Head], room: int) -> None:
    fitted = within(heads, room)
    assert [head.title for head in fitted] == [head.title for head in heads]
    assert all(now.width <= head.width for now, head in zip(fitted, heads, strict=True))
    assert all(now == head for now, head in zip(fitted, heads, strict=True) if head.right)
    assert fitted[0].width >= min(heads[0].width, 28)
    taken = sum(head.width for head in fitted) + 2 * (len(fitted) - 1)
    # What can be brought into sight is, and not a cell more is cut.
    if taken < room:
        assert fitted == heads
    least = [head.width if head.right else min(head.width, 18 if place else 28) for place, head in enumerate(heads)]
    assert taken <= room or sum(least) + 2 * (len(least) - 1) > room


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_no_cell_is_in_sight_in_part(widths: list[int]) -> None:
    """Cells of letters, wherever the row is scrolled to; the last two columns of the screen lie under a sign."""
    cells = ["abcde"[place] * width for place, width in enumerate(widths)]
    long = sum(widths) + 2 * len(widths)
    for left, seen in product(range(long), range(2, long)):
        line = "  ".join(whole(cells, left, seen - 2))[left : left + seen]
        assert all(cell in line for cell in cells if cell[0] in line)
