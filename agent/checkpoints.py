"""LangGraph's checkpointer over the file that sessions live in (agent.store)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.store import BUSY_S, CHECKPOINT_TABLES, database


@asynccontextmanager
async def checkpoints(session_id: str) -> AsyncIterator[AsyncSqliteSaver]:
    """The graph's checkpointer, open for one run, so that no thread outlives it. Of the session's checkpoints the last
    is kept, as each holds the whole conversation; none of a session that was deleted meanwhile."""
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
                await connection.execute(
                    f"DELETE FROM {table} WHERE thread_id = ? AND (checkpoint_id < (SELECT max(checkpoint_id)"
                    f" FROM checkpoints c WHERE c.thread_id = {table}.thread_id"
                    f" AND c.checkpoint_ns = {table}.checkpoint_ns)"
                    f" OR NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = {table}.thread_id))",
                    (session_id,),
                )
            await connection.commit()
