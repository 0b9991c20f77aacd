"""What the training programs themselves print of their speed and memory, read from the logs in a cell's folder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from measure.history.run import MeasuredRun
from measure.logs.reading import read_log


def logged(folder: Path, done: bool, steps: int | None) -> tuple[dict[str, Any], Path] | None:
    """(The fields of a `CellResult`, the log that says so) of a run of `steps` optimizer steps; None where the logs say
    nothing. `done` is whether the run ended well: the times of one that has not may be of any part of it."""
    for path in _logs(folder):
        try:
            run = read_log(path, steps)
        except PlanError:
            continue
        if run is not None and (fields := _fields(run, done)):
            date = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
            return {"date": date, **fields}, path
    return None


def _logs(folder: Path) -> Iterator[Path]:
    """What run_all.sh, Slurm (newest first) and ssh.sh write; links that leave the folder are passed over."""
    paths = [folder / "run.log", *sorted(folder.glob("slurm-*.out"), key=_changed, reverse=True)]
    for path in (*paths, *sorted(folder.glob("logs/*.log"))):
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            yield path


def _changed(path: Path) -> float:
    return path.lstat().st_mtime


def _fields(run: MeasuredRun, done: bool) -> dict[str, Any]:
    if not done:
        return {"outcome": "oom"} if run.outcome == "oom" else {}
    figures = {
        name: run.figures[name] for name in ("step_s", "tokens_per_s_per_device", "peak_bytes") if name in run.figures
    }
    if not figures or run.outcome != "ran":
        return {}
    fields: dict[str, Any] = {"outcome": "ran", **figures, "versions": run.software}
    if "peak_bytes" in figures:
        fields["peak_kind"] = run.peak_kind
    if run.steps:
        fields["steps"] = run.steps
    if run.findings:
        fields["note"] = "; ".join(run.findings)[:2000]
    return fields
