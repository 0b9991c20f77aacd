"""A server on this machine that speaks Gemini's streaming wire format and answers from a script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from typing import Any

from scripted_server import Written, listening

from agent.gemini.model import Gemini
from agent.models import Thought, Turn
from agent.wire import said
from tools.registry import registry

Chunk = dict[str, Any] | str
# Of a key's form.
KEY = "AIzaSyNotARealKey-0123456789_abcdefghij"


@dataclass
class Reply:
    """One response: an HTTP error with a body, or chunks of a stream (a str goes out as it is). `cut` breaks it off;
    `held` keeps the end of the stream back until it is set."""

    chunks: list[Chunk] = field(default_factory=list)
    status: int = 200
    body: dict[str, Any] | str | None = None
    cut: bool = False
    held: threading.Event | None = None


@dataclass
class FakeGemini:
    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    """What each request took on the wire."""
    replies: list[Reply] = field(default_factory=list)


def chunk(*parts: dict[str, Any], finish: str | None = None) -> Chunk:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": {"totalTokenCount": 3}, "modelVersion": "fake"}


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def call(name: str, arguments: dict[str, Any], id: str | None = None, signature: str | None = None) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name, "args": arguments} | ({"id": id} if id else {})
    return {"functionCall": function} | ({"thoughtSignature": signature} if signature else {})


def says(words: str) -> Reply:
    return Reply([chunk(text(words), finish="STOP")])


def error(status: int, message: str = "no", details: list[Any] | None = None, name: str = "ERROR") -> Reply:
    return Reply(
        status=status, body={"error": {"code": status, "message": message, "status": name, "details": details or []}}
    )


def think(fake: FakeGemini, *replies: Reply) -> tuple[list[str], Thought]:
    """One step of the model: the texts that it yields, and its thought."""
    fake.replies = list(replies)
    turn = Turn([said("hello")], {}, {}, registry(), datetime(2026, 11, 18, 12, 0, tzinfo=UTC))

    async def run() -> list[Any]:
        return [piece async for piece in Gemini(fake.url, first_delay_s=0.01).think(turn)]

    *pieces, final = asyncio.run(run())
    assert isinstance(final, Thought)
    return [piece for piece in pieces if isinstance(piece, str)], final


@contextmanager
def serving() -> Iterator[FakeGemini]:
    """The server, until the block ends. The last reply is given again when the script is used up."""
    fake = FakeGemini("")

    def answer(path: str, headers: Message, body: dict[str, Any]) -> Written:
        fake.requests.append(body)
        fake.paths.append(path)
        fake.bytes.append(int(headers["Content-Length"]))
        reply = fake.replies[min(len(fake.requests), len(fake.replies)) - 1]
        if reply.body is not None:
            return Written(json.dumps(reply.body).encode(), "application/json", reply.status)
        data = b"".join(_line(item) for item in reply.chunks)
        return Written(data, status=reply.status, cut=reply.cut, held=reply.held)

    with listening(answer) as fake.url:
        yield fake


def _line(item: Chunk) -> bytes:
    return (item if isinstance(item, str) else f"data: {json.dumps(item)}\r\n\r\n").encode()
