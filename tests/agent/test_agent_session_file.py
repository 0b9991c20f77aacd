"""What is true of sessions on disk alone: their file, how fast it opens, and what another process reads of it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conversations import DEMO, say
from fake_gemini import Reply, call, chunk, says, serving
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pace import within

from agent.checkpoints import checkpoints
from agent.events import Approval
from agent.session import ask, list_sessions, open_session, transcript
from agent.store import begin_turn
from knowledge.own.files import data_folder

ROOT = Path(__file__).parents[2]
FIT = "does llama-3.1-8b fit on 8 H100?"


def test_a_session_of_fifty_turns_is_reopened_within_half_a_second() -> None:
    session = ask(FIT, approve=False, model="offline")["session"]
    for number in range(49):
        words = f"and on {number} H100?" if number > 43 else "thanks"
        ask(words, approve=False, session_id=session, model="offline")
    with within(0.5):
        again = open_session(session, "offline")
        told = transcript(session)
        plan = asyncio.run(again.plan())
    assert len(told) == 50
    assert plan["cluster"]["count"] == 48


def test_gemini_goes_on_in_another_process_after_an_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    run = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "framework": "deepspeed", "seq_len": 4096}
    program = (
        "import asyncio, json, sys\n"
        "from agent.events import done_data\n"
        "from agent.session import open_session\n"
        "async def main():\n"
        "    return [event async for event in open_session(sys.argv[1], 'gemini').resume(True)][-1]\n"
        "print(json.dumps(done_data(asyncio.run(main()))))\n"
    )
    with serving() as fake:
        monkeypatch.setenv("GEMINI_API_KEY", "k")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
        fake.replies = [Reply([chunk(call("write_configs", run, "w", "AAECAw=="), finish="STOP")]), says("Written.")]
        session = open_session(model="gemini")
        assert isinstance(say(session, DEMO)[-1], Approval)
        done = subprocess.run(
            [sys.executable, "-c", program, session.id], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        sent = fake.requests[-1]["contents"]
    found = json.loads(done.stdout)
    assert found["answer"] == "Written."
    assert len(found["files"]) == 3
    assert "AAECAw==" in json.dumps(sent)
    assert [turn.state for turn in transcript(session.id)] == ["done"]


def test_a_file_of_an_earlier_version_is_brought_up_to_date() -> None:
    home = Path(os.environ["SHARDWISE_HOME"])
    home.mkdir()
    with sqlite3.connect(home / "sessions.db") as connection:
        connection.execute(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT NOT NULL, created TEXT NOT NULL,"
            " last_used TEXT NOT NULL)"
        )
        connection.execute("INSERT INTO sessions VALUES ('0ld', 'old one', '2026-01-01', '2026-01-01')")
    assert [row.title for row in list_sessions()] == ["old one"]
    assert begin_turn("0ld", "more", datetime(2026, 2, 1, tzinfo=UTC)) == 1
    assert transcript("0ld")[0].state == "open"


def test_managing_sessions_imports_no_langgraph() -> None:
    session = ask("hi", approve=False, model="offline")["session"]
    program = (
        "import sys\n"
        "from tui.cli import main\n"
        f"for words in (['sessions'], ['sessions', 'fork', '{session}'], ['sessions', 'export', '{session}'],"
        f" ['sessions', 'delete', '-y', '{session}'], ['config'],"
        " ['call', 'describe_model', '{\"model\": \"gpt2\"}']):\n"
        "    assert main(words) == 0, words\n"
        "print([name for name in ('langgraph', 'google.genai', 'textual', 'fastmcp') if name in sys.modules])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert run.stdout.splitlines()[-1:] == ["[]"], run.stderr


def test_a_file_that_another_writes_to_is_waited_for() -> None:
    """A session of an earlier version, in the old journal mode, is written to while a new one begins."""
    list_sessions()
    path = data_folder() / "sessions.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        assert other.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete"
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO sessions VALUES ('other', '', '', '')")
        release = threading.Timer(0.2, other.execute, ("COMMIT",))
        release.start()

        async def begin() -> None:
            async with checkpoints("mine") as saver:
                assert isinstance(saver, AsyncSqliteSaver)
                await saver.setup()

        asyncio.run(begin())
        release.join()
    assert [session.id for session in list_sessions()] == ["other"]
