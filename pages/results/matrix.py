"""Pages of a benchmark matrix: what it would run, and what was measured of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from estimator.units import GIB
from knowledge.figures import NONE, between, label, shown
from pages.blocks import Block, Chart, Figures, Headline, Note, capitalised
from pages.results.basis import notes, tail
from pages.results.columns import Column, table, yes
from pages.results.many import meanings
from planner.plots import Plot, grouped

if TYPE_CHECKING:  # each has the module of its own tool behind it
    from planner.matrix.render import MatrixCell, RenderedMatrix, WrittenMatrix
    from planner.matrix.results import Accuracy, CellFigure, MatrixResults, MeasuredCell

_SHOWN = 8


def matrix(result: RenderedMatrix | WrittenMatrix) -> list[Block]:
    cells, folder = result.cells, getattr(result, "folder", None)
    runs = sum(cell.runs for cell in cells)
    where = f"written to {folder}" if folder is not None else "--write DIR writes them"
    return [
        Headline(
            f"{runs} of {len(cells)} runs can be started; {len(result.files)} files, {where}.",
            runs > 0,
            next((f"{capitalised(cell.skip_reason)}." for cell in cells if cell.skip_reason), ""),
            beware=runs < len(cells),
        ),
        *predicted(cells),
        meanings(result.strategies),
        Figures([("start with", result.launch_command)]),
        *notes("You still have to fill in", result.needs_from_user),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def predicted(cells: Sequence[MatrixCell]) -> list[Block]:
    if any(cell.engine for cell in cells):
        figures = [("predicted.ttft_s"), ("predicted.tpot_s"), ("predicted.output_tokens_per_s")]
        of_serving: list[Column] = ["model", "platform", "strategy", "engine", *figures, "runs", ("layout", "summary"),
                              ("why not", "skip_reason")]  # fmt: skip
        return table(cells, of_serving, "Predicted")
    columns: list[Column] = [
        "model", "platform", ("strategy", lambda row: row.strategy.replace("_", " ")), "framework",
        "predicted.step_s", "predicted.tokens_per_s_per_device", "predicted.peak_bytes",
        "runs", ("layout", "summary"), ("why not", "skip_reason"),
    ]  # fmt: skip
    return table(cells, columns, "Predicted")


def results(result: MatrixResults) -> list[Block]:
    cells, missing = result.cells, result.missing
    absent = [*missing[:_SHOWN], *([f"and {len(missing) - _SHOWN} more"] if len(missing) > _SHOWN else [])]
    rows = max(result.training_csv.count("\n"), 1) - 1 + max(result.memory_csv.count("\n"), 1) - 1
    return [
        Headline(f"{len(cells)} of {len(cells) + len(missing)} runs in {result.folder} have a result."),
        *accuracy(result.accuracy),
        *_by_run(cells),
        *map(Chart, measured_plots(cells)),
        *notes("No result yet", absent),
        *([Note("", [f"--json has them as {rows} rows of measurements"], True)] if rows else []),
        *tail(result.warnings, ()),
    ]


def accuracy(rows: Sequence[Accuracy]) -> list[Block]:
    return table(rows, ACCURACY, "Predicted against measured")


def _by_run(cells: list[MeasuredCell]) -> list[Block]:
    """A row a measured figure; runs without one, such as those out of memory, have a row too."""
    measured = [figure for cell in cells for figure in cell.figures]
    cell_of = {id(figure): cell for cell in cells for figure in cell.figures}
    columns: list[Column] = [
        ("run", lambda row: cell_of[id(row)].id), ("outcome", lambda row: cell_of[id(row)].outcome or NONE),
        *MEASURED, ("in interval", lambda row: yes(row.covered)),
    ]  # fmt: skip
    without = [cell for cell in cells if not cell.figures]
    return [*table(measured, columns, "By run"), *table(without, [("run", "id"), "outcome"], "Without a figure")]


def measured_plots(cells: Sequence[MeasuredCell]) -> list[Plot]:
    """Each figure that runs have, measured beside predicted; runs by the number of their strategy, their platform and,
    of several models, the model."""
    plots, several = list[Plot](), len({cell.model for cell in cells}) > 1
    names = {cell.id: " ".join(filter(None, (cell.id.partition("-")[0], cell.platform, cell.model if several else "")))
             for cell in cells}  # fmt: skip
    for name in dict.fromkeys(figure.figure for cell in cells for figure in cell.figures):
        rows = [(names[cell.id], figure) for cell in cells for figure in cell.figures if figure.figure == name]
        unit, size = next(((unit, size) for end, unit, size in _UNITS if name.endswith(end)))
        measured, predicted, low, high = (
            [None if value is None else value / size for value in (getattr(figure, column) for _, figure in rows)]
            for column in ("measured", "predicted", "low", "high")
        )
        groups, intervals = {"measured": measured, "predicted": predicted}, {"predicted": (low, high)}
        plots += grouped(capitalised(label(name)), "run", unit, [run for run, _ in rows], groups, intervals)
    return plots


# By the end of a figure's name what it is drawn in, and how much of SI that is.
_UNITS = (("_per_s_per_device", "tokens/s", 1.0), ("_per_s", "tokens/s", 1.0), ("_bytes", "GiB", GIB), ("_s", "s", 1.0))


def _figure_name(row: CellFigure | Accuracy) -> str:
    return label(row.figure)


def _in_its_unit(name: str) -> Callable[[CellFigure], str]:
    return lambda row: shown(row.figure, getattr(row, name))


def _interval(row: CellFigure) -> str:
    return NONE if row.low is None or row.high is None else between(row.figure, row.low, row.high)


MEASURED: list[Column] = [
    ("figure", _figure_name), ("measured", _in_its_unit("measured")), ("predicted", _in_its_unit("predicted")),
    ("80 % interval", _interval), "error",
]  # fmt: skip
ACCURACY: list[Column] = [("figure", _figure_name), "runs", "mape", "median_error", "bias", "coverage"]
