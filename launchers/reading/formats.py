"""A format of configs: how it is told from others, and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from launchers.reading.documents import Keys
from launchers.reading.findings import Findings


@dataclass(frozen=True)
class Format:
    """How a config is told from others (the highest score wins) and read. `order`: configs of programs come first, what
    they refer to later."""

    name: str
    score: Callable[[Keys], int]
    read: Callable[[Keys, Findings], None]
    kinds: tuple[str, ...] = ("yaml",)
    order: int = 0
