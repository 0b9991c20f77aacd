"""What would help a plan, and what the playbook says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pages import figures
from pages.answers.markdown import bullets

if TYPE_CHECKING:
    from planner.advice.advise import Advice, Advised
    from planner.advice.playbook import PlaybookEntry, PlaybookFound

_MOST_ADVICE, _MOST_BESIDE, _MOST_NOT_WORTH = 5, 3, 3
_MOST_ENTRIES, _MOST_SETTINGS, _MOST_TITLES = 3, 6, 7
# A gain that is told.
_WORTH = 0.005
_BETTER = {"tokens_per_s": "more tokens/s", "per_device_bytes": "less memory", "usd": "less cost"}


def advice(found: Advice) -> list[str]:
    limit = f"What limits it: {found.bottleneck}." if found.bottleneck else ""
    if not found.entries:
        return [f"**I know of nothing that would help this plan.** {limit}"]
    together = found.together
    head = f"**{found.entries[0].title}.**"
    if together and together.gain and len(together.ids) > 1:
        titles = [entry.title for entry in found.entries if entry.id in together.ids]
        what = f": {'; '.join(titles).lower()}." if titles else "."
        head = f"**About {_gain(together.gain, together.objective)} is in it**{what}"
    lines = []
    for number, entry in enumerate(found.entries[:_MOST_ADVICE], 1):
        gain = f" ({_gain(entry.gain, entry.objective)})" if entry.gain and _is_worth(entry) else ""
        lines.append(f"{number}. **{entry.title}**{gain}: {entry.advice}")
    rest = [f"{row.title}: {row.why}" for row in found.not_worth[:_MOST_NOT_WORTH]]
    return [f"{head} {limit}", *lines, *bullets("Tried, and not worth it here:", rest)]


def beside(found: Advice) -> list[str]:
    """Advice beside an estimate that already says what changes would bring."""
    lines = [
        f"**{entry.title}** ({_gain(entry.gain or 0.0, entry.objective)}): {entry.advice}"
        for entry in found.entries
        if _is_worth(entry)
    ]
    return bullets("From the playbook:", lines[:_MOST_BESIDE])


def _is_worth(entry: Advised) -> bool:
    return entry.gain is not None and entry.gain > _WORTH


def _gain(gain: float, objective: str | None) -> str:
    return f"{figures.percent(gain)} {_BETTER.get(objective or '', 'gain')}"


def playbook(found: PlaybookFound) -> list[str]:
    if not found.entries:
        topics = ", ".join(topic.id for topic in found.topics)
        return [f"The playbook has nothing on {found.query!r}.", *([f"Its topics: {topics}."] if topics else [])]
    first, *others = found.entries[:_MOST_ENTRIES]
    return [
        _entry(first, f"**{first.title}.**"),
        *(_entry(entry, f"**{entry.title}**:") for entry in others),
        *bullets("More in the playbook:", [entry.title for entry in found.entries[_MOST_ENTRIES:_MOST_TITLES]]),
    ]


def _entry(entry: PlaybookEntry, title: str) -> str:
    settings = [f"`{name}`: {value}" for name, value in list(entry.settings.items())[:_MOST_SETTINGS]]
    return "\n".join(bullets(f"{title} {entry.advice}", [*settings, f"Source: {entry.source}"]))
