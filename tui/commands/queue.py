"""`shardwise measure matrix`: runs what is not done of a matrix, followed by a board, and shows what it gave."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from knowledge.figures import NONE, change, seconds
from pages.answers.page import page_of
from pages.blocks import Table
from pages.rendering import terminal
from planner.matrix.results import MatrixQuestion, matrix_results
from planner.matrix.running import BoardRow, run_matrix
from tui.jsonout import write_json
from tui.pager import paged

_HEAD = ("cell", "state", "took", "predicted", "measured", "error")
_MOST_ROWS = 40


def run(arguments: argparse.Namespace) -> int:
    board = LiveBoard() if sys.stderr.isatty() else LineBoard()
    rows = run_matrix(arguments.folder, arguments.cells, board, arguments.cooldown_s, arguments.again)
    results = matrix_results(MatrixQuestion(folder=arguments.folder))  # pyright: ignore[reportCallIssue]
    if arguments.json:
        write_json(results.model_dump(mode="json"))
    else:
        paged(terminal.rendered(page_of(results, terminal.screen_width())))
    return 1 if any(row.state == "failed" for row in rows) else 0


class LineBoard:
    """A line for each cell that begins or ends."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def __call__(self, rows: Sequence[BoardRow]) -> None:
        for row in rows:
            if row.state != "waiting" and self.told.get(row.id) != row.state:
                self.told[row.id] = row.state
                print(" · ".join(part for part in _cells(row) if part != NONE), file=sys.stderr, flush=True)


class LiveBoard:
    """A table that is drawn anew in its place."""

    def __init__(self) -> None:
        self.height = 0

    def __call__(self, rows: Sequence[BoardRow]) -> None:
        counts = Counter(row.state for row in rows)
        active = next((place for place, row in enumerate(rows) if row.state == "running"), 0)
        first = max(0, min(active - _MOST_ROWS // 2, len(rows) - _MOST_ROWS))
        table = Table(_HEAD, [_cells(row) for row in rows[first : first + _MOST_ROWS]])
        summary = ", ".join(f"{count} {state}" for state, count in counts.items() if len(state) < 20)
        text = f"{terminal.render([table], terminal.screen_width())}\n{summary}\n"
        back = f"\x1b[{self.height}A\x1b[J" if self.height else ""
        print(back + text, end="", file=sys.stderr, flush=True)
        self.height = text.count("\n")


def _cells(row: BoardRow) -> list[str]:
    error = row.predicted_s / row.measured_s - 1.0 if row.predicted_s and row.measured_s else None
    return [
        row.id,
        f"{row.state} ({row.code})" if row.code else row.state,
        seconds(row.seconds) if row.seconds else NONE,
        seconds(row.predicted_s) if row.predicted_s else NONE,
        seconds(row.measured_s) if row.measured_s else NONE,
        change(error) if error is not None else NONE,
    ]
