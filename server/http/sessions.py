"""The open sessions of the protocol's handshake era: how many stay open, and which.

A session takes 40 KB until its client ends it, and most clients never do. So only so many stay open; one more ends the
one that was used the longest ago. Its client is told that there is no such session, and by the protocol opens another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import MutableMapping
from typing import Any

from server.http.guard import App, Receive, Scope, Send

SESSION = b"mcp-session-id"
MOST_OPEN = 512


class Sessions:
    """The sessions of an application, as its own answers tell of them; those used last come last."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._running: OrderedDict[bytes, int] = OrderedDict()  # requests of each that are being served

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application, watched for sessions that begin and end."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        id = _session_of(scope)

        async def watched(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                if id is None:
                    self._running |= {value: 0 for name, value in message["headers"] if name.lower() == SESSION}
                elif status == 404 or (status == 200 and scope["method"] == "DELETE"):
                    self._running.pop(id, None)
            await send(message)

        if id is None:
            await self._make_room(scope)
        elif id in self._running:
            self._running.move_to_end(id)
            self._running[id] += 1
        try:
            await self.app(scope, receive, watched)
        finally:
            if id in self._running:
                self._running[id] -= 1

    async def _make_room(self, scope: Scope) -> None:
        """For one more session: ends those that are too many, as their clients would."""
        idle = [id for id, running in self._running.items() if not running]
        for id in idle[: max(len(self._running) + 1 - MOST_OPEN, 0)]:
            del self._running[id]
            await self.app({**scope, "method": "DELETE", "headers": [(SESSION, id)]}, _nothing, _unheard)


def _session_of(scope: Scope) -> bytes | None:
    """The session that a request says it belongs to."""
    return next((value for name, value in scope["headers"] if name == SESSION), None)


async def _nothing() -> MutableMapping[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_: MutableMapping[str, Any]) -> None:
    """The answer to what nobody asked."""
