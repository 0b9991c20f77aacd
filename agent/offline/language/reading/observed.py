"""Figures that somebody tells to have measured."""

from __future__ import annotations

from agent.offline.language.lexicon import Sense
from agent.offline.language.mentions import Mentions
from agent.offline.language.rows import Row

# Words before a figure that may say that it was measured, and before those that it is only to be.
_REACH = 14
_NEAR = 3


def is_observed(read: Mentions, row: Row) -> bool:
    """Whether a figure is what somebody measured, no wish: 'gives 13 tokens/s', 'it runs, at 20 tokens/s'."""
    for at in range(row.start - 1, max(row.start - _REACH, -1), -1):
        if read.tokens[at].ends_sentence or any(sense.kind == "wants" for sense in senses_at(read, at)):
            return False
        if has_sense(read, at, "observes"):
            return not _is_aimed_at(read, at)
    return False


def _is_aimed_at(read: Mentions, at: int) -> bool:
    """Whether what would be observed is only to be: 'to get', 'can I reach', or 'get' that begins an order."""
    far = max(at - _NEAR, 0)
    begins = next((each + 1 for each in range(at - 1, far - 1, -1) if read.tokens[each].ends_clause), far)
    if begins == at:
        return has_sense(read, at, "orders")
    return any(has_sense(read, each, "aims") for each in range(begins, at))


def has_sense(read: Mentions, at: int, kind: str) -> bool:
    return any(sense.kind == kind for sense in senses_at(read, at))


def senses_at(read: Mentions, at: int) -> list[Sense]:
    return [sense for word in read.found.words.get(at, ()) for sense in word.senses]
