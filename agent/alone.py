"""One run at a time on a session, in whichever process: two would both answer from the same past, and of what they
learnt only the later one's would be kept."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from agent.store import folder
from estimator.errors import PlanError
from knowledge.own import database as team
from knowledge.own.files import data_field, refusal

try:
    import fcntl
except ImportError:  # Windows has no such locks; there a second run does not wait.
    fcntl = None

_PATIENCE_S = 15.0
_LOOK_S = 0.05


@asynccontextmanager
async def alone(session_id: str) -> AsyncIterator[None]:
    """Holds the session meanwhile; the lock goes with the process. Raises PlanError when another run keeps it long."""
    if team.address():
        async with _alone_in_team(session_id):
            yield
        return
    if fcntl is None:
        yield
        return
    path = folder() / f"session-{quote(session_id, safe='')}.lock"
    handle = await _held(path)
    try:
        yield
    finally:
        # Unlinked while it is held, so that nobody holds a file that is about to go.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _busy() -> PlanError:
    return PlanError("session", "is answering something else; wait for that", ["another session", "a fork"])


@asynccontextmanager
async def _alone_in_team(session_id: str) -> AsyncIterator[None]:
    """A lock of the database, which goes with the connection: whoever holds it may be on another machine."""
    import psycopg  # only where there is a database

    deadline = time.monotonic() + _PATIENCE_S
    try:
        connecting = psycopg.AsyncConnection.connect(team.address(), autocommit=True, connect_timeout=int(_PATIENCE_S))
        async with await connecting as connection:
            while True:
                cursor = await connection.execute(
                    "SELECT pg_try_advisory_lock(hashtextextended('shardwise ' || %s, 0))", (session_id,)
                )
                if (row := await cursor.fetchone()) and row[0]:
                    break
                if time.monotonic() > deadline:
                    raise _busy()
                await asyncio.sleep(_LOOK_S)
            yield
    except psycopg.Error as error:
        raise team.refused(error) from None


async def _held(path: Path) -> int:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise PlanError(data_field(), f"{path} cannot be written: {refusal(error)}") from None
        if _locked(handle, path):
            return handle
        os.close(handle)
        if time.monotonic() > deadline:
            raise _busy()
        await asyncio.sleep(_LOOK_S)


def _locked(handle: int, path: Path) -> bool:
    assert fcntl is not None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks.
        return True
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
