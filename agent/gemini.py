"""Gemini as a thinking model, through google-genai: streamed, with function calls, thought signatures kept as they are.

The SDK is imported on first use. Nothing is retried once text has been shown; before that, failures that may pass are.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from agent.gemini_failures import Failure, finish_failure, read_failure
from agent.models import ModelFailed, Thought, Turn
from agent.prompt import SYSTEM, context
from agent.screen import plain
from agent.wire import Content, calls_of, text_of, turn_start
from tools.registry import Tool

DEFAULT_MODEL = "gemini-3.8-flash"
_ATTEMPTS = 3
_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 20.0
_TIMEOUT_MS = 120_000
_MOST_OUTPUT_TOKENS = 16_384
# Ids that we gave to calls which came without one; the model must not see them.
_OWN_ID = "call-"
_LONGEST_LIST = 12
_LONGEST_TEXT = 6_000


class Gemini:
    """The key is GOOGLE_API_KEY or GEMINI_API_KEY, the model SHARDWISE_MODEL. `base_url` is for tests and proxies."""

    def __init__(self, base_url: str | None = None, first_delay_s: float = _FIRST_DELAY_S) -> None:
        self.name = os.environ.get("SHARDWISE_MODEL") or DEFAULT_MODEL
        self._base_url = base_url
        self._first_delay_s = first_delay_s
        self._client: Any = None

    async def think(self, turn: Turn) -> AsyncIterator[str | Thought]:
        client = await asyncio.to_thread(self._connect)
        contents = outbound(turn)
        config = _config(turn.tools)
        for attempt in range(_ATTEMPTS):
            shown = False
            answer = _Answer(self.name, sum(len(calls_of(content)) for content in turn.messages))
            try:
                stream = await client.aio.models.generate_content_stream(
                    model=self.name, contents=contents, config=config
                )
                async for chunk in stream:
                    if text := answer.add(chunk):
                        shown = True
                        yield text
                if failure := answer.failure():
                    raise ModelFailedOnce(failure)
                yield answer.thought()
                return
            except Exception as error:
                failure = error.failure if isinstance(error, ModelFailedOnce) else read_failure(error, self.name)
                if failure is None:
                    raise
                if shown or not failure.may_pass or attempt == _ATTEMPTS - 1:
                    raise ModelFailed(failure.sentence) from error
                delay = failure.retry_after_s or self._first_delay_s * 2**attempt
                if delay > _LONGEST_DELAY_S:
                    raise ModelFailed(failure.sentence) from error
                await asyncio.sleep(delay)

    def _connect(self) -> Any:
        if self._client is None:
            from google import genai
            from google.genai import types

            options = types.HttpOptions(base_url=self._base_url, timeout=_TIMEOUT_MS)
            key = os.environ.get("GOOGLE_API_KEY") or os.environ.get("GEMINI_API_KEY")
            if not key:
                raise ModelFailed("No Gemini key is set (GEMINI_API_KEY).")
            self._client = genai.Client(api_key=key, enterprise=False, http_options=options)
        return self._client


class ModelFailedOnce(Exception):
    """One attempt gave nothing usable, though the request itself went through."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.sentence)


