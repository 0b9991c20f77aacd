"""Which field a number is of, by what people meant by numbers in such words: it overrules the costs of `assign` where
it is sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.offline.language import act
from agent.offline.language.assign import Filled, value_of
from agent.offline.language.features.role import of_role
from agent.offline.language.lexicon import Quantity, lexicon
from agent.offline.language.mentions import Mentions
from agent.offline.language.rows import Row

NO_FIELD = "none"
# From this share on the field that is likeliest stands, and so much surer that a number is of none.
_SURE, _SURE_OF_NONE, _SURE_OF_BESIDE = 0.75, 0.9, 0.97
# What a number costs at most that stands right beside the name of its field.
_BESIDE = 0.2
_COST = 0.5
_MOST_NUMBERS = 40


def by_role(
    read: Mentions,
    filled: Sequence[Filled],
    left: Sequence[Row],
    mode: str | None,
    recent: str | None,
    planned: bool,
) -> tuple[list[Filled], list[Row]]:
    """(What each number fills, the numbers that fill nothing). Of a text with more numbers than anybody means the first
    are looked at."""
    weights, named = act.trained()["role"], read.found.fields
    kept, rest = list(filled), list(left)
    for row in rows_of(filled, left)[:_MOST_NUMBERS]:
        cheapest = [each for each in filled if each.row is row]
        shares = act.likely(weights, of_role(read, row, cheapest, named, mode, recent, planned))
        name = max(shares, key=lambda each: shares[each])
        as_it_is = any(each.field == name for each in cheapest) or (name == NO_FIELD and not cheapest)
        if as_it_is or shares[name] < _least(name, cheapest):
            continue
        if not (row.bare if name == NO_FIELD else may_fill(lexicon().quantities[name], row)):
            continue
        kept = [each for each in kept if each.row is not row]
        rest = [each for each in rest if each is not row]
        if name == NO_FIELD:
            rest.append(row)
        else:
            kept.append(_filled(name, row, cheapest))
    return kept, rest


def _least(name: str, cheapest: Sequence[Filled]) -> float:
    """How sure it has to be: a number right beside its field's name is hardly another's."""
    beside = any(each.name and each.cost < _BESIDE for each in cheapest)
    return _SURE_OF_BESIDE if beside else _SURE_OF_NONE if name == NO_FIELD else _SURE


def rows_of(filled: Sequence[Filled], left: Sequence[Row]) -> list[Row]:
    """Every number once, in the order of the text."""
    rows = {id(row): row for row in (*(each.row for each in filled), *left)}
    return sorted(rows.values(), key=lambda row: row.start)


def may_fill(quantity: Quantity, row: Row) -> bool:
    """Whether a number has a unit of the field's, or none."""
    last = row.amounts[-1]
    fits = any(unit.name in quantity.of for unit in last.units) or (last.names and "devices" in quantity.of)
    return fits or row.bare


def _filled(name: str, row: Row, cheapest: Sequence[Filled]) -> Filled:
    quantity = lexicon().quantities[name]
    values = tuple(value_of(quantity, amount, row.amounts[-1]) for amount in row.amounts)
    if cheapest:
        return replace(cheapest[0], field=name, values=values, cost=_COST)
    return Filled(name, values, row, _COST)
