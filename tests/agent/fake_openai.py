"""A server on this machine that speaks the stream of OpenAI's chat completions and answers from a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

from scripted_server import Written, listening


@dataclass
class Told:
    """One response: an HTTP error with a message, or deltas of a stream. `cut` breaks it off before its end, and so
    does a message with the status 200, which is told in the stream."""

    deltas: list[dict[str, Any]] = field(default_factory=list)
    finish: str | None = "stop"
    status: int = 200
    message: str = ""
    usage: dict[str, int] | None = None
    cut: bool = False
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class FakeOpenAi:
    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    replies: list[Told] = field(default_factory=list)


def words(*pieces: str, **more: Any) -> Told:
    return Told([{"content": piece} for piece in pieces], **more)


def tool_call(index: int, name: str, arguments: dict[str, Any], id: str = "") -> list[dict[str, Any]]:
    """The deltas of a call, its arguments in two pieces."""
    text = json.dumps(arguments)
    half = len(text) // 2
    first = {"index": index, "id": id or f"call-{index}", "type": "function",
             "function": {"name": name, "arguments": text[:half]}}  # fmt: skip
    return [{"tool_calls": [first]}, {"tool_calls": [{"index": index, "function": {"arguments": text[half:]}}]}]


def calls(*each: list[dict[str, Any]]) -> Told:
    return Told([delta for call in each for delta in call], "tool_calls")


@contextmanager
def serving() -> Iterator[FakeOpenAi]:
    """The server, until the block ends. The last reply is given again when the script is used up."""
    fake = FakeOpenAi("")

    def answer(_: str, headers: Message, body: dict[str, Any]) -> Written:
        fake.requests.append(body)
        fake.keys.append(headers.get("Authorization", ""))
        told = fake.replies[min(len(fake.requests), len(fake.replies)) - 1]
        if told.status != 200:
            data = {"error": {"message": told.message, "type": "error", "code": told.status}}
            return Written(json.dumps(data).encode(), "application/json", told.status, told.headers)
        return Written(b"".join(_lines(told)), headers=told.headers, cut=told.cut)

    with listening(answer) as address:
        fake.url = f"{address}/v1"
        yield fake


def _lines(told: Told) -> Iterator[bytes]:
    def line(choices: list[dict[str, Any]], **more: Any) -> bytes:
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "fake", "choices": choices}
        return f"data: {json.dumps(chunk | more)}\n\n".encode()

    for delta in told.deltas:
        yield line([{"index": 0, "delta": delta, "finish_reason": None}])
    if told.message:
        error = {"message": told.message, "type": "server_error", "code": 500}
        yield f"data: {json.dumps({'error': error})}\n\n".encode()
    if told.message or told.cut:
        return
    yield line([{"index": 0, "delta": {}, "finish_reason": told.finish}])
    if told.usage:
        yield line([], usage=told.usage | {"total_tokens": sum(told.usage.values())})
    yield b"data: [DONE]\n\n"
