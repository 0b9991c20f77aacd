"""The user's words while they are being read: what is understood is blanked out, so that nothing is read twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

# Private-use characters stand for names already read; later rules ("8x <accelerator>") refer to them.
MODEL, ACCELERATOR, INSTANCE, READ = "\ue000", "\ue001", "\ue002", "\ue003"


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ignoring case. Compiled when it is first tried, since a turn tries a part of them only, and kept,
    since there are more of them than Python's own cache holds."""
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True)
class Spotted:
    """A name in the text: `kind` is model, path, size, accelerator, instance or pod."""

    kind: str
    text: str
    start: int
    end: int
    value: Any = None


@dataclass
class Page:
    """`rest` is as long as `text`; what was read is blanked in it."""

    text: str
    rest: str = field(init=False)
    names: list[Spotted] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rest = self.text

    def take(self, start: int, end: int, mark: str = READ) -> str:
        """Blanks a span and returns its words."""
        self.rest = self.rest[:start] + mark * (end - start) + self.rest[end:]
        return self.text[start:end]

    def spot(self, kind: str, start: int, end: int, mark: str, value: Any = None) -> None:
        self.names.append(Spotted(kind, self.take(start, end, mark), start, end, value))

    def find(self, pattern: re.Pattern[str] | str) -> Iterator[re.Match[str]]:
        """Matches in what is left, left to right; a match may be taken before the next is looked for. A pattern given
        as text ignores case."""
        pattern = compiled(pattern) if isinstance(pattern, str) else pattern
        position = 0
        while match := pattern.search(self.rest, position):
            yield match
            position = max(match.end(), position + 1)

    def of(self, *kinds: str) -> list[Spotted]:
        return sorted((name for name in self.names if name.kind in kinds), key=lambda name: name.start)

    def at(self, position: int) -> Spotted | None:
        return next((name for name in self.names if name.start <= position < name.end), None)
