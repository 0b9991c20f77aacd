"""Runs that were measured: results of the benchmark matrices below the working folder, beside what was predicted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from estimator.errors import PlanError
from launchers.matrix import MANIFEST
from measure.run.matrix import read
from pages import units
from pages.blocks import Block, Facts, Grid, Notes, Verdict
from tools.registry import find
from tui.screens import Outcome
from tui.screens.listing import Column, Data, Listing, text
from tui.screens.table_screen import TableScreen

# Folders below the working folder that are looked into, and how deep: a home folder may be the working folder.
_MOST_FOLDERS, _DEEPEST = 5000, 5
_WORDS = {
    "step_s": ("time of a step", units.short_duration),
    "tokens_per_s_per_device": ("tokens/s and device", units.count),
    "peak_bytes": ("peak memory", units.memory),
}
_OUTCOMES = {"ran": "ran", "oom": "out of memory", "failed": "failed"}


def _figure(name: str, key: str) -> Callable[[Data], Any]:
    return lambda row: row["figures"].get(name, {}).get(key)


def _error(fraction: float) -> str:
    return f"{fraction * 100:+.1f} %"


COLUMNS = (
    text("MODEL", "model"),
    text("PLATFORM", "platform"),
    Column("OUTCOME", lambda row: row["outcome"] and _OUTCOMES[row["outcome"]]),
    Column("TOK/S/DEVICE", _figure("tokens_per_s_per_device", "measured"), units.count, right=True),
    Column("ERROR", _figure("tokens_per_s_per_device", "error"), _error, right=True),
    Column("PEAK", _figure("peak_bytes", "measured"), units.memory, right=True),
    Column("ERROR", _figure("peak_bytes", "error"), _error, right=True),
    text("STRATEGY", "strategy"),
    text("RUN", "id"),
    text("FOLDER", "folder"),
)


class RunsScreen(TableScreen):
    heading = "Measured runs"
    placeholder = "Search by run, model or platform; Enter takes its plan"
    key = "place"
    none_yet = (
        "No measured runs below this folder. Ask for a benchmark matrix and run its script: what it measures is listed "
        "here, beside what was predicted."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "filter('outcome')", "Outcome"),
        Binding("f", "filter('folder')", "Folder"),
    ]

    def __init__(self, plan: Data) -> None:
        super().__init__(plan, Listing(COLUMNS))
        self.folders: dict[str, Data] = {}
        self.unread: list[str] = []

    def load(self) -> Sequence[Data]:
        self.folders, self.unread = {}, []
        for folder in matrices(Path.cwd()):
            try:
                self.folders[folder] = find("matrix_results")({"folder": folder})
            except PlanError as error:
                self.unread.append(f"{folder}: {error.problem}")
        return [
            {**cell, "folder": folder, "place": f"{folder}/{cell['id']}",
             "figures": {each["figure"]: each for each in cell["figures"]}}
            for folder, results in self.folders.items()
            for cell in results["cells"]
        ]  # fmt: skip

    def state(self) -> str:
        waiting = sum(len(results["missing"]) for results in self.folders.values())
        told = [f"{waiting} without a result yet"] if waiting else []
        return " · ".join([*self.unread, *(part for part in (super().state(),) if part), *told])

    def details(self, row: Data) -> Sequence[Block]:
        figures = [_compared(name, figure) for name, figure in row["figures"].items()]
        fits = {True: "to fit", False: "not to fit", None: "–"}[row["fits"]]
        versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
        results = self.folders[row["folder"]]
        return [
            Verdict(row["id"], good=None if row["fits"] is None else row["fits"] == (row["outcome"] != "oom")),
            Facts([
                ("model", row["model"] or "–"), ("platform", row["platform"] or "–"),
                ("strategy", row["strategy"] or "–"), ("outcome", _OUTCOMES.get(row["outcome"], "–")),
                ("predicted", fits), ("versions", versions or "–"), ("folder", row["folder"]),
            ]),
            *([Grid(("", "measured", "predicted", "80 % interval", "error"), figures,
                    right=("measured", "predicted", "error"), optional=("80 % interval",))] if figures else []),
            *([Notes("Why it does not count", [row["problem"]])] if row["problem"] else []),
            *([Notes("All runs of the folder", [_summary(each) for each in results["accuracy"]], quiet=True)]
              if results["accuracy"] else []),
        ]  # fmt: skip

    def choose(self, row: Data) -> None:
        cells = {cell.id: cell for cell in read(Path(row["folder"]) / MANIFEST)}
        plan = cells[row["id"]].plan if row["id"] in cells else None
        if plan is None:
            self.failed("The plan of this run cannot be read.")
        else:
            self.dismiss(Outcome(plan=plan.given()))


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


def _compared(name: str, figure: Data) -> list[str]:
    label, write = _WORDS[name]
    if figure["predicted"] is None:
        return [label, write(figure["measured"]), "–", "–", "–"]
    interval = f"{write(figure['low'])} to {write(figure['high'])}"
    return [label, write(figure["measured"]), write(figure["predicted"]), interval, _error(figure["error"])]


def _summary(accuracy: Data) -> str:
    runs = f"{accuracy['runs']} run" + ("s" if accuracy["runs"] != 1 else "")
    return (
        f"{_WORDS[accuracy['figure']][0]}: {runs}, mean error {units.percent(accuracy['mape'])}, "
        f"{units.percent(accuracy['coverage'])} inside the interval"
    )
