"""Conversations of a team's server: the agent's sessions, each in the name of whoever calls, whose files and folders
are elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from agent.events import Approval, Done, Event, done_data
from agent.session import Session, delete_session, find_session, list_sessions, open_session, transcript
from estimator.errors import PlanError
from knowledge.own.files import ELSEWHERE
from server.calls import FOLDER, Busy
from server.service import Service
from tools.registry import OnDemand, Tool

# Turns that this process answers at a time, and how many more may wait for that.
_AT_ONCE, _MOST_WAITING = 4, 100
# Where a server without a folder would write, which nothing is let through to.
_NOWHERE = Path("/nonexistent/shardwise")


@dataclass(frozen=True)
class RemoteTool(Tool):
    """A tool for callers elsewhere: what they may not ask of it is refused wherever its arguments are read."""

    service: Any = None  # Service

    def parse(self, arguments: Mapping[str, Any]) -> Any:
        self.service.refuse(self, arguments)
        if not self.read_only and self.service.root is None and FOLDER in self.request.model_fields:
            raise PlanError(FOLDER, "this server was started without a folder to write to (--root FOLDER)")
        return super().parse(arguments)


class RemoteTools(Mapping[str, Tool]):
    """The registry's tools as callers elsewhere may use them."""

    def __init__(self, service: Service) -> None:
        self._service, self._tools = service, OnDemand()

    def __getitem__(self, name: str) -> Tool:
        tool = self._tools[name]
        own = {each.name: getattr(tool, each.name) for each in fields(Tool)}
        return RemoteTool(**own, service=self._service)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


class Talking:
    """`server.service.Conversations`."""

    def __init__(self, service: Service) -> None:
        self._service, self._tools = service, RemoteTools(service)
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def ask(self, text: str, session: str | None) -> dict[str, Any]:
        talk = await asyncio.to_thread(self._opened, session)
        return await self._told(talk, talk.send(text))

    async def settle(self, session: str, approved: bool) -> dict[str, Any]:
        talk = await asyncio.to_thread(self._opened, session)
        return await self._told(talk, talk.resume(approved))

    def listed(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in list_sessions()]

    def shown(self, session: str) -> dict[str, Any]:
        row = find_session(session)
        return {**asdict(row), "turns": [turn.model_dump(mode="json") for turn in transcript(session)]}

    def delete(self, session: str) -> None:
        delete_session(session)

    def _opened(self, session: str | None) -> Session:
        return open_session(session, output=self._service.root or _NOWHERE, tools=self._tools)

    async def _told(self, talk: Session, events: AsyncIterator[Event]) -> dict[str, Any]:
        """What a turn came to: an answer, or the files that wait for an approval."""
        if self._waiting >= _MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._turn:
                ELSEWHERE.set(str(self._service.root or ""))
                *_, last = [event async for event in events]
        finally:
            self._waiting -= 1
        if isinstance(last, Done):
            return done_data(last)
        assert isinstance(last, Approval)
        return {"session": talk.id, "waiting": [call.model_dump(mode="json") for call in last.calls]}
