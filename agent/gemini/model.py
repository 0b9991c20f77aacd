"""Gemini as a thinking model, through google-genai: streamed, with function calls, thought signatures kept as they are.

Nothing is retried once text has been shown; before that, failures that may pass are,
and a request that was too long is made again with less of the past.
"""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from google import genai
from google.genai import types

from agent import settings
from agent.gemini.failures import Failure, finish_failure, read_failure
from agent.gemini.request import config, outbound
from agent.models import ModelFailed, Thought, Turn
from agent.wire import Content, calls_of, text_of
from pages.rendering.clean import plain

_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 20.0
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

    async def think(self, turn: Turn) -> AsyncIterator[str | Thought]:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections belong to the event loop that opened them.
            self._client, self._loop = await asyncio.to_thread(self._connect), loop
        client = self._client
        told = await asyncio.to_thread(config, turn.tools)
        contents, shortened = outbound(turn, self.name, self._input_tokens), False
        failures = 0
        while True:
            shown = broken = False
            answer = _Answer(self.name)
            try:
                stream = await client.aio.models.generate_content_stream(
                    model=self.name, contents=contents, config=told
                )
                async for chunk in stream:
                    if text := answer.add(chunk):
                        shown = True
                        yield text
                failure = answer.failure()
            except Exception as error:
                # What comes after the end of an answer is nothing to it.
                failure, broken = answer.failure() if answer.ended else read_failure(error, self.name), True
            if broken:
                # The stream that is left open holds itself: collected, it closes. Left alone, it complains at exit.
                gc.collect()
                await asyncio.sleep(0)
            if failure is None:
                yield answer.thought()
                return
            if failure.too_long and not shortened:
                contents, shortened = outbound(turn, self.name, self._input_tokens, _SHORTER), True
                continue
            failures += 1
            if shown or not failure.may_pass or failures == self._attempts:
                raise ModelFailed(failure.sentence)
            delay = failure.retry_after_s or self._first_delay_s * 2 ** (failures - 1)
            if delay > _LONGEST_DELAY_S:
                raise ModelFailed(failure.sentence)
            await asyncio.sleep(delay)

    def _connect(self) -> Any:
        key = next((os.environ[name] for name in settings.KEY_VARIABLES if os.environ.get(name)), None)
        if not key:
            raise ModelFailed("No Gemini key is set (GEMINI_API_KEY).")
        # Of values that are newer than the SDK, which it takes all the same.
        warnings.filterwarnings("ignore", category=UserWarning, module=r"google\.genai\.")
        # Without a client of its own the SDK takes aiohttp wherever that is installed, with other timeouts and errors.
        transport = httpx2.AsyncClient()
        options = types.HttpOptions(
            base_url=self._base_url, timeout=1000 * self._timeout_s, httpx_async_client=transport
        )
        return genai.Client(api_key=key, enterprise=False, http_options=options)


class _Answer:
    """Collects the chunks of one streamed reply into one content."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._parts: list[dict[str, Any]] = []
        self._finish: str | None = None

    def add(self, chunk: Any) -> str:
        """Takes a chunk in; returns the text in it that is for the reader."""
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self._finish = f"BLOCKED {_word(chunk.prompt_feedback.block_reason)}"
        shown = ""
        for candidate in (chunk.candidates or [])[:1]:
            if candidate.finish_reason:
                self._finish = _word(candidate.finish_reason)
            for part in (candidate.content.parts if candidate.content else None) or []:
                shown += self._add_part(part.model_dump(mode="json", by_alias=True, exclude_none=True))
        return plain(shown)

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

    def thought(self) -> Thought:
        content: Content = {"role": "model", "parts": self._parts, "by": self._model}
        notice = "The answer was cut at the model's output limit." if self._finish == "MAX_TOKENS" else None
        return Thought(content, asked=[] if calls_of(content) else _questions(text_of(content)), notice=notice)


def _word(value: Any) -> str:
    return str(getattr(value, "value", value))


def _questions(text: str) -> list[str]:
    """The questions that an answer ends with: sentences of its last paragraph that end in a question mark."""
    last = text.strip().rpartition("\n\n")[2]
    if not last.endswith("?"):
        return []
    return [sentence.strip(" -*\n") + "?" for sentence in last.replace("\n", " ").split("?")[:-1] if sentence.strip()]
