"""What the user said, as Plan paths and values, each with the words that it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Slot:
    """One thing said. `note` is what had to be assumed to read it so, as a sentence, or None."""

    path: str
    value: Any
    words: str
    note: str | None = None


@dataclass(frozen=True)
class Relative:
    """A change by a factor ('double the GPUs')."""

    path: str
    factor: float
    words: str


@dataclass(frozen=True)
class Device:
    """An accelerator that was named, with the count that stands beside it, if any."""

    id: str
    count: int | None


@dataclass(frozen=True)
class Question:
    """Something that only the user can settle: `field` is the Plan path, `text` the question."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"
