"""Tokens that a service reads and writes in a time: those of prompts and of answers may stand side by side."""

from __future__ import annotations

from agent.offline.language.assign import Filled
from agent.offline.language.reading.page import Page
from agent.offline.language.rows import Row

_SIDES = {"input_len": "input", "output_len": "output"}
# Tokens before and behind a number, or between two, in which the name of its side is looked for.
_BESIDE = 4
# Tokens that beside those of a month are none of one prompt or answer.
_NO_LENGTH = 1e6


def token_rate(page: Page, rate: Filled, value: float) -> tuple[float, str] | tuple[float, str, float]:
    """(Tokens a second, whose) of a rate; where the other side's is said beside it, each with its unit or both with one
    ('500M input and 100M output tokens a month'): those of answers, "both", and those of prompts."""
    side, beside = _side(page, rate.row), None
    for number in page.filled:
        if number.field == "token_rate" and number is not rate and _side(page, number.row) not in (side, "total"):
            beside = number.values[-1]
    large = [number for number in page.filled if number.values[-1] >= _NO_LENGTH]
    lengths = [number for number in large if number.field in (*_SIDES, "total_tokens", "model_size")]
    for row in [*page.left, *(number.row for number in lengths)]:
        apart = max(row.start - rate.row.end, rate.row.start - row.end)
        counted = {unit.name for unit in row.amounts[-1].units} <= {"tokens"} and not row.amounts[-1].per
        if beside is None and counted and apart <= _BESIDE and _side(page, row) not in (side, "total"):
            beside = value * row.amounts[-1].value / rate.row.amounts[-1].value
            page.left = [number for number in page.left if number is not row]
            page.filled = [number for number in page.filled if number.row is not row]
            page.lost = [words for words in page.lost if words != (row.start, row.end)]
    if beside is None or side == "total":
        return value, side
    return (value, "both", beside) if side == "output" else (beside, "both", value)


def _side(page: Page, row: Row) -> str:
    """Whose tokens a number counts, by the nearest name beside it."""
    names = [
        (max(row.start - at, at - row.end + 1, 0), _SIDES[sense.name])
        for at in range(max(row.start - _BESIDE, 0), min(row.end + _BESIDE, len(page.read.tokens)))
        for word in page.read.found.words.get(at, ())[:1]
        for sense in word.all("field")
        if sense.name in _SIDES
    ]
    return min(names, default=(0, "total"))[1]
