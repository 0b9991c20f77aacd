"""Runs that were measured, beside what was predicted: results of the benchmark matrices below the working folder, those
of one's own history, then those that estimates are checked on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from estimator.errors import PlanError
from knowledge.figures import NONE, amount, label, shown
from knowledge.own.files import working_folder
from launchers.matrix import MANIFEST
from measure.history.run import MeasuredRun
from measure.history.shipped import ShippedRun, shipped_runs
from measure.history.store import runs
from measure.run.matrix import read
from pages.blocks import Block, Figures, Headline, Note
from pages.results.basis import notes
from pages.results.columns import table
from pages.results.matrix import ACCURACY, MEASURED
from pages.results.runs import reading
from planner.history.listing import row_of
from planner.history.reading import reading_of
from planner.history.results import HistoryRow
from planner.matrix.results import CellFigure, MatrixResults, MeasuredCell
from planner.records.runs import compared, plan_of
from tools.registry import find
from tui.screens import ScreenResult
from tui.screens.listing import Column, Listing, figure, text
from tui.screens.table_screen import TableScreen

# Folders below the working folder that are looked into, and how deep: a home folder may be the working folder.
_MOST_FOLDERS, _DEEPEST = 5000, 5
_OUTCOMES = {"ran": "ran", "oom": "out of memory", "failed": "failed"}


class Run(MeasuredCell):
    """A run of the matrix in `folder`, or one that `shipped` or is `kept` in the history, with its source in place of
    the folder; `place` is what it is known by."""

    folder: str
    place: str
    shipped: ShippedRun | None = None
    kept: MeasuredRun | None = None


def _shipped(run: ShippedRun) -> Run:
    figures = [CellFigure.model_construct(figure=name, measured=value, error=None)
               for name, value in run.measured.items()]  # fmt: skip
    return Run.model_construct(
        id=run.id, model=run.model or run.settings.get("model_said", ""), platform=run.platform,
        strategy=run.software, outcome="ran", figures=figures,
        fits=None, folder=run.source, place=f"{run.file}/{run.place}", shipped=run,
    )  # fmt: skip


def _kept(row: HistoryRow, run: MeasuredRun) -> Run:
    values = {"tokens_per_s_per_device": row.tokens_per_s_per_device, "step_s": row.step_s,
              "peak_bytes": row.peak_bytes}  # fmt: skip
    figures = [CellFigure.model_construct(figure=name, measured=value, error=None)
               for name, value in values.items()]  # fmt: skip
    return Run.model_construct(
        id=row.id, model=row.model or "", platform=row.platform, strategy=row.software, outcome=row.outcome,
        figures=figures, fits=None, folder=row.name or run.source, place=f"history/{row.id}", kept=run,
    )  # fmt: skip


def _age(run: ShippedRun) -> tuple[bool, bool, tuple[int, ...]]:
    """The newest first, those of a year alone behind those of a day in it, those without a date or a model last."""
    return not run.model, not run.date, tuple(-ord(letter) for letter in f"{run.date:!<10}")


# How a figure is written in a narrow column: most runs were measured by one or two of them.
_SHORT = {"tokens_per_s_per_device": "{} tok/s/dev", "output_tokens_per_s": "{} tok/s", "peak_bytes": "peak {}",
          "step_s": "step {}", "ttft_s": "TTFT {}", "tpot_s": "TPOT {}"}  # fmt: skip


def _measured(row: Run) -> list[CellFigure]:
    return [score for score in row.figures if score.measured is not None]


def _written(values: Sequence[tuple[str, float]]) -> str:
    """'TTFT 285 ms, TPOT 20.1 ms'."""
    return ", ".join(_SHORT.get(name, "{} " + label(name)).format(shown(name, value)) for name, value in values)


def _figures(title: str, which: slice) -> Column:
    """The figures of a run in those places; a table sorts them by their names, then their values."""
    return Column(
        title, lambda row: tuple((score.figure, score.measured) for score in _measured(row)[which]) or None, _written,
    )  # fmt: skip


COLUMNS = (
    text("MODEL", "model"),
    _figures("MEASURED", slice(1)),
    text("PLATFORM", "platform"),
    figure("error", lambda row: next((score.error for score in _measured(row)), None)),
    _figures("ALSO MEASURED", slice(1, None)),
    Column("OUTCOME", lambda row: row.outcome and _OUTCOMES[row.outcome]),
    text("STRATEGY", "strategy"),
    text("RUN", "id"),
    text("FOLDER", "folder"),
)


class RunsScreen(TableScreen):
    heading = "Measured runs"
    placeholder = "Search by run, model or platform; Enter takes its plan"
    key = "place"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "filter('outcome')", "Outcome"),
        Binding("f", "filter('folder')", "Folder"),
    ]

    def __init__(self, plan: Mapping[str, Any]) -> None:
        super().__init__(plan, Listing(COLUMNS))
        self.folders: dict[str, MatrixResults] = {}
        self.unread: list[str] = []
        self.kept = 0

    def load(self) -> Sequence[Run]:
        self.folders, self.unread = {}, []
        for folder in matrices(working_folder()):
            try:
                results = find("matrix_results").run({"folder": folder})
            except PlanError as error:
                self.unread.append(f"{folder}: {error.problem}")
                continue
            assert isinstance(results, MatrixResults)
            self.folders[folder] = results
        return [
            Run.model_construct(**vars(cell), folder=folder, place=f"{folder}/{cell.id}")
            for folder, results in self.folders.items()
            for cell in results.cells
        ] + [*self._of_history(), *(_shipped(run) for run in sorted(shipped_runs(), key=_age))]

    def _of_history(self) -> Sequence[Run]:
        """The latest first; why the history cannot be read stands with the folders that cannot."""
        try:
            kept = runs()[::-1]
        except PlanError as error:
            self.unread.append(f"{error.field}: {error.problem}")
            kept = []
        self.kept = len(kept)
        return [_kept(row_of(run, estimates=False), run) for run in kept]

    def state(self) -> str:
        waiting = sum(len(results.missing) for results in self.folders.values())
        told = [f"{waiting} without a result yet"] if waiting else []
        if self.started and not (self.folders or self.kept):
            told.append("none of your own yet: a benchmark matrix or shardwise measure add gives some")
        return " · ".join([*self.unread, *(part for part in (super().state(),) if part), *told])

    def details(self, row: Run) -> Sequence[Block]:
        if row.shipped:
            return _of_source(row.shipped)
        if row.kept:
            return reading(reading_of([row.kept]))
        fits = {True: "to fit", False: "not to fit", None: NONE}[row.fits]
        versions = ", ".join(f"{name} {version}" for name, version in row.versions.items())
        results = self.folders[row.folder]
        return [
            Headline(row.id, good=None if row.fits is None else row.fits == (row.outcome != "oom")),
            Figures([
                ("model", row.model or NONE), ("platform", row.platform or NONE), ("strategy", row.strategy or NONE),
                ("outcome", _OUTCOMES.get(row.outcome or "", NONE)), ("predicted", fits),
                ("versions", versions or NONE), ("folder", row.folder),
            ]),
            *table(row.figures, MEASURED),
            *notes("Why it does not count", [row.problem] if row.problem else []),
            *table(results.accuracy, ACCURACY, "All runs of the folder"),
        ]  # fmt: skip

    def choose(self, row: Run) -> None:
        if row.shipped:
            data = plan_of(row.shipped)
            if data is None:
                self.failed("Its source does not say enough for a plan.")
            else:
                self.dismiss(ScreenResult(plan=data))
            return
        if row.kept:
            if row.kept.planned("model") is None:
                self.failed("Its log says no model, and so no plan.")
            else:
                self.dismiss(ScreenResult(plan=row.kept.plan))
            return
        cells = {cell.id: cell for cell in read(Path(row.folder) / MANIFEST)}
        plan = cells[row.id].plan if row.id in cells else None
        if plan is None:
            self.failed("The plan of this run cannot be read.")
        else:
            self.dismiss(ScreenResult(plan=plan.given()))


def _of_source(run: ShippedRun) -> list[Block]:
    """A run that ships: what was measured, what is estimated of it, and what its source says of it."""
    rows = compared(run)
    return [
        Headline(run.id),
        Figures([("model", run.model), ("platform", run.platform), ("software", run.software or NONE)]),
        *table(rows, [("figure", "name"), ("measured", lambda row: amount("", row.unit, row.measured)),
                      ("estimated", lambda row: amount("", row.unit, row.estimated)), "error"]),
        *([] if rows else _measured_alone(run.measured)),
        *notes("Why it is not scored", [run.doubt] if run.doubt else []),
        Figures([(name.replace("_", " "), value) for name, value in run.settings.items() if value], "As run"),
        Note("Source", [f"{run.source}: {run.reference}"], quiet=True),
    ]  # fmt: skip


def _measured_alone(measured: Mapping[str, float]) -> list[Block]:
    return [Figures([(label(name), shown(name, value)) for name, value in measured.items()], "Measured")]


def matrices(root: Path) -> list[str]:
    """Folders below `root`, relative to it, that hold a matrix; hidden ones and links are left out."""
    return sorted(os.path.relpath(folder, root) for folder in _folders(root) if (folder / MANIFEST).is_file())


def _folders(root: Path) -> Iterator[Path]:
    waiting, seen = [(root, 0)], 0
    while waiting and seen < _MOST_FOLDERS:
        folder, depth = waiting.pop(0)
        seen += 1
        yield folder
        if depth == _DEEPEST:
            continue
        try:
            with os.scandir(folder) as entries:
                inner = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        waiting += [(folder / name, depth + 1) for name in sorted(inner) if not name.startswith(".")]
