"""The app: a conversation, and beside it the plan and what it comes to.

Sessions run in a thread of their own and post what they say as messages; only the handlers here change what is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from textual import events
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from agent.budget import words
from agent.events import Approval, Done, ToolCall, ToolResult
from agent.store import last_plan, transcript
from estimator.errors import PlanError
from pages.blocks import offered
from tui.actions import Action, bindings, every_action
from tui.screens import ScreenResult, find_screen, load_screen
from tui.screens.keys import KeysScreen
from tui.slash import PromptContext, split
from tui.slash_actions import call_events, carry_out
from tui.talk import Opener, Start, Talk, earlier_sessions, load_opener
from tui.themes import use_chosen
from tui.turns import Heard, Queue, TurnEnded, Turns, takes_turn
from tui.widgets.action_search import ActionSearch
from tui.widgets.approval import ApprovalCard
from tui.widgets.choices import Choices
from tui.widgets.completions import Completions
from tui.widgets.conversation import Conversation
from tui.widgets.key_bar import KeyBar
from tui.widgets.messages import Answer, FoldLine, Notice
from tui.widgets.plan_pane import Estimator, PlanPane
from tui.widgets.prompt import Prompt
from tui.widgets.status import Status
from tui.widgets.welcome import Welcome


class _MainScreen(Screen[None]):
    # Else whatever comes first has the focus before the prompt has it.
    AUTO_FOCUS = "#prompt"


class ShardwiseApp(App[None]):
    TITLE = "Shardwise"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 (as Textual types it)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    COMMANDS = {ActionSearch}  # noqa: RUF012 (as above)

    def __init__(
        self,
        session_id: str | None = None,
        model: str = "auto",
        output: str | None = None,
        opener: Opener | None = None,
        estimator: Estimator | None = None,
    ) -> None:
        """`opener` opens a session as agent.session.open_session does, `estimator` says what a plan comes to as
        tui.live.results_of does; those two by default."""
        super().__init__()
        self.talk = Talk(session_id, model, output, opener)
        self.needs_loading = opener is None and session_id is None
        self.estimator = estimator
        self.turns = Turns(self, self.talk)
        self.asked: Approval | None = None
        self.awaiting: ApprovalCard | None = None
        self.leaving = False
        self.queue = Queue(self)
        self.typed = ""
        # The plan that a command looks for the best of.
        self.searched: Mapping[str, Any] | None = None
        # What the conversation used of a language model.
        self.used = ""
        # Unset while an earlier conversation is read: its plan is not known yet.
        self.drawn = asyncio.Event()

    def get_default_screen(self) -> Screen[None]:
        return _MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        yield Status(id="title")
        with Horizontal(id="main"):
            yield Conversation()
            yield PlanPane(self.estimator, id="plan")
        listed = Completions(id="completions")
        yield listed
        with Horizontal(id="prompt-row"):
            yield Static("›", id="prompt-mark", markup=False)
            yield Prompt(listed, self._surroundings, id="prompt")
        yield KeyBar()

    def on_mount(self) -> None:
        use_chosen(self)
        self._show_state()
        if self.talk.id is None:
            self.drawn.set()
        else:
            self.run_worker(self._reopen(self.talk.id), exit_on_error=False, group="reopen")
        if self.needs_loading:
            # After the first picture; by the time the first question is typed it is there.
            self.call_after_refresh(self._load)

    def _load(self) -> None:
        self.run_worker(load_opener, thread=True, exit_on_error=False, group="load")

    async def on_unmount(self) -> None:
        await asyncio.to_thread(self.talk.close)

    @property
    def pane(self) -> PlanPane:
        return self.screen_stack[0].query_one(PlanPane)

    @property
    def conversation(self) -> Conversation:
        return self.screen_stack[0].query_one(Conversation)

    # What the person does

    async def on_prompt_submitted(self, message: Prompt.Submitted) -> None:
        goes_on = self.turns.current is not None or self.awaiting is not None or self.queue.rows
        command = split(message.text)
        if goes_on and takes_turn(message.text):
            await self.queue.add(message.text)
        elif command is not None:
            self.run_worker(self.command(message.text, *command), exit_on_error=False, group="command")
        elif not await self.ask(message.text):
            self.query_one(Prompt).give_back(message.text)

    def action_command(self, line: str) -> None:
        """What a key does: its command, with what follows it."""
        name, *words = line.split()
        self.run_worker(self.command(f"/{line}", name, words), exit_on_error=False, group="command")

    async def command(self, text: str, name: str, words: list[str]) -> None:
        self.typed = text
        try:
            await carry_out(self, name, words)
        except PlanError as error:
            await self.say(Notice(str(error), bad=True))
        if self.turns.current is None:
            # Nothing goes on: an edit is done, or was refused.
            await self.conversation.rest()

    async def on_welcome_chosen(self, message: Welcome.Chosen) -> None:
        self.query_one(Prompt).focus()
        await self.ask(message.question)

    async def on_choices_chosen(self, message: Choices.Chosen) -> None:
        self.query_one(Prompt).focus()
        await self.ask(message.answer)

    def on_approval_card_answered(self, message: ApprovalCard.Answered) -> None:
        self.awaiting = None
        self.conversation.follow()
        self.query_one(Prompt).focus()
        self._follow(lambda session: session.resume(message.approved), "writing" if message.approved else "answering")

    def action_stop(self) -> None:
        self.turns.stop()

    def action_help_quit(self) -> None:
        """Ctrl+C: stops what goes on, as it does in a shell; else says how to quit."""
        if self.turns.current is not None:
            self.turns.stop()
        else:
            super().action_help_quit()

    def toggle_plan(self) -> None:
        """On a wide screen the pane comes and goes; on a narrow one it takes the conversation's place for a while."""
        narrow = self.screen.has_class("-narrow")
        self.query_one("#main").toggle_class("-plan-instead" if narrow else "-plan-hidden")

    async def toggle_form(self) -> None:
        if self.pane.editing:
            self.pane.close_form()
        else:
            await self.open_form()

    async def open_form(self, focus: str = "model") -> None:
        main = self.query_one("#main")
        main.remove_class("-plan-hidden")
        main.set_class(self.screen.has_class("-narrow"), "-plan-instead")
        await self.pane.open_form(focus)

    def on_plan_pane_form_closed(self) -> None:
        self.query_one("#main").remove_class("-plan-instead")
        self.query_one(Prompt).focus()
        self._keep_plan()

    async def on_plan_pane_edited(self, message: PlanPane.Edited) -> None:
        if not self.pane.editing:
            await self.say(Notice(message.told))
            self._keep_plan()

    async def on_plan_pane_refused(self, message: PlanPane.Refused) -> None:
        if not message.typed:
            await self.say(Notice(str(message.error), bad=True))

    def action_page_conversation(self, direction: int) -> None:
        if direction < 0:
            self.conversation.scroll_page_up()
        else:
            self.conversation.scroll_page_down()

    async def on_event(self, event: events.Event) -> None:
        """What is typed or pasted while a card or an example has the focus is for the input.

        The focus moves before the event is passed on: moved by a handler, keys on their way would arrive out of order.
        """
        is_text = isinstance(event, events.Paste) or (isinstance(event, events.Key) and event.is_printable)
        at_rest = len(self.screen_stack) == 1 and self.is_running
        if is_text and at_rest and not isinstance(self.focused, Input):
            self.screen.set_focus(self.query_one(Prompt))
        await super().on_event(event)

    def toggle_details(self) -> None:
        """Opens or closes the details of the last answer, or of what a command asked for, that has some."""
        if lines := [line for line in self.query(FoldLine) if line.display]:
            lines[-1].toggle()

    def copy(self, which: str) -> None:
        """The last answer as Markdown, or a block by number or name ('config': the last), to the clipboard."""
        text, told = self.conversation.to_copy(which)
        if text is not None:
            self.copy_to_clipboard(text)
        self.notify(told, severity="information" if text is not None else "warning", markup=False)

    async def new_session(self) -> None:
        if not self.busy():
            await self._start_over(None)

    async def action_quit(self) -> None:
        self.leaving = True
        await self.turns.stopped()
        if self.pane.unkept and self.pane.plan:
            with suppress(Exception):
                await asyncio.wait_for(self._tell_plan(), 5.0)
        self.exit()

    # Screens

    def opens(self, name: str) -> bool:
        """Opens the screen of that name; False when there is none."""
        if find_screen(name) is None:
            return False
        self.open_screen(name)
        return True

    def action_keys(self) -> None:
        self.push_screen(KeysScreen(self.screen))

    def open_screen(self, name: str) -> None:
        row = find_screen(name)
        if row is not None and len(self.screen_stack) == 1:
            self.push_screen(load_screen(row, dict(self.pane.plan)), self._screen_left)

    async def _screen_left(self, outcome: ScreenResult | None) -> None:
        if outcome is None:
            return
        if outcome.session:
            await self.resume(outcome.session)
        if outcome.plan is not None or outcome.changes:
            # What the answer offered next was of the plan before.
            self.query_one(Prompt).suggest([])
        if outcome.plan is not None:
            self.pane.replace(outcome.plan)
        if outcome.changes:
            self.pane.edit(outcome.changes)
        if outcome.question:
            await self.ask(outcome.question)

    # What the session says

    async def on_heard(self, message: Heard) -> None:
        if not self.turns.is_of_now(message) or not self.screen_stack:
            return
        event = message.event
        if self.talk.session is not None:
            # From its first event on the session is on disk, and can be resumed however this turn ends.
            self.talk.id = self.talk.session.id
        if isinstance(event, Approval):
            # Shown once the session has come to rest: an answer before that would find it still busy.
            self.asked = event
            return
        await self.conversation.show(event)
        if isinstance(event, Done):
            self.used = words(event.session_usage)
            await self._offer_next(event)
        match event:
            case ToolCall(call):
                self.query_one(Status).doing = call.name
            case ToolResult(outcome) if outcome.result is not None:
                self.pane.hear(outcome.result)
            # What was edited since the question is newer.
            case Done() if not (self.pane.unkept or self.pane.pending):
                self.pane.take(event.plan)

    async def _offer_next(self, done: Done) -> None:
        """What can be said next: a list where something was asked back, else a Tab away in the prompt."""
        steps = offered(done.answer)
        self.query_one(Prompt).suggest([] if done.asked else steps)
        if done.asked and steps:
            await self.query(Answer).last().without_offers()
            await self.say(choices := Choices(steps))
            self._offer(choices.choose)

    async def on_turn_ended(self, message: TurnEnded) -> None:
        if not self.turns.is_of_now(message):
            return
        self.turns.current = None
        if self.leaving:
            return
        asked, self.asked = self.asked, None
        await self.conversation.settle()
        await self.conversation.rest()
        if message.failure is not None:
            await self.conversation.stop()
            await self.say(Notice(message.failure, bad=True))
        elif asked is not None:
            await self._ask_approval(asked)
        elif self.searched is not None:
            self.pane.adopt(self.searched)
        elif self.pane.overview.memory is None:
            # A command's tool told of a plan that nothing else was said of.
            self.pane.work_out()
        self._show_state()
        self.run_worker(self.queue.go_on(message.failure is not None), exit_on_error=False, group="queue")

    async def _ask_approval(self, asked: Approval) -> None:
        self.query_one("#main").remove_class("-plan-instead")
        self.awaiting = ApprovalCard(asked.calls)
        self.pane.work_out()
        await self.say(self.awaiting)
        self._offer(self.awaiting.choose)

    def _offer(self, choose: Callable[[], bool]) -> None:
        """A list to choose from has the focus, unless the person is typing; Tab in the prompt goes back to it."""
        self.query_one(Prompt).offer(choose)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Esc stops something only while there is something to stop."""
        return self.turns.current is not None if action == "stop" else True

    async def say(self, widget: Widget) -> None:
        """Shows what the person asked for, at the end of the conversation and in sight, whatever was being read."""
        self.conversation.follow()
        await self.conversation.add(widget)

    async def say_markdown(self, text: str) -> None:
        await self.say(Answer(text))

    # Turns

    async def ask(self, question: str) -> bool:
        """Starts a turn; False when one is still going on, and the text then stays where it is."""
        if self.busy():
            return False
        self.query_one("#main").remove_class("-plan-instead")
        self.query_one(Prompt).suggest([])
        await self.query(Choices).remove()
        await self.conversation.ask(question)
        self._follow(lambda session: session.send(question), "answering")
        return True

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], searched: Mapping[str, Any] | None = None
    ) -> None:
        """Calls a tool for a command, and shows its card; what it finds of a plan that was `searched` is the plan."""
        if not self.busy():
            await self.conversation.ask(self.typed)
            self.query_one(Prompt).suggest([])
            self._follow(lambda _: call_events(name, arguments), name, opens=False)
            self.searched = searched

    def busy(self) -> bool:
        """Whether something is going on that has to end first; the person is told."""
        if self.awaiting is not None:
            # The focus stays: Enter again would choose the first of the list, which writes.
            self.notify("Choose above first (Tab): write the files, or not.", severity="warning", markup=False)
            return True
        if self.turns.current is not None:
            self.notify("Still answering; Esc stops it.", severity="warning", markup=False)
            return True
        return False

    def _follow(self, start: Start, doing: str, *, opens: bool = True) -> None:
        self.pane.begin()
        self.searched = None
        self.turns.start(start, self._edited if opens else None)
        self._show_state(doing)

    def _edited(self) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """The plan as changed here, and what of it a search chose, for the session; once."""
        unkept, self.pane.unkept = self.pane.unkept, False
        return (self.pane.plan, self.pane.chosen) if unkept else None

    # Sessions

    def _keep_plan(self) -> None:
        if self.pane.unkept and self.turns.current is None and self.awaiting is None:
            self.run_worker(self._tell_plan(), exit_on_error=False, group="keep")

    async def _tell_plan(self) -> None:
        try:
            await self.talk.keep(self._edited)
        except PlanError as error:
            self.pane.unkept = True
            self.notify(str(error), severity="warning", markup=False)
        self._show_state()

    async def think_with(self, model: str) -> None:
        """Goes on with the same session and another model. Raises PlanError when that cannot think."""
        if not self.busy():
            await self.talk.think_with(model)
            self._show_state()

    async def resume(self, session_id: str) -> None:
        if not self.busy():
            await self._start_over(session_id)
            await self._reopen(session_id)

    async def _start_over(self, session_id: str | None) -> None:
        self.talk.start_over(session_id)
        self.pane.unkept = False
        old = self.conversation
        await self.query_one("#main").mount(Conversation(), before=old)
        await old.remove()
        self.pane.show({})
        self._show_state()
        prompt = self.query_one(Prompt)
        prompt.suggest([])
        prompt.focus()

    async def _reopen(self, session_id: str) -> None:
        """Draws what was said, then what the plan comes to, then what still waits for approval."""
        self.drawn.clear()
        try:
            turns = await asyncio.to_thread(transcript, session_id)
            await self.conversation.redraw(turns)
            # As of the last answer; what was edited since is known once the session is open.
            told = last_plan(turns)
            self.pane.show(told)
            self.drawn.set()
            self._show_state(f"opening session {session_id}")
            plan, waiting = await self.talk.state()
        except PlanError as error:
            self.talk.id = None
            await self.say(Notice(str(error), bad=True))
        else:
            if plan != told and not self.pane.unkept:
                self.pane.show(plan)
            if waiting is not None and self.turns.current is None:
                await self._ask_approval(waiting)
        finally:
            self.drawn.set()
        self._show_state()

    # Underneath

    def _surroundings(self) -> PromptContext:
        """What completion at the prompt may look at."""
        return PromptContext(self.pane.plan, sorted(self.available_themes), earlier_sessions)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every action of ours with its key, as Ctrl+P lists them."""
        return every_action(self)

    async def start_action(self, command: Action) -> None:
        """Carries it out, or begins to type it where it needs words."""
        if command.usage and not command.usage.startswith("["):
            self.query_one(Prompt).give_back(f"/{command.name} ")
            self.query_one(Prompt).focus()
        else:
            await self.command(f"/{command.name}", command.name, [])

    def _show_state(self, doing: str = "") -> None:
        self.refresh_bindings()
        status = self.query_one(Status)
        status.doing = doing
        session = f"session {self.talk.id}" if self.talk.id else "new session"
        status.rest = " · ".join(filter(None, (f"model: {self.talk.model}", session, self.used)))
