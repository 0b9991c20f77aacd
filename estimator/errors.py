"""The one kind of error a user's input can cause; every face shows its text unchanged."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# How many values an error names, and how alike (difflib's ratio) they are at the least: assumptions, what reads well.
_NEAREST, _LIKENESS = 5, 0.4


class PlanError(ValueError):
    """A value that the user gave cannot be used.

    `field` is the dotted name of the Plan field (or tool argument), `problem` says what is wrong with it, and
    `valid` lists the nearest values that would be accepted.
    """

    def __init__(self, field: str, problem: str, valid: Iterable[object] = ()) -> None:
        self.field = field
        self.problem = problem
        self.valid = [str(value) for value in valid]
        text = f"{field}: {problem}"
        if self.valid:
            text += f"; valid: {' '.join(self.valid) if _are_short(self.valid) else ', '.join(self.valid)}"
        super().__init__(text)


def nearest(word: str, choices: Iterable[str], limit: int = _NEAREST) -> list[str]:
    """The choices that look most like `word`, best first; all of them when there are few."""
    options = list(choices)
    if len(options) <= limit:
        return options
    by_folded = {option.lower(): option for option in options}
    close = difflib.get_close_matches(word.lower(), by_folded, n=limit, cutoff=_LIKENESS)
    return [by_folded[match] for match in close] or options[:limit]


# Characters of values that can be read side by side (choice).
_SHORT = 8


def _are_short(values: list[str]) -> bool:
    return all(len(value) <= _SHORT and " " not in value for value in values)
