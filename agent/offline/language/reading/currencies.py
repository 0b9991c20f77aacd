"""What other money is worth in dollars, where a person says it: '1 euro is 1.08 dollars', '1.27 dollars per pound'."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from agent.offline.language.rows import Row

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

NEAR_DOLLARS = ("eur", "gbp", "chf")
# Those that are quoted in dollars for one of them, and more than any is worth.
_QUOTED, _MOST_USD = ("eur", "gbp"), 3.0
# Words between the two sides: 'is worth about'.
_NEAR = 3


def in_dollars(page: Page) -> None:
    """Takes the rates that are told out of what is left, and turns amounts of such money into dollars."""
    rows = sorted([*page.left, *(number.row for number in page.filled)], key=lambda row: row.start)
    told: list[Row] = []
    for one, other in pairwise(rows):
        if (rate := _rate(one, other)) is not None:
            page.worth |= rate
            told += [one, other]
    for row in rows:
        amount = row.amounts[-1]
        per = next((unit.name for unit in amount.per if unit.name in NEAR_DOLLARS), None)
        if per and amount.unit("usd"):
            page.worth[per] = amount.value
            told.append(row)
    told += [*_of_one(page, rows), *_bare(page, rows), *_of_a_dollar(page, rows)]
    if not page.worth:
        return
    page.left = [row for row in page.left if row not in told]
    page.filled = [number for number in page.filled if number.row not in told]
    page.filled = [
        replace(number, values=tuple(round(value * page.worth[unit.name], 2) for value in number.values))
        if (unit := number.row.amounts[-1].unit(*NEAR_DOLLARS)) and unit.name in page.worth
        else number
        for number in page.filled
    ]


def _of_one(page: Page, rows: list[Row]) -> list[Row]:
    """Dollars beside one of other money without a number: 'a euro is 1.09 dollars', '1.09 dollars to the euro'."""
    told, read = [], page.read
    names = read.found.lexicon.articles | read.found.lexicon.pointing
    for row in rows:
        amount = row.amounts[-1]
        if not (amount.unit("usd") and 0.0 < amount.value < _MOST_USD and not amount.per):
            continue
        near = (
            *range(max(row.start - _NEAR, 1), row.start),
            *range(row.end + 1, min(row.end + _NEAR, len(read.tokens))),
        )
        beside = ((name, at) for at in near for name in NEAR_DOLLARS if read.found.has_unit(at, name))
        money = next((name for name, at in beside if read.tokens[at - 1].norm in names), None)
        if money:
            page.worth[money] = amount.value
            told.append(row)
    return told


def _of_a_dollar(page: Page, rows: list[Row]) -> list[Row]:
    """How much of the one other money that is named a dollar is worth: 'in euros at 0.92 per dollar'."""
    named = {sense.name for sense in page.read.senses() if sense.kind == "unit" and sense.name in NEAR_DOLLARS}
    quoted = [row for row in rows if not row.amounts[-1].units and [u.name for u in row.amounts[-1].per] == ["usd"]]
    if len(named) != 1 or len(quoted) != 1 or quoted[0].amounts[-1].value <= 0.0:
        return []
    page.worth |= dict.fromkeys(named, 1.0 / quoted[0].amounts[-1].value)
    return quoted


def _bare(page: Page, rows: list[Row]) -> list[Row]:
    """A number alone behind the money it is a rate of, 'in GBP at 1.27': as these are quoted, dollars for one of it."""
    told = []
    for row in rows:
        amount = row.amounts[-1]
        before = page.read.tokens[amount.start - 1].norm if amount.start else ""
        if (
            amount.units
            or amount.per
            or amount.scale
            or before not in ("at", "@")
            or not 0.0 < amount.value < _MOST_USD
        ):
            continue
        near = range(max(0, amount.start - _NEAR), amount.start - 1)
        unit = next((name for name in _QUOTED for at in near if page.read.found.has_unit(at, name)), None)
        if unit and unit not in page.worth:
            page.worth[unit] = amount.value
            page.assumed.append(f"{amount.value:g} taken as the US dollars that one {unit.upper()} is worth")
            told.append(row)
    return told


def _rate(one: Row, other: Row) -> dict[str, float] | None:
    """Of '1 euro = 1.08 dollars' and '1 dollar = 0.92 euros'."""
    left, right = one.amounts[-1], other.amounts[-1]
    if left.value != 1.0 or not 0 <= right.start - left.end <= _NEAR or right.value <= 0.0:
        return None
    if (unit := left.unit(*NEAR_DOLLARS)) and right.unit("usd"):
        return {unit.name: right.value}
    if left.unit("usd") and (unit := right.unit(*NEAR_DOLLARS)):
        return {unit.name: 1.0 / right.value}
    return None
