"""Pages, tables and plots of the command line: what fits in how wide a terminal, and what is never in it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from pages.blocks import Chart, Figures, Headline, Note, Table, Text
from pages.rendering import terminal as page
from pages.rendering.palette import PALETTE, rgb
from pages.rendering.plotting import _ticks, draw
from pages.rendering.table import facts, table
from planner.plots import Plot

WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=60)
ASCII = st.text("abcdefgh 0123-_/", max_size=80)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@settings(max_examples=examples(60), deadline=None)
@given(
    rows=st.lists(st.tuples(ASCII, ASCII, st.integers(0, 10**9).map(str)), min_size=1, max_size=6),
    width=st.integers(40, 220),
)
def test_a_table_is_never_wider_than_it_may_be(rows: list[tuple[str, str, str]], width: int) -> None:
    text = table(("NAME", "WHAT", "N"), rows, right=("N",), width=width)
    assert max(map(len, text.splitlines())) <= width
    for row in rows:  # nothing is lost
        for cell in row:
            assert sum(text.count(letter) for letter in set(cell)) >= len(cell.replace(" ", ""))


def test_a_table_breaks_words_then_drops_columns_then_becomes_lines() -> None:
    row = ["a plan with a long name", "12.5 GiB", "it is far too large for this device"]
    heads = ("PLAN", "MEMORY", "WHY")
    assert table(heads, [row], ("MEMORY",)).count("\n") == 1
    broken = table(heads, [row], ("MEMORY",), 50)
    assert broken.splitlines()[0].split() == list(heads)
    assert broken.count("\n") > 1
    dropped = table(heads, [row], ("MEMORY",), 30, optional=("WHY",))
    assert dropped.splitlines()[0].split() == ["PLAN", "MEMORY"]
    assert table(heads, [row], ("MEMORY",), 20).splitlines()[0].startswith("PLAN")
    assert "WHY" in table(heads, [row], ("MEMORY",), 20)


def test_numbers_are_aligned() -> None:
    lines = table(("A", "N"), [["x", "5"], ["y", "1,234"]], right=("N",)).splitlines()
    assert [line[-1] for line in lines] == ["N", "5", "4"]


@settings(max_examples=examples(40), deadline=None)
@given(words=WORDS, width=st.integers(40, 200), colour=st.booleans())
def test_a_page_holds_its_width_and_controls_no_terminal(words: str, width: int, colour: bool) -> None:
    nasty = f"{words} \x1b[31mred\x07\x9b2J"
    blocks = [
        Headline(nasty, False), Figures([("label", nasty)], nasty), Table(("A",), [[nasty]]),
        Note(nasty, [nasty], True), Text(nasty, nasty),
    ]  # fmt: skip
    text = page.render(blocks, width, colour)
    assert not re.search(r"[\x07\x9b]", text)
    plain = _COLOURS.sub("", text)
    assert "\x1b" not in plain
    assert colour or plain == text
    assert all(len(line) <= width for line in page.render(blocks[:4], width).splitlines())


def test_facts_are_broken_in_their_column() -> None:
    assert facts([("a", "one two three four"), ("long", "x")], 16).splitlines() == [
        "a     one two", "      three four", "long  x",
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- plots

NUMBERS = st.one_of(st.none(), st.floats(0, 1e15), st.just(math.inf))


@st.composite
def plots(draw_one: st.DrawFn) -> Plot:
    kind = draw_one(st.sampled_from(["line", "bar", "stacked", "scatter"]))
    size = draw_one(st.integers(1, 5))
    named = kind in ("bar", "stacked") or draw_one(st.booleans())
    if named:
        xs: list[Any] = [f"name {i}" for i in range(size)]
    else:
        xs = draw_one(st.lists(st.floats(0, 1e6), min_size=size, max_size=size))
    series = []
    for place in range(draw_one(st.sampled_from([1, 2, 3, 14] if kind in ("bar", "stacked") else [1, 2, 3]))):
        ys = draw_one(st.lists(NUMBERS, min_size=size, max_size=size))
        low = [None if y is None else y * 0.9 for y in ys] if draw_one(st.booleans()) else None
        high = None if low is None else [None if y is None else y * 1.1 for y in ys]
        series.append({"name": f"part_{place}", "x": xs, "y": ys, "low": low, "high": high})
    return Plot.model_validate({
        "title": "A title", "kind": kind, "x_label": "x", "y_label": "GiB", "series": series,
        "x_log": draw_one(st.booleans()), "y_log": draw_one(st.booleans()),
        "limit": draw_one(st.one_of(st.none(), st.floats(0, 1e12))), "limit_name": "capacity",
    })  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(plot=plots(), width=st.sampled_from([60, 100, 160]), colour=st.booleans())
def test_any_plot_is_drawn_within_the_width(plot: Plot, width: int, colour: bool) -> None:
    text = draw(plot, width, colour)
    assert "A title" in text
    plain = _COLOURS.sub("", text)
    assert colour or plain == text
    lines = [line for line in plain.splitlines() if re.search("[█┤┌└]", line)]
    assert all(len(line) <= width for line in lines)


@given(low=st.floats(1e-6, 1e9), times=st.floats(1.01, 1e5), logarithmic=st.booleans())
def test_ticks_are_round_and_take_in_what_is_drawn(low: float, times: float, logarithmic: bool) -> None:
    high = low * times
    ticks = _ticks(low, high, logarithmic)
    assert ticks == sorted(ticks)
    assert 2 <= len(ticks) <= 10
    inner = ticks[1:-1] if logarithmic else ticks
    for tick in inner:
        digits = f"{abs(tick):.6e}".partition("e")[0].rstrip("0").rstrip(".")
        assert len(digits) <= (1 if logarithmic else 5)
    if not logarithmic:
        assert ticks[0] <= low * (1 + 1e-6)
        assert ticks[-1] >= high * (1 - 1e-6)


def test_the_pane_has_the_colours_of_the_plots() -> None:
    style = (Path(__file__).parents[2] / "tui" / "app.tcss").read_text()
    assert re.findall(r"\.stack--\d+ \{ color: (#\w+);", style) == list(PALETTE)


def test_a_part_keeps_its_colour_whatever_else_there_is() -> None:
    series = [{"name": name, "x": ["now"], "y": [1.0]} for name in ("weights", "activations")]
    plot = Plot.model_validate({"title": "M", "kind": "stacked", "x_label": "", "y_label": "GiB", "series": series})
    assert "\x1b[38;2;76;141;255m" in draw(plot, 60, True)
    red, green, blue = rgb(3)
    assert f"\x1b[38;2;{red};{green};{blue}m" in draw(plot, 60, True, (0, 3))


def drawn(plot: dict[str, Any], width: int) -> str:
    return draw(Plot.model_validate(plot), width)


def test_ticks_of_small_values_are_told_apart() -> None:
    """A learning rate had the same '<0.001' at every one of them."""
    series = [{"name": "lr", "x": [1, 2, 3], "y": [0.0, 1e-5, 3e-5]}]
    text = drawn({"title": "Learning rate", "kind": "line", "x_label": "step", "y_label": "lr", "series": series}, 80)
    assert "<0.001" not in text
    assert "1e-05┤" in text


def test_bars_show_values_and_intervals_in_proportion() -> None:
    series = [{"name": "s", "x": ["a", "b", "c"], "y": [10.0, 5.0, None], "low": [9.0, 4.0, None],
               "high": [11.0, 6.0, None]}]  # fmt: skip
    lines = drawn({"title": "Speed", "kind": "bar", "x_label": "", "y_label": "tokens/s", "series": series}, 60)
    lines = lines.splitlines()
    assert lines[0] == "Speed (tokens/s)"
    assert lines[1].endswith("10 (9–11)")
    assert lines[2].endswith("5 (4–6)")
    assert lines[3] == "c" + lines[3][1:-1] + "–"
    assert abs(lines[1].count("█") - 2 * lines[2].count("█")) <= 1


def test_parts_are_told_apart_without_colours_and_the_limit_is_marked() -> None:
    series = [{"name": "weights", "x": ["now"], "y": [30.0]}, {"name": "kv_cache", "x": ["now"], "y": [10.0]}]
    plot = {"title": "Memory", "kind": "stacked", "x_label": "", "y_label": "GiB", "series": series, "limit": 80.0,
            "limit_name": "usable memory"}  # fmt: skip
    bar, legend, limit = drawn(plot, 100).splitlines()[1:]
    assert bar.count("█") == 3 * bar.count("▒") or abs(bar.count("█") - 3 * bar.count("▒")) <= 3
    assert "|" in bar
    assert legend == "█ weights 30  ▒ kv cache 10"
    assert limit == "| usable memory: 80"


def test_a_curve_has_its_axis_from_zero_and_a_legend() -> None:
    series = [{"name": "estimate", "x": [1, 2, 4], "y": [10.0, 18.0, 30.0], "low": [9.0, 16.0, 27.0],
               "high": [11.0, 20.0, 33.0]}, {"name": "ideal", "x": [1, 2, 4], "y": [10.0, 20.0, 40.0]}]  # fmt: skip
    text = drawn({"title": "Speed", "kind": "line", "x_label": "nodes", "y_label": "tokens/s", "series": series}, 80)
    assert re.search(r"^\s*0┤", text, re.MULTILINE)
    assert text.splitlines()[-1] == "● estimate  x ideal  - ends of the 80 % interval"
    assert {len(line) for line in text.splitlines() if "│" in line} == {80}


def test_a_plot_without_figures_says_so() -> None:
    plot = {
        "title": "Cost",
        "kind": "bar",
        "x_label": "",
        "y_label": "USD",
        "series": [{"name": "s", "x": ["a"], "y": [None]}],
    }
    assert drawn(plot, 80) == "Cost: nothing to draw"
    assert page.render([Chart(Plot.model_validate(plot))], 80) == "Cost: nothing to draw"


def test_the_width_is_the_terminals(monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "63")
    assert page.screen_width() == 63
    monkeypatch.setenv("COLUMNS", "5")
    assert page.screen_width() == 40
    monkeypatch.delenv("COLUMNS")
    assert page.screen_width() == 100
