"""Any model behind an OpenAI-compatible server (vLLM, SGLang, Ollama, llama.cpp, LM Studio, a gateway), through the
`openai` package: streamed, with tool calls, or with one JSON object a step where the model or its server has none."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
from collections.abc import AsyncIterator
from typing import Any

from agent import settings
from agent.attempts import LoopClient, attempted, checked_key
from agent.budget import Usage
from agent.compatible.failures import KEY_VARIABLE, finish_failure, read_failure, refused_option
from agent.compatible.request import Message, messages, step_schema, tokens_of, tools
from agent.models import Failure, ModelFailed, Thought, Turn, Waiting, questions_of
from agent.wire import Content, calls_of, text_of
from knowledge.prices.apis import most_usd
from pages.rendering.clean import plain

_FIRST_DELAY_S = 1.0
# Some servers send what a model thinks as part of the text.
_THINKING = re.compile(r"\A\s*<think(?:ing)?>(.*?)</think(?:ing)?>\s*", re.DOTALL)
_OPENING = re.compile(r"\A\s*<think(?:ing)?>")


class Compatible:
    """The address, the model and how tools are called are in the settings, the key in OPENAI_API_KEY, which a
    server of one's own does without. `base_url` is for tests."""

    label = "The model server"

    def __init__(self, base_url: str | None = None, first_delay_s: float | None = None) -> None:
        self.name: str = settings.value("openai_model")
        self._base_url: str | None = base_url or settings.value("openai_base_url") or None
        self.timeout_s: int = settings.value("gemini_timeout_s")
        self.attempts: int = settings.value("gemini_attempts")
        self.input_tokens: int = settings.value("openai_input_tokens")
        self.first_delay_s = _FIRST_DELAY_S if first_delay_s is None else first_delay_s
        self._options = {"temperature", "stream_options", "response_format"}
        if settings.value("openai_tools") != "json":
            self._options.add("tools")
        self._may_fall_back = settings.value("openai_tools") == "auto"
        self._client = LoopClient(self._connect)

    @property
    def calls_as_json(self) -> bool:
        """Whether tools are asked for as a JSON object, by the settings or since the server refused them."""
        return "tools" not in self._options

    def think(self, turn: Turn) -> AsyncIterator[str | Waiting | Thought]:
        return attempted(self, turn)

    def outbound(self, turn: Turn, most_tokens: int, part: float = 1.0) -> list[Message]:
        return messages(turn, self.name, most_tokens, part, self.calls_as_json)

    async def stream(self, turn: Turn, contents: list[Message]) -> AsyncIterator[Any]:
        client = await self._client.current()
        request: dict[str, Any] = {"model": self.name, "messages": contents, "stream": True}
        if "temperature" in self._options:
            request["temperature"] = 0.0
        if "stream_options" in self._options:
            request["stream_options"] = {"include_usage": True}
        if not self.calls_as_json:
            request["tools"] = await asyncio.to_thread(tools, turn.tools)
        elif "response_format" in self._options:
            schema = await asyncio.to_thread(step_schema, turn.tools)
            request["response_format"] = {"type": "json_schema", "json_schema": {"name": "step", "schema": schema}}
        return aiter(await client.chat.completions.create(**request))

    def answer(self) -> _Answer:
        return _Answer(self.name, self.calls_as_json)

    def read_failure(self, error: Exception) -> Failure:
        sent = self._options - ({"response_format"} if not self.calls_as_json else set())
        option = refused_option(error, sent if self._may_fall_back else sent - {"tools"})
        if option is not None:
            # Each is left out at most once, for as long as this model is used.
            self._options.discard(option)
            return Failure(f"The model server takes no {option}.", put_otherwise=True)
        return read_failure(error, self.name)

    def _connect(self) -> Any:
        try:
            library = importlib.import_module("openai")  # an extra
        except ModuleNotFoundError:
            raise ModelFailed(f"The openai package is not installed: {INSTALL}.") from None
        key = checked_key(KEY_VARIABLE, os.environ.get(KEY_VARIABLE) or "none")
        # We try again ourselves, within the time that the person is told of.
        return library.AsyncOpenAI(api_key=key, base_url=self._base_url, timeout=self.timeout_s, max_retries=0)


INSTALL = "pip install 'shardwise[openai]'"


