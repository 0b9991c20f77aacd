"""What is sent to an OpenAI-compatible server: the conversation as chat messages, and the tools, called by the protocol
or, where the server or the model cannot, asked for as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent.models import Turn
from agent.outgoing import BYTES_PER_TOKEN, outgoing
from agent.prompt import SYSTEM
from agent.wire import Content, calls_of, text_of
from tools.brief import declarations, declared
from tools.registry import Tool

Message = dict[str, Any]
_AS_JSON = """

You call tools by answering with one JSON object and nothing else: {"calls": [{"name": …, "arguments": {…}}, …], \
"answer": ""} to call one or more of the tools below, {"calls": [], "answer": "…"} to answer the user once you have \
what you need. What the tools gave comes back as a message that begins with [Tool results].

The tools, each with the JSON schema of its arguments:
"""
_RESULTS = "[Tool results]"


def messages(turn: Turn, model: str, most_tokens: int, part: float, as_json: bool) -> list[Message]:
    """The conversation, the system prompt first."""
    system = SYSTEM + _AS_JSON + declared(turn.tools) if as_json else SYSTEM
    sent: list[Message] = [{"role": "system", "content": system}]
    for content in outgoing(turn, model, most_tokens, part):
        sent += _as_words(content) if as_json else _as_messages(content)
    return sent


def tools(known: Mapping[str, Tool]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": each} for each in declarations(known)]


def step_schema(known: Mapping[str, Tool]) -> dict[str, Any]:
    """The one object that a model without tool calls answers with."""
    call = {
        "type": "object",
        "properties": {
            "name": {"enum": [each["name"] for each in declarations(known)]},
            "arguments": {"type": "object"},
        },
        "required": ["name", "arguments"],
    }  # fmt: skip
    return {
        "type": "object",
        "properties": {"calls": {"type": "array", "items": call}, "answer": {"type": "string"}},
        "required": ["calls", "answer"],
    }


def tokens_of(sent: list[Message]) -> int:
    """What a request is taken to come to, without its tools."""
    return int(sum(len(json.dumps(each)) for each in sent) / BYTES_PER_TOKEN)


def _as_messages(content: Content) -> list[Message]:
    """A content as the protocol has it: each tool's answer is a message of its own."""
    results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
    if results:
        return [
            {"role": "tool", "tool_call_id": each.get("id") or each["name"], "content": _json(each["response"])}
            for each in results
        ]
    if content["role"] != "model":
        return [{"role": "user", "content": text_of(content)}]
    calls = [
        {"id": call.id or call.name, "type": "function",
         "function": {"name": call.name, "arguments": _json(call.arguments)}}
        for call in calls_of(content)
    ]  # fmt: skip
    return [{"role": "assistant", "content": text_of(content)} | ({"tool_calls": calls} if calls else {})]


def _as_words(content: Content) -> list[Message]:
    """The same for a model that knows of no tools."""
    results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
    if results:
        gave = [{"name": each["name"], "result": each["response"]} for each in results]
        return [{"role": "user", "content": f"{_RESULTS} {_json(gave)}"}]
    if content["role"] != "model":
        return [{"role": "user", "content": text_of(content)}]
    calls = [{"name": call.name, "arguments": call.arguments} for call in calls_of(content)]
    step = {"calls": calls, "answer": "" if calls else text_of(content)}
    return [{"role": "assistant", "content": _json(step)}]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
