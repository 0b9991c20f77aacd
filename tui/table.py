"""Plain aligned tables for the command line; they read well in a terminal and split well in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from tui.clean import one_line


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """`rows` under `headers`, columns two spaces apart; the columns named in `right` are right-aligned."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max([len(header), *(len(row[i]) for row in cells)]) for i, header in enumerate(headers)]

    def line(row: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if header in right else cell.ljust(width)
            for cell, width, header in zip(row, widths, headers, strict=True)
        )
        return "  ".join(padded).rstrip()

    return "\n".join([line(headers), *map(line, cells)])
