"""Calls over MCP's era without sessions whose answers are kept, as the protocol's library answered them before.

For each request the library validates, serializes and starts tasks, which takes ten times what a kept answer does. So
what it wrote stays with the answer, and a request that differs in its id alone gets the same bytes with its own id. The
call itself is made as ever: who may, what is noted, whether the answer still holds. All else goes through the library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from server.calls import ANSWERED, MESSAGE
from server.http.guard import App, Receive, Scope, Send
from server.http.sessions import SESSION
from server.service import Service
from server.work import CallAnswer
from tools.registry import Tool

# What a response may depend on beside the message: these headers, and those of the protocol.
_TOLD_BY = (b"accept", b"content-type")
_OF_PROTOCOL = b"mcp-"
# Clients of one kind send the same; so many kinds are told apart.
_MOST_KINDS = 4


@dataclass(frozen=True)
class _Asked:
    """A call that reads; `kind` is all of the request but its id and the tool's arguments."""

    id: bytes
    tool: Tool
    arguments: Mapping[str, Any]
    kind: tuple[object, ...]


@dataclass(frozen=True)
class _Written:
    """A response: its headers but for the length, and its body before and after the id."""

    headers: tuple[tuple[bytes, bytes], ...]
    head: bytes
    tail: bytes


class Again:
    """An application, before which stands what it answered to the same calls."""

    def __init__(self, app: App, service: Service) -> None:
        self.app = app
        self.service = service

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = self._asked(scope)
        if asked is None:
            await self.app(scope, receive, send)
        elif (written := await self._written(asked)) is not None:
            body = written.head + asked.id + written.tail
            length = (b"content-length", str(len(body)).encode())
            await send({"type": "http.response.start", "status": 200, "headers": [length, *written.headers]})
            await send({"type": "http.response.body", "body": body})
        else:
            await self._serve_and_keep(asked, scope, receive, send)

    def _asked(self, scope: Scope) -> _Asked | None:
        message = scope.get(MESSAGE)
        if message is None or message.get("method") != "tools/call" or "id" not in message:
            return None
        rest = {**(message.get("params") or {})}
        arguments, name = rest.pop("arguments", {}), rest.get("name")
        tool = self.service.tools.get(name) if isinstance(name, str) else None
        if tool is None or not tool.read_only or not isinstance(arguments, dict):
            return None
        headers = scope["headers"]
        if any(key == SESSION for key, _ in headers):
            return None
        told = [pair for pair in headers if pair[0] in _TOLD_BY or pair[0].startswith(_OF_PROTOCOL)]
        return _Asked(json.dumps(message["id"]).encode(), tool, arguments, (*told, json.dumps(rest, sort_keys=True)))

    async def _written(self, asked: _Asked) -> _Written | None:
        """What was written for the answer, which is called for as by the library."""
        kept = self.service.calls.kept(asked.tool, asked.arguments)
        if kept is None or asked.kind not in kept.written:
            return None
        answer = await self.service.call(asked.tool, asked.arguments)
        if answer.brief is not None and answer.brief[1] is not answer.text:
            # The resource that the answer names lasts from the last time that it was named.
            self.service.results.keep(answer.text)
        return answer.written.get(asked.kind)

    async def _serve_and_keep(self, asked: _Asked, scope: Scope, receive: Receive, send: Send) -> None:
        answers: list[CallAnswer] = []
        sent: list[MutableMapping[str, Any]] = []

        async def noted(message: MutableMapping[str, Any]) -> None:
            # Before it is sent: whoever has read it may ask again.
            sent.append(message)
            if len(answers) == 1 and (written := _of(asked.id, sent)) is not None:
                kinds = answers[0].written
                while len(kinds) >= _MOST_KINDS:
                    kinds.pop(next(iter(kinds)))
                kinds[asked.kind] = written
            await send(message)

        await self.app({**scope, ANSWERED: answers}, receive, noted)


def _of(id: bytes, sent: list[MutableMapping[str, Any]]) -> _Written | None:
    """A response that is one message, taken apart at its id; None until it is whole."""
    if len(sent) != 2 or sent[0]["status"] != 200 or sent[1].get("more_body"):
        return None
    begin = b'{"jsonrpc":"2.0","id":'
    head, mark, tail = sent[1].get("body", b"").partition(begin + id + b",")
    if not mark or head:
        return None
    headers = tuple((name, value) for name, value in sent[0]["headers"] if name.lower() != b"content-length")
    return _Written(headers, begin, b"," + tail)
