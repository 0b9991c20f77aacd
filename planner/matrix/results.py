"""matrix_results: what was measured of a benchmark matrix, beside what was predicted."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from launchers.matrix import MANIFEST
from measure.run.matrix import METRICS, SOURCE, Measured, read, summaries, table
from planner.files.below import inside_root
from planner.result import Result


class MatrixQuestion(BaseModel):
    model_config = ConfigDict(extra="forbid")
    folder: str = Field(
        description="Of the matrix, below the working folder; each cell has its result.json or its run's logs there."
    )
    source: str = Field(
        SOURCE, pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", description="What to call these runs in the measurement rows."
    )


class CellFigure(Result):
    figure: str = Field(
        description="step_s, tokens_per_s_per_device, peak_bytes, ttft_s, tpot_s or output_tokens_per_s."
    )
    measured: float
    predicted: float | None = Field(description="Of memory as the result's counter would show it.")
    low: float | None = Field(description="Of the 80 % interval.")
    high: float | None
    error: float | None = Field(description="Predicted over measured, less 1.")
    covered: bool | None = Field(description="Whether the interval holds what was measured.")


class MeasuredCell(Result):
    id: str
    model: str | None
    platform: str | None
    strategy: str | None
    outcome: str | None = Field(description="ran, oom or failed; null where there is no result.")
    file: str | None = Field(description="Where that stands: the cell's result.json, or else a log of the program.")
    note: str | None
    fits: bool | None = Field(description="Whether it was predicted to fit.")
    figures: list[CellFigure]
    versions: dict[str, str]
    problem: str | None = Field(description="Why its result does not count; null where it does.")


class Accuracy(Result):
    figure: str
    runs: int
    mape: float = Field(description="Mean size of the errors.")
    median_error: float = Field(description="Median size of the errors.")
    bias: float = Field(description="Mean error: above 0 where too much was predicted.")
    within_20: float
    coverage: float = Field(description="Part of the runs that the 80 % intervals hold.")


class MatrixResults(Result):
    folder: str
    cells: list[MeasuredCell] = Field(description="Those with a result, in the matrix's order.")
    accuracy: list[Accuracy]
    missing: list[str] = Field(description="Cells that the script runs and that have no result.")
    training_csv: str = Field(description="Measured speeds as rows of knowledge/measurements/training.csv.")
    memory_csv: str = Field(description="Measured peaks as rows of knowledge/measurements/memory.csv.")
    warnings: list[str]


def matrix_results(request: MatrixQuestion) -> MatrixResults:
    """Read a matrix's results."""
    folder = inside_root(request.folder)
    cells = read(folder / MANIFEST)
    shown = [_cell(cell) for cell in cells if cell.result is not None or cell.problem is not None]
    accuracy = [
        Accuracy(
            figure=name,
            runs=summary.runs,
            mape=summary.mape,
            median_error=summary.median_error,
            bias=summary.bias,
            within_20=summary.within_20,
            coverage=summary.coverage,
        )
        for name, summary in summaries(cells).items()
    ]
    return MatrixResults(
        folder=str(folder),
        cells=shown,
        accuracy=accuracy,
        missing=[
            cell.id for cell in cells if cell.cell.get("runs") is True and cell.result is None and not cell.problem
        ],
        training_csv=table(cells, "training", request.source),
        memory_csv=table(cells, "memory", request.source),
        warnings=[f"{row.id}: {row.problem}" for row in shown if row.problem] + _surprises(cells),
    )


def _cell(measured: Measured) -> MeasuredCell:
    names = {name: measured.cell.get(name) for name in ("model", "platform", "strategy")}
    fits = measured.cell.get("fits")
    return MeasuredCell(
        id=measured.id,
        **{name: value if isinstance(value, str) else None for name, value in names.items()},
        outcome=measured.result and measured.result.outcome,
        file=measured.file,
        note=measured.result and measured.result.note,
        fits=fits if isinstance(fits, bool) else None,
        figures=[_figure(measured, name) for name in METRICS if name in measured.values],
        versions=measured.result.versions if measured.result else {},
        problem=measured.problem or measured.doubt,
    )


def _figure(measured: Measured, name: str) -> CellFigure:
    score = measured.scores.get(name)
    prediction = score and score.prediction
    return CellFigure(
        figure=name,
        measured=measured.values[name],
        predicted=prediction and prediction.value,
        low=prediction and prediction.low,
        high=prediction and prediction.high,
        error=score and score.error,
        covered=score and score.covered,
    )


def _surprises(cells: list[Measured]) -> list[str]:
    """Where whether it fits was predicted wrongly."""
    lines: list[str] = []
    for cell in cells:
        outcome, fits = cell.result and cell.result.outcome, cell.cell.get("fits")
        if outcome == "oom" and fits is True:
            lines.append(f"{cell.id}: ran out of memory, but was predicted to fit")
        elif outcome == "ran" and fits is False:
            lines.append(f"{cell.id}: ran, but was predicted not to fit")
    return lines
