"""The app, driven as a person would: keys in, widgets out, over a session that follows a script."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_session import ANSWER, FakeSession, done, estimator
from screen_driving import settle, until
from textual.command import CommandList, Hit
from textual.pilot import Pilot
from textual.widgets import OptionList, Static
from textual.widgets._footer import FooterKey

import tui
from agent.events import Event, TextPiece
from agent.store import FileWritten
from estimator.errors import PlanError
from tui.actions import ACTIONS, BROWSER_KEYS
from tui.app import ShardwiseApp
from tui.tab import BrowserApp
from tui.widgets.action_search import ActionSearch
from tui.widgets.approval import ApprovalCard, FileDiff
from tui.widgets.choices import Choices
from tui.widgets.conversation import Conversation
from tui.widgets.markdown_block import MarkdownBlock
from tui.widgets.messages import Answer, Behind, Notice, Question, Queued
from tui.widgets.plan_pane import PlanPane
from tui.widgets.prompt import Prompt
from tui.widgets.stack import Bar, Stack, parts_of
from tui.widgets.thinking import Thinking
from tui.widgets.tool_card import ToolCard
from tui.widgets.welcome import EXAMPLES, Welcome

WIDE, SMALL = (110, 36), (80, 24)


@asynccontextmanager
async def opened(size: tuple[int, int] = WIDE) -> AsyncIterator[tuple[ShardwiseApp, Pilot[None], list[FakeSession]]]:
    sessions: list[FakeSession] = []

    def opener(*args: Any, **given: Any) -> FakeSession:
        sessions.append(FakeSession(*args, **given))
        return sessions[-1]

    app = ShardwiseApp(opener=opener, model="offline", output="out", estimator=estimator)
    async with app.run_test(size=size) as pilot:
        app.query_one(Prompt).sent = []
        yield app, pilot, sessions


async def ask(app: ShardwiseApp, pilot: Pilot[None], text: str) -> None:
    app.query_one(Prompt).text = text
    await pilot.press("enter")
    await settled(app, pilot)


async def settled(app: ShardwiseApp, pilot: Pilot[None]) -> None:
    await pilot.pause()
    await app.workers.wait_for_complete()
    await pilot.pause()


def notices(app: ShardwiseApp) -> list[str]:
    return [str(notice.content) for notice in app.query(Notice)]


async def test_details_of_an_answer_open_with_a_key() -> None:
    async with opened() as (app, pilot, _):
        await ask(app, pilot, "Does it fit?")
        behind = app.query_one(Behind)
        assert not behind.inner.display
        assert ["optimizer" in block.text for block in behind.inner.query(MarkdownBlock)] == [True]
        assert len(app.query_one(Answer).query_children(MarkdownBlock)) == 2
        await pilot.press("f10")
        assert behind.inner.display
        await pilot.press("f10")
        assert not behind.inner.display


async def test_a_conversation() -> None:
    async with opened() as (app, pilot, sessions):
        await ask(app, pilot, "Does it fit?")
        assert not app.query(Welcome)
        assert str(app.query_one(Question).content) == "Does it fit?"
        assert app.query_one(Answer).source_text == ANSWER
        assert [card.tool for card in app.query(ToolCard)] == ["estimate_training", "estimate_cost"]
        assert "120 ms" in str(app.query(ToolCard).first().title)
        assert "s-123" in str(app.query_one("#title", Static).content)
        assert app.query_one(Prompt).text == ""
        assert (sessions[0].model, sessions[0].given["output"]) == ("offline", "out")
        await pilot.press("ctrl+o")
        assert app.clipboard == ANSWER.strip()

        # The pane: the verdict, a bar in proportion, and a mark where memory ends once the plan needs more.
        assert str(app.query_one("#fit", Static).content).startswith("FITS  65.0 GiB of 79.6 GiB")
        bar = app.query_one("#memory-bar", Stack)
        first = bar.render().plain.splitlines()[0]
        assert len(first) == bar.content_size.width
        assert first.count("█") == round(65 / 79.6 * len(first))
        bar.bar = Bar(parts_of({"weights": 100}), 50, str)
        await pilot.pause()
        first = bar.render().plain.splitlines()[0]
        assert first.index("┃") == pytest.approx(len(first) / 2, abs=1)

        # Up brings back what was asked, down goes on.
        prompt = app.query_one(Prompt)
        await pilot.press("up")
        assert prompt.text == "Does it fit?"
        await pilot.press("up", "down")
        assert prompt.text == ""

        # A new conversation starts empty, with a session of its own.
        await pilot.press("ctrl+n")
        await pilot.pause()
        assert app.query(Welcome)
        assert not app.query(Answer)
        assert app.query_one(PlanPane).overview.plan is None
        assert app.talk.id is None
        await ask(app, pilot, "Again")
        assert len(sessions) == 2


@pytest.mark.parametrize(("keys", "approved"), [(("enter",), True), (("down", "enter"), False), (("escape",), False)])
async def test_nothing_is_written_without_a_yes(keys: tuple[str, ...], approved: bool) -> None:
    async with opened() as (app, pilot, sessions):
        await ask(app, pilot, "write it")
        card = app.query_one(ApprovalCard)
        assert app.focused in list[object](card.query(OptionList))
        shown = "\n".join(str(line.content) for line in card.query(Static))
        for text in ("Write 3 files?", "runs/llama", "train.yaml  1,234 bytes", "job.slurm  890 bytes"):
            assert text in shown
        assert sessions[0].resumed == []
        # What changes is read from its first line, and makes room for the answer.
        await pilot.press("down", "down", "enter", "up", "up")
        await until(pilot, lambda: not any(file.collapsed for file in card.query(FileDiff)))
        await until(pilot, lambda: app.conversation.scroll_offset.y <= card.virtual_region.y)
        await pilot.press(*keys)
        await until(pilot, lambda: all(file.collapsed for file in card.query(FileDiff)))
        await settled(app, pilot)
        assert sessions[0].resumed == [approved]
        assert app.query_one(Answer).source_text == ANSWER
        assert any("runs/llama/ds.json" in text for text in notices(app)) is approved
        assert app.focused is app.query_one(Prompt)


async def test_an_approval_is_answered_once_and_what_is_said_meanwhile_waits() -> None:
    async with opened() as (app, pilot, sessions):
        await ask(app, pilot, "write it")
        app.query_one(Prompt).focus()
        await ask(app, pilot, "something else")
        assert [str(row.content) for row in app.query(Queued)] == ["something else"]
        # Enter once more, of whoever thinks that it was not sent, writes nothing.
        await pilot.press("enter", "enter")
        await settled(app, pilot)
        assert sessions[0].resumed == []
        assert sessions[0].sent == ["write it"]
        await pilot.press("tab", "enter", "enter", "escape")
        await until(pilot, lambda: sessions[0].sent == ["write it", "something else"])
        assert sessions[0].resumed == [True]


async def test_no_letter_approves_anything() -> None:
    async with opened() as (app, pilot, sessions):
        await ask(app, pilot, "write it")
        await pilot.press(*"yes", "space", *"y")
        await settled(app, pilot)
        assert sessions[0].resumed == []
        assert app.query_one(Prompt).text == "yes y"
        assert app.focused is app.query_one(Prompt)


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_running_answer_is_stopped(key: str) -> None:
    async with opened() as (app, pilot, sessions):
        app.query_one(Prompt).text = "hang"
        await pilot.press("enter")
        await until(pilot, lambda: app.query(Answer))
        app.query_one(Prompt).text = "next"
        await pilot.press("enter")
        await until(pilot, lambda: [str(row.content) for row in app.query(Queued)] == ["next"])
        assert sessions[0].sent == ["hang"]
        await pilot.press(key)
        await until(pilot, lambda: app.query_one(Prompt).text == "next" and notices(app))
        assert notices(app) == ["Stopped."]
        assert sessions[0].stopped
        assert app.talk.id == "s-123"
        assert app.query_one(Answer).source_text == "Thinking about it"
        await pilot.press("enter")
        await settled(app, pilot)
        assert sessions[0].sent == ["hang", "next"]


async def test_a_session_that_cannot_be_opened_is_told_in_its_own_words() -> None:
    def opener(*_: Any, **__: Any) -> Any:
        raise PlanError("session", "there is no conversation 'x'")

    app = ShardwiseApp(opener=opener)
    async with app.run_test(size=SMALL) as pilot:
        await ask(app, pilot, "hello")
        assert notices(app) == ["session: there is no conversation 'x'"]


async def test_an_unknown_session_is_told_and_a_new_one_started() -> None:
    app = ShardwiseApp(session_id="nosuch", opener=FakeSession, estimator=estimator)
    async with app.run_test(size=SMALL) as pilot:
        await settled(app, pilot)
        assert [told.split(";")[0] for told in notices(app)] == ["session: there is no session 'nosuch'"]
        assert app.talk.id is None


async def test_shown_text_cannot_control_the_terminal_and_failures_are_told() -> None:
    async with opened(SMALL) as (app, pilot, _):
        await ask(app, pilot, "nasty \x1b[31m[b]words\x07")
        assert str(app.query_one(Question).content) == "nasty [b]words"
        card = app.query(ToolCard).last()
        assert "[red]x" in str(card.title)
        assert "failed: model: no" in str(card.title)
        assert "\x1b" not in str(card.title) + str(card.detail.content)
        await ask(app, pilot, "explode")
        assert notices(app) == ["This should not have happened: KeyError: 'boom'"]


async def test_a_pasted_text_of_many_lines_waits_for_enter() -> None:
    from textual.events import Paste

    async with opened(SMALL) as (app, pilot, sessions):
        prompt = app.query_one(Prompt)
        app.post_message(Paste("one\ntwo\nthree\n"))
        await pilot.pause()
        assert prompt.text == "one\ntwo\nthree\n"
        assert prompt.size.height == 4
        assert not sessions
        prompt.text = "  \n "
        await pilot.press("enter")
        assert not sessions
        prompt.text = "one\ntwo\nthree\n"
        prompt.move_cursor(prompt.document.end)
        await pilot.press("ctrl+j", "x")
        assert prompt.text == "one\ntwo\nthree\n\nx"
        await pilot.press("enter")
        await settled(app, pilot)
        assert sessions[0].sent == ["one\ntwo\nthree\n\nx"]


def _keeping(made: list[FakeSession], kind: type[FakeSession]) -> Any:
    """Opens sessions of that kind, and keeps them."""

    def opener(*words: Any, **named: Any) -> FakeSession:
        made.append(kind(*words, **named))
        return made[-1]

    return opener


async def test_what_is_sent_meanwhile_is_asked_next() -> None:
    class Slow(FakeSession):
        async def send(self, text: str) -> AsyncIterator[Event]:
            self.sent.append(text)
            while not told.is_set():
                await asyncio.sleep(0.01)
            yield done(f"About {text}.", {})

    told = threading.Event()
    made: list[FakeSession] = []
    app = ShardwiseApp(
        opener=lambda *words, **named: made.append(Slow(*words, **named)) or made[-1], estimator=estimator
    )
    async with app.run_test(size=SMALL) as pilot:
        for text in ("one", "two", "/model gpt2", "three"):
            app.query_one(Prompt).text = text
            await pilot.press("enter")
        await until(pilot, lambda: len(app.queue.rows) == 3)
        assert app.query(Thinking)
        told.set()
        await until(pilot, lambda: len(app.query(Answer)) == 3 and app.turns.current is None)
        await settle(pilot)
        assert made[0].sent == ["one", "two", "three"]
        asked = [str(question.content) for question in app.query(Question)]
        assert asked == ["one", "two", "/model gpt2", "three"]
        assert [plan["model"] for plan in made[0].plans] == ["gpt2"]
        assert not app.query(Queued)
        assert not app.query(Thinking)
        assert [answer.source_text for answer in app.query(Answer)] == ["About one.", "About two.", "About three."]


async def test_what_is_asked_back_can_be_picked() -> None:
    class Asking(FakeSession):
        async def send(self, text: str) -> AsyncIterator[Event]:
            self.sent.append(text)
            asks = len(self.sent) == 1
            yield done("Which?\n\nNext: “8 H100” · “one H100”" if asks else "Done.", {}, asked=["x"] if asks else [])

    made: list[FakeSession] = []
    app = ShardwiseApp(
        opener=lambda *words, **named: made.append(Asking(*words, **named)) or made[-1], estimator=estimator
    )
    async with app.run_test(size=SMALL) as pilot:
        await ask(app, pilot, "train it")
        assert app.focused is app.query_one(Choices)
        await pilot.press("down", "enter")
        await settled(app, pilot)
        assert made[0].sent == ["train it", "one H100"]
        assert not app.query(Choices)


async def test_tab_takes_the_next_step_that_is_offered() -> None:
    class Offering(FakeSession):
        async def send(self, text: str) -> AsyncIterator[Event]:
            yield done("It fits.\n\nNext: “use fsdp2” · “write the files”", {})

    app = ShardwiseApp(opener=Offering, estimator=estimator)
    async with app.run_test(size=SMALL) as pilot:
        await ask(app, pilot, "does it fit?")
        prompt = app.query_one(Prompt)
        await pilot.press("tab")
        assert prompt.text == "use fsdp2"
        await pilot.press("tab")
        assert prompt.text == "write the files"


async def test_the_whole_name_of_an_action_finds_it_first() -> None:
    async with opened(WIDE) as (app, _, _):
        search = ActionSearch(app.screen)
        for row in ACTIONS:
            hits = [hit async for hit in search.search(row.name) if isinstance(hit, Hit)]
            assert f"/{row.name}" in str(max(hits).text).split()


async def test_every_action_of_ours_is_in_the_list_of_commands() -> None:
    async with opened(WIDE) as (app, pilot, _):
        rows = list(app.get_system_commands(app.screen))
        listed = {row.help for row in rows}
        for command in ACTIONS:
            # One without words has its name in the title alone.
            assert not command.usage or command.shown.replace("[", "\\[") in listed, command.name
        titles = [row.title for row in rows]
        # By its name too: the letters are looked for in the title.
        assert all(any(f" /{command.name} " in f"{title} " for title in titles) for command in ACTIONS)
        assert len(titles) == len(set(titles))
        assert any("^g" in title for title in titles)
        # A few letters find one, and Enter goes there; words that a command needs are typed.
        await pilot.press("ctrl+p", *"varianside")
        await until(pilot, lambda: app.screen.query_one(CommandList).option_count == 1)
        await pilot.press("enter")
        await until(pilot, lambda: app.query_one(Prompt).text == "/compare ")


@pytest.mark.parametrize("width", [50, 64, 80, 93])
async def test_a_key_at_the_foot_is_whole_or_not_there(width: int) -> None:
    async with opened((width, 24)) as (app, pilot, _):
        await settle(pilot)
        *keys, actions = app.query(FooterKey)
        assert keys
        assert actions.has_class("-command-palette")
        # Behind the last letter is a space.
        assert all(key.region.right - 1 <= actions.region.x for key in keys)


async def test_the_keys_at_the_foot_are_made_anew_only_where_others_hold() -> None:
    async with opened() as (app, pilot, _):
        await settle(pilot)
        before = list(app.query(FooterKey))
        assert before
        app.screen.refresh_bindings()
        await settle(pilot)
        assert list(app.query(FooterKey)) == before
        await ask(app, pilot, "Does it fit? Then write the files.")
        await until(
            pilot, lambda: {key.description for key in app.query(FooterKey)} != {key.description for key in before}
        )


async def test_in_a_browser_no_key_is_the_browsers_and_each_has_a_command() -> None:
    app = BrowserApp(opener=FakeSession, estimator=estimator)
    async with app.run_test(size=WIDE) as pilot:
        bound = app.screen.active_bindings
        assert not {key for key in bound if bound[key].node is app} & BROWSER_KEYS
        shown = {row.title for row in app.get_system_commands(app.screen)}
        assert not any(title.endswith(("^n", "^o", "f5", "^p")) for title in shown)
        # The list of actions has a key of its own, and what lost its key is there by name.
        await pilot.press("f8", *"cluststorun")
        await until(pilot, lambda: app.screen.query_one(CommandList).option_count == 1)
        await pilot.press("escape", "escape")
        await pilot.press(*"/clusters", "enter")
        await until(pilot, lambda: app.screen.query("#table"))
        await pilot.press("escape", "f1")
        await until(pilot, lambda: app.screen.query(".column"))
        text = "\n".join(str(each.render()) for each in app.screen.query(Static))
        assert "/clusters" in text
        assert not re.search(r"\^[glnopqrst]\b|\bf5\b|\bf12\b|Ctrl\+P", text)


def test_the_page_leaves_a_browser_its_keys_and_keeps_ours() -> None:
    page = (Path(tui.__file__).parent / "web_page" / "app_index.html").read_text()
    ours, letters = (re.search(pattern, page) for pattern in (r"ours = /\^F\((.*?)\)\$/", r'theirs = "(\w+)"'))
    assert ours is not None
    assert letters is not None
    wanted = {key.key for row in ACTIONS for key in row.keys if key.key.startswith("f")} - BROWSER_KEYS
    assert wanted <= {f"f{number}" for number in range(1, 13) if re.fullmatch(ours[1], str(number))}
    assert {f"ctrl+{letter}" for letter in letters[1]} == {key for key in BROWSER_KEYS if key.startswith("ctrl")}


async def test_an_example_can_be_asked_by_keyboard() -> None:
    async with opened(SMALL) as (app, pilot, sessions):
        await pilot.press("tab", "down", "enter")
        await settled(app, pilot)
        assert sessions[0].sent == [EXAMPLES[1]]


async def test_typing_goes_to_the_input_wherever_the_focus_is() -> None:
    async with opened(SMALL) as (app, pilot, sessions):
        await pilot.press("tab", *"8 H100s")
        assert app.focused is app.query_one(Prompt)
        assert app.query_one(Prompt).text == "8 H100s"
        await pilot.press("enter", *"more")
        await settled(app, pilot)
        assert sessions[0].sent == ["8 H100s"]
        assert app.query_one(Prompt).text == "more"


async def test_the_pane_gives_way_on_a_narrow_screen() -> None:
    async with opened(SMALL) as (app, pilot, _):
        pane, conversation = app.query_one(PlanPane), app.query_one(Conversation)
        assert (pane.display, conversation.display) == (False, True)
        await pilot.press("f2")
        assert (pane.display, conversation.display) == (True, False)
        await pilot.press("f2")
        assert (pane.display, conversation.display) == (False, True)
        await pilot.resize_terminal(*WIDE)
        await pilot.pause()
        assert (pane.display, conversation.display) == (True, True)
        await pilot.press("f2")
        assert (pane.display, conversation.display) == (False, True)


async def test_an_approval_is_in_sight_even_from_the_plan() -> None:
    async with opened(SMALL) as (app, pilot, sessions):
        await pilot.press("f2")
        await ask(app, pilot, "write it")
        assert app.query_one(Conversation).display
        assert app.focused in list[object](app.query_one(ApprovalCard).query(OptionList))
        await pilot.press("escape")
        await settled(app, pilot)
        assert sessions[0].resumed == [False]


async def test_the_checked_answer_replaces_a_streamed_one() -> None:
    class Checked(FakeSession):
        async def send(self, text: str) -> AsyncIterator[Event]:
            yield TextPiece("It takes 99 GiB.")
            yield done("It takes 65 GiB.", {}, ungrounded=["99"])

    app = ShardwiseApp(opener=Checked, estimator=estimator)
    async with app.run_test(size=SMALL) as pilot:
        await ask(app, pilot, "x")
        assert app.query_one(Answer).source_text == "It takes 65 GiB."
        assert notices(app) == ["No tool result backs these numbers: 99"]


async def test_a_long_answer_is_shown_from_its_start() -> None:
    class Long(FakeSession):
        async def _answer(self, files: list[FileWritten]) -> AsyncIterator[Event]:
            async for event in super()._answer(files):
                if isinstance(event, TextPiece):
                    yield event
            text = "".join(f"\n\nParagraph {i}." for i in range(40))
            yield TextPiece(text)
            yield done(ANSWER + text, {})

    app = ShardwiseApp(opener=Long, estimator=estimator)
    async with app.run_test(size=SMALL) as pilot:
        await ask(app, pilot, "one")
        conversation, answer = app.query_one(Conversation), app.query_one(Answer)
        await until(pilot, lambda: answer.region.y == conversation.region.y + answer.styles.margin.top)
        assert answer.region.height > conversation.size.height
        start = conversation.scroll_y
        await pilot.press("pagedown")
        await until(pilot, lambda: conversation.scroll_y > start)
        await pilot.press("pageup")
        await until(pilot, lambda: conversation.scroll_y == start)


async def test_what_was_asked_for_comes_into_sight_below_an_answer_that_was_short() -> None:
    async with opened(SMALL) as (app, pilot, _):
        await ask(app, pilot, "one")
        await app.say(Notice("\n".join(f"line {i}" for i in range(15))))
        conversation = app.query_one(Conversation)
        await until(pilot, lambda: 0 < conversation.max_scroll_y == conversation.scroll_y)


async def test_quitting_stops_the_answer() -> None:
    async with opened() as (app, pilot, sessions):
        app.query_one(Prompt).text = "hang"
        await pilot.press("enter")
        await until(pilot, lambda: app.query(Answer))
        await pilot.press("ctrl+q")
    assert sessions[0].stopped
    assert app.return_code == 0
