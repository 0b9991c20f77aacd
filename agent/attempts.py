"""One step of a language model behind a network: asked, listened to, and asked again within the time that nothing may
be heard in, whoever's model it is.

Nothing is retried once text has been shown; before that, failures that may pass are, and a request that was too long is
made again with less of the past.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Any, Protocol

from agent.budget import Usage
from agent.models import Failure, ModelFailed, Thought, Turn, Waiting

# After so long without a word the person is told that one waits.
_REMARK_S = 10.0
# What is sent of a conversation that was too long for the model.
_SHORTER = 0.25


class LoopClient:
    """The library's client that a model talks through, made in a thread at its first use."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._client: Any = None
        self._loop: Any = None

    async def current(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections belong to the event loop that opened them.
            self._client, self._loop = await asyncio.to_thread(self._connect), loop
        return self._client


def checked_key(variable: str, key: str) -> str:
    """The key of a service that a variable holds. Raises ModelFailed for what no header can carry."""
    if any(not "!" <= letter <= "~" for letter in key):
        what = "a space or a line end" if any(map(str.isspace, key)) else "a character that no key has"
        raise ModelFailed(f"{variable} holds {what}: set it to the key alone.")
    return key


class Reply(Protocol):
    """Collects the chunks of one streamed reply into one content."""

    has_grown: bool

    def add(self, chunk: Any) -> str:
        """Takes a chunk in; returns the text in it that is for the reader."""
        ...

    @property
    def ended(self) -> bool: ...

    def failure(self) -> Failure | None:
        """What makes this reply unusable, or None."""
        ...

    def usage(self, contents: list[Any]) -> Usage: ...

    def thought(self, usage: Usage) -> Thought: ...


class RemoteModel(Protocol):
    """A model behind a network. `label` is what the person calls it; within `timeout_s` something must be heard."""

    label: str
    timeout_s: int
    attempts: int
    input_tokens: int
    first_delay_s: float

    def outbound(self, turn: Turn, most_tokens: int, part: float = 1.0) -> list[Any]:
        """What is sent of the conversation, within so many tokens, and no more than a part of all."""
        ...

    async def stream(self, turn: Turn, contents: list[Any]) -> AsyncIterator[Any]:
        """The chunks of the reply. May raise ModelFailed, and whatever `read_failure` reads."""
        ...

    def answer(self) -> Reply: ...

    def read_failure(self, error: Exception) -> Failure:
        """The failure that an exception means which came while the library asked or read."""
        ...


async def attempted(model: RemoteModel, turn: Turn) -> AsyncIterator[str | Waiting | Thought]:
    """Yields text as it comes, why it waits, and, last, one Thought. Raises ModelFailed."""
    most = min(model.input_tokens, turn.most_tokens)
    contents, shortened = await asyncio.to_thread(model.outbound, turn, most), False
    patience, usage, extra = Patience(model.timeout_s), Usage(), 0
    try:
        for attempt in count(1):
            answer = model.answer()
            failure, shown = None, False
            async for piece in _asked(model, turn, contents, answer, patience):
                if isinstance(piece, Failure):
                    failure = piece
                    continue
                shown = shown or isinstance(piece, str)
                yield piece
            usage += answer.usage(contents)
            if failure is None:
                yield answer.thought(usage)
                return
            if failure.too_long and not shortened:
                contents, shortened, extra = model.outbound(turn, most, _SHORTER), True, extra + 1
                continue
            if failure.put_otherwise and not shown:
                contents, extra = await asyncio.to_thread(model.outbound, turn, most), extra + 1
                continue
            tried = attempt - extra
            delay = failure.retry_after_s or model.first_delay_s * 2 ** (tried - 1)
            if shown or not failure.may_pass or tried >= model.attempts or delay > patience.left_s:
                raise ModelFailed(failure.sentence, usage)
            again = f"Trying again in {max(delay, 1):.0f} s ({tried + 1} of {model.attempts})."
            yield Waiting(f"{failure.sentence} {again}")
            await asyncio.sleep(delay)
    except TimeoutError:
        raise ModelFailed(f"{model.label} said nothing for {model.timeout_s} s.", usage) from None


async def _asked(
    model: RemoteModel, turn: Turn, contents: list[Any], answer: Reply, patience: Patience
) -> AsyncIterator[str | Waiting | Failure]:
    """One request: the text as it comes, why nothing does, and last what failed, if it did. Raises TimeoutError."""
    broken = False
    failure: Failure | None = None
    try:
        stream = await patience.wait(model.stream(turn, contents))
        while True:
            waiting = asyncio.ensure_future(anext(stream, None))
            try:
                if not await patience.is_soon(waiting):
                    yield Waiting(f"{model.label} has not answered for {_REMARK_S:.0f} s; at most {model.timeout_s} s.")
                chunk = await patience.wait(waiting)
            finally:
                waiting.cancel()
            if chunk is None:
                break
            if text := answer.add(chunk):
                yield text
            if answer.has_grown:
                patience.heard()
        failure = answer.failure()
    except (TimeoutError, ModelFailed):
        raise
    except Exception as error:
        # What comes after the end of an answer is nothing to it.
        failure, broken = answer.failure() if answer.ended else model.read_failure(error), True
    if broken:
        # The stream that is left open holds itself: collected, it closes. Left alone, it complains at exit. It is
        # young; to look through all that is old takes a third of a second.
        gc.collect(1)
        await asyncio.sleep(0)
    if failure is not None:
        yield failure


class Patience:
    """How long nothing may be heard, over all attempts together."""

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._has_remarked = False
        self.heard()

    def heard(self) -> None:
        self._since = time.monotonic()
        self._has_remarked = False

    @property
    def left_s(self) -> float:
        return self._most_s - (time.monotonic() - self._since)

    async def wait(self, work: Awaitable[Any]) -> Any:
        """Raises TimeoutError."""
        async with asyncio.timeout(max(self.left_s, 0.0)):
            return await work

    async def is_soon(self, work: asyncio.Future[Any]) -> bool:
        """False, once a silence, where it is time to say that one waits."""
        if self._has_remarked or self._most_s <= _REMARK_S:
            return True
        done, _ = await asyncio.wait({work}, timeout=max(_REMARK_S - (self._most_s - self.left_s), 0.0))
        self._has_remarked = not done
        return bool(done)
