"""'16 H100, I mean 8': what was said, and what is to stand in its place."""

from __future__ import annotations

import re

_INSTEAD = re.compile(
    r"(?<=[\w).])[\s,;:.!?-]*\s(?:(?:no|oh|oops|sorry|wait|err?|hm+)[\s,;:.-]+)*"
    r"(?:i (?:actually )?mean(?:t)?(?: to say)?|scratch that|correction|make that|sorry|oops|wait)\b"
    r"[\s,;:.!-]*(?:no[\s,;:-]+)?",
    re.IGNORECASE,
)
# 'What I mean is …', 'do you know what I meant by …'.
_NOT = re.compile(r"\b(?:what|how|which|if|do you (?:know|see)|by that)\s*$", re.IGNORECASE)


def corrected(text: str) -> tuple[str, str] | None:
    """(What stands before the correction, what stands after it), or None where nothing is corrected."""
    match = _INSTEAD.search(text)
    if match is None or _NOT.search(text[: match.start()]) or not re.search(r"\w", text[match.end() :]):
        return None
    before, after = text[: match.start()], text[match.end() :]
    return (before, after) if re.search(r"[A-Za-z].*\d|\d", after) or len(after.split()) <= 6 else None
