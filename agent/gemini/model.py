"""Gemini as a thinking model, through google-genai: streamed, with function calls, thought signatures kept as they are.

Nothing is retried once text has been shown; before that, failures that may pass are, within the time that nothing may
be heard in, and a request that was too long is made again with less of the past.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
import warnings
from collections.abc import AsyncIterator, Awaitable
from itertools import count
from typing import Any

import httpx2
from google import genai
from google.genai import types

from agent import settings
from agent.budget import Usage
from agent.gemini.failures import Failure, finish_failure, read_failure
from agent.gemini.request import config, outbound, tokens_of
from agent.models import ModelFailed, Thought, Turn, Waiting
from agent.wire import Content, calls_of, text_of
from knowledge.prices.apis import gemini_usd
from pages.rendering.clean import plain

_FIRST_DELAY_S = 1.0
# After so long without a word the person is told that one waits.
_REMARK_S = 10.0
# What is sent of a conversation that was too long for the model.
_SHORTER = 0.25


class Gemini:
    """The key is GOOGLE_API_KEY or GEMINI_API_KEY; the rest is in the settings. `base_url` is for tests."""

    def __init__(self, base_url: str | None = None, first_delay_s: float | None = None) -> None:
        self.name: str = settings.value("gemini_model")
        self._base_url: str | None = base_url or settings.value("gemini_base_url") or None
        self._timeout_s: int = settings.value("gemini_timeout_s")
        self._attempts: int = settings.value("gemini_attempts")
        self._input_tokens: int = settings.value("gemini_input_tokens")
        self._first_delay_s = _FIRST_DELAY_S if first_delay_s is None else first_delay_s
        self._client: Any = None
        self._loop: Any = None

    async def think(self, turn: Turn) -> AsyncIterator[str | Waiting | Thought]:
        client = await self._client_of(asyncio.get_running_loop())
        told = await asyncio.to_thread(config, turn.tools)
        most = min(self._input_tokens, turn.most_tokens)
        contents, shortened = await asyncio.to_thread(outbound, turn, self.name, most), False
        patience, usage = _Patience(self._timeout_s), Usage()
        try:
            for attempt in count(1):
                answer = _Answer(self.name)
                failure, shown = None, False
                async for piece in self._asked(client, contents, told, answer, patience):
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
                    contents, shortened = outbound(turn, self.name, most, _SHORTER), True
                    continue
                delay = failure.retry_after_s or self._first_delay_s * 2 ** (attempt - 1)
                if shown or not failure.may_pass or attempt >= self._attempts + shortened or delay > patience.left_s:
                    raise ModelFailed(failure.sentence, usage)
                yield Waiting(f"{failure.sentence} Trying again in {max(delay, 1):.0f} s ({attempt + 1 - shortened}"
                              f" of {self._attempts}).")  # fmt: skip
                await asyncio.sleep(delay)
        except TimeoutError:
            raise ModelFailed(f"Gemini said nothing for {self._timeout_s} s.", usage) from None

    async def _client_of(self, loop: Any) -> Any:
        if self._loop is not loop:
            # Connections belong to the event loop that opened them.
            self._client, self._loop = await asyncio.to_thread(self._connect), loop
        return self._client

    async def _asked(
        self, client: Any, contents: list[Any], told: Any, answer: _Answer, patience: _Patience
    ) -> AsyncIterator[str | Waiting | Failure]:
        """One request: the text as it comes, why nothing does, and last what failed, if it did. Raises TimeoutError."""
        broken = False
        failure: Failure | None = None
        try:
            asked = client.aio.models.generate_content_stream(model=self.name, contents=contents, config=told)
            stream = await patience.wait(asked)
            while True:
                waiting = asyncio.ensure_future(anext(stream, None))
                try:
                    if not await patience.is_soon(waiting):
                        yield Waiting(f"Gemini has not answered for {_REMARK_S:.0f} s; at most {self._timeout_s} s.")
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
        except TimeoutError:
            raise
        except Exception as error:
            # What comes after the end of an answer is nothing to it.
            failure, broken = answer.failure() if answer.ended else read_failure(error, self.name), True
        if broken:
            # The stream that is left open holds itself: collected, it closes. Left alone, it complains at exit.
            gc.collect()
            await asyncio.sleep(0)
        if failure is not None:
            yield failure

    def _connect(self) -> Any:
        name = settings.key_variable()
        key = os.environ.get(name or "")
        if not key:
            raise ModelFailed("No Gemini key is set (GEMINI_API_KEY).")
        if any(not "!" <= letter <= "~" for letter in key):
            what = "a space or a line end" if any(map(str.isspace, key)) else "a character that no key has"
            raise ModelFailed(f"{name} holds {what}: set it to the key alone.")
        # Of values that are newer than the SDK, which it takes all the same.
        warnings.filterwarnings("ignore", category=UserWarning, module=r"google\.genai\.")
        # Without a client of its own the SDK takes aiohttp wherever that is installed, with other timeouts and errors.
        transport = httpx2.AsyncClient()
        options = types.HttpOptions(
            base_url=self._base_url, timeout=1000 * self._timeout_s, httpx_async_client=transport
        )
        return genai.Client(api_key=key, enterprise=False, http_options=options)


class _Patience:
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


class _Answer:
    """Collects the chunks of one streamed reply into one content."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._parts: list[dict[str, Any]] = []
        self._finish: str | None = None
        self._counted: Any = None
        self.has_grown = False

    def add(self, chunk: Any) -> str:
        """Takes a chunk in; returns the text in it that is for the reader."""
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self._finish = f"BLOCKED {_word(chunk.prompt_feedback.block_reason)}"
        self._counted = chunk.usage_metadata or self._counted
        shown, before = "", self._size()
        for candidate in (chunk.candidates or [])[:1]:
            if candidate.finish_reason:
                self._finish = _word(candidate.finish_reason)
            for part in (candidate.content.parts if candidate.content else None) or []:
                shown += self._add_part(part.model_dump(mode="json", by_alias=True, exclude_none=True))
        self.has_grown = self._size() > before
        return plain(shown)

    def _size(self) -> int:
        return len(self._parts) + sum(len(part.get("text", "")) for part in self._parts)

    def usage(self, contents: list[Any]) -> Usage:
        """What the request used, as Gemini counted, and as its bytes come to where it did not."""
        counted = self._counted
        asked = getattr(counted, "prompt_token_count", None)
        output = sum(getattr(counted, name, None) or 0 for name in ("candidates_token_count", "thoughts_token_count"))
        if asked is None:
            asked, output = tokens_of(contents), output or self._size() // 3
        return Usage(1, asked, output, gemini_usd(self._model, asked, output))

    def _add_part(self, part: dict[str, Any]) -> str:
        text = part.get("text", "") if not part.get("thought") else ""
        last = self._parts[-1] if self._parts else None
        # Plain text is joined; a part with a signature is never touched, nor is anything joined to it.
        if set(part) == {"text"} and last is not None and set(last) == {"text"}:
            last["text"] += part["text"]
        elif part != {"text": ""}:
            self._parts.append(part)
        return text

    @property
    def ended(self) -> bool:
        return self._finish is not None

    def failure(self) -> Failure | None:
        """What makes this reply unusable, or None."""
        calls = [part["functionCall"] for part in self._parts if "functionCall" in part]
        if not all(call.get("name") for call in calls):
            return finish_failure("MALFORMED_FUNCTION_CALL", False, self._model)
        usable = bool(calls) or any(part.get("text") for part in self._parts if not part.get("thought"))
        return finish_failure(self._finish, usable, self._model)

    def thought(self, usage: Usage) -> Thought:
        content: Content = {"role": "model", "parts": self._parts, "by": self._model}
        notice = "The answer was cut at the model's output limit." if self._finish == "MAX_TOKENS" else None
        return Thought(
            content, asked=[] if calls_of(content) else _questions(text_of(content)), notice=notice, usage=usage
        )


def _word(value: Any) -> str:
    return str(getattr(value, "value", value))


def _questions(text: str) -> list[str]:
    """The questions that an answer ends with: sentences of its last paragraph that end in a question mark."""
    last = text.strip().rpartition("\n\n")[2]
    if not last.endswith("?"):
        return []
    return [sentence.strip(" -*\n") + "?" for sentence in last.replace("\n", " ").split("?")[:-1] if sentence.strip()]
