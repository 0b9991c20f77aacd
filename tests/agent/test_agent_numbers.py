"""Numbers and dates as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.offline.dates import hours_until
from agent.offline.numbers import amount, context_length, count
from pages.rendering.clean import plain, plain_data

WEDNESDAY_NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5T", 1.5e12), ("300M", 3e8), ("52k", 52e3), ("1_000", 1000), ("1,024", 1024), ("2e9", 2e9), ("two", 2),
        ("half a trillion", 5e11), ("a quarter of a billion", 2.5e8), ("twenty million", 2e7), ("2.5k", 2500), ("x",
        None), ("8 billion", 8e9), ("", None),
    ],
)  # fmt: skip
def test_amounts(text: str, value: float | None) -> None:
    assert amount(text) == value


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("4k", 4096), ("64K", 65536), ("100k", 100_000), ("12k", 12_000), ("1M", 1_048_576), ("4000", 4000), ("8,192",
    8192), ("0k", None)],
)  # fmt: skip
def test_context_lengths_are_binary_where_they_look_it(text: str, tokens: int | None) -> None:
    assert context_length(text) == tokens


@given(st.integers(1, 10**9))
def test_counts_survive_thousands_separators(value: int) -> None:
    assert count(f"{value:,}") == value
    assert amount(str(value)) == value


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("by Friday", 60), ("before tomorrow noon", 24), ("by next Wednesday", 180), ("by 2026-11-20", 60),
        ("until tonight", 12), ("by 2026-11-20 18:00", 54), ("by Dec 1", 324), ("by the end of the month", 300),
        ("by Friday 5pm", 53), ("by 2020-01-01", None), ("friday", None), ("by the way", None),
    ],
)  # fmt: skip
def test_deadlines(text: str, hours: float | None) -> None:
    found = hours_until(text, WEDNESDAY_NOON)
    assert (found[0] if found else None) == hours


def test_control_characters_never_reach_the_screen() -> None:
    assert plain("a\x1b[31mred\x1b[0m\x07\x1b]0;title\x07b\u202e\x9b2Jc\td\ne") == "aredb2Jc\td\ne"
    assert plain_data({"k\x1b[2J": ["v\x00", 1, None]}) == {"k": ["v", 1, None]}


@given(st.text())
def test_plain_leaves_no_escape(text: str) -> None:
    assert not set(plain(text)) & {chr(code) for code in [*range(9), *range(11, 32), 127, *range(128, 160)]}
