"""The turns of a conversation, one at a time: each runs beside the app, which hears of it as messages."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from textual.app import App
from textual.message import Message
from textual.worker import Worker, WorkerError

from agent.events import Event
from estimator.errors import PlanError
from tui.talk import Edited, Start, Talk


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
