"""What is sent to Gemini: the conversation as the SDK's contents, within the tokens of a request, and the tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.genai import types

from agent.gemini.prompt import SYSTEM, context
from agent.history import turns_of, words_only
from agent.models import Turn
from agent.wire import OWN_ID, Content, calls_of, turn_start
from tools.brief import declarations, declared
from tools.registry import Tool

_MOST_OUTPUT_TOKENS = 16_384
# Of tool results and schemas a token is some three to four bytes; fewer are assumed, so that estimates are high.
_BYTES_PER_TOKEN = 3.0


@dataclass(frozen=True)
class _Cut:
    """How much of the conversation is sent: the longest list and text of a result, results of how many past turns, the
    words of how many."""

    longest_list: int
    longest_text: int
    whole_turns: int
    turns: int


# Tried in this order until a request is short enough.
_CUTS = (
    _Cut(12, 6000, 1000, 1000),
    _Cut(12, 6000, 1, 1000),
    _Cut(8, 2000, 0, 12),
    _Cut(4, 600, 0, 3),
    _Cut(2, 200, 0, 0),
)


def config(tools: Mapping[str, Tool]) -> Any:
    """The SDK's configuration of a request."""
    functions = [
        types.FunctionDeclaration(
            name=each["name"], description=each["description"], parameters_json_schema=each["parameters"]
        )
        for each in declarations(tools)
    ]
    return types.GenerateContentConfig(
        system_instruction=SYSTEM,
        temperature=0.0,
        tools=[types.Tool(function_declarations=functions)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        max_output_tokens=_MOST_OUTPUT_TOKENS,
    )


def outbound(turn: Turn, model: str, most_tokens: int, part: float = 1.0) -> list[Any]:
    """The conversation as the SDK's contents, with as much of its past as `most_tokens` leave room for, and no more
    than the given part of all.

    Calls carry the signature of the model that made them (the offline planner's none), and another refuses it: of
    past turns with calls that were not made by `model` only the words and main figures are sent. The session's plan and
    the clock ride on the last thing said.
    """
    room = most_tokens * _BYTES_PER_TOKEN - _overhead(turn.tools)
    contents: list[Content] = []
    for cut in _CUTS:
        contents = _contents(turn, model, cut)
        if cut is _CUTS[0]:
            room = min(room, part * _bytes(contents))
        if _bytes(contents) <= room:
            break
    else:
        contents = _squeezed(contents, room)
    return [types.Content.model_validate_json(json.dumps(content)) for content in contents]


def tokens_of(contents: Sequence[Any]) -> int:
    """What a request is taken to come to, without its tools."""
    return int(sum(len(content.model_dump_json(exclude_none=True)) for content in contents) / _BYTES_PER_TOKEN)


def _overhead(tools: Mapping[str, Tool]) -> int:
    return len(SYSTEM.encode()) + len(declared(tools).encode())


def _bytes(contents: Sequence[Content]) -> int:
    return sum(len(json.dumps(content)) for content in contents)


def _squeezed(contents: list[Content], room: float) -> list[Content]:
    """What is still too long: results go, the oldest first, then the rest of every text and argument is cut ever
    shorter. The form stays, a result for every call."""
    over = _bytes(contents) - room
    for content in contents:
        for part in content["parts"]:
            if over > 0 and "functionResponse" in part:
                before = len(json.dumps(part))
                part["functionResponse"] = {**part["functionResponse"], "response": {"left out": "too long"}}
                over -= before - len(json.dumps(part))
    longest = 20_000
    while _bytes(contents) > room and longest >= 100:
        cut = _Cut(2, longest, 0, 0)
        for content in contents:
            content["parts"] = [_shortest(part, cut) for part in content["parts"]]
        longest //= 2
    return contents


def _shortest(part: dict[str, Any], cut: _Cut) -> dict[str, Any]:
    part = dict(part)
    if "text" in part and len(part["text"]) > cut.longest_text:
        half = cut.longest_text // 2
        part["text"] = f"{part['text'][:half]} … {part['text'][-half:]}"
    if "functionCall" in part:
        part["functionCall"] = {**part["functionCall"], "args": _shortened(part["functionCall"].get("args", {}), cut)}
    return part


def _contents(turn: Turn, model: str, cut: _Cut) -> list[Content]:
    start = turn_start(turn.messages)
    past, current = turn.messages[: max(start, 0)], turn.messages[max(start, 0) :]
    turns = turns_of(past)
    summary = past[: len(past) - sum(map(len, turns))]
    kept = turns[len(turns) - min(cut.turns, len(turns)) :]
    whole = len(kept) - min(cut.whole_turns, len(kept))
    sent = [*summary] if cut.turns else []
    for index, messages in enumerate(kept):
        sent += words_only(messages) if index < whole or _by_others(messages, model) else messages
    contents = [_body(content, cut) for content in [*sent, *current]]
    moment = turn.now.strftime("%A %Y-%m-%d %H:%M %Z").strip()
    if current:
        contents[len(sent)]["parts"].append({"text": context(json.dumps(turn.plan, sort_keys=True), moment)})
    return [content for content in contents if content["parts"]]


def _body(content: Content, cut: _Cut) -> Content:
    return {"role": content["role"], "parts": [_clean(part, cut) for part in content["parts"]]}


def _by_others(messages: Sequence[Content], model: str) -> bool:
    """Whether calls of a turn were made, even in part, by something other than `model`."""
    return any(calls_of(content) and content.get("by") != model for content in messages)


def _clean(part: Mapping[str, Any], cut: _Cut) -> dict[str, Any]:
    """A part without the ids that are ours, and with long results cut. A thought signature stays as it is."""
    part = dict(part)
    for kind in ("functionCall", "functionResponse"):
        if kind in part:
            inner = dict(part[kind])
            if str(inner.get("id", "")).startswith(OWN_ID):
                inner.pop("id")
            if kind == "functionResponse":
                inner["response"] = _shortened(inner["response"], cut)
            part[kind] = inner
    return part


def _shortened(value: Any, cut: _Cut) -> Any:
    """A tool result small enough to send: long lists and texts are cut, and say so."""
    if isinstance(value, str) and len(value) > cut.longest_text:
        return f"{value[: cut.longest_text]}… ({len(value):,} characters in all)"
    if isinstance(value, dict):
        return {key: _shortened(item, cut) for key, item in value.items()}
    if isinstance(value, list):
        short = [_shortened(item, cut) for item in value[: cut.longest_list]]
        left = len(value) - len(short)
        return [*short, f"({left} more)"] if left else short
    return value
