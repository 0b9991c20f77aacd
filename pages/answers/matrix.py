"""A matrix of benchmark runs: what it holds, and what its runs gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pages import figures
from pages.answers.files import start
from pages.answers.markdown import bullets, label, table

if TYPE_CHECKING:
    from planner.matrix.render import MatrixCell, WrittenMatrix
    from planner.matrix.results import Accuracy, MatrixResults

_MOST = 12


def written(matrix: WrittenMatrix) -> list[str]:
    """What it holds and where it was written."""
    cells = matrix.cells
    rows = table(("Strategy", "model", "on", "layout", "step"), map(_row, cells[:_MOST]), words=(0, 1, 2, 3))
    more = f"\n\nand {len(cells) - _MOST} more." if len(cells) > _MOST else ""
    return [
        f"**A matrix of {len(cells)} cell{'' if len(cells) == 1 else 's'} is written** to `{matrix.folder}`.",
        *([f"{rows}{more}"] if cells else []),
        start(matrix.launch_command),
        *bullets("It needs from you:", matrix.needs_from_user[:_MOST]),
    ]


def _row(cell: MatrixCell) -> tuple[str, ...]:
    step = figures.seconds(cell.predicted.step_s) if cell.predicted else "" if cell.fits else "does not fit"
    model = cell.model.rpartition("/")[2]
    return cell.strategy, model, f"{cell.devices} x {cell.platform}", cell.summary or "", step


def measured(results: MatrixResults) -> list[str]:
    """What the runs of a matrix gave against what was estimated."""
    missing = f", {len(results.missing)} have none." if results.missing else "."
    return [
        f"**{len(results.cells)} cells of `{results.folder}` have results**{missing}",
        *bullets("Measured against estimated:", map(_accuracy, results.accuracy)),
    ]


def _accuracy(row: Accuracy) -> str:
    return ", ".join(f"{label(name)} {figures.plain(value)}" for name, value in row if value is not None)
