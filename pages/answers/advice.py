"""What would help a plan, and what the playbook says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge import figures
from pages.answers import steps
from pages.blocks import Block, Prose
from pages.results.advice import advised, entry, gain_words, gained
from pages.results.basis import notes
from pages.results.columns import table

if TYPE_CHECKING:
    from planner.advice.advise import Advice, Advised
    from planner.advice.playbook import PlaybookFound

_MOST_ADVICE, _MOST_BESIDE, _MOST_NOT_WORTH = 5, 3, 3
_MOST_ENTRIES, _MOST_TITLES = 3, 7
# A gain that is told.
_WORTH = 0.005


def advice(tips: Advice) -> list[Block]:
    limit = f"Bottleneck: {tips.bottleneck}." if tips.bottleneck else ""
    if not tips.entries:
        return [Prose(f"**Nothing known would help this plan.** {limit}")]
    together = tips.together
    first = tips.entries[0]
    head = f"**{first.title}{f': {gained(first.gain, first.objective)}' if first.gain else ''}.**"
    if together and together.gain and len(together.ids) > 1:
        titles = [entry.title for entry in tips.entries if entry.id in together.ids]
        what = f": {'; '.join(titles)}." if titles else "."
        head = f"**About {gained(together.gain, together.objective)} together**{what}"
    gains = [row for row in tips.entries if row.gain]
    rest = [f"{row.title}: {row.why}" for row in tips.not_worth[:_MOST_NOT_WORTH]]
    return [
        Prose(f"{head} {limit}"),
        *(table(gains, [("change", "title"), "gain", ("of", _of)]) if len(gains) > 1 else []),
        *map(advised, tips.entries[:_MOST_ADVICE]),
        *notes("Tried, and not worth it here", rest),
        *steps.advised(tips),
    ]


def _of(row: Advised) -> str:
    """What the gain is of: tokens/s, or the memory, time or money that is saved."""
    return figures.label(row.objective or "")


def beside(tips: Advice) -> list[Block]:
    """Advice beside an estimate that already says what changes would bring."""
    worth = [row for row in tips.entries if row.gain is not None and row.gain > _WORTH]
    return notes("From the playbook", [f"{row.title}{gain_words(row)}: {row.advice}" for row in worth[:_MOST_BESIDE]])


def playbook(matches: PlaybookFound) -> list[Block]:
    if not matches.entries:
        topics = ", ".join(topic.id for topic in matches.topics)
        known = f" Its topics: {topics}." if topics else ""
        return [Prose(f"The playbook has nothing on {matches.query!r}.{known}")]
    more = [row.title for row in matches.entries[_MOST_ENTRIES:_MOST_TITLES]]
    return [*map(entry, matches.entries[:_MOST_ENTRIES]), *notes("More in the playbook", more)]
