"""What writing a text changes in a file: lines with their sign, as a reader of diffs expects them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class LineChange:
    """`lines` are (sign, text): '+' and '-' changed ones, ' ' those around, '@' where others are left out."""

    verb: str
    added: int
    removed: int
    lines: tuple[tuple[str, str], ...]


def change(before: str | None, after: str) -> LineChange:
    """`before` is None for a file that is not there yet."""
    new = after.splitlines()
    if before is None:
        return LineChange("new", len(new), 0, tuple(("+", line) for line in new))
    old = before.splitlines()
    if before == after:
        return LineChange("unchanged", 0, 0, ())
    # The first two lines of a unified diff name the files, which are named already.
    lines = [_line(line) for line in difflib.unified_diff(old, new, lineterm="", n=3)][2:]
    added = sum(sign == "+" for sign, _ in lines)
    removed = sum(sign == "-" for sign, _ in lines)
    return LineChange("changes", added, removed, tuple(lines or [("@", "only the line ends differ")]))


def _line(line: str) -> tuple[str, str]:
    return ("@", line) if line.startswith("@@") else (line[:1], line[1:])
