"""Calls of tools that read, and the lists, answered without the machinery that others need.

A request that says, to the last header and byte, what one before it said gets the same answer, as long as that answer
stands. A call over MCP of a tool that reads needs nothing of its session but that there is one, and in the modern era
not even that. FastMCP spends 3 ms of processor time on one, ten times what an answer from memory takes, and 40 ms on
the list of tools, which every client asks for first and which comes with the package (server.mcp.shipped). Whatever is
out of the ordinary in a request, be it a wrong header, an unknown tool or a wish for progress, goes the long way and is
answered there.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any
from weakref import ref

from server.calls import TOO_MANY, Answer, Busy
from server.http.guard import App, Receive, Scope, Send
from server.http.sessions import SESSION, Sessions, session_of
from server.mcp.quick import quick_start
from server.mcp.shipped import LISTS, key, shipped
from server.service import Service
from tools.registry import Tool

with quick_start():
    from mcp.shared.inbound import InboundModernRoute, classify_inbound_request
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

_PREFIX = "io.modelcontextprotocol/"
_META = frozenset(f"{_PREFIX}{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities"))
_MESSAGE, _PARAMS = frozenset({"jsonrpc", "id", "method", "params"}), frozenset({"name", "arguments", "_meta"})
_LISTS = frozenset({"server/discover", *LISTS})
_REST = "/v1/tools/"
# Requests that are longer are not remembered.
_SHORT_BYTES = 8192
_MOST_REMEMBERED = 4096
# One says how long the body is, which over MCP changes with the digits of the message's id; of the other all that
# counts is whether there is such a session.
_OWN = frozenset({b"content-length", SESSION})


def express(app: App, service: Service, name: str, version: str) -> App:
    """The application with a short way for plain calls. `name` and `version` are the server's own."""
    about = json.dumps({f"{_PREFIX}serverInfo": {"name": name, "version": version}}, separators=(",", ":"))
    # The answers themselves are kept, and let go, by the service.
    known: OrderedDict[Hashable, ref[Answer]] = OrderedDict()
    sessions, prepared = Sessions(app), shipped()
    lists = {asked: json.dumps(result, separators=(",", ":")) for asked, result in prepared.items()}

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if scope["method"] != "POST":
            await sessions.serve(scope, receive, send)
            return
        session = session_of(scope)
        if scope["path"] == "/mcp" and (text := _prepared(scope, lists, sessions)):
            await _say(send, _message(scope, text), session)
            return
        asked = _asked(scope)
        answer = known[asked]() if asked in known and (session is None or sessions.use(session)) else None
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
            await _say(send, _message(scope, _result(answer, about if session is None else "")), session)
        else:
            await _say(send, answer.text.encode("ascii"))

    async def first(scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """The answer to a request that is not known. Over REST, and where there is None, it has been sent."""
        tool = _plain(scope, service, sessions) if scope["path"] == "/mcp" else None
        if tool is None:
            answered: list[Answer] = []
            scope["shardwise.answered"] = answered
            await sessions.serve(scope, receive, send)
            return answered[0] if answered else None
        try:
            return await service.call(tool, scope["shardwise.message"]["params"].get("arguments", {}))
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
    return path, said, tuple((name, b"" if name in _OWN else value) for name, value in scope["headers"])


def _plain(scope: Scope, service: Service, sessions: Sessions) -> Tool | None:
    """The tool that a plain call asks for; None for anything else."""
    message: dict[str, Any] = scope["shardwise.message"]
    params = message.get("params") or {}
    name, arguments = params.get("name"), params.get("arguments", {})
    if message.get("method") != "tools/call" or not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    tool = service.known.get(name)
    return tool if tool and tool.read_only and params.keys() <= _PARAMS and _version(scope, sessions) else None


def _prepared(scope: Scope, lists: Mapping[str, str], sessions: Sessions) -> str | None:
    """The result of a request whose answer is always the same; None for anything else."""
    message: dict[str, Any] = scope["shardwise.message"]
    if message.get("method") not in _LISTS or (message.get("params") or {}).keys() - {"_meta"}:
        return None
    version = _version(scope, sessions)
    return lists.get(key(message["method"], *version)) if version else None


def _version(scope: Scope, sessions: Sessions) -> tuple[str, bool] | None:
    """The version that a request with nothing extraordinary about it speaks, and whether by itself or in a session."""
    message: dict[str, Any] = scope["shardwise.message"]
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    headers, meta = dict(pairs), (message.get("params") or {}).get("_meta", {})
    if "id" not in message or not message.keys() <= _MESSAGE or not isinstance(meta, dict) or len(headers) < len(pairs):
        return None
    if headers.get("content-type") != "application/json":
        return None
    session = session_of(scope)
    if session is None:
        plain = _is_modern(meta) and isinstance(classify_inbound_request(message, headers=headers), InboundModernRoute)
        return (meta[f"{_PREFIX}protocolVersion"], True) if plain else None
    version = headers.get("mcp-protocol-version", LATEST_HANDSHAKE_VERSION)
    return (version, False) if not meta and version in HANDSHAKE_PROTOCOL_VERSIONS and sessions.use(session) else None


def _is_modern(meta: Mapping[str, Any]) -> bool:
    """Whether a call says all that the modern era wants to know of a client, and no more."""
    who, abilities = meta.get(f"{_PREFIX}clientInfo"), meta.get(f"{_PREFIX}clientCapabilities")
    return meta.keys() <= _META and _is_client(who) and isinstance(abilities, dict)


def _is_client(who: Any) -> bool:
    return isinstance(who, dict) and all(isinstance(who.get(part), str) for part in ("name", "version"))


async def _say(send: Send, body: bytes, session: bytes | None = None) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if session is not None:
        headers.append((SESSION, session))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _message(scope: Scope, result: str) -> bytes:
    id = json.dumps(scope["shardwise.message"]["id"])
    return f'{{"jsonrpc":"2.0","id":{id},"result":{result}}}'.encode("ascii")


def _result(answer: Answer, about: str) -> str:
    """What a call came to, as MCP says it. What a tool gives is JSON already and stands in it as it is.

    `about` is the server, which the modern era has in each answer; empty in a session.
    """
    failed = answer.failure is not None
    text = json.dumps(answer.failure) if failed else answer.quoted
    structured = "" if failed else f',"structuredContent":{answer.text}'
    result = f'"content":[{{"type":"text","text":{text}}}]{structured},"isError":{json.dumps(failed)}'
    return f'{{"_meta":{about},{result},"resultType":"complete"}}' if about else f"{{{result}}}"
