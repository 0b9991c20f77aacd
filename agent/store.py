"""Where sessions live: one SQLite file in the user's data folder, readable by the user alone, or a team's database.

It holds the graph's checkpoints (what the models go by, shortened as a conversation grows), the list of sessions, and
every turn as it was said, which is what is shown, exported and searched. Nothing here needs LangGraph.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from agent.unkept import folders, unkept
from estimator.errors import PlanError, nearest
from knowledge.own import database as team
from knowledge.own.files import data_field, data_folder, refusal
from knowledge.own.stores import store_refusal
from pages.rendering.clean import plain

BUSY_S = 10.0
_TITLE_LENGTH = 72
_NAME = "sessions.db"
# A turn takes less; with less room left none is begun.
_LEAST_ROOM_BYTES = 4 * 2**20
# Each is run once, in order; only ever added to.
_MIGRATIONS = (
    """CREATE TABLE IF NOT EXISTS sessions (
        id TEXT PRIMARY KEY, title TEXT NOT NULL, created TEXT NOT NULL, last_used TEXT NOT NULL
    )""",
    """CREATE TABLE turns (
        session TEXT NOT NULL, number INTEGER NOT NULL, moment TEXT NOT NULL, said TEXT NOT NULL, state TEXT NOT NULL,
        told TEXT NOT NULL, PRIMARY KEY (session, number)
    )""",
)
# The checkpointer's own tables, there once a first turn has run.
CHECKPOINT_TABLES = ("checkpoints", "writes")
TEAM_CHECKPOINT_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_Connection = sqlite3.Connection | team.Transaction
_NEW_SESSION = "INSERT INTO sessions (id, title, created, last_used) VALUES (?, ?, ?, ?)"


@dataclass(frozen=True)
class SessionRow:
    """A session as it is listed; `turns` is their number."""

    id: str
    title: str
    created: str
    last_used: str
    turns: int


class FileWritten(BaseModel, frozen=True):
    """A file that a turn wrote; of a launch file its target too."""

    path: str
    target: str = ""
    bytes: int = 0


class KeptCall(BaseModel, frozen=True):
    """A tool call of an earlier turn: how long it took, and why it failed or its main figures in a line."""

    name: str
    arguments: dict[str, Any]
    seconds: float | None = None
    error: str | None = None
    figures: str = ""


class KeptTurn(BaseModel, frozen=True):
    """A turn as it was said; `state` is open, waiting (for an approval), done, stopped or failed."""

    number: int
    moment: str
    said: str
    state: str
    answer: str = ""
    calls: list[KeptCall] = []
    plan: dict[str, Any] = {}
    asked: list[str] = []
    files: list[FileWritten] = []
    ungrounded: list[str] = []
    by: str = ""


# What a turn has from its beginning on.
_BLANK: dict[str, Any] = {"answer": "", "calls": [], "plan": {}, "asked": [], "files": [], "ungrounded": []}


def new_id() -> str:
    # In a team's database ids are everybody's.
    return secrets.token_hex(8 if team.address() else 4)


def list_sessions(query: str = "") -> list[SessionRow]:
    """Every session, the one used last first; with a `query`, those whose title or turns hold all its words."""
    words = [f"%{_literal(word)}%" for word in plain(query).split()]
    like, answer = ("ILIKE", "t.answer") if team.address() else ("LIKE", "json_extract(t.told, '$.answer')")
    matches = "".join(
        f" AND (s.title {like} ? ESCAPE '\\' OR EXISTS (SELECT 1 FROM turns t WHERE t.session = s.id"
        f" AND (t.said {like} ? ESCAPE '\\' OR {answer} {like} ? ESCAPE '\\')))"
        for _ in words
    )
    with _reading() as connection:
        rows = connection.execute(
            "SELECT s.id, s.title, s.created, s.last_used, (SELECT count(*) FROM turns t WHERE t.session = s.id)"
            f" FROM sessions s WHERE 1 = 1{matches} ORDER BY s.last_used DESC, s.rowid DESC",
            [word for word in words for _ in range(3)],
        )
        return [SessionRow(*row) for row in rows]


def find_session(session_id: str) -> SessionRow:
    """Raises PlanError when there is none of that id."""
    sessions = {row.id: row for row in list_sessions()}
    if session_id not in sessions:
        valid = nearest(session_id, sessions) if sessions else ()
        raise PlanError("session", f"there is no session {plain(session_id)[:80]!r}", valid)
    return sessions[session_id]


def transcript(session_id: str) -> list[KeptTurn]:
    """The turns of a session in order. Raises PlanError for an unknown session."""
    find_session(session_id)
    with _reading() as connection:
        rows = connection.execute(
            "SELECT number, moment, said, state, told FROM turns WHERE session = ? ORDER BY number", (session_id,)
        )
        return [
            KeptTurn(**{"number": number, "moment": moment, "said": said, "state": state} | _BLANK | json.loads(told))
            for number, moment, said, state, told in rows
        ]


def last_plan(turns: Sequence[KeptTurn]) -> dict[str, Any]:
    """The plan as of the last answer that had one, else none."""
    return next((turn.plan for turn in reversed(turns) if turn.plan), {})


def rename_session(session_id: str, title: str) -> str:
    """Gives a session another title; returns it as kept. Raises PlanError for an unknown session or an empty title."""
    find_session(session_id)
    kept = _title(title)
    if not kept:
        raise PlanError("title", "is empty")
    with _writing() as connection:
        connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (kept, session_id))
    return kept


def fork_session(session_id: str, title: str | None = None) -> str:
    """A copy of a session, which goes its own way from here on; returns its id. Raises PlanError."""
    old = find_session(session_id)
    copy = new_id()
    moment = datetime.now().astimezone().isoformat(timespec="seconds")
    named = _title(title or "") or _title(f"{old.title[: _TITLE_LENGTH - 7]} (fork)")
    with _writing() as connection:
        connection.execute(_NEW_SESSION, (copy, named, moment, moment))
        _copy_rows(connection, "turns", "session", session_id, copy)
        for table in _present(connection):
            _copy_rows(connection, table, "thread_id", session_id, copy)
    return copy


def delete_session(session_id: str) -> None:
    """Deletes a session and overwrites what it held. Raises PlanError for an unknown session."""
    find_session(session_id)
    with _writing() as connection:
        connection.execute("DELETE FROM turns WHERE session = ?", (session_id,))
        connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
        for table in _present(connection):
            connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (session_id,))


def begin_turn(session_id: str, text: str, now: datetime) -> int:
    """Notes what was said, and that the session is used: the first words said are its title. Returns the turn's
    number."""
    moment = now.isoformat(timespec="seconds")
    with _writing() as connection:
        _use(connection, session_id, text, moment)
        row = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM turns WHERE session = ?", (session_id,))
        number = int(next(iter(row))[0])
        connection.execute(
            "INSERT INTO turns (session, number, moment, said, state, told) VALUES (?, ?, ?, ?, 'open', '{}')",
            (session_id, number, moment, plain(text)),
        )
    return number


def go_on(session_id: str, now: datetime) -> int:
    """Notes that a session is used again; returns the number of its last turn, which goes on (0: it has none)."""
    with _writing() as connection:
        _use(connection, session_id, "", now.isoformat(timespec="seconds"))
        row = connection.execute("SELECT coalesce(max(number), 0) FROM turns WHERE session = ?", (session_id,))
        return int(next(iter(row))[0])


def end_turn(session_id: str, number: int, state: str, told: dict[str, Any]) -> None:
    """Keeps how a turn stands: its state and what was told, as JSON data. Nothing for a session deleted meanwhile."""
    text = json.dumps(told, ensure_ascii=True, allow_nan=True)
    # What is searched stands beside it where a database reads no JSON with the numbers that ours may hold.
    column, answer = (", answer = ?", [plain(str(told.get("answer", "")))]) if team.address() else ("", [])
    with _writing() as connection:
        connection.execute(
            f"UPDATE turns SET state = ?, told = ?{column} WHERE session = ? AND number = ?",
            [state, text, *answer, session_id, number],
        )


def _use(connection: _Connection, session_id: str, text: str, moment: str) -> None:
    title = _title(text)
    done = connection.execute(
        "UPDATE sessions SET last_used = ?, title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?",
        (moment, title, session_id),
    )
    if not done.rowcount:
        connection.execute(_NEW_SESSION, (session_id, title, moment, moment))


def _title(text: str) -> str:
    words = " ".join(plain(text).split())
    return words if len(words) <= _TITLE_LENGTH else words[: _TITLE_LENGTH - 1] + "…"


def _literal(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _copy_rows(connection: _Connection, table: str, key: str, old: str, new: str) -> None:
    """Copies the rows of `old` with `new` in their key, whatever other columns the table has."""
    columns = [column[0] for column in connection.execute(f"SELECT * FROM {table} WHERE 1 = 0").description or ()]
    values = ", ".join("?" if column == key else column for column in columns)
    connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {key} = ?", (new, old)
    )


def _present(connection: _Connection) -> Sequence[str]:
    """Those of the checkpointer's tables that are there."""
    if isinstance(connection, team.Transaction):
        return TEAM_CHECKPOINT_TABLES
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return [table for table in CHECKPOINT_TABLES if table in there]


