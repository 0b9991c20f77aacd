"""LangGraph's checkpointer over what sessions live in (agent.store): its file, or a team's database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.store import BUSY_S, CHECKPOINT_TABLES, TEAM_CHECKPOINT_TABLES, database
from knowledge.own import database as team


@asynccontextmanager
async def checkpoints(session_id: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """The graph's checkpointer, open for one run, so that no thread outlives it. Of the session's checkpoints the last
    is kept, as each holds the whole conversation; none of a session that was deleted meanwhile."""
    async with (_of_team if team.address() else _of_file)(session_id) as saver:
        yield saver


@asynccontextmanager
async def _of_file(session_id: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    path = database()
    # Whoever stopped us while the file was busy is heard here, and not by a connection that is half open.
    await asyncio.sleep(0)
    async with aiosqlite.connect(path, timeout=BUSY_S) as connection:
        await connection.execute("PRAGMA secure_delete = ON")
        try:
            yield AsyncSqliteSaver(connection)
        finally:
            tables = await connection.execute_fetchall("SELECT name FROM sqlite_master WHERE type = 'table'")
            for table in {row[0] for row in tables} & set(CHECKPOINT_TABLES):
                await connection.execute(_outlived(table, "sessions", "?"), (session_id,))
            await connection.commit()


@asynccontextmanager
async def _of_team(session_id: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    import psycopg  # only where there is a database, as what follows
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import DictRow, dict_row

    try:
        async with await psycopg.AsyncConnection[DictRow].connect(
            team.address(), autocommit=True, prepare_threshold=0, row_factory=dict_row, connect_timeout=int(BUSY_S)
        ) as connection:
            try:
                yield AsyncPostgresSaver(connection)
            finally:
                if not connection.broken:
                    for table in TEAM_CHECKPOINT_TABLES:
                        what = _outlived(table, "kept_sessions", "%s")
                        await connection.execute(what, (session_id,))  # pyright: ignore[reportArgumentType]
    except psycopg.Error as error:
        raise team.refused(error) from None


def _outlived(table: str, sessions: str, mark: str) -> str:
    """Deletes what no later run needs of a session's rows in one of the checkpointer's tables."""
    # What a checkpoint of Postgres holds stands apart, by channels and their versions.
    before_last = (
        f"NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.thread_id = {table}.thread_id AND c.checkpoint_ns ="
        f" {table}.checkpoint_ns AND c.checkpoint -> 'channel_versions' ->> {table}.channel = {table}.version)"
        if table == "checkpoint_blobs"
        else f"checkpoint_id < (SELECT max(checkpoint_id) FROM checkpoints c WHERE c.thread_id = {table}.thread_id"
        f" AND c.checkpoint_ns = {table}.checkpoint_ns)"
    )
    return (
        f"DELETE FROM {table} WHERE thread_id = {mark} AND ({before_last}"
        f" OR NOT EXISTS (SELECT 1 FROM {sessions} s WHERE s.id = {table}.thread_id))"
    )
