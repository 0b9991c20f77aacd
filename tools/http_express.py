"""Calls of tools that read, answered without the machinery that others need.

A request that says, to the last header and byte, what one before it said gets the same answer, as long as that answer
stands. A call over MCP in the modern era carries all that it needs, so nothing of a session is made for it; FastMCP
spends 3 ms of processor time on one, which is ten times what an answer from memory takes. Whatever is out of the
ordinary in a request, be it a wrong header, an unknown tool or a wish for progress, goes the long way and is answered
there.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any
from weakref import ref

from tools.http_guard import App, Receive, Scope, Send
from tools.mcp_calls import TOO_MANY, Answer, Busy
from tools.mcp_imports import quick_start
from tools.mcp_service import Service
from tools.registry import Tool

with quick_start():
    from mcp.shared.inbound import InboundModernRoute, classify_inbound_request, find_duplicated_routing_header

_PREFIX = "io.modelcontextprotocol/"
_META = frozenset(f"{_PREFIX}{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities"))
_MESSAGE, _PARAMS = frozenset({"jsonrpc", "id", "method", "params"}), frozenset({"name", "arguments", "_meta"})
_REST = "/v1/tools/"
# Requests that are longer are not remembered.
_SHORT_BYTES = 8192
_MOST_REMEMBERED = 2048
# It says no more than how long the body is, which over MCP changes with the digits of the message's id.
_LENGTH = b"content-length"


def express(app: App, service: Service, name: str, version: str) -> App:
    """The application with a short way for plain calls. `name` and `version` are the server's own."""
    about = json.dumps({f"{_PREFIX}serverInfo": {"name": name, "version": version}}, separators=(",", ":"))
    # The answers themselves are kept, and let go, by the service.
    known: OrderedDict[Hashable, ref[Answer]] = OrderedDict()

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        asked = _asked(scope)
        answer = known[asked]() if asked in known else None
        if answer is not None and service.calls.stands(answer):
            known.move_to_end(asked)
        else:
            answer = await first(scope, receive, send)
            if answer is not None and answer.kept and answer.failure is None and asked is not None:
                known[asked] = ref(answer)
                if len(known) > _MOST_REMEMBERED:
                    known.popitem(last=False)
            if answer is None or scope["path"] != "/mcp":
                return
        if scope["path"] == "/mcp":
            await _say(send, _reply(scope["shardwise.message"]["id"], answer, about))
        else:
            await _say(send, answer.text.encode("ascii"))

    async def first(scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """The answer to a request that is not known. Over REST, and where there is None, it has been sent."""
        found = _plain(scope, service) if scope["path"] == "/mcp" else None
        if found is None:
            answered: list[Answer] = []
            scope["shardwise.answered"] = answered
            await app(scope, receive, send)
            return answered[0] if answered else None
        tool, message = found
        try:
            return await service.call(tool, message["params"].get("arguments", {}))
        except Busy:
            return Answer(bug=TOO_MANY)

    return serve


def _asked(scope: Scope) -> Hashable | None:
    """All that a request says, but for the id of its message; None where no equal one is to be expected."""
    path, body, message = scope["path"], scope["shardwise.body"], scope["shardwise.message"]
    if len(body) > _SHORT_BYTES or scope["query_string"]:
        return None
    if path == "/mcp":
        if message.get("method") != "tools/call" or "id" not in message:
            return None
        try:
            said: Hashable = repr({**message, "id": None})
        except RecursionError:
            return None
    elif path.startswith(_REST):
        said = body
    else:
        return None
    return path, said, tuple((name, b"" if name == _LENGTH else value) for name, value in scope["headers"])


def _plain(scope: Scope, service: Service) -> tuple[Tool, dict[str, Any]] | None:
    """The tool and the message of a plain call; None for anything else."""
    message: dict[str, Any] = scope["shardwise.message"]
    if message.get("method") != "tools/call" or not message.keys() <= _MESSAGE:
        return None
    params = message.get("params") or {}
    meta, arguments = params.get("_meta"), params.get("arguments", {})
    if "id" not in message or not params.keys() <= _PARAMS or not isinstance(arguments, dict):
        return None
    if not isinstance(meta, dict) or not meta.keys() <= _META or not isinstance(params.get("name"), str):
        return None
    who, abilities = meta.get(f"{_PREFIX}clientInfo"), meta.get(f"{_PREFIX}clientCapabilities")
    if not _is_client(who) or not isinstance(abilities, dict):
        return None
    tool = service.known.get(params["name"])
    if tool is None or not tool.read_only or not _routed(scope, message):
        return None
    return tool, message


def _routed(scope: Scope, message: Mapping[str, Any]) -> bool:
    """Whether the headers say what the message says, by the protocol's own rules."""
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    headers = dict(pairs)
    kinds = [kind.partition(";")[0].strip() for kind in headers.get("accept", "").split(",")]
    if not {"application/json", "text/event-stream"} <= set(kinds) or headers.get("content-type") != "application/json":
        return False
    if find_duplicated_routing_header(pairs) is not None:
        return False
    return isinstance(classify_inbound_request(message, headers=headers), InboundModernRoute)


def _is_client(who: Any) -> bool:
    return isinstance(who, dict) and all(isinstance(who.get(part), str) for part in ("name", "version"))


async def _say(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _reply(id: str | int, answer: Answer, about: str) -> bytes:
    """The message that answers a call. What a tool gives is JSON already and stands in it as it is."""
    result = answer.forms.get("mcp")
    if result is None:
        failed = answer.failure is not None
        content = f'"content":[{{"type":"text","text":{json.dumps(answer.failure if failed else answer.text)}}}]'
        structured = "" if failed else f',"structuredContent":{answer.text}'
        about = f'"_meta":{about},{content}{structured},"isError":{json.dumps(failed)},"resultType":"complete"'
        result = answer.forms["mcp"] = f'"result":{{{about}}}}}'.encode("ascii")
    return b'{"jsonrpc":"2.0","id":%b,%b' % (json.dumps(id).encode(), result)
