"""The turns of a conversation, one at a time: each runs beside the app, which hears of it as messages. What is sent
meanwhile, questions and commands, waits for its turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.app import App
from textual.message import Message
from textual.worker import Worker, WorkerError

from agent.events import Event
from estimator.errors import PlanError
from tui.slash import split
from tui.talk import Edited, Start, Talk
from tui.widgets.messages import Queued
from tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from tui.app import ShardwiseApp

# What needs the conversation for itself, always or with words behind it; all else is done at once.
_ALWAYS = ("fit", "best", "cost", "config", "save", "export", "new", "think", "undo")
_WITH_WORDS = ("plan", "model", "hardware", "compare", "sweep", "resume")


class Heard(Message):
    """One event of turn `number`."""

    def __init__(self, event: Event, number: int) -> None:
        super().__init__()
        self.event = event
        self.number = number


class TurnEnded(Message):
    """Nothing more comes for now; `failure` is what to tell the person when it could not finish."""

    def __init__(self, number: int, failure: str | None = None) -> None:
        super().__init__()
        self.number = number
        self.failure = failure


class Turns:
    """`current` is the turn that is going on, if one is."""

    def __init__(self, app: App[None], talk: Talk) -> None:
        self.app = app
        self.talk = talk
        self.current: Worker[None] | None = None
        self._number = 0

    def start(self, start: Start, edited: Edited | None) -> None:
        """Posts each event of `start(session)`; with `edited`, the session is told of that first."""
        self._number += 1
        self.current = self.app.run_worker(
            self._listen(start, self._number, edited), exit_on_error=False, group="turn", name=f"turn {self._number}"
        )

    def is_of_now(self, message: Heard | TurnEnded) -> bool:
        """What an earlier turn still says is of no interest any more."""
        return message.number == self._number and self.current is not None

    def stop(self) -> None:
        if self.current is not None:
            self.current.cancel()

    async def stopped(self) -> None:
        """Stops what is going on, and waits for its end."""
        if self.current is not None:
            self.current.cancel()
            with suppress(WorkerError):
                await self.current.wait()

    async def _listen(self, start: Start, number: int, edited: Edited | None) -> None:
        failure = None
        try:
            await self.talk.follow(start, lambda event: self.app.post_message(Heard(event, number)), edited)
        except asyncio.CancelledError:
            failure = "Stopped."
            raise
        except PlanError as error:
            failure = str(error)
        except Exception as error:
            failure = f"This should not have happened: {type(error).__name__}: {error}"
        finally:
            self.app.post_message(TurnEnded(number, failure))


def takes_turn(text: str) -> bool:
    """Whether a question, or a command, has to wait until what goes on has ended."""
    command = split(text)
    if command is None:
        return True
    name, words = command
    return name in _ALWAYS or (bool(words) and name in _WITH_WORDS)


class Queue:
    """`rows` are the texts, and how the conversation shows each."""

    def __init__(self, app: ShardwiseApp) -> None:
        self.app = app
        self.rows: list[tuple[str, Queued]] = []

    async def add(self, text: str) -> None:
        if self.app.awaiting is not None:
            self.app.notify("It is asked once you chose above (Tab).", markup=False)
        row = Queued(text)
        self.rows.append((text, row))
        await self.app.conversation.turns.mount(row)

    async def go_on(self, stopped: bool) -> None:
        """The next that takes a turn; all of it comes back to the prompt where the person stopped the turn."""
        app = self.app
        while self.rows and app.awaiting is None and app.turns.current is None:
            await app.pane.rests()
            text, row = self.rows.pop(0)
            await row.remove()
            if stopped:
                app.query_one(Prompt).give_back(text)
            elif (command := split(text)) is not None:
                await app.command(text, *command)
            elif not await app.ask(text):
                app.query_one(Prompt).give_back(text)
