"""The one kind of error a user's input can cause; every face shows its text unchanged."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from estimator.credentials import without_credentials

# How many values an error names, and how alike (difflib's ratio) they are at the least, also where none may be named:
# assumptions, what reads well.
_NEAREST, _LIKENESS, _NEAR = 5, 0.4, 0.6


# Characters of a name, of a word and of a problem that an error repeats: assumptions, longer than any that is meant.
_LONGEST_NAME, _LONGEST_WORD, _LONGEST_PROBLEM = 300, 300, 4000
# What moves a cursor, turns round what is read, breaks a line or stands there unseen: control characters but tab and
# line end, Unicode's marks of direction (Bidi_Control), the tags that spell words which no screen shows, and halves of
# pairs, which nothing can print.
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_ENDLESS = re.compile(r"\S{301,}")


class PlanError(ValueError):
    """A value that the user gave cannot be used.

    `field` is the dotted name of the Plan field (or tool argument), `problem` says what is wrong with it, and
    `valid` lists the nearest values that would be accepted.
    """

    def __init__(self, field: str, problem: str, valid: Iterable[object] = ()) -> None:
        self.field = told(field, _LONGEST_NAME)
        self.problem = told(problem)
        self.valid = [told(value, _LONGEST_NAME) for value in valid]
        text = f"{self.field}: {self.problem}"
        if self.valid:
            text += f"; valid: {' '.join(self.valid) if _are_short(self.valid) else ', '.join(self.valid)}"
        super().__init__(text)

    def __reduce__(self) -> tuple[type[PlanError], tuple[str, str, list[str]]]:
        """For its way from one process to another."""
        return PlanError, (self.field, self.problem, self.valid)


def told(value: object, longest: int = _LONGEST_PROBLEM) -> str:
    """Somebody's words as an error can repeat them: nothing that steers a terminal, no word without end, no key or
    password, not too much."""
    text = without_credentials(str(value))
    if len(text) > longest:
        text = f"{text[: longest - 1]}…"
    text = STEERING.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
    return _ENDLESS.sub(lambda match: f"{match[0][:_LONGEST_WORD]}…", text)


def unreadable(error: Exception) -> str:
    """Why a parser gave up, for whoever wrote the text: Python's own words are about its settings."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    problem = " ".join(str(error).split())
    return "it has an integer of thousands of digits" if "set_int_max_str_digits" in problem else problem


def steers(text: str) -> bool:
    """Whether it holds what moves a cursor or turns round what is read."""
    return STEERING.search(text) is not None


def nearest(word: str, choices: Iterable[str], limit: int = _NEAREST) -> list[str]:
    """The choices that look most like `word`, best first; all of them when there are few."""
    options = list(choices)
    return options if len(options) <= limit else near(word, options, limit, _LIKENESS) or options[:limit]


def near(word: str, choices: Iterable[str], limit: int = _NEAREST, likeness: float = _NEAR) -> list[str]:
    """The choices that look like `word`, best first; [] where none does."""
    by_folded = {option.lower(): option for option in choices}
    close = difflib.get_close_matches(word.lower(), by_folded, n=limit, cutoff=likeness)
    return [by_folded[match] for match in close]


# Characters of values that can be read side by side (choice).
_SHORT = 8


def _are_short(values: list[str]) -> bool:
    return all(len(value) <= _SHORT and " " not in value for value in values)
