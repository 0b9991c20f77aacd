"""Where sessions live: one SQLite file in the user's data folder, readable by the user alone.

The graph's checkpoints and the table of sessions share it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.screen import plain
from estimator.errors import PlanError, nearest
from knowledge.user_files import data_folder

_BUSY_S = 10.0
_TITLE_LENGTH = 72
_SESSIONS = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, created TEXT NOT NULL, last_used TEXT NOT NULL
)"""


def _file() -> Path:
    """The database file. It exists with mode 0600 before SQLite opens it; its journal files take the same mode."""
    path = data_folder() / "sessions.db"
    try:
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise PlanError("SHARDWISE_HOME", f"{path} cannot be written: {error.strerror}") from None
    return path


def _open() -> sqlite3.Connection:
    path = _file()
    connection = sqlite3.connect(path, timeout=_BUSY_S)
    try:
        connection.execute(_SESSIONS)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise PlanError("SHARDWISE_HOME", f"{path} cannot be read ({error}); move it away to start afresh") from None
    return connection


def list_sessions() -> list[dict[str, Any]]:
    """Every session as {id, title, created, last_used}, the one used last first."""
    with closing(_open()) as connection:
        rows = connection.execute(
            "SELECT id, title, created, last_used FROM sessions ORDER BY last_used DESC, rowid DESC"
        )
        return [dict(zip(("id", "title", "created", "last_used"), row, strict=True)) for row in rows]


def check_exists(session_id: str) -> None:
    """Raises PlanError when there is no such session."""
    with closing(_open()) as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM sessions ORDER BY last_used DESC")]
    if session_id not in ids:
        raise PlanError(
            "session", f"there is no session {plain(session_id)!r}", nearest(session_id, ids) if ids else ()
        )


def record_use(session_id: str, text: str, now: datetime) -> None:
    """Notes that a session is used; the first words said become its title."""
    words = " ".join(plain(text).split())
    title = words if len(words) <= _TITLE_LENGTH else words[: _TITLE_LENGTH - 1] + "…"
    moment = now.isoformat(timespec="seconds")
    with closing(_open()) as connection, connection:
        connection.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET last_used = excluded.last_used",
            (session_id, title, moment, moment),
        )


@asynccontextmanager
async def checkpoints() -> AsyncIterator[Any]:
    """The graph's checkpointer, open for one run, so that no thread outlives it."""
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with aiosqlite.connect(_file(), timeout=_BUSY_S) as connection:
        yield AsyncSqliteSaver(connection)
