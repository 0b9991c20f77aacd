"""Images of a vision-language model: how many there are in a prompt or a sequence, and how large: 'five images of
768x768', 'one 1024x1448 scan per call'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.offline.form import Edit
from agent.offline.language.measures import TIMES
from agent.offline.language.mentions import Mentions
from agent.offline.language.rows import Row

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

# Pixels of a side: less is a count, more is nobody's image.
_SIDES = range(28, 16_385)
# Tokens between a size and the word for what has it.
_NEAR = 6


def sizes(read: Mentions, rows: Sequence[Row]) -> tuple[list[tuple[int, int, str]], list[Row]]:
    """([(token, token behind, 'WIDTHxHEIGHT')], the rest of the numbers)."""
    pixels, pictured = read.found.lexicon.pixels, read.found.lexicon.pictured
    images = [
        at
        for at, token in enumerate(read.tokens)
        if token.norm in pixels | pictured or read.found.has_unit(at, "images", "frames")
    ]
    found: list[tuple[int, int, str]] = []
    rest: list[Row] = []
    for row in rows:
        width = rest[-1].amounts[-1] if rest else None
        height = row.amounts[-1]
        near = any(row.start - _NEAR <= at <= row.end + _NEAR for at in images)
        square = height.end < len(read.tokens) and read.tokens[height.end].norm in pixels
        if square and height.before not in TIMES and len(row.amounts) == 1 and height.value in _SIDES:
            # '1024 px'
            found.append((height.start, height.end + 1, f"{int(height.value)}x{int(height.value)}"))
            continue
        if width is None or not near or height.before not in TIMES or len(row.amounts) > 1:
            rest.append(row)
            continue
        if width.units or not all(side.value == int(side.value) in _SIDES for side in (width, height)):
            rest.append(row)
            continue
        rest.pop()
        found.append((width.start, height.end, f"{int(width.value)}x{int(height.value)}"))
    return found, rest


def of_pictures(page: Page) -> list[tuple[int, list[Edit]]]:
    """The edits of the sizes; where no number of images is said, there is one."""
    counted = page.values("images") or page.values("video_frames")
    pieces: list[tuple[int, list[Edit]]] = []
    for start, end, size in page.pictures[:1]:
        span = page.read.span(start, end)
        edits = [Edit("image_size", "set", size, span)]
        if not counted and not (page.plan.get("workload") or {}).get("images"):
            edits.append(Edit("images", "set", 1, span, f"{page.read.said(start, end)!r}: one image taken"))
        pieces.append((start, edits))
    return pieces
