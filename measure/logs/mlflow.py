"""MLflow's local folders: a folder a run, with a file a metric whose lines are `milliseconds value step`
(mlflow/store/tracking/file_store.py)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from estimator.errors import PlanError
from knowledge.own.files import read_text
from measure.history.run import MeasuredRun
from measure.logs.assembling import assembled
from measure.logs.facts import HeaderFacts
from measure.logs.lines import Row
from measure.logs.quantities import kept as named
from measure.logs.tensorboard import MOST_STEPS, timed

_MOST_BYTES = 64 * 2**20
_MOST_FILES = 2000


def is_run(folder: Path) -> bool:
    return (folder / "metrics").is_dir() and (folder / "meta.yaml").is_file()


def read(folder: Path) -> MeasuredRun | None:
    """The run of a folder; None where it has no metric of a training step."""
    steps: dict[int, Row] = {}
    clocks: dict[int, float] = {}
    for path in sorted((folder / "metrics").rglob("*"))[:_MOST_FILES]:
        known = named(str(path.relative_to(folder / "metrics"))) if path.is_file() and not path.is_symlink() else None
        if known is None:
            continue
        for clock, value, step in _points(path):
            if step not in steps and len(steps) >= MOST_STEPS:
                continue
            clocks.setdefault(step, clock)
            steps.setdefault(step, {"step": float(step)}).setdefault(known[0], value * known[1])
    rows = [(place, row) for place, (_, row) in enumerate(sorted(steps.items())) if len(row) > 1]
    if not rows:
        return None
    if not any({"step_s", "tokens_per_s_per_device"} & row.keys() for _, row in rows):
        timed(rows, clocks)
    facts = HeaderFacts()
    for path in sorted((folder / "params").glob("*"))[:_MOST_FILES] if (folder / "params").is_dir() else ():
        if path.is_file() and not path.is_symlink() and len(value := _text(path).strip()) < 500:
            facts.read(f"'{path.name}': '{value}'")
            facts.read(f"{path.name}: {value}")
    start = min(clocks.values())
    facts.date = datetime.fromtimestamp(start, UTC).date().isoformat() if 0 < start < 4e9 else None
    return assembled(facts, rows, f"MLflow run {folder.name}")


def _points(path: Path) -> Iterator[tuple[float, float, int]]:
    """(Seconds since 1970, value, step) of each line that is whole and of a step that can be."""
    for line in _text(path).splitlines():
        parts = line.split()
        if len(parts) < 3:
            continue
        try:
            point = float(parts[0]) / 1000.0, float(parts[1]), int(parts[2])
        except ValueError:
            continue
        if abs(point[2]) < 2**62:
            yield point


def _text(path: Path) -> str:
    try:
        return read_text(path, "path", _MOST_BYTES)
    except PlanError:
        return ""
