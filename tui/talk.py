"""The session behind the app: opened when it is first needed, and used in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from agent.events import Approval, Event, ToolResult
from agent.store import list_sessions
from estimator.errors import PlanError
from tui.background import Background

Opener = Callable[..., Any]
Start = Callable[[Any], AsyncIterator[Event]]
# The plan as edited since the session was last told of it, with what a search chose of it; or None. Asked once the
# session is open.
Edited = Callable[[], tuple[Mapping[str, Any], Mapping[str, Any]] | None]


def load_opener() -> Opener:
    """agent.session.open_session."""
    from agent.session import open_session  # LangGraph takes seconds, which the first picture is not to wait for

    return open_session


class Talk:
    """`id` is that of a session on disk, None as long as nothing was said. All that opens the session raises PlanError
    where it cannot be opened."""

    def __init__(self, id: str | None, model: str, output: str | None, opener: Opener | None) -> None:
        self.id = id
        self.model = model
        self.output = output
        self.session: Any = None
        self._opener = opener
        self._background = Background()

    def start_over(self, id: str | None) -> None:
        self.session, self.id = None, id

    def close(self) -> None:
        self._background.close()

    async def follow(self, start: Start, hear: Callable[[Event], object], edited: Edited | None) -> None:
        """Hands each event of `start(session)` to `hear`; with `edited`, the session is opened and told of that."""

        async def work() -> None:
            if edited is not None:
                await self._hand_over(edited)
            async for event in start(self.session):
                if isinstance(event, ToolResult):
                    # Its type is found here, so that the screen does not wait for that.
                    _ = event.outcome.result
                hear(event)

        await self._in_background(work())

    async def keep(self, edited: Edited) -> None:
        """The plan as changed becomes the session's, which is on disk from here on."""
        await self._in_background(self._hand_over(edited))
        self.id = self.session.id

    async def state(self) -> tuple[dict[str, Any], Approval | None]:
        """The session's plan, and what it waits for."""

        async def work() -> tuple[dict[str, Any], Approval | None]:
            session = await self._open()
            return await session.plan(), await session.waiting()

        return await self._in_background(work())

    async def think_with(self, model: str) -> None:
        """Goes on with the same session and another model; as it was when that cannot think."""
        before = self.model, self.session
        self.model, self.session = model, None
        try:
            await self._in_background(self._open())
        except BaseException:
            self.model, self.session = before
            raise

    async def _in_background(self, work: Any) -> Any:
        return await asyncio.wrap_future(self._background.run(work))

    async def _hand_over(self, edited: Edited) -> None:
        session = await self._open()
        told = edited()
        if told is not None:
            await session.set_plan(*told)

    async def _open(self) -> Any:
        if self.session is None:
            opener = self._opener or await asyncio.to_thread(load_opener)
            self.session = opener(self.id, self.model, output=self.output)
        return self.session


def earlier_sessions() -> Iterable[tuple[str, str]]:
    """(Id, title) of each, the latest first; none where they cannot be read."""
    with suppress(PlanError):
        return [(row.id, row.title) for row in list_sessions()]
    return []
