"""Machines and devices that are added or taken away without a number of their own: another box, a third card, a node of
4 more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.offline.form import Edit
from agent.offline.language.lexicon import lexicon
from agent.offline.language.rows import Row

if TYPE_CHECKING:
    from agent.offline.language.mentions import Mentions
    from agent.offline.language.reading.page import Page

_NEAR = 3
# Which one it is, in words that say a part elsewhere: 'a third card'.
ORDINALS = ("third", "fourth", "quarter")


def another(page: Page) -> list[Edit]:
    """'Another box', 'one node less', 'what if I get a second one' without a number: one of them."""
    ordinals = page.read.does("second", "third", "fourth")
    ordinals += [at for at, token in enumerate(page.read.tokens) if token.norm in ORDINALS]
    nth = [at - 1 for at in ordinals if at and page.read.tokens[at - 1].norm in lexicon().articles]
    nth += [0 for at in ordinals if at == 0 and page.read.tokens[0].norm in ORDINALS]
    for at in sorted([*page.read.does("plus", "minus"), *nth]):
        end = page.read.found.does(at, "plus", "minus") or at + 1
        sign = -1 if page.read.found.does(at, "minus") else 1
        near = any(one.row.start - _NEAR <= at <= one.row.end + _NEAR for one in page.filled)
        # 'Drop the second' of what was offered takes no device away.
        out = any(step in page.refused.things for step in ordinals if at < step <= end + 1)
        if near or out or not page.plan or page.added:
            continue
        if unit := _one_of(page.read, end) or _one_before(page.read, at):
            return [Edit("count" if unit == "devices" else unit, "plus", sign, page.read.span(at, end))]
    return []


def machines_added(page: Page) -> list[Edit]:
    """'Another node of 4', 'un nodo más de 4': devices that come with a machine, or go with it. The numbers of both are
    taken off the page."""
    for at in page.read.does("plus", "minus") if page.plan else ():
        end = page.read.found.does(at, "plus", "minus") or at + 1
        around = range(max(at - _NEAR, 0), min(end + _NEAR, len(page.read.tokens)))
        unit = next((step for step in around if page.read.found.has_unit(step, "nodes")), None)
        rows = [*page.left, *(one.row for one in page.filled)]
        each = (
            None
            if unit is None
            else next((row for row in rows if _comes_with(page.read, row, max(unit + 1, end))), None)
        )
        if unit is None or each is None:
            continue
        machines = next((row for row in rows if row.start < unit < row.end and row is not each), None)
        page.left = [row for row in page.left if row not in (each, machines)]
        page.filled = [one for one in page.filled if one.row not in (each, machines)]
        # 'Two more nodes of 4' counts them, too.
        told = [mark for mark in page.marks if mark.start <= each.start and unit < mark.end + _NEAR]
        counted = [mark.amount.value for mark in told if mark.amount and mark.end <= each.start]
        number = each.amounts[-1].value * next(iter(counted), machines.amounts[-1].value if machines else 1)
        sign = 1 if page.read.found.does(at, "plus") else -1
        page.marks = [mark for mark in page.marks if mark not in told]
        page.added = True
        return [Edit("count", "plus", sign * int(number), page.read.span(unit, each.end))]
    return []


def _comes_with(read: Mentions, row: Row, start: int) -> bool:
    """Whether a number stands right behind a machine and 'of' or 'with', which may be a part of the word before."""
    amount, between = row.amounts[-1], read.tokens[max(start - 1, 0) : row.start]
    plain = all(unit.name == "devices" for unit in amount.units) and amount.value == int(amount.value) >= 1
    return (
        plain
        and row.start >= start
        and len(between) <= _NEAR
        and bool(between)
        and between[-1].norm in lexicon().apiece
    )


def _one_of(read: Mentions, start: int) -> str | None:
    """What 'add' is said of where no number stands: 'another box', 'a second one', 'a third card'."""
    for at in range(start, min(start + _NEAR + 1, len(read.tokens))):
        if at in read.named_tokens:
            # 'Add a third 3090', but not 'add TPU v5p'
            nth = read.tokens[at - 1].norm in ORDINALS or read.found.does(at - 1, "second", "third", "fourth")
            return "devices" if nth and at in read.found.counted else None
        if unit := next((name for name in ("nodes", "devices") if read.found.has_unit(at, name)), None):
            return unit
        if at == start and read.tokens[at].norm in ORDINALS:
            continue
        if at == start and read.found.sense(at, "alike"):
            # '¿Y si me compro otra igual?'
            return "devices"
        if read.found.sense(at, "number") and (at + 1 == len(read.tokens) or read.tokens[at + 1].ends_clause):
            # 'We lose one.'
            return "devices"
        ordinal = at > start and read.found.does(at - 1, "second", "third", "fourth")
        if ordinal or read.found.does(at, "second", "third", "fourth"):
            if at + 1 == len(read.tokens) or (ordinal and read.found.sense(at, "number")):
                return "devices"
        elif read.tokens[at].norm not in lexicon().articles:
            return None
    return None


def _one_before(read: Mentions, at: int) -> str | None:
    """What is said to be gone: 'a node drops out'."""
    single = at > 1 and read.tokens[at - 2].norm in lexicon().articles
    return next((name for name in ("nodes", "devices") if single and read.found.has_unit(at - 1, name)), None)
