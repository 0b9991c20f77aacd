"""What of a conversation is sent to a language model: as much of its past as the tokens of a request leave room for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.history import turns_of, words_only
from agent.models import Turn
from agent.prompt import SYSTEM, context
from agent.wire import Content, calls_of, turn_start
from tools.brief import declared
from tools.registry import Tool

# Of tool results and schemas a token is some three to four bytes; fewer are assumed, so that estimates are high.
BYTES_PER_TOKEN = 3.0


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


def outgoing(turn: Turn, model: str, most_tokens: int, part: float = 1.0) -> list[Content]:
    """The conversation with as much of its past as `most_tokens` leave room for, and no more
    than the given part of all.

    Calls carry the signature of the model that made them (the offline planner's none), and another refuses it: of
    past turns with calls that were not made by `model` only the words and main figures are sent. The session's plan and
    the clock ride on the last thing said.
    """
    room = most_tokens * BYTES_PER_TOKEN - _overhead(turn.tools)
    contents: list[Content] = []
    for cut in _CUTS:
        contents = _contents(turn, model, cut)
        if cut is _CUTS[0]:
            room = min(room, part * _bytes(contents))
        if _bytes(contents) <= room:
            break
    else:
        contents = _squeezed(contents, room)
    return contents


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
    # Thinking aloud is not part of a conversation, but where it carries a signature that is asked for again.
    parts = [part for part in content["parts"] if not part.get("thought") or "thoughtSignature" in part]
    return {"role": content["role"], "parts": [_clean(part, cut) for part in parts]}


def _by_others(messages: Sequence[Content], model: str) -> bool:
    """Whether calls of a turn were made, even in part, by something other than `model`."""
    return any(calls_of(content) and content.get("by") != model for content in messages)


def _clean(part: Mapping[str, Any], cut: _Cut) -> dict[str, Any]:
    """A part with long results cut. A thought signature stays as it is."""
    part = dict(part)
    if "functionResponse" in part:
        response = part["functionResponse"]
        part["functionResponse"] = {**response, "response": _shortened(response["response"], cut)}
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
