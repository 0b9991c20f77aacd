"""The history of one's own runs: an SQLite file in the data folder, or a team's database.

Every run is kept whole as JSON; beside it stand the few columns that lists are filtered by. A run has the id of what
was measured, so that adding it again changes nothing but its name, tags and note.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from pydantic import ValidationError

from estimator.errors import PlanError, nearest
from knowledge.own import database as team
from knowledge.own.files import HISTORY, data_folder, refusal
from knowledge.own.stores import store_refusal
from measure.history.run import MeasuredRun

_TABLE = """
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, added TEXT NOT NULL, date TEXT, name TEXT, kind TEXT, model TEXT, accelerator TEXT,
  devices INTEGER, software TEXT, outcome TEXT, document TEXT NOT NULL
)"""
_COLUMNS = ("id", "added", "date", "name", "kind", "model", "accelerator", "devices", "software", "outcome", "document")
_WAIT_S = 20.0
_Connection = sqlite3.Connection | team.Transaction
MOST_RUNS = 100_000


def history_file() -> Path:
    return team.folder("runs") if team.address() else data_folder() / HISTORY


@contextmanager
def _opened() -> Iterator[_Connection]:
    """The file, with its table; what is written within is kept whole or not at all."""
    if team.address():
        with team.transaction() as shared:
            yield shared
        return
    path = history_file()
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_S)) as connection, connection:
            connection.execute(_TABLE)
            yield connection
    except sqlite3.Error as error:
        raise PlanError("history", store_refusal(path, error, "runs")) from None
    except OSError as error:
        raise PlanError("history", f"{path} cannot be written: {refusal(error)}") from None


@contextmanager
def _reading() -> Iterator[_Connection]:
    """The same where nothing is written: a disk that is full or only for reading has the runs that it had, and a
    history that was not begun has none."""
    if team.address():
        with team.transaction() as shared:
            yield shared
        return
    path = history_file()
    begun = path.exists() and path.stat().st_size > 0
    place = f"file:{quote(str(path))}?mode=ro" if begun else ":memory:"
    try:
        with closing(sqlite3.connect(place, uri=begun, timeout=_WAIT_S)) as connection:
            if not begun:
                connection.execute(_TABLE)
            yield connection
    except sqlite3.Error as error:
        raise PlanError("history", store_refusal(path, error, "runs")) from None


def add(runs: Sequence[MeasuredRun]) -> list[str]:
    """Keeps runs, and gives their ids. One that is known stays, with the name, tags and note of the new one where it
    has any; one that was a line of CSV gets its steps back."""
    now, ids = datetime.now(UTC).isoformat(timespec="seconds"), list[str]()
    with _opened() as connection:
        for run in runs:
            if kept := _read(connection, run.id):
                run = _named_anew(run if kept.exported_as else kept, kept, run)
            _write(connection, run, now)
            ids.append(run.id)
    return ids


def _named_anew(stays: MeasuredRun, kept: MeasuredRun, run: MeasuredRun) -> MeasuredRun:
    update = {"name": run.name or kept.name, "note": run.note or kept.note}
    return stays.model_copy(update=update | {"tags": sorted({*kept.tags, *run.tags})})


def _write(connection: _Connection, run: MeasuredRun, now: str) -> None:
    row = (
        run.id,
        now,
        run.date,
        run.name,
        run.kind,
        model_of(run),
        run.planned("cluster.accelerator"),
        run.devices,
        run.version,
        run.outcome,
        run.model_dump_json(exclude_defaults=True),
    )
    done = connection.execute(
        f"UPDATE {_own()} SET document = ?, name = ? WHERE id = ?", (row[_COLUMNS.index("document")], run.name, run.id)
    )
    if not done.rowcount:
        marks = ", ".join("?" * len(_COLUMNS))
        connection.execute(f"INSERT INTO {_own()} ({', '.join(_COLUMNS)}) VALUES ({marks})", row)


def _own() -> str:
    """The runs that one may change: of a team, not those that others share."""
    return "own_runs" if team.address() else "runs"


def model_of(run: MeasuredRun) -> str | None:
    """What the model of a run is called; of a config's fields by what they say."""
    model = run.planned("model")
    if not isinstance(model, dict):
        return None if model is None else str(model)
    return str(model.get("_name_or_path") or model.get("name") or model.get("model_type") or "config")


def _read(connection: _Connection, id: str) -> MeasuredRun | None:
    row = connection.execute("SELECT document FROM runs WHERE id = ?", (id,)).fetchone()
    return None if row is None else _run(row[0])


def _run(document: str) -> MeasuredRun | None:
    """None for what another version wrote."""
    try:
        return MeasuredRun.model_validate_json(document)
    except ValidationError:
        return None


def runs(
    model: str | None = None,
    accelerator: str | None = None,
    software: str | None = None,
    tag: str | None = None,
    since: str | None = None,
    kind: str | None = None,
) -> list[MeasuredRun]:
    """The runs that agree, the oldest first; texts are looked for anywhere in their column."""
    texts = {"model": model, "accelerator": accelerator, "software": software}
    clauses, values = ["1 = 1"], []
    for column, text in texts.items():
        if text:
            clauses.append(f"{'strpos' if team.address() else 'instr'}(lower({column}), lower(?)) > 0")
            values.append(text)
    if since:
        clauses.append("coalesce(date, added) >= ?")
        values.append(since)
    if kind:
        clauses.append("kind = ?")
        values.append(kind)
    order = "coalesce(date, added), added, rowid"
    with _reading() as connection:
        rows = connection.execute(
            f"SELECT document FROM runs WHERE {' AND '.join(clauses)} ORDER BY {order} LIMIT {MOST_RUNS}", values
        ).fetchall()
    every = [run for row in rows if (run := _run(row[0]))]
    return [run for run in every if not tag or tag in run.tags]


def names_of_words() -> list[tuple[str, str]]:
    """(Id, name) of runs whose name holds a space; the runs themselves are not read."""
    with _reading() as connection:
        rows = connection.execute("SELECT id, name FROM runs WHERE name LIKE ?", ("% %",)).fetchall()
    return [(str(id), str(name)) for id, name in rows]


def find(name: str) -> MeasuredRun:
    """A run by its id, the beginning of it, or its name. Raises PlanError."""
    every = runs()
    exact = [run for run in every if name in (run.id, run.name)] or [run for run in every if run.id.startswith(name)]
    if len(exact) == 1:
        return exact[0]
    problem = f"{len(exact)} runs are called {name!r}" if exact else f"there is no run {name!r} in the history"
    known = [f"{run.id} {run.name}".strip() for run in (exact or every)]
    raise PlanError("run", problem, known[:10] if exact else nearest(name, known))


def change(name: str, tags: Sequence[str] | None = None, rename: str | None = None, note: str | None = None) -> str:
    """Gives a run other tags, another name or note; returns its id. Raises PlanError."""
    run = find(name)
    update = {key: value for key, value in (("tags", tags), ("name", rename), ("note", note)) if value is not None}
    if "tags" in update:
        update["tags"] = sorted(set(tags or ()))
    with _opened() as connection:
        _write(connection, MeasuredRun.model_validate(run.model_dump() | update), datetime.now(UTC).isoformat())
    return run.id


def remove(name: str) -> MeasuredRun:
    """Deletes a run; returns what it was. Raises PlanError."""
    run = find(name)
    with _opened() as connection:
        if not connection.execute(f"DELETE FROM {_own()} WHERE id = ?", (run.id,)).rowcount:
            raise PlanError("run", f"{run.id} is shared by somebody else, who alone may delete it")
    return run
