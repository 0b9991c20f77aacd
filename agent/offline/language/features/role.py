"""What of a text shows which field a number is of: its unit and size, the words around it, and what the costs of
`assign` found cheapest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from agent.offline.language.assign import Filled
from agent.offline.language.measures import Named
from agent.offline.language.mentions import Mentions
from agent.offline.language.rows import Row

# Words before a number, words behind it, and how far senses and fields' names are looked for.
_BEFORE, _BEHIND, _NEAR, _FAR = 5, 5, 6, 8
_KINDS = ("asked", "does", "unit", "value")
_LONG = 5


def of_role(
    read: Mentions,
    row: Row,
    cheapest: Sequence[Filled],
    named: Sequence[Named],
    mode: str | None,
    recent: str | None,
    planned: bool,
) -> list[str]:
    """`cheapest` is what the costs let the row fill, `named` all names of fields in the text; `recent` is the
    path of what was said last, `planned` whether there is a plan."""
    last = row.amounts[-1]
    size = _size(last.value)
    shown = [
        *(f"u:{unit.name}:{unit.size}" for unit in last.units),
        *(f"p:{unit.name}:{unit.size}" for unit in last.per),
        f"s:{last.scale}",
        f"v:{size}",
        f"whole:{last.value == int(last.value)}",
        f"names:{last.names}",
        f"bare:{row.bare}",
        f"b&v:{row.bare}:{size}:{last.scale}",
        f"n:{min(len(row.amounts), 3)}",
        f"mode:{mode}",
        f"plan:{planned}",
        f"m&v:{mode}:{size}:{row.bare}",
        f"long:{min(len(read.tokens) // _LONG, _LONG)}",
        f"recent:{recent}",
        f"r&v:{recent}:{size}:{row.bare}",
    ]
    fields = [f"hand:{each.field}" for each in cheapest] or ["hand:none"]
    costs = [f"cost:{cheapest[0].field}:{int(cheapest[0].cost * 2)}"] if cheapest else []
    return [*shown, *fields, *costs, *_words(read, row), *_senses(read, row), *_names(row, named)]


def _size(value: float) -> str:
    """The order of a value, in halves of a power of ten."""
    return "none" if value <= 0 else str(int(math.log10(value) * 2))


def _words(read: Mentions, row: Row) -> Iterator[str]:
    for far in range(1, _BEFORE + 1):
        if row.start - far < 0:
            yield f"B{far}:^"
            break
        word = read.tokens[row.start - far].norm
        yield from (f"B{far}:{word}", f"b:{word}")
    for far in range(_BEHIND):
        if row.end + far >= len(read.tokens):
            yield f"A{far}:$"
            break
        word = read.tokens[row.end + far].norm
        yield from (f"A{far}:{word}", f"a:{word}")
    yield "BB:" + " ".join(token.norm for token in read.tokens[max(row.start - 2, 0) : row.start])
    yield "AA:" + " ".join(token.norm for token in read.tokens[row.end : row.end + 2])


def _senses(read: Mentions, row: Row) -> Iterator[str]:
    for at in range(max(row.start - _NEAR, 0), min(row.end + _NEAR, len(read.tokens))):
        side = "B" if at < row.start else "A" if at >= row.end else "I"
        for word in read.found.words.get(at, ()):
            yield from (f"{side}{kind}:{sense.name}" for kind in _KINDS for sense in word.all(kind))


def _names(row: Row, named: Sequence[Named]) -> Iterator[str]:
    """Names of fields near the number."""
    for each in named:
        before = each.end <= row.start
        far = row.start - each.end if before else each.start - row.end
        if far <= _FAR:
            side = "B" if before else "A"
            yield from (f"F{side}:{each.field}", f"F{side}{min(max(far, 0), 4)}:{each.field}")