@dataclass
class _Aside:
    """Where sessions are kept until this process ends, once they cannot be kept for longer."""

    folder: Path | None = None


_aside = _Aside()


def folder() -> Path:
    """Where sessions are. Raises PlanError."""
    return _aside.folder or data_folder()


def ready() -> str:
    """Sees to it that a turn can be kept: where the data folder cannot be written, until this process ends, and why is
    said (once). Raises PlanError where there is no room even for that."""
    if team.address():
        with team.transaction():
            return ""
    if _aside.folder is not None:
        return ""
    try:
        _refuse_full(data_folder())
        with _writing():
            return ""
    except PlanError as error:
        place = _aside_folder()
        if place is None:
            raise
        with suppress(PlanError, sqlite3.Error):
            _copy_to(place / _NAME)
        _aside.folder = place
        return f"This conversation is not kept: {error}."


def is_kept() -> bool:
    """Whether what is said now is there for a later process."""
    return _aside.folder is None


def _refuse_full(place: Path) -> None:
    """PlanError where a turn may not find room: it would fail at its end."""
    if hasattr(os, "statvfs"):
        room = os.statvfs(place)
        if room.f_flag & os.ST_RDONLY:
            # One that is only for reading has no room either, and none can be made.
            problem = f"{place} cannot be written: {refusal(OSError(errno.EROFS, ''))}"
            raise PlanError(data_field(), problem, ["SHARDWISE_DATA=a folder that you may write to"])
        if room.f_bavail * room.f_frsize < _LEAST_ROOM_BYTES:
            raise PlanError(data_field(), f"{place} cannot be written: the disk is full; make room")


