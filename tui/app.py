"""The app: a conversation, and beside it the plan and what it comes to.

Workers follow the session and post what they hear as messages; only the handlers here change what is shown.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Footer, Static
from textual.worker import Worker, WorkerError

from estimator.errors import PlanError
from tui.clean import clean
from tui.overview import Overview, fold
from tui.widgets.approval import ApprovalCard
from tui.widgets.conversation import Conversation
from tui.widgets.messages import Notice
from tui.widgets.plan_pane import PlanPane
from tui.widgets.prompt import Prompt
from tui.widgets.welcome import Welcome

Event = dict[str, Any]
Opener = Callable[..., Any]


def _load_opener() -> Opener:
    """agent.session.open_session, with all that its sessions import at their first turn already there."""
    from agent.imports import quick_imports
    from agent.session import open_session

    with quick_imports():
        for name in ("langgraph.checkpoint.sqlite.aio", "agent.offline.planner", "tools.registry"):
            importlib.import_module(name)
    return open_session


class Heard(Message):
    """One event of the session."""

    def __init__(self, event: Event) -> None:
        super().__init__()
        self.event = event


class TurnEnded(Message):
    """The session says no more for now; `failure` is what to tell the person when it could not finish."""

    def __init__(self, failure: str | None = None) -> None:
        super().__init__()
        self.failure = failure


class ShardwiseApp(App[None]):
    TITLE = "Shardwise"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 (as Textual types it)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop"),
        Binding("f2", "toggle_plan", "Plan"),
        Binding("ctrl+n", "new_session", "New"),
        Binding("ctrl+o", "copy_answer", "Copy answer"),
        Binding("ctrl+q", "quit", "Quit"),
    ]

    def __init__(
        self,
        session_id: str | None = None,
        model: str = "auto",
        output: str | None = None,
        opener: Opener | None = None,
    ) -> None:
        """`opener` opens a session as agent.session.open_session does, which it is by default."""
        super().__init__()
        self.session_id = session_id
        self.model = model
        self.output = output
        self.opener = opener
        self.session: Any = None
        self.turn: Worker[None] | None = None
        self.asked: Event | None = None
        self.awaiting: ApprovalCard | None = None
        self.leaving = False

    def compose(self) -> ComposeResult:
        yield Static(self._title(), id="title", markup=False)
        with Horizontal(id="main"):
            yield Conversation()
            yield PlanPane(id="plan")
        with Horizontal(id="prompt-row"):
            yield Static("›", id="prompt-mark", markup=False)
            yield Prompt(id="prompt")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(Prompt).focus()
        if self.opener is None:
            # The agent takes a while to import; by the time the first question is typed it is there.
            self.run_worker(_load_opener, thread=True, exit_on_error=False, group="load")

    # What the person does

    async def on_prompt_submitted(self, message: Prompt.Submitted) -> None:
        if not await self._ask(message.text):
            self.query_one(Prompt).give_back(message.text)

    async def on_welcome_chosen(self, message: Welcome.Chosen) -> None:
        self.query_one(Prompt).focus()
        await self._ask(message.question)

    def on_approval_card_answered(self, message: ApprovalCard.Answered) -> None:
        self.awaiting = None
        self.query_one(Prompt).focus()
        self._follow(lambda session: session.resume(message.approved))

    def action_stop(self) -> None:
        if self.turn is not None:
            self.turn.cancel()

    def action_toggle_plan(self) -> None:
        """On a wide screen the pane comes and goes; on a narrow one it takes the conversation's place for a while."""
        narrow = self.screen.has_class("-narrow")
        self.query_one("#main").toggle_class("-plan-instead" if narrow else "-plan-hidden")

    def action_page_conversation(self, direction: int) -> None:
        conversation = self.query_one(Conversation)
        if direction < 0:
            conversation.scroll_page_up()
        else:
            conversation.scroll_page_down()

    async def on_event(self, event: events.Event) -> None:
        """What is typed or pasted while a card or an example has the focus is for the input.

        The focus moves before the event is passed on: moved by a handler, keys on their way would arrive out of order.
        """
        is_text = isinstance(event, events.Paste) or (isinstance(event, events.Key) and event.is_printable)
        if is_text and self.awaiting is None and len(self.screen_stack) == 1 and self.is_running:
            self.screen.set_focus(self.query_one(Prompt))
        await super().on_event(event)

    def action_copy_answer(self) -> None:
        answer = self.query_one(Conversation).last_answer
        if answer:
            self.copy_to_clipboard(answer)
        self.notify("The answer is copied as Markdown." if answer else "There is no answer yet.", markup=False)

    async def action_new_session(self) -> None:
        if self._busy():
            return
        self.session = self.session_id = None
        old = self.query_one(Conversation)
        await self.query_one("#main").mount(Conversation(), before=old)
        await old.remove()
        self.query_one(PlanPane).overview = Overview()
        self._show_title()
        self.query_one(Prompt).focus()

    async def action_quit(self) -> None:
        self.leaving = True
        if self.turn is not None:
            self.turn.cancel()
            with suppress(WorkerError):
                await self.turn.wait()
        self.exit()

    # What the session says

    async def on_heard(self, message: Heard) -> None:
        event = message.event
        # From its first event on the session is on disk, and can be resumed however this turn ends.
        self.session_id = self.session.id
        if event["type"] == "approval":
            # Shown once the session has come to rest: an answer before that would find it still busy.
            self.asked = event
            return
        await self.query_one(Conversation).show(event)
        pane = self.query_one(PlanPane)
        if event["type"] == "tool_result" and event.get("result"):
            pane.overview = fold(pane.overview, event["result"])

    async def on_turn_ended(self, message: TurnEnded) -> None:
        self.turn = None
        if self.leaving:
            return
        conversation = self.query_one(Conversation)
        asked, self.asked = self.asked, None
        if message.failure is not None:
            await conversation.stop()
            await conversation.add(Notice(message.failure, bad=True))
        elif asked is not None:
            self.query_one("#main").remove_class("-plan-instead")
            self.awaiting = ApprovalCard(asked["calls"])
            await conversation.settle()
            await conversation.add(self.awaiting)
        self._show_title()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Esc stops something only while there is something to stop."""
        return self.turn is not None if action == "stop" else True

    # Underneath

    async def _ask(self, question: str) -> bool:
        """Starts a turn; False when one is still going on, and the text then stays where it is."""
        if self._busy():
            return False
        self.query_one("#main").remove_class("-plan-instead")
        await self.query_one(Conversation).ask(question)
        self._follow(lambda session: session.send(question))
        return True

    def _busy(self) -> bool:
        if self.awaiting is not None:
            self.awaiting.focus()
            self.notify("Answer y or n first.", severity="warning", markup=False)
            return True
        if self.turn is not None:
            self.notify("Still answering; Esc stops it.", severity="warning", markup=False)
            return True
        return False

    def _follow(self, start: Callable[[Any], AsyncIterator[Event]]) -> None:
        self.turn = self.run_worker(self._listen(start), exit_on_error=False)
        self._show_title()

    async def _listen(self, start: Callable[[Any], AsyncIterator[Event]]) -> None:
        try:
            if self.session is None:
                opener = self.opener or await asyncio.to_thread(_load_opener)
                self.session = opener(self.session_id, self.model, output=self.output)
            async for event in start(self.session):
                self.post_message(Heard(event))
        except asyncio.CancelledError:
            self.post_message(TurnEnded("Stopped."))
            raise
        except PlanError as error:
            self.post_message(TurnEnded(str(error)))
        except Exception as error:
            self.post_message(TurnEnded(f"This should not have happened: {type(error).__name__}: {error}"))
        else:
            self.post_message(TurnEnded())

    def _title(self) -> str:
        state = "answering, Esc stops" if self.turn is not None else f"model: {self.model}"
        session = f"session {self.session_id}" if self.session_id else "new session"
        return clean(f"Shardwise   {state}   {session}")

    def _show_title(self) -> None:
        self.refresh_bindings()
        self.query_one("#title", Static).update(self._title())
