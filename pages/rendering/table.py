"""Plain aligned tables for the command line; they read well in a terminal and split well in a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from itertools import zip_longest

from knowledge.prices.age import is_marked_old
from pages.rendering.clean import one_line

_GAP = 2
# A column of words is not made narrower than this; below it each row is told as lines of its own.
_LEAST = 14


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    width: int | None = None,
    head: Callable[[str], str] = str,
    optional: Sequence[str] = (),
    old: Callable[[str], str] = str,
) -> str:
    """`rows` under `headers`, columns two spaces apart; the columns named in `right` are right-aligned.

    Within `width` characters words are broken over lines; where that does not do, the `optional` columns go, the
    first first; and where even that does not, each row becomes lines of `header  cell`. Without a width every row is
    one line. `head` dresses the line of headers, `old` what is marked as an old price.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max([len(header), *(len(row[i]) for row in cells)]) for i, header in enumerate(headers)]
    if width is not None and not _narrow(widths, headers, right, width):
        if (gone := next((name for name in optional if name in headers), None)) is None:
            return "\n\n".join(_record(headers, row, width) for row in cells)
        kept = [i for i, header in enumerate(headers) if header != gone]
        fewer = [[row[i] for i in kept] for row in cells]
        return table([headers[i] for i in kept], fewer, right, width, head, optional, old)

    def dressed(cell: str, padded: str) -> str:
        return padded.replace(cell, old(cell)) if is_marked_old(cell) else padded

    def line(row: Sequence[str]) -> str:
        padded = (
            dressed(cell, cell.rjust(room) if header in right else cell.ljust(room))
            for cell, room, header in zip(row, widths, headers, strict=True)
        )
        return (" " * _GAP).join(padded).rstrip()

    return "\n".join([head(line(headers)), *(line(part) for row in cells for part in _broken(row, widths))])


def _narrow(widths: list[int], headers: Sequence[str], right: Sequence[str], width: int) -> bool:
    """Takes from the widest columns of words until all fit in `width`; False where they cannot."""
    least = {i: max(_LEAST, len(header)) for i, header in enumerate(headers) if header not in right}
    for i in least:
        widths[i] = min(widths[i], max(width, least[i]))
    for _ in range(sum(widths) + _GAP * (len(widths) - 1) - width):
        able = [i for i in least if widths[i] > least[i]]
        if not able:
            return False
        widths[max(able, key=lambda i: widths[i])] -= 1
    return True


def _broken(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """A row as the lines that it takes."""
    parts = [textwrap.wrap(cell, room) or [""] for cell, room in zip(row, widths, strict=True)]
    return [[part[i] if i < len(part) else "" for part in parts] for i in range(max(map(len, parts)))]


def _record(headers: Sequence[str], row: Sequence[str], width: int) -> str:
    return facts([(header, cell) for header, cell in zip(headers, row, strict=True) if cell], width)


def facts(rows: Sequence[tuple[str, str]], width: int | None = None) -> str:
    """`label  value` lines, values in one column and broken within `width`; of that labels take two fifths at most."""
    rows = [(one_line(label), one_line(value)) for label, value in rows]
    longest = max((len(label) for label, _ in rows), default=0)
    if width is None:
        return "\n".join(f"{label.ljust(longest + _GAP)}{value}".rstrip() for label, value in rows)
    indent = min(longest + _GAP, max(width * 2 // 5, _LEAST))
    lines: list[str] = []
    for label, value in rows:
        parts = zip_longest(
            textwrap.wrap(label, indent - _GAP),
            textwrap.wrap(value, max(width - indent, 10)),
            fillvalue="",
        )
        lines += [f"{name.ljust(indent)}{part}".rstrip() for name, part in parts] or [""]
    return "\n".join(lines)
