"""What stands at the end of every page: warnings, and folded what was assumed and what the estimate rests on."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.figures import plain
from pages.blocks import Block, Folded, Note
from pages.results.fields import field_name
from planner.result import Assumption, Evidence


def tail(warnings: Sequence[str], assumptions: Sequence[Assumption], evidence: Sequence[Evidence] = ()) -> list[Block]:
    rests = [f"{row.figure}: {row.basis}" for row in evidence]
    basis = [
        *notes("Assumed", assumed(assumptions), quiet=True),
        *notes("Evidence", list(dict.fromkeys(rests)), quiet=True),
    ]
    return [*notes("Watch out", warnings), *([Folded(basis)] if basis else [])]


def notes(title: str, items: Sequence[str] | None, quiet: bool = False) -> list[Block]:
    """A note, where there is anything to say."""
    return [Note(title, items, quiet)] if items else []


def assumed(assumptions: Sequence[Assumption]) -> list[str]:
    """One line for each reason, as many fields share theirs."""
    by_reason: dict[str, list[str]] = {}
    for row in assumptions:
        by_reason.setdefault(row.why, []).append(f"{field_name(row.field)} {plain(row.value)}")
    return [f"{', '.join(dict.fromkeys(fields))}: {why}" for why, fields in by_reason.items()]
