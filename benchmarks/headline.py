"""The README's table of accuracy: the mean rows of docs/accuracy.md and, where it has one, the other estimator's error.

`accuracy.py headline --write README.md` writes it. It holds no figure of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DETAILS = Path(__file__).parent.parent / "docs" / "accuracy.md"
_NAMES = {"tokens/s and device of": "training, tokens/s", "peak memory of": "training, peak memory"}
_COLUMNS = ("figures", "mean error", "covered", "mean, source unseen", "unseen covered")
_HEAD = "| estimate of | sources | measured | mean error | covered | source unseen | covered | aiconfigurator (ours) |"


def table() -> str:
    """A line for each figure that docs/accuracy.md has a mean over sources of."""
    rivals = dict(_rivals())
    lines = [_HEAD, "| --- |" + " ---: |" * 7]
    for name, row in _means():
        cells = [row[column] for column in _COLUMNS]
        lines.append("| " + " | ".join([_said(name), row["sources"], *cells, rivals.get(name, "")]) + " |")
    return "\n".join(lines)


def _said(name: str) -> str:
    return _NAMES.get(name) or f"serving, {name}"


def _tables() -> Iterator[tuple[list[str], list[list[str]]]]:
    """The head and the rows of every table of the details."""
    for block in re.findall(r"(?:^\|.*\n)+", DETAILS.read_text(encoding="utf-8"), re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        yield rows[0], rows[2:]


def _means() -> Iterator[tuple[str, dict[str, str]]]:
    """Of each mean over sources: what is estimated, and its cells by the name of their column."""
    for head, rows in _tables():
        columns = ["figures" if name == "runs" else name for name in head]
        columns[-1] = "unseen covered"
        for row in rows:
            found = re.fullmatch(r"\*\*(?:(.+), )?mean of ([0-9]+) sources\*\*", row[0])
            if found:
                yield found[1] or head[0], {**dict(zip(columns, row, strict=True)), "sources": found[2]}


def _rivals() -> Iterator[tuple[str, str]]:
    """The other estimator's mean error by figure, and ours on the same rows."""
    for head, rows in _tables():
        if head[-1].startswith("aiconfigurator"):
            for name, _, ours, theirs in rows:
                yield name, f"{theirs.split(' / ')[0]} ({ours.split(' / ')[0]})"
