"""Sessions: what they know survives, and they are renamed, forked, deleted, exported without touching each other."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conversations import DEMO, Scripted, answer_approval, of, say

from agent import store
from agent.events import Approval, ToolResult
from agent.session import (
    Session,
    ask,
    delete_session,
    export_session,
    fork_session,
    list_sessions,
    open_session,
    rename_session,
    transcript,
)
from estimator.errors import PlanError
from knowledge.own import database

ROOT = Path(__file__).parents[2]
FIT = "does llama-3.1-8b fit on 8 H100?"


pytestmark = pytest.mark.usefixtures("either_store")


def checkpoints_of(session_id: str) -> list[int]:
    """How many rows each table of the checkpointer has of a session."""
    with store._reading() as connection:
        tables = store._present(connection)
        count = "SELECT count(*) FROM {} WHERE thread_id = ?"
        return [next(iter(connection.execute(count.format(table), (session_id,))))[0] for table in tables]


def holds(secret: str) -> bool:
    """Whether anything that is kept has these words in it."""
    if not database.address():
        home = Path(os.environ["SHARDWISE_HOME"])
        return any(secret.encode() in path.read_bytes() for path in home.iterdir())
    with database.transaction() as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [row[0] for row in rows.fetchall()]
        assert {"kept_sessions", "kept_turns", "checkpoints", "checkpoint_blobs"} <= {*tables}
        texts = [str(row) for table in tables for row in connection.execute(f"SELECT * FROM {table}").fetchall()]
    return any(secret in text for text in texts)


def test_a_fork_goes_its_own_way() -> None:
    first = ask(FIT, approve=False, model="offline")["session"]
    copy = fork_session(first)
    assert ask("and on 16?", approve=False, session_id=copy, model="offline")["plan"]["cluster"]["count"] == 16
    assert asyncio.run(open_session(first).plan())["cluster"]["count"] == 8
    assert [len(transcript(each)) for each in (first, copy)] == [1, 2]
    assert [row.title for row in list_sessions()] == [f"{FIT} (fork)", FIT]
    assert [row.turns for row in list_sessions()] == [2, 1]


def test_a_fork_can_be_approved_apart_from_its_origin() -> None:
    session = open_session(model="offline")
    assert isinstance(say(session, DEMO)[-1], Approval)
    copy = open_session(fork_session(session.id), "offline")
    assert answer_approval(copy, True)[-1].files
    assert answer_approval(session, False)[-1].files == []
    assert [transcript(each.id)[0].state for each in (session, copy)] == ["done", "done"]


def test_a_deleted_session_leaves_nothing_and_others_alone() -> None:
    secret = "llama-3.1-8b on 8 H100 for project heliotrope"
    kept, gone = (ask(text, approve=False, model="offline")["session"] for text in (FIT, secret))
    assert holds("heliotrope")
    delete_session(gone)
    assert [row.id for row in list_sessions()] == [kept]
    assert set(checkpoints_of(gone)) == {0}
    assert checkpoints_of(kept)[0] == 1
    assert not holds("heliotrope")
    for call_it in (delete_session, fork_session, transcript, export_session, lambda id: rename_session(id, "x")):
        with pytest.raises(PlanError, match="no session"):
            call_it(gone)
    assert ask("and on 16?", approve=False, session_id=kept, model="offline")["plan"]["cluster"]["count"] == 16


def test_titles_are_short_plain_and_never_empty() -> None:
    session = ask("hi", approve=False, model="offline")["session"]
    assert rename_session(session, "a\x1b[2J\n b" + "x" * 200).startswith("a bxxx")
    assert len(list_sessions()[0].title) == 72
    with pytest.raises(PlanError, match="empty"):
        rename_session(session, " \x1b[2J ")


def test_sessions_are_found_by_their_words() -> None:
    ask("does gpt2 fit on one T4?", approve=False, model="offline")
    ask("thanks 100%", approve=False, model="offline")
    assert [row.title for row in list_sessions("GPT2 t4")] == ["does gpt2 fit on one T4?"]
    assert [row.title for row in list_sessions("100%")] == ["thanks 100%"]
    assert list_sessions("nothing-like-it") == list_sessions("_hanks") == []


def test_an_export_has_what_was_said_told_called_and_planned() -> None:
    session = open_session(model="offline")
    done = say(session, FIT)[-1]
    text = export_session(session.id)
    assert f"> {FIT}" in text
    assert done.answer.strip() in text
    assert 'estimate_training {"model": "meta-llama/Llama-3.1-8B"' in text
    found = json.loads(export_session(session.id, "json"))
    assert found["plan"] == done.plan
    (turn,) = found["turns"]
    assert (turn["said"], turn["answer"], turn["state"], turn["by"]) == (FIT, done.answer, "done", "offline")
    assert [each["name"] for each in turn["calls"]] == [call.name for call in done.tool_calls]
    assert turn["calls"][0]["figures"].startswith("estimate_training of meta-llama/Llama-3.1-8B on 8 x h100-sxm: fits")
    with pytest.raises(PlanError, match="markdown json"):
        export_session(session.id, "pdf")


def test_a_fence_in_what_was_said_does_not_break_the_export() -> None:
    session = ask("hi ```\x1b]0;x\x07 # not a heading", approve=False, model="offline")["session"]
    assert "\x1b" not in export_session(session) + export_session(session, "json")
    assert "> hi ```" in export_session(session)


def test_an_edit_of_the_plan_is_known_and_can_be_undone() -> None:
    session = open_session(model="offline")
    say(session, FIT)
    edited = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h200-sxm", "count": 4}}
    asyncio.run(session.set_plan(edited))
    assert asyncio.run(open_session(session.id).plan()) == edited
    done = say(session, "and with 16k context?")[-1]
    assert done.plan == edited | {"workload": {"seq_len": 16384}}
    fresh = open_session(model="offline")
    asyncio.run(fresh.set_plan(edited))
    assert say(fresh, "does it fit?")[-1].plan == edited
    assert list_sessions()[0].title == "does it fit?"


def test_a_plan_is_not_edited_while_files_wait_for_approval() -> None:
    session = open_session(model="offline")
    assert isinstance(say(session, DEMO)[-1], Approval)
    with pytest.raises(PlanError, match="waiting"):
        asyncio.run(session.set_plan({}))
    assert answer_approval(session, True)[-1].files


def test_an_approval_shows_the_bytes_and_what_they_replace() -> None:
    session = open_session(model="offline")
    shown = say(session, DEMO)[-1].calls[0].preview
    assert all(file.before is None and len(file.text.encode()) == file.bytes for file in shown.files)
    done = answer_approval(session, True)[-1]
    texts = {path.name: path.read_text() for path in Path.cwd().rglob("*") if path.is_file()}
    assert texts == {file.path: file.text for file in shown.files}
    assert transcript(session.id)[0].files == done.files
    again = say(session, "write the files")[-1]
    assert {file.path: file.before for file in again.calls[0].preview.files} == texts


def test_an_approval_is_not_good_for_another_folder(tmp_path: Path) -> None:
    session = open_session(model="offline")
    assert isinstance(say(session, DEMO)[-1], Approval)
    other = tmp_path / "elsewhere"
    done = answer_approval(Session(session.id, "offline", other), True)[-1]
    assert done.files == []
    assert not other.exists()


def test_writing_below_another_folder_leaves_the_process_where_it_is(tmp_path: Path) -> None:
    here = Path.cwd()
    sessions = [open_session(model="offline", output=tmp_path / name) for name in ("a", "b")]

    async def both() -> None:
        for session in sessions:
            async for _ in session.send(DEMO):
                pass

        async def approve(session: Session) -> None:
            async for _ in session.resume(True):
                assert Path.cwd() == here

        await asyncio.gather(*map(approve, sessions))

    asyncio.run(both())
    assert [len(list((tmp_path / name).iterdir())) for name in ("a", "b")] == [3, 3]


def test_a_long_conversation_stays_small_and_knows_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Scripted([[("describe_model", {"model": "gpt2"})], "It is known."] * 30)
    monkeypatch.setattr("agent.session.model_of", lambda name: model)
    session = open_session(model="offline")
    sizes = []
    for number in range(30):
        say(session, f"question number {number} about it")
        sizes.append(len(json.dumps(model.seen[-1].messages)))
    assert checkpoints_of(session.id)[0] == 1
    assert sizes[-1] < 1.5 * sizes[8]
    last = json.dumps(model.seen[-1].messages)
    assert "question number 29" in last
    assert "question number 3 about" in last
    assert transcript(session.id)[0].said == "question number 0 about it"


def test_the_clock_of_a_session_dates_prices() -> None:
    text = "llama-3.1-8b on 8 H100, 1B tokens: what does it cost?"
    soon, late = (
        of(say(open_session(model="offline", now=datetime(year, 1, 5, tzinfo=UTC)), text), ToolResult)
        for year in (2026, 2031)
    )
    ages = [
        next(event.outcome.response for event in each if event.outcome.call.name == "estimate_cost")
        for each in (soon, late)
    ]
    assert json.dumps(ages[0]["warnings"]) != json.dumps(ages[1]["warnings"])


def test_a_failure_of_ours_leaves_its_turn_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(turn: Any) -> Any:
        raise ZeroDivisionError

    model = Scripted([broken])
    monkeypatch.setattr("agent.session.model_of", lambda name: model)
    session = open_session(model="offline")
    with pytest.raises(ZeroDivisionError):
        say(session, "hello")
    assert [turn.state for turn in transcript(session.id)] == ["failed"]


def test_sessions_are_their_users_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ask(FIT, approve=False, model="offline")["session"]
    monkeypatch.setenv("SHARDWISE_USER", "somebody-else")
    if not database.address():
        assert [row.id for row in list_sessions()] == [session]
        return
    assert list_sessions() == list_sessions("llama") == []
    for look in (transcript, fork_session, delete_session, open_session, lambda id: rename_session(id, "x")):
        with pytest.raises(PlanError, match="no session"):
            look(session)
