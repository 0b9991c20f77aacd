"""The secret that whoever speaks to a server has to know: on a machine of many users, an address of this machine alone
is everybody's."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from estimator.errors import PlanError
from knowledge.own.files import read_text
from knowledge.own.home import expanded

_SHORTEST = 16
# Wrong ones that an address may send at once, and how many more a second; how many of the others wait at a time.
_MOST_WRONG, _MORE_PER_S = 20.0, 1.0
_MOST_ADDRESSES, _MOST_WAITING = 4096, 64


def token(path: str | None) -> tuple[str, bool]:
    """(The token from a file or the environment, else a new one; whether it was made here). Never from the command
    line, which other users can see. Raises PlanError."""
    if path is None:
        name, text = "SHARDWISE_TOKEN", os.environ.get("SHARDWISE_TOKEN", "").strip()
        if not text:
            return secrets.token_urlsafe(24), True
    else:
        name, text = "--token-file", read_text(expanded(path), "--token-file").strip()
    if len(text) < _SHORTEST or not text.isascii() or not text.isprintable() or " " in text:
        raise PlanError(name, f"must be at least {_SHORTEST} printable ASCII characters without spaces")
    return text, False


def is_same(token: str, other: str) -> bool:
    return hmac.compare_digest(other.encode(errors="replace"), token.encode())


@dataclass
class Guesses:
    """Slows those who send wrong tokens: past a few, each answer to an address waits. The right token never waits, or
    whoever shares an address with the owner could shut them out; and few wait at once, or they would take all
    connections."""

    wait_s: float = 1.0
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _waiting: int = 0

    async def wrong(self, address: str) -> bool:
        """Waits as long as a wrong token from `address` has to; False where too many wait already."""
        left = self._now(address) - 1.0
        self._left[address] = (max(left, 0.0), time.monotonic())
        self._left.move_to_end(address)
        while len(self._left) > _MOST_ADDRESSES:
            self._left.popitem(last=False)
        if left >= 0.0:
            return True
        if self._waiting >= _MOST_WAITING:
            return False
        self._waiting += 1
        try:
            await asyncio.sleep(self.wait_s)
        finally:
            self._waiting -= 1
        return True

    def _now(self, address: str) -> float:
        left, then = self._left.get(address, (_MOST_WRONG, 0.0))
        return min(_MOST_WRONG, left + _MORE_PER_S * (time.monotonic() - then))
