"""Pages of a benchmark matrix: what it would run, and what was measured of it."""

from __future__ import annotations

from collections.abc import Callable

from pages import units
from pages.blocks import Block, Facts, Notes, Verdict
from pages.views import shared
from pages.views.shared import Column, Data

_SHOWN = 8


def matrix(result: Data) -> list[Block]:
    """Of render_matrix, and of benchmark_matrix."""
    cells, files = result["cells"], result["files"]
    runs = sum(1 for cell in cells if cell["runs"])
    where = f"written to {result['folder']}" if "folder" in result else "--write DIR writes them"
    predicted = _of("predicted")
    columns: list[Column] = [
        ("MODEL", shared.text("model")),
        ("PLATFORM", shared.text("platform")),
        ("STRATEGY", _strategy),
        ("FRAMEWORK", shared.text("framework")),
        ("STEP", predicted(shared.number("step_s", units.duration))),
        ("TOKENS/S PER DEVICE", predicted(shared.number("tokens_per_s_per_device", units.count))),
        ("PEAK", predicted(shared.number("peak_bytes", units.memory))),
        ("RUNS", shared.yes("runs")),
        ("LAYOUT", shared.text("summary")),
        ("WHY NOT", shared.text("skip_reason")),
    ]
    return [
        Verdict(f"{runs} of {len(cells)} runs can be started; {len(files)} files, {where}.", runs > 0 or None),
        *shared.grid(cells, columns, ("STEP", "TOKENS/S PER DEVICE", "PEAK"), "Predicted"),
        Facts(list(result["strategies"].items()), "Strategies"),
        Facts([("start with", result["launch_command"])]),
        *shared.notes("You still have to fill in", result["needs_from_user"]),
        *shared.tail(result),
    ]


def results(result: Data) -> list[Block]:
    """Of matrix_results."""
    cells, accuracy, missing = result["cells"], result["accuracy"], result["missing"]
    measured = [
        {"cell": cell["id"], "outcome": cell["outcome"], "fits": cell["fits"]} | figure
        for cell in cells
        for figure in cell["figures"] or [{}]
    ]
    columns: list[Column] = [
        ("RUN", shared.text("cell")),
        ("OUTCOME", shared.text("outcome")),
        ("FIGURE", shared.text("figure")),
        ("MEASURED", _value("measured")),
        ("PREDICTED", _value("predicted")),
        ("ERROR", shared.number("error", lambda value: f"{value:+.1%}")),
        ("IN INTERVAL", shared.yes("covered")),
    ]
    over_all: list[Column] = [
        ("FIGURE", shared.text("figure")),
        ("RUNS", shared.text("runs")),
        ("MEAN ERROR", shared.number("mape", units.percent)),
        ("MEDIAN", shared.number("median_error", units.percent)),
        ("BIAS", shared.number("bias", lambda value: f"{value:+.1%}")),
        ("COVERED", shared.number("coverage", units.percent)),
    ]
    numbers = ("MEASURED", "PREDICTED", "ERROR", "RUNS", "MEAN ERROR", "MEDIAN", "BIAS", "COVERED")
    absent = [*missing[:_SHOWN], *([f"and {len(missing) - _SHOWN} more"] if len(missing) > _SHOWN else [])]
    rows = max(result["training_csv"].count("\n"), 1) - 1 + max(result["memory_csv"].count("\n"), 1) - 1
    said = f"{len(cells)} of {len(cells) + len(missing)} runs in {result['folder']} have a result."
    return [
        Verdict(said),
        *shared.grid(accuracy, over_all, numbers, "Predicted against measured"),
        *shared.grid(measured, columns, numbers, "By run"),
        *shared.notes("No result yet", absent),
        *([Notes("", [f"--json has {rows} rows for the tables of measurements"], True)] if rows else []),
        *shared.tail(result),
    ]


def _of(part: str) -> Callable[[Callable[[Data], str]], Callable[[Data], str]]:
    """A cell that is written of one part of its row."""
    return lambda write: lambda row: write(row.get(part) or {})


def _strategy(row: Data) -> str:
    return str(row["strategy"]).replace("_", " ")


def _value(name: str) -> Callable[[Data], str]:
    """A figure in the unit that its row names."""
    written = {"step_s": units.short_duration, "peak_bytes": units.memory}

    def cell(row: Data) -> str:
        return shared.number(name, written.get(str(row.get("figure")), units.count))(row)

    return cell
