"""Pages of advice on a plan, and of the playbook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge import figures
from pages.blocks import Block, Headline, Note
from pages.results.basis import notes, tail
from pages.results.plan import flags, plan_figures

if TYPE_CHECKING:  # has all that can be estimated behind it
    from planner.advice.advise import Advice, Advised
    from planner.advice.playbook import PlaybookEntry, PlaybookFound

_BETTER = {"tokens_per_s": "more tokens/s", "per_device_bytes": "less memory per device", "usd": "less cost"}


def advise(result: Advice) -> list[Block]:
    said, together = f"{result.applying} entries of the playbook apply", result.together
    if together and together.gain:
        gain = gained(together.gain, together.objective)
        said += f"; together the settings among them give {gain}: {flags(together.patch)}"
    return [
        Headline(f"{said}.", result.fits),
        *plan_figures(result.plan),
        *map(advised, result.entries),
        *notes("Not worth it here", [f"{row.title}: {row.why}" for row in result.not_worth]),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def playbook(result: PlaybookFound) -> list[Block]:
    if not result.entries:
        topics = [f"{row.id}: {row.title} ({row.entries} entries)" for row in result.topics]
        return [Headline("Nothing found." if result.query else "Topics"), *notes("Topics", topics)]
    return [
        Headline(f"{len(result.entries)} of {result.matches} entries."),
        *map(entry, result.entries),
    ]


def entry(row: PlaybookEntry) -> Block:
    return Note(row.title, _lines(row))


def advised(row: Advised) -> Block:
    """An entry that applies, with what it gives."""
    patch = flags(row.patch)
    return Note(f"{row.title}{gain_words(row)}", _lines(row, patch))


def gain_words(row: Advised) -> str:
    return "" if row.gain is None else f" ({gained(row.gain, row.objective)})"


def gained(gain: float, objective: str | None) -> str:
    """'18 % more tokens/s', '40 % less memory per device': a gain is for the better, whichever way that is."""
    return f"{figures.percent(gain)} {_BETTER.get(objective or '', 'gain')}"


def _lines(row: Advised | PlaybookEntry, patch: str = "") -> list[str]:
    settings = [f"{name}: {what}" for name, what in row.settings.items()]
    return [row.advice, *([f"flags: {patch}"] if patch else []), *settings, f"source: {row.source}"]
