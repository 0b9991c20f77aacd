"""Amounts that belong together: one number, or alternatives ('2, 4 or 8 GPUs')."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from agent.offline.language.measures import TIMES, Amount, Found

# Sizes of a layout, of which a number may say how many copies there are.
_SIZES = ("tp", "pp", "ep", "cp")


@dataclass(frozen=True)
class Row:
    """Amounts that belong together: one number, or alternatives ('2, 4 or 8 GPUs')."""

    amounts: tuple[Amount, ...]

    @cached_property
    def start(self) -> int:
        return self.amounts[0].start

    @cached_property
    def end(self) -> int:
        return self.amounts[-1].end

    @property
    def bare(self) -> bool:
        """Whether it has no unit, and counts no device that is named."""
        return not (self.amounts[-1].units or self.amounts[-1].names)


def rows(heard: Found, amounts: Sequence[Amount]) -> list[Row]:
    """Amounts with those that are alternatives of one another put together."""
    found: list[Row] = []
    group: list[Amount] = []
    for amount in _after_changes(heard, amounts):
        # 'Between 9 and 5, 20k chats a day'
        ended = len(group) == 2 and group[0].start > 0 and heard.sense(group[0].start - 1, "between")
        joined = {one.before for one in group[1:]} | {amount.before}
        apart = ended or counts_copies(heard, amount.number) or (group and _is_of_another(heard, group[0], amount))
        if group and not apart and _goes_with(group[-1], amount):
            if amount.before == "/" and "," in joined:
                # 'Concurrency 8, 4000/1000': what a stroke joins is a pair of its own.
                found += _closed(group[:-1])
                group = group[-1:]
            if amount.before != "," or "/" not in joined:
                group.append(amount)
                continue
        found += _closed(group)
        group = [amount]
    return found + _closed(group)


def _after_changes(heard: Found, amounts: Sequence[Amount]) -> list[Amount]:
    """Amounts with what something was before it went down as a part of what it is now: 'from 40k to 25k tok/s'."""
    now: list[Amount] = []
    for amount in amounts:
        before = now[-1] if now else None
        bare = before is not None and not (before.units or before.names or before.per)
        if before and bare and amount.before == "to" and amount.per and amount.value < before.value:
            begins = before.start > 0 and heard.sense(before.start - 1, "onto") is not None
            now[-1:] = [replace(amount, start=before.start, before=before.before)] if begins else [before, amount]
        else:
            now.append(amount)
    return now


def _goes_with(first: Amount, second: Amount) -> bool:
    unlike = bool(first.units and second.units) and {u.name for u in first.units}.isdisjoint(
        u.name for u in second.units
    )
    if second.before == "to":
        # 'H100 8장에서 10억 토큰': from eight devices to no tokens.
        return not (first.per or unlike) and second.value > first.value >= 0
    if second.before not in (",", "or", "/", "->") or first.per or first.names:
        return False
    if unlike or (first.units and not second.units):
        return False
    return first.scale == second.scale or not first.scale


def _is_of_another(heard: Found, first: Amount, second: Amount) -> bool:
    """Whether a number stands behind a field that has not the unit of another: 'rank 16 / 1.5T tokens', 'ZeRO 3, or
    one H200'."""
    if first.units or not (second.units or second.names):
        return False
    of = [heard.lexicon.quantities[name].of for name in heard.fields_before(first.start)]
    if second.names:
        return bool(of) and not (first.names or any("devices" in units for units in of))
    return bool(of) and all(unit.name not in units for units in of for unit in second.units)


def _closed(group: list[Amount]) -> list[Row]:
    if len(group) < 2:
        return [Row((one,)) for one in group]
    last = group[-1]
    if (len(group) == 2 and last.before not in ("or", "to")) or (last.before == "->" and len(group) < 3):
        return [Row((one,)) for one in group]
    if last.scale and not any(one.scale for one in group[:-1]):
        factor = last.value / last.digits if last.digits else 1.0
        group = [replace(one, value=one.digits * factor, scale=last.scale) for one in group]
    return [Row(tuple(group))]


def counts_copies(found: Found, end: int) -> bool:
    """Whether the number that ends at a token says how many copies there are of a layout: '2x tp4', '4 × TP2'."""
    signed = end + 1 < len(found.text) and found.text[end].norm in TIMES
    words = found.words.get(end + 1, ()) if signed else ()
    sized = [word for word in words if any(sense.name in _SIZES for sense in word.all("field"))]
    return any(word.end < len(found.text) and found.text[word.end].kind == "number" for word in sized)
