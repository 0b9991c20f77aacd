"""The plan in the app: edited by form and by command, undone, kept by the session, and what it comes to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_session import GIVEN, FakeSession, done, estimator
from pydantic import BaseModel
from screen_driving import until
from textual.pilot import Pilot
from textual.widgets import Input, Static

from agent.events import Discard, Event, TextPiece
from agent.store import FileWritten, KeptCall, KeptTurn
from tui.app import ShardwiseApp
from tui.widgets.conversation import Conversation
from tui.widgets.messages import Answer, Notice, Question
from tui.widgets.plan_form import FieldInput, PlanForm
from tui.widgets.plan_pane import PlanPane
from tui.widgets.prompt import Prompt
from tui.widgets.stack import Stack
from tui.widgets.thinking import Thinking
from tui.widgets.tool_card import ToolCard


@asynccontextmanager
async def opened(
    size: tuple[int, int] = (120, 40), **given: Any
) -> AsyncIterator[tuple[ShardwiseApp, Pilot[None], list[FakeSession]]]:
    sessions: list[FakeSession] = []

    def opener(*args: Any, **more: Any) -> FakeSession:
        sessions.append(FakeSession(*args, **more))
        return sessions[-1]

    app = ShardwiseApp(opener=opener, estimator=given.pop("estimator", estimator), model="offline", **given)
    async with app.run_test(size=size) as pilot:
        yield app, pilot, sessions


async def enter(app: ShardwiseApp, pilot: Pilot[None], text: str) -> None:
    app.query_one(Prompt).text = text
    await pilot.press("enter")
    await settled(app, pilot)


async def settled(app: ShardwiseApp, pilot: Pilot[None]) -> None:
    for _ in range(3):
        await pilot.pause()
        await app.workers.wait_for_complete()
    await pilot.pause()


def notices(app: ShardwiseApp) -> list[str]:
    return [str(notice.content) for notice in app.query(Notice)]


def field(app: ShardwiseApp, name: str) -> FieldInput:
    return next(row for row in app.query(FieldInput) if row.field.name == name)


async def test_the_pane_has_the_plan_and_all_it_comes_to() -> None:
    async with opened() as (app, pilot, _):
        await enter(app, pilot, "Does it fit?")
        assert app.pane.plan == GIVEN
        assert {"step", "tokens/s", "MFU", "run", "cost"} <= set(app.pane.overview.figures)
        assert app.pane.overview.figures["MFU"] == "42 % (38–47)"
        assert app.query_one("#memory-bar").display
        times = app.query_one("#time-bar", Stack).render().plain.splitlines()
        assert set(times[0]) == {"█"}
        assert times[1].startswith("█ backward")


async def test_a_field_changes_the_plan_as_it_is_typed() -> None:
    async with opened() as (app, pilot, sessions):
        await enter(app, pilot, "Does it fit?")
        await pilot.press("f3")
        await settled(app, pilot)
        assert app.focused is field(app, "model")
        field(app, "count").focus()
        await pilot.press("1", "6")
        await settled(app, pilot)
        assert app.pane.plan["cluster"] == {"accelerator": "h100-sxm", "count": 16}
        assert app.pane.overview.plan is not None
        assert app.pane.overview.plan["cluster"]["count"] == 16
        await pilot.press("escape")
        await settled(app, pilot)
        assert not app.pane.editing
        assert app.focused is app.query_one(Prompt)
        # The session knows, before and without a further question; one undo takes all the keys back.
        assert sessions[0].plans[-1]["cluster"]["count"] == 16
        await enter(app, pilot, "/undo")
        assert sessions[0].plans[-1] == GIVEN


async def test_a_value_that_cannot_be_is_explained_beside_the_field() -> None:
    async with opened() as (app, pilot, sessions):
        await enter(app, pilot, "Does it fit?")
        await pilot.press("f3")
        await settled(app, pilot)
        count = field(app, "count")
        count.focus()
        await pilot.press("1", "3")
        await settled(app, pilot)
        note = app.query_one("#field-note", Static)
        assert str(note.content) == "cluster.count: 13 devices do not fill whole nodes of 8; valid: 8 16"
        assert count.has_class("-wrong")
        assert app.pane.has_class("-stale")
        await pilot.press("escape")
        await settled(app, pilot)
        # Neither 13 nor the 1 on the way to it is what the plan is now.
        assert app.pane.plan == GIVEN
        assert all(plan["cluster"]["count"] == 8 for plan in sessions[0].plans)
        assert not app.pane.has_class("-stale")


async def test_the_form_finds_any_field_and_validates_by_the_schema() -> None:
    async with opened() as (app, pilot, _):
        await enter(app, pilot, "Does it fit?")
        await pilot.press("f3")
        await settled(app, pilot)
        find = app.query_one("#find-field", Input)
        find.focus()
        find.value = "group size"
        await settled(app, pilot)
        assert [row.field.name for row in app.query(FieldInput)] == ["group_size"]
        field(app, "group_size").focus()
        await pilot.press(*"none")
        await settled(app, pilot)
        assert "workload.group_size" in str(app.query_one("#field-note", Static).content)
        field(app, "group_size").value = "16"
        await settled(app, pilot)
        assert app.pane.plan["workload"]["group_size"] == 16
        find.value = ""
        await settled(app, pilot)
        assert field(app, "group_size").value == "16"


async def test_what_is_chosen_for_you_stands_behind_an_empty_field() -> None:
    async with opened() as (app, pilot, _):
        await enter(app, pilot, "Does it fit?")
        await pilot.press("f3")
        await settled(app, pilot)
        assert (field(app, "zero_stage").value, field(app, "zero_stage").placeholder) == ("", "3")
        assert field(app, "count").value == "8"


async def test_of_many_changes_the_last_one_wins() -> None:
    started: list[int] = []

    def slow(plan: Mapping[str, Any]) -> list[BaseModel]:
        import time

        started.append(plan["cluster"]["count"])
        time.sleep(0.05)
        return estimator(plan)

    async with opened(estimator=slow) as (app, pilot, _):
        await enter(app, pilot, "Does it fit?")
        started.clear()
        for count in range(1, 12):
            app.pane.edit({"cluster.count": count})
        await settled(app, pilot)
        await asyncio.sleep(0.2)
        await settled(app, pilot)
        assert app.pane.plan["cluster"]["count"] == 11
        assert app.pane.overview.plan is not None
        assert app.pane.overview.plan["cluster"]["count"] == 11
        assert len(started) <= 3


async def test_commands_change_the_plan() -> None:
    async with opened() as (app, pilot, sessions):
        await enter(app, pilot, "/plan model=gpt2 accelerator=h100-sxm count=8 seq_len=1k")
        assert app.pane.plan["workload"] == {"kind": "training", "seq_len": 1024}
        assert any(text.startswith("The plan is now gpt2 on 8 × h100-sxm") for text in notices(app))
        await enter(app, pilot, "/hardware h200-sxm x16")
        assert app.pane.plan["cluster"] == {"accelerator": "h200-sxm", "count": 16}
        await enter(app, pilot, "/model meta-llama/Llama-3.1-8B")
        assert app.pane.plan["model"] == "meta-llama/Llama-3.1-8B"
        assert sessions[0].plans[-1] == app.pane.plan
        await enter(app, pilot, "/plan count=13")
        assert notices(app)[-1] == "cluster.count: 13 devices do not fill whole nodes of 8; valid: 8 16"
        assert app.pane.plan["cluster"]["count"] == 16
        # What is done or refused is waited for no longer.
        assert not app.query(Thinking)
        await enter(app, pilot, "/plan nosuch=1")
        assert notices(app)[-1].startswith("nosuch: there is no such field of the plan")
        await enter(app, pilot, "/sweap")
        assert notices(app)[-1].startswith("/sweap: there is no such command; valid: /sweep")
        await enter(app, pilot, "/plan kind=inference")
        assert app.pane.plan["workload"] == {"kind": "inference"}


async def test_an_edit_during_an_answer_is_not_lost() -> None:
    gate = threading.Event()
    gate.set()

    class Slow(FakeSession):
        async def _answer(self, files: list[FileWritten]) -> AsyncIterator[Event]:
            await asyncio.to_thread(gate.wait)
            async for event in super()._answer(files):
                yield event

    app = ShardwiseApp(opener=Slow, estimator=estimator)
    async with app.run_test(size=(120, 40)) as pilot:
        await enter(app, pilot, "First?")
        gate.clear()
        app.query_one(Prompt).text = "And again?"
        await pilot.press("enter")
        await until(pilot, lambda: len(app.query(ToolCard)) == 4)
        await app.open_form()
        app.pane.edit({"cluster.count": 64})
        gate.set()
        await settled(app, pilot)
        assert app.pane.plan["cluster"]["count"] == 64
        await pilot.press("escape")
        await settled(app, pilot)
        assert app.talk.session.plans[-1]["cluster"]["count"] == 64


async def test_tools_by_command() -> None:
    async with opened() as (app, pilot, sessions):
        await enter(app, pilot, "/fit")
        assert notices(app)[-1].startswith("plan: there is none yet")
        await enter(app, pilot, "/plan model=gpt2 accelerator=h100-sxm count=8")
        for line, tool in (
            ("/fit", "check_fit"),
            ("/best", "best_parallelism"),
            ("/cost dataset_tokens=1B", "estimate_cost"),
            ("/compare method=full,lora", "compare"),
            ("/sweep count 8,16", "sweep"),
            ("/config", "render_configs"),
        ):
            await enter(app, pilot, line)
            card = app.query(ToolCard).last()
            assert card.tool == tool
            assert card.has_class("-done"), notices(app)[-1]
            assert not card.collapsed
            assert str(app.query(Question).last().content) == line
            assert len(str(card.detail.content)) > 100
        # A command is no turn of the session.
        assert all(not session.sent for session in sessions)
        await enter(app, pilot, "/copy config")
        assert "#SBATCH" in app.clipboard or "{" in app.clipboard
        await enter(app, pilot, "/copy job.sbatch")
        assert app.clipboard.startswith("#!")
        await enter(app, pilot, "/sweep nosuch 1,2")
        assert notices(app)[-1].startswith("nosuch:")
        await enter(app, pilot, "/fit seq_len=0")
        assert notices(app)[-1].startswith("workload.seq_len: got")


async def test_the_plan_is_saved_and_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_DATA", str(tmp_path / "data"))
    async with opened(output=str(tmp_path)) as (app, pilot, _):
        await enter(app, pilot, "/plan model=gpt2 accelerator=h100-sxm count=8")
        await enter(app, pilot, "/save My Plan")
        assert (tmp_path / "data" / "scenarios" / "my-plan.yaml").exists()
        await enter(app, pilot, "/save My Plan")
        assert "overwrite" in notices(app)[-1]
        await enter(app, pilot, "/save My Plan overwrite")
        assert app.query(ToolCard).last().has_class("-done")
        await enter(app, pilot, "/export plan")
        assert "model: gpt2" in (tmp_path / "plan.yaml").read_text()
        await enter(app, pilot, "/export plan")
        assert "is there already" in notices(app)[-1]
        monkeypatch.chdir(tmp_path)
        await enter(app, pilot, "/export html")
        assert app.query(ToolCard).last().has_class("-done")
        assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
        assert not (tmp_path / "html").exists()
        await enter(app, pilot, "/export second.html")
        assert (tmp_path / "second.html").read_text().startswith("<!doctype html>")
        await enter(app, pilot, "/export md")
        assert app.query(ToolCard).last().has_class("-done")
        assert (tmp_path / "report.md").read_text().startswith("# ")
        await enter(app, pilot, "/export page.docx")
        assert "docx" in notices(app)[-1]
        assert not (tmp_path / "page.docx").exists()


async def test_theme_and_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path))
    async with opened() as (app, pilot, _):
        await enter(app, pilot, "/theme")
        assert app.theme == "textual-light"
        assert 'theme = "textual-light"' in (tmp_path / "settings.toml").read_text()
        await enter(app, pilot, "/theme nosuch")
        assert notices(app)[-1].startswith("theme: there is no theme 'nosuch'")
    async with opened() as (app, pilot, _):
        assert app.theme == "textual-light"


async def test_completion_at_the_prompt() -> None:
    async with opened() as (app, pilot, _):
        prompt = app.query_one(Prompt)
        await pilot.press("/", "s", "w")
        await settled(app, pilot)
        await pilot.press("tab")
        assert prompt.text == "/sweep "
        await pilot.press(*"glo")
        await settled(app, pilot)
        await pilot.press("tab")
        assert prompt.text == "/sweep global_batch"
        await pilot.press("escape")
        prompt.text = "/the"
        await settled(app, pilot)
        await pilot.press("down", "enter")
        assert prompt.text == "/theme "


async def test_prompts_are_remembered_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_DATA", str(tmp_path))
    async with opened() as (app, pilot, _):
        await enter(app, pilot, "Does it fit?\nReally?")
        await enter(app, pilot, "And now?")
    await asyncio.sleep(0.2)
    assert (tmp_path / "prompts.jsonl").stat().st_mode & 0o777 == 0o600
    async with opened() as (app, pilot, _):
        prompt = app.query_one(Prompt)
        prompt.text = "half"
        await pilot.press("up")
        assert prompt.text == "And now?"
        await pilot.press("up")
        assert prompt.text == "Does it fit?\nReally?"
        await pilot.press("down", "down")
        assert prompt.text == "half"


async def test_drafts_are_marked_and_taken_back() -> None:
    gate = threading.Event()

    class Drafting(FakeSession):
        async def send(self, text: str) -> AsyncIterator[Event]:
            yield TextPiece("It takes 99 GiB.", draft=True)
            await asyncio.to_thread(gate.wait)
            yield Discard()
            yield TextPiece("It takes 65 GiB.", draft=True)
            yield done("It takes 65 GiB.")

    app = ShardwiseApp(opener=Drafting, estimator=estimator)
    async with app.run_test(size=(120, 40)) as pilot:
        app.query_one(Prompt).text = "x"
        await pilot.press("enter")
        await until(pilot, lambda: len(app.query(Answer)) == 1)
        assert app.query_one(Answer).has_class("-draft")
        gate.set()
        await settled(app, pilot)
        assert [answer.source_text for answer in app.query(Answer)] == ["It takes 65 GiB."]
        assert not app.query_one(Answer).has_class("-draft")


async def test_an_earlier_conversation_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    call = KeptCall(name="check_fit", arguments={"count": 8}, seconds=0.2, figures="check_fit: fits")
    turns = [
        KeptTurn(
            number=n, moment="2026-01-01T10:00:00+00:00", said=f"Question {n}", state="done",
            answer=f"Answer **{n}**\n\n```yaml\nn: {n}\n```", calls=[call], plan=GIVEN,
        )
        for n in range(1, 22)
    ]  # fmt: skip
    monkeypatch.setattr("tui.app.transcript", lambda session_id: turns)
    async with opened(session_id="s-old") as (app, pilot, sessions):
        await settled(app, pilot)
        await until(pilot, lambda: len(app.query(Question)) == 21)
        assert [str(each.content) for each in app.query(Question)] == [f"Question {n}" for n in range(1, 22)]
        conversation = app.query_one(Conversation)
        assert conversation.max_scroll_y > 0
        assert conversation.scroll_y == conversation.max_scroll_y
        assert conversation.last_answer.startswith("Answer **21**")
        assert app.pane.plan == GIVEN
        assert "FITS" in str(app.query_one("#fit", Static).content)
        await enter(app, pilot, "go on")
        assert sessions[0].id == "s-old"
        await enter(app, pilot, "/copy")
        await pilot.press("f4")
        assert app.clipboard == "n: 21\n"


async def test_the_form_on_a_narrow_screen() -> None:
    async with opened((80, 24)) as (app, pilot, _):
        await pilot.press("f3")
        await settled(app, pilot)
        assert app.query_one(PlanForm).region.height > 5
        assert not app.query_one(Conversation).display
        # The field that is typed into is in sight, also below a longer note.
        await app.open_form("recompute")
        await settled(app, pilot)
        await pilot.press("x")
        await settled(app, pilot)
        assert app.query_one("#fields").region.contains_region(field(app, "recompute").region)
        await pilot.press("escape")
        await settled(app, pilot)
        assert app.query_one(Conversation).display
        assert not app.query_one(PlanPane).display