class _Answer:
    """Collects the chunks of one streamed reply into one content."""

    def __init__(self, model: str, calls_before: int) -> None:
        self._model = model
        self._calls = calls_before
        self._parts: list[dict[str, Any]] = []
        self._finish: str | None = None

    def add(self, chunk: Any) -> str:
        """Takes a chunk in; returns the text in it that is for the reader."""
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self._finish = f"BLOCKED {_word(chunk.prompt_feedback.block_reason)}"
        shown = ""
        for candidate in chunk.candidates or []:
            if candidate.finish_reason:
                self._finish = _word(candidate.finish_reason)
            for part in (candidate.content.parts if candidate.content else None) or []:
                shown += self._add_part(json.loads(part.model_dump_json(by_alias=True, exclude_none=True)))
        return plain(shown)

    def _add_part(self, part: dict[str, Any]) -> str:
        if call := part.get("functionCall"):
            call.setdefault("id", f"{_OWN_ID}{self._calls}")
            self._calls += 1
        text = part.get("text", "") if not part.get("thought") else ""
        last = self._parts[-1] if self._parts else None
        # Plain text is joined; a part with a signature is never touched, nor is anything joined to it.
        if set(part) == {"text"} and last is not None and set(last) == {"text"}:
            last["text"] += part["text"]
        elif part != {"text": ""}:
            self._parts.append(part)
        return text

    def failure(self) -> Failure | None:
        """What makes this reply unusable, or None."""
        usable = any("functionCall" in part or part.get("text") for part in self._parts if not part.get("thought"))
        return finish_failure(self._finish, usable, self._model)

    def thought(self) -> Thought:
        content: Content = {"role": "model", "parts": self._parts, "by": self._model}
        notice = "The answer was cut at the model's output limit." if self._finish == "MAX_TOKENS" else None
        return Thought(content, asked=[] if calls_of(content) else _questions(text_of(content)), notice=notice)


def outbound(turn: Turn) -> list[Any]:
    """The conversation as the SDK's contents.

    Calls of earlier turns that the offline planner made carry no signature, so of such turns only the words are sent.
    The session's plan and the clock ride on the last thing said.
    """
    from google.genai import types

    start = turn_start(turn.messages)
    sent: list[Content] = []
    offline = False
    for index, content in enumerate(turn.messages):
        if content.get("by") == "person":
            following = turn.messages[index + 1 :]
            offline = _by_offline(following)
        if offline and index < start and (calls_of(content) or content.get("by") == "tools"):
            continue
        body: Content = {"role": content["role"], "parts": [_clean(part) for part in content["parts"]]}
        if index == start:
            moment = turn.now.strftime("%A %Y-%m-%d %H:%M %Z").strip()
            body["parts"].append({"text": context(json.dumps(turn.plan, sort_keys=True), moment)})
        if body["parts"]:
            sent.append(body)
    return [types.Content.model_validate_json(json.dumps(content)) for content in sent]


def _by_offline(following: Sequence[Content]) -> bool:
    """Whether the turn whose messages follow was thought, even in part, by something other than a Gemini model."""
    for content in following:
        if content.get("by") == "person":
            return False
        if content["role"] == "model" and not str(content.get("by", "")).startswith("gemini"):
            return True
    return False


def _clean(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part without the ids that are ours, and with long results cut."""
    part = dict(part)
    for kind in ("functionCall", "functionResponse"):
        if kind in part:
            inner = dict(part[kind])
            if str(inner.get("id", "")).startswith(_OWN_ID):
                inner.pop("id")
            if kind == "functionResponse":
                inner["response"] = _shortened(inner["response"])
            part[kind] = inner
    return part


def _shortened(value: Any) -> Any:
    """A tool result small enough to send: long lists and texts are cut, and say so."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}… ({len(value):,} characters in all)"
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        cut = [_shortened(item) for item in value[:_LONGEST_LIST]]
        return [*cut, f"({len(value) - _LONGEST_LIST} more)"] if len(value) > _LONGEST_LIST else cut
    return value


def _config(tools: Mapping[str, Tool]) -> Any:
    from google.genai import types

    declarations = [
        types.FunctionDeclaration(
            name=tool.name, description=tool.description, parameters_json_schema=tool.request.model_json_schema()
        )
        for tool in tools.values()
    ]
    return types.GenerateContentConfig(
        system_instruction=SYSTEM,
        tools=[types.Tool(function_declarations=declarations)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        max_output_tokens=_MOST_OUTPUT_TOKENS,
    )


def _word(value: Any) -> str:
    return str(getattr(value, "value", value))


def _questions(text: str) -> list[str]:
    """The questions that an answer ends with: sentences of its last paragraph that end in a question mark."""
    last = text.strip().rpartition("\n\n")[2]
    if not last.endswith("?"):
        return []
    return [sentence.strip(" -*\n") + "?" for sentence in last.replace("\n", " ").split("?")[:-1] if sentence.strip()]