def _aside_folder() -> Path | None:
    """A folder of this process alone; it goes with the process."""
    for parent in folders():
        with suppress(OSError, PlanError):
            _refuse_full(place := unkept(parent))
            return place
    return None


def _copy_to(path: Path) -> None:
    """What was kept so far, so that a conversation can go on."""
    with closing(_open_to_read(data_folder() / _NAME)) as old, closing(sqlite3.connect(path)) as new:
        if old.execute("PRAGMA user_version").fetchone()[0] <= len(_MIGRATIONS):
            old.backup(new)


def database() -> Path:
    """The file, with its tables but for the checkpointer's. Raises PlanError where it cannot be read or written."""
    with _reading():
        return _file()


def _file() -> Path:
    """The database file. It exists with mode 0600 before SQLite opens it; its journal files take the same mode."""
    path = folder() / _NAME
    try:
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise PlanError(data_field(), f"{path} cannot be written: {refusal(error)}") from None
    return path


@contextmanager
def _reading() -> Iterator[_Connection]:
    if team.address():
        with team.transaction() as shared:
            yield shared
        return
    try:
        connection = _open()
    except PlanError:
        # What is there can be read all the same, as on a disk that is full or may not be written.
        path = folder() / _NAME
        if not path.is_file() or not path.stat().st_size:
            raise
        connection = _open_to_read(path)
    with closing(connection):
        yield connection


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Raises PlanError for a file that is no store, or that a later version wrote otherwise."""
    place = f"file:{quote(str(path))}?mode=ro"
    error: Exception | None = None
    # Beside a database that others write, a reader writes too; one that nobody can write is read as it is.
    for address in (place, f"{place}&immutable=1"):
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None)
        is_newer = False
        try:
            is_newer = connection.execute("PRAGMA user_version").fetchone()[0] > len(_MIGRATIONS)
            connection.execute("SELECT count(*) FROM turns")
            return connection
        except sqlite3.DatabaseError as failure:
            connection.close()
            error = failure
        if is_newer:
            raise _written_by_newer(path)
    raise _refused(path, error) from None


def _written_by_newer(path: Path) -> PlanError:
    problem = f"{path} was written by a newer Shardwise; update this one, or set SHARDWISE_DATA to another folder"
    return PlanError(data_field(), problem)


def _refused(path: Path, error: Exception | None) -> PlanError:
    return PlanError(data_field(), store_refusal(path, error, "sessions"))


@contextmanager
def _writing() -> Iterator[_Connection]:
    """A connection within one transaction; what is deleted in it is overwritten on a disk of one's own."""
    if team.address():
        with team.transaction() as shared:
            yield shared
        return
    with closing(_open()) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        try:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
        except sqlite3.OperationalError as error:
            raise _refused(folder() / _NAME, error) from None


def _open() -> sqlite3.Connection:
    path = _file()
    version = 0
    try:
        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    except sqlite3.Error as error:
        raise _refused(path, error) from None
    try:
        _write_ahead(connection)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version < len(_MIGRATIONS):
            _migrate(connection)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _refused(path, error) from None
    if version > len(_MIGRATIONS):
        connection.close()
        raise _written_by_newer(path)
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Sees to it that the file is in the journal mode that the checkpointer wants, before it asks: a change of mode
    does not wait for another's lock as all else does, so it is tried again for as long."""
    deadline = time.monotonic() + BUSY_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _migrate(connection: sqlite3.Connection) -> None:
    """Runs what the file lacks; of two processes that start at once, one waits and finds it done."""
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    for step in _MIGRATIONS[version:]:
        connection.execute(step)
    connection.execute(f"PRAGMA user_version = {max(len(_MIGRATIONS), version)}")
    connection.execute("COMMIT")
