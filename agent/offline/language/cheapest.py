"""The cheapest way to give each row of a table a column of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def cheapest(table: Sequence[Sequence[float]]) -> list[int]:
    """The column of each row that makes the sum least, no column twice (Jonker and Volgenant's shortest augmenting
    paths). A table has at least as many columns as rows."""
    if not table:
        return []
    costs = np.asarray(table)
    height, width = costs.shape
    # Column 0 is where the path of a row begins.
    row_price, column_price = np.zeros(height + 1), np.zeros(width + 1)
    match = np.zeros(width + 1, dtype=int)
    for row in range(1, height + 1):
        match[0] = row
        at = 0
        least, way, used = np.full(width + 1, np.inf), np.zeros(width + 1, dtype=int), np.zeros(width + 1, dtype=bool)
        while True:
            used[at] = True
            reduced = costs[match[at] - 1] - row_price[match[at]] - column_price[1:]
            nearer = ~used[1:] & (reduced < least[1:])
            least[1:][nearer], way[1:][nearer] = reduced[nearer], at
            following = int(np.where(used, np.inf, least).argmin())
            delta = least[following]
            row_price[match[used]] += delta
            column_price[used] -= delta
            least[~used] -= delta
            at = following
            if match[at] == 0:
                break
        while at:
            match[at] = match[way[at]]
            at = way[at]
    placed = sorted((row, column - 1) for column, row in enumerate(match.tolist()) if column and row)
    return [column for _, column in placed]
