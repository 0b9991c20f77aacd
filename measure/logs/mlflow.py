"""MLflow's local stores: a folder a run, with a file a metric whose lines are `milliseconds value step`
(mlflow/store/tracking/file_store.py), or a database of SQLite, mlflow.db, as it keeps them since its version 3
(mlflow/store/tracking/dbmodels/models.py)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from estimator.errors import PlanError
from knowledge.own.files import read_text
from measure.history.run import MeasuredRun
from measure.logs.assembling import assembled
from measure.logs.facts import HeaderFacts
from measure.logs.lines import Row, put
from measure.logs.quantities import kept as named
from measure.logs.tensorboard import MOST_STEPS, timed

_MOST_BYTES = 64 * 2**20
_MOST_FILES = 2000
_MOST_RUNS = 500
DATABASE = ".db"
_TABLES = {"runs", "metrics", "params"}
_SQLITE = b"SQLite format 3\x00"
# Of SQLite's machine: what a file of somebody's may take before it is given up.
_MOST_INSTRUCTIONS, _LOOK = 400_000_000, 1_000_000
_RUNS = "SELECT run_uuid, name FROM runs WHERE lifecycle_stage = 'active' ORDER BY start_time DESC LIMIT ?"
_POINTS = "SELECT key, timestamp / 1000.0, value, step FROM metrics WHERE run_uuid = ? AND NOT is_nan ORDER BY step"
_PARAMS = "SELECT key, value FROM params WHERE run_uuid = ? LIMIT ?"
_Point = tuple[str, float, float, int]
"""Metric, seconds since 1970, value, step."""


def is_run(folder: Path) -> bool:
    return (folder / "metrics").is_dir() and (folder / "meta.yaml").is_file()


def read(folder: Path) -> MeasuredRun | None:
    """The run of a folder; None where it has no metric of a training step."""
    files = {
        str(path.relative_to(folder / "metrics")): path
        for path in sorted((folder / "metrics").rglob("*"))[:_MOST_FILES]
        if _regular(path)
    }
    points = ((metric, *point) for metric, path in files.items() if named(metric) for point in _points(path))
    params = (
        (path.name, _text(path)) for path in sorted((folder / "params").glob("*"))[:_MOST_FILES] if _regular(path)
    )
    return _of_points(points, params, folder.name)


def is_database(path: Path) -> bool:
    return path.suffix == DATABASE


def read_database(path: Path) -> list[MeasuredRun]:
    """The runs of a database, the newest first; none of one that is not MLflow's. Raises PlanError where it cannot be
    read."""
    if not _regular(path):
        return []
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            return []
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            looks = iter(range(_MOST_INSTRUCTIONS // _LOOK))
            connection.set_progress_handler(lambda: next(looks, None) is None, _LOOK)
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not {name for (name,) in tables} >= _TABLES:
                return []
            runs = [_of_database(connection, *row) for row in connection.execute(_RUNS, (_MOST_RUNS,)).fetchall()]
    except sqlite3.Error as error:
        reason = "it takes too long" if "interrupted" in str(error) else str(error)
        raise PlanError("path", f"{path.name} cannot be read as a database of MLflow: {reason}") from None
    return [run for run in runs if run]


def _of_database(connection: sqlite3.Connection, key: str, name: str | None) -> MeasuredRun | None:
    points = (point for point in connection.execute(_POINTS, (key,)) if _whole(point))
    params = ((str(param), str(value)) for param, value in connection.execute(_PARAMS, (key, _MOST_FILES)))
    return _of_points(points, params, str(name or key))


def _whole(point: tuple[object, ...]) -> bool:
    """Columns of SQLite hold what they were given, of any type."""
    name, *numbers = point
    return isinstance(name, str) and all(isinstance(number, (int, float)) for number in numbers)


def _of_points(points: Iterable[_Point], params: Iterable[tuple[str, str]], name: str) -> MeasuredRun | None:
    steps: dict[int, Row] = {}
    clocks: dict[int, float] = {}
    for metric, clock, value, step in points:
        known = named(metric)
        if known is None or (step not in steps and len(steps) >= MOST_STEPS):
            continue
        clocks.setdefault(step, clock)
        put(steps.setdefault(step, {"step": float(step)}), known[0], value * known[1])
    rows = [(place, row) for place, (_, row) in enumerate(sorted(steps.items())) if len(row) > 1]
    if not rows:
        return None
    if not any({"step_s", "tokens_per_s_per_device"} & row.keys() for _, row in rows):
        timed(rows, clocks)
    facts = HeaderFacts()
    for param, value in params:
        if len(text := value.strip()) < 500:
            facts.read(f"'{param}': '{text}'")
            facts.read(f"{param}: {text}")
    start = min(clocks.values())
    facts.date = datetime.fromtimestamp(start, UTC).date().isoformat() if 0 < start < 4e9 else None
    return assembled(facts, rows, f"MLflow run {name}")


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


def _regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _text(path: Path) -> str:
    try:
        return read_text(path, "path", _MOST_BYTES)
    except PlanError:
        return ""
