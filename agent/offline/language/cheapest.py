"""The cheapest way to give each row of a table a column of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence


def cheapest(table: Sequence[Sequence[float]]) -> list[int]:
    """The column of each row that makes the sum least, no column twice (Jonker and Volgenant's shortest augmenting
    paths). A table has at least as many columns as rows."""
    if not table:
        return []
    height, width = len(table), len(table[0])
    row_price, column_price = [0.0] * (height + 1), [0.0] * (width + 1)
    match = [0] * (width + 1)
    for row in range(1, height + 1):
        match[0] = row
        at = 0
        least, way, used = [math.inf] * (width + 1), [0] * (width + 1), [False] * (width + 1)
        while True:
            used[at] = True
            current, delta, following = match[at], math.inf, 0
            costs = table[current - 1]
            for column in range(1, width + 1):
                if used[column]:
                    continue
                reduced = costs[column - 1] - row_price[current] - column_price[column]
                if reduced < least[column]:
                    least[column], way[column] = reduced, at
                if least[column] < delta:
                    delta, following = least[column], column
            for column in range(width + 1):
                if used[column]:
                    row_price[match[column]] += delta
                    column_price[column] -= delta
                else:
                    least[column] -= delta
            at = following
            if match[at] == 0:
                break
        while at:
            match[at] = match[way[at]]
            at = way[at]
    placed = sorted((row, column - 1) for column, row in enumerate(match) if column and row)
    return [column for _, column in placed]
