"""Places in which calls are computed, handed out fairly: each client in turn, short calls past long ones."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Places:
    """`count` places, of which long calls take at most `long`. Belongs to one event loop."""

    def __init__(self, count: int, long: int) -> None:
        self._free, self._long_free = count, long
        # Who waits, by client, the one whose turn it is first.
        self._waiting: OrderedDict[str, list[tuple[asyncio.Future[None], bool]]] = OrderedDict()

    @asynccontextmanager
    async def taken(self, client: str, is_long: bool) -> AsyncIterator[None]:
        """A place, as soon as it is this client's turn."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, []).append((turn, is_long))
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back(is_long)
            else:
                self._leave(client, turn)
            raise
        try:
            yield
        finally:
            self._give_back(is_long)

    def _give_back(self, is_long: bool) -> None:
        self._free += 1
        self._long_free += is_long
        self._hand_out()

    def _leave(self, client: str, turn: asyncio.Future[None]) -> None:
        rest = [each for each in self._waiting.get(client, []) if each[0] is not turn]
        if rest:
            self._waiting[client] = rest
        else:
            self._waiting.pop(client, None)

    def _hand_out(self) -> None:
        while self._free and (chosen := self._next()):
            client, (turn, is_long) = chosen
            self._leave(client, turn)
            if client in self._waiting:
                self._waiting.move_to_end(client)
            if not turn.done():
                self._free -= 1
                self._long_free -= is_long
                turn.set_result(None)

    def _next(self) -> tuple[str, tuple[asyncio.Future[None], bool]] | None:
        """The first that may begin, short calls of a client before its long ones."""
        for client, waiting in self._waiting.items():
            for each in sorted(waiting, key=lambda entry: entry[1]):
                if not each[1] or self._long_free:
                    return client, each
        return None