class _Answer:
    """Collects the chunks of one streamed reply into one content."""

    def __init__(self, model: str, as_json: bool) -> None:
        self._model = model
        self._as_json = as_json
        self._text, self._shown, self._thinking = "", 0, ""
        self._calls: list[dict[str, str]] = []
        self._places: dict[int, int] = {}
        self._finish: str | None = None
        self._counted: Any = None
        self.has_grown = False

    def add(self, chunk: Any) -> str:
        """Takes a chunk in; returns the text in it that is for the reader."""
        before = self._size()
        self._counted = getattr(chunk, "usage", None) or self._counted
        for choice in (getattr(chunk, "choices", None) or [])[:1]:
            self._finish = choice.finish_reason or self._finish
            delta = choice.delta
            if delta is None:
                continue
            extra = delta.model_extra or {}
            self._thinking += str(extra.get("reasoning_content") or extra.get("reasoning") or "")
            self._text += delta.content or ""
            for call in delta.tool_calls or []:
                self._add_call(call)
        self.has_grown = self._size() > before
        return self._new_text()

    def _add_call(self, piece: Any) -> None:
        """A piece of a call goes to the call of its index. Some servers give every call the same one."""
        function = piece.function
        name, arguments = (function.name or "", function.arguments or "") if function else ("", "")
        place = self._places.get(piece.index)
        is_another = place is not None and name and piece.id and self._calls[place]["id"] not in ("", piece.id)
        if place is None or is_another:
            self._places[piece.index] = place = len(self._calls)
            self._calls.append({"id": piece.id or "", "name": "", "arguments": ""})
        call = self._calls[place]
        call["id"] = call["id"] or piece.id or ""
        call["name"] = call["name"] or name
        call["arguments"] += arguments

    def _new_text(self) -> str:
        """What of the text has not been shown; nothing of a JSON object, and of a thought nothing either."""
        text = self._said
        is_thinking = text == self._text and _OPENING.match(text)
        if self._as_json or is_thinking or "<think".startswith(text.strip()[:6]):
            return ""
        new, self._shown = text[self._shown :], len(text)
        return plain(new)

    @property
    def _said(self) -> str:
        return _THINKING.sub("", self._text)

    def _size(self) -> int:
        return len(self._text) + len(self._thinking) + sum(len(part) for call in self._calls for part in call.values())

    @property
    def ended(self) -> bool:
        return self._finish is not None

    def _step(self) -> tuple[str, list[dict[str, Any]], bool]:
        """(text, calls with their arguments read, whether all of it could be read)."""
        if self._as_json and not self._calls:
            return _step_of(self._said)
        calls, is_readable = [], True
        for call in self._calls:
            arguments = _object(call["arguments"] or "{}")
            is_readable = is_readable and bool(call["name"]) and arguments is not None
            calls.append({**call, "arguments": arguments or {}})
        return self._said, calls, is_readable

    def failure(self) -> Failure | None:
        text, calls, is_readable = self._step()
        return finish_failure(self._finish, bool(calls or text.strip()), is_readable, self._model)

    def usage(self, contents: list[Message]) -> Usage:
        """What the request used, as the server counted, and as its bytes come to where it did not."""
        asked = getattr(self._counted, "prompt_tokens", None)
        output = getattr(self._counted, "completion_tokens", None) or 0
        if not asked:
            asked, output = tokens_of(contents), output or self._size() // 3
        return Usage(1, asked, output, most_usd(self._model, asked, output))

    def thought(self, usage: Usage) -> Thought:
        text, calls, _ = self._step()
        thinking = self._thinking + "".join(_THINKING.findall(self._text))
        parts: list[dict[str, Any]] = [{"text": thinking, "thought": True}] if thinking else []
        parts += [{"text": text}] if text else []
        for call in calls:
            id = {"id": call["id"]} if call["id"] else {}
            parts.append({"functionCall": {**id, "name": call["name"], "args": call["arguments"]}})
        content: Content = {"role": "model", "parts": parts, "by": self._model}
        notice = "The answer was cut at the model's output limit." if self._finish == "length" else None
        asked = [] if calls_of(content) else questions_of(text_of(content))
        return Thought(content, asked=asked, notice=notice, usage=usage)


def _step_of(text: str) -> tuple[str, list[dict[str, Any]], bool]:
    """The step in an answer that should be one JSON object, and may stand in a fence or between words. Words without
    one are an answer."""
    start, end = text.find("{"), text.rfind("}")
    step = _object(text[start : end + 1]) if 0 <= start < end else None
    if step is None or not ("calls" in step or "answer" in step):
        return text, [], not text.lstrip().startswith("{")
    calls = step.get("calls") or []
    rows = [call for call in calls if isinstance(call, dict) and isinstance(call.get("name"), str)]
    read = [
        {"id": "", "name": row["name"], "arguments": arguments}
        for row in rows
        if isinstance(arguments := row.get("arguments") or {}, dict)
    ]
    answer = step.get("answer")
    return (answer if isinstance(answer, str) and not read else ""), read, len(read) == len(calls)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
