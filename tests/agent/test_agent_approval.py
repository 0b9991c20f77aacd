"""Writes: one question for all of a step, good for those bytes in the place of those files and for nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conversations import Scripted, answer_approval, collect, of, say

from agent.events import Approval, Done, ToolCall, ToolResult
from agent.session import Session, ask, open_session, transcript

RUN = {"model": "gpt2", "accelerator": "h100", "count": 1, "framework": "deepspeed"}


def write(folder: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "write_configs", {**RUN, "folder": folder, **more}


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Any:
    def session(*steps: Any) -> tuple[Session, Scripted]:
        model = Scripted(list(steps))
        monkeypatch.setattr("agent.session.model_of", lambda name: model)
        return open_session(model="auto"), model

    return session


def written() -> set[str]:
    return {path.parent.name for path in Path.cwd().rglob("*") if path.is_file()}


def errors(model: Scripted) -> list[str]:
    """What the tools answered in the model's last step: '' for a result."""
    parts = model.seen[-1].messages[-1]["parts"]
    return [str(part["functionResponse"]["response"].get("error", "")) for part in parts]


def test_writes_of_one_step_are_one_question_and_one_that_cannot_be_shown_leaves_the_others(scripted: Any) -> None:
    calls = [write("a"), ("describe_model", {"model": "gpt2"}), write("../out"), write("b", seq_len="wat"), write("c")]
    session, model = scripted(calls, "Done.")
    question = say(session, "go")[-1]
    assert [call.preview.folder for call in question.calls] == ["a", "c"]
    events = answer_approval(session, True)
    assert written() == {"a", "c"}
    assert [error.partition(":")[0] for error in errors(model)] == ["", "", "folder", "seq_len", ""]
    # What only reads ran before the question and does not run again.
    assert {event.outcome.call.id for event in of(events, ToolResult)} == {"c1-0", "c1-2", "c1-3", "c1-4"}
    assert [call.name for call in events[-1].tool_calls] == [name for name, _ in calls]


def test_a_refusal_refuses_all_and_the_model_is_told(scripted: Any) -> None:
    session, model = scripted([write("a"), write("b")], "As you like.")
    say(session, "go")
    assert answer_approval(session, False)[-1].files == []
    assert all("declined" in error for error in errors(model))
    assert written() == set()


def test_a_file_that_changed_after_it_was_shown_is_not_replaced(scripted: Any) -> None:
    session, model = scripted([write("a", overwrite=True), write("b")], "Hm.", [write("a", overwrite=True)], "Done.")
    Path("a").mkdir()
    (name,) = (file.path for file in say(session, "go")[-1].calls[0].preview.files[:1])
    Path("a", name).write_text("mine\n")
    answer_approval(session, True)
    assert ["no longer those that were approved" in error for error in errors(model)] == [True, False]
    assert Path("a", name).read_text() == "mine\n"
    shown = say(session, "again")[-1].calls[0].preview.files[0]
    assert shown.before == "mine\n"
    answer_approval(session, True)
    assert Path("a", name).read_text() == shown.text


def test_an_approval_given_again_after_a_crash_in_the_middle_of_writing_writes_the_rest(scripted: Any) -> None:
    session, _ = scripted([write("a")], "Done.")
    files = say(session, "go")[-1].calls[0].preview.files
    Path("a").mkdir()
    Path("a", files[0].path).write_text(files[0].text)
    answer_approval(session, True)
    assert {path.name: path.read_text() for path in Path("a").iterdir()} == {file.path: file.text for file in files}


def test_what_cannot_even_be_rendered_is_told_and_ends_nothing(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("agent.approval._inside", broken)
    session, model = scripted([write("a")], "It broke.")
    assert say(session, "go")[-1].answer == "It broke."
    assert "defect of Shardwise" in errors(model)[0]


def test_one_answer_may_need_several_approvals(scripted: Any) -> None:
    scripted([write("a")], [write("b")], "Done.")
    done = ask("go", approve=True)
    assert written() == {"a", "b"}
    assert done["answer"] == "Done."


def test_a_model_that_will_not_take_no_is_stopped(scripted: Any) -> None:
    _, model = scripted([write("a")])
    assert "I stopped here" in ask("go", approve=False)["answer"]
    assert len(model.seen) < 10
    assert written() == set()


def test_two_runs_on_one_session_answer_one_after_the_other() -> None:
    session = ask("does gpt2 fit on 8 H100?", approve=False, model="offline")["session"]

    async def both() -> None:
        texts = ("and with sequences of 512 tokens?", "and on 16 GPUs?")
        await asyncio.gather(*(collect(open_session(session, "offline").send(text)) for text in texts))

    asyncio.run(both())
    assert [turn.state for turn in transcript(session)] == ["done"] * 3
    plan = asyncio.run(open_session(session, "offline").plan())
    assert (plan["cluster"]["count"], plan["workload"]["seq_len"]) == (16, 512)
    assert not list(Path(os.environ["SHARDWISE_HOME"]).glob("*.lock"))


def test_a_run_waits_for_one_of_another_process_until_that_ends_or_dies(scripted: Any) -> None:
    session, _ = scripted("Hello.")
    say(session, "one")
    lock = Path(os.environ["SHARDWISE_HOME"]) / f"session-{session.id}.lock"
    program = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout
        other.stdout.readline()

        async def run() -> list[Any]:
            waiting = asyncio.create_task(collect(session.send("two")))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            other.kill()
            return await waiting

        assert isinstance(asyncio.run(run())[-1], Done)
    assert not lock.exists()


def test_a_session_that_stays_busy_says_so(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.alone._PATIENCE_S", 0.1)
    session, _ = scripted("Hello.")

    async def both() -> list[Any]:
        first = session.send("one")
        await anext(first)
        with pytest.raises(Exception, match="answering something else"):
            await anext(session.send("two"))
        return [event async for event in first]

    assert asyncio.run(both())[-1].answer == "Hello."
    assert [turn.said for turn in transcript(session.id)] == ["one"]


def test_a_session_deleted_while_it_answers_leaves_nothing(scripted: Any) -> None:
    from agent.session import delete_session

    session, _ = scripted([("describe_model", {"model": "gpt2"})], "Heliotrope.")

    async def run() -> None:
        async for event in session.send("the heliotrope run"):
            if isinstance(event, ToolCall):
                await asyncio.to_thread(delete_session, session.id)

    asyncio.run(run())
    home = Path(os.environ["SHARDWISE_HOME"])
    assert not [path for path in home.iterdir() if b"eliotrope" in path.read_bytes()]


def test_what_is_no_text_is_left_out_wherever_it_comes_from(scripted: Any) -> None:
    session, model = scripted([("describe_model", {"model": "gpt\ud8002", "\udc00": "\udfff"})], "It is \udcffknown.")
    done = say(session, "what is \udcffgpt2?")[-1]
    assert done.answer == "It is known."
    assert transcript(session.id)[0].said == "what is gpt2?"
    assert json.dumps(model.seen[-1].messages).count("\\ud") == 0


def test_a_report_is_written_once_its_page_was_approved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    monkeypatch.chdir(tmp_path)
    session = open_session(model="offline", output=str(root))
    (asked,) = of(say(session, "write a report for llama-3.1-8b full sft on 8 h100 to out.html"), Approval)
    (shown,) = asked.calls[0].preview.files
    assert not list(tmp_path.rglob("*.html"))
    (done,) = of(answer_approval(session, True), Done)
    (page,) = tmp_path.rglob("*.html")
    assert page.is_relative_to(root)
    assert page.read_text() == shown.text
    assert [file.bytes for file in done.files] == [len(page.read_bytes())]
