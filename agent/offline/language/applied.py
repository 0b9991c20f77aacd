"""Whether a number counts texts that a model is to do something with, or to write: 'summarize 20,000 letters'."""

from __future__ import annotations

from agent.offline.language.measures import Found

# Tokens between a verb and what it does something with, and between 'run' and what it goes through.
_VERB, _FAR = 4, 14


def is_worked_on(heard: Found, start: int) -> bool:
    """Whether a number stands behind what a model does with texts ('summarize about 20,000 letters'), or right behind a
    word for going through them ('over 2M prompts') or for making them ('generate 100k samples')."""
    if is_made(heard, start) or "texts" in _applied(heard, range(max(start - _VERB, 0), start)):
        return True
    through = start > 0 and heard.sense(start - 1, "through") is not None
    return through and "run" in _applied(heard, range(max(start - _FAR, 0), start))


def is_made(heard: Found, start: int) -> bool:
    """Whether a model is to write what a number counts: 'generate 100k samples'."""
    return "made" in _applied(heard, range(max(start - 2, 0), start))


def _applied(heard: Found, places: range) -> set[str]:
    """What a model is to do with texts, by words that begin at some tokens."""
    words = [word for at in places for word in heard.words.get(at, ())]
    return {sense.name for word in words for sense in word.all("asked") if sense.value == "applied"}
