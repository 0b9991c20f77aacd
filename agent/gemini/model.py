"""Gemini as a thinking model, through google-genai: streamed, with function calls, thought signatures as they are."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from google import genai
from google.genai import types

from agent import settings
from agent.attempts import LoopClient, attempted, checked_key
from agent.budget import Usage
from agent.gemini.failures import finish_failure, read_failure
from agent.gemini.request import config, outbound, tokens_of
from agent.models import Failure, ModelFailed, Thought, Turn, Waiting, questions_of
from agent.wire import Content, calls_of, text_of
from knowledge.prices.apis import gemini_usd
from pages.rendering.clean import plain

_FIRST_DELAY_S = 1.0


class Gemini:
    """The key is GOOGLE_API_KEY or GEMINI_API_KEY; the rest is in the settings. `base_url` is for tests."""

    label = "Gemini"

    def __init__(self, base_url: str | None = None, first_delay_s: float | None = None) -> None:
        self.name: str = settings.value("gemini_model")
        self._base_url: str | None = base_url or settings.value("gemini_base_url") or None
        self.timeout_s: int = settings.value("gemini_timeout_s")
        self.attempts: int = settings.value("gemini_attempts")
        self.input_tokens: int = settings.value("gemini_input_tokens")
        self.first_delay_s = _FIRST_DELAY_S if first_delay_s is None else first_delay_s
        self._client = LoopClient(self._connect)

    def think(self, turn: Turn) -> AsyncIterator[str | Waiting | Thought]:
        return attempted(self, turn)

    def outbound(self, turn: Turn, most_tokens: int, part: float = 1.0) -> list[Any]:
        return outbound(turn, self.name, most_tokens, part)

    async def stream(self, turn: Turn, contents: list[Any]) -> AsyncIterator[Any]:
        client = await self._client.current()
        told = await asyncio.to_thread(config, turn.tools)
        return await client.aio.models.generate_content_stream(model=self.name, contents=contents, config=told)

    def answer(self) -> _Answer:
        return _Answer(self.name)

    def read_failure(self, error: Exception) -> Failure:
        return read_failure(error, self.name)

    def _connect(self) -> Any:
        name = settings.key_variable()
        if not name:
            raise ModelFailed("No Gemini key is set (GEMINI_API_KEY).")
        key = checked_key(name, os.environ[name])
        # Of values that are newer than the SDK, which it takes all the same.
        warnings.filterwarnings("ignore", category=UserWarning, module=r"google\.genai\.")
        # Without a client of its own the SDK takes aiohttp wherever that is installed, with other timeouts and errors.
        transport = httpx2.AsyncClient()
        options = types.HttpOptions(
            base_url=self._base_url, timeout=1000 * self.timeout_s, httpx_async_client=transport
        )
        return genai.Client(api_key=key, enterprise=False, http_options=options)


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
            content, asked=[] if calls_of(content) else questions_of(text_of(content)), notice=notice, usage=usage
        )


def _word(value: Any) -> str:
    return str(getattr(value, "value", value))
