"""Who may speak to the HTTP server: the Host and Origin of a request, its bearer token, and how much it may send.

It stands before the whole application, and keeps the access log of all that comes.

A browser sends a page's requests to any address that the page names. Host stops a foreign name that was pointed at this
machine (DNS rebinding), Origin a foreign page; neither replaces the token, without which nothing is answered.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from estimator.errors import PlanError
from knowledge.own import database
from server.calls import CALLED_BY, CLIENT, FACE, GONE, MESSAGE, TRACE
from server.http.token import Guesses, is_same
from server.team.identity import CALLER, Caller, Callers
from server.work import dumps

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
LARGEST_BODY_BYTES = 1 * 2**20
# A body that is too large is still read up to here, since a client that is cut off while it sends reads no answer.
_DRAINED_BYTES = 32 * 2**20
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_BODY_S = 30.0
_ONCE = frozenset({"host", "authorization", "content-length", "origin"})
_log = logging.getLogger("shardwise")
# What a cluster's probes and clients without a token ask a team's server for.
OPEN = ("/healthz", "/readyz", "/.well-known/")
_ANY = frozenset({"0.0.0.0", "::", ""})


@dataclass(frozen=True)
class Guard:
    """`hosts` are the names this server goes by; `any_address` also lets IP addresses through, which nobody can rebind.
    `origins` are other sites whose pages may call it. `callers` are those who may, where there is more than one token.
    Paths that begin with one of `opened` need none. `metadata` is where such a client reads which provider gives
    tokens."""

    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = frozenset()
    token: str | None = None
    any_address: bool = False
    guesses: Guesses = field(default_factory=Guesses, compare=False)
    callers: Callers | None = field(default=None, compare=False)
    metadata: Callable[[str], str] | None = field(default=None, compare=False)
    opened: tuple[str, ...] = ()


@dataclass(frozen=True)
class HttpRefusal(Exception):
    """A request that is answered by its status and one sentence."""

    status: int
    problem: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    code: int | None = None
    is_guess: bool = False


def guard_for(
    host: str, token: str | None, hosts: frozenset[str] = frozenset(), origins: frozenset[str] = frozenset()
) -> Guard:
    """The guard of a server bound to `host`."""
    names = {name.casefold() for name in hosts} | LOOPBACK | ({host.casefold()} - _ANY)
    return Guard(frozenset(names), frozenset(origin.casefold() for origin in origins), token, host in _ANY)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() in LOOPBACK


def check(guard: Guard, headers: Mapping[str, str], asked: str | None = None) -> None:
    """Raises HttpRefusal: 421 for another server's name, 403 for a foreign page, 401 without the token. `asked` is the
    token in the address of a page."""
    name = _host_name(headers.get("host", ""))
    if not _is_ours(guard, name):
        raise HttpRefusal(421, "the Host header does not name this server; --allow-host adds a name")
    origin = headers.get("origin")
    if origin is not None and not _may_call(guard, origin):
        raise HttpRefusal(403, "pages of this Origin may not call this server; --allow-origin adds one")
    if guard.token is None:
        return
    shown = _shown(headers, asked)
    if not shown or not is_same(guard.token, shown):
        raise _unknown(shown)


def _shown(headers: Mapping[str, str], asked: str | None) -> str | None:
    """The token that a request shows."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.casefold() == "bearer" else asked


def _unknown(shown: str | None, metadata: str = "") -> HttpRefusal:
    problem = "the token is wrong" if shown else "a bearer token is required: Authorization: Bearer TOKEN"
    challenge = b'Bearer realm="shardwise"' + (b', error="invalid_token"' if shown else b"")
    if metadata:
        challenge += f', resource_metadata="{metadata}"'.encode("latin-1")
    return HttpRefusal(401, problem, ((b"www-authenticate", challenge),), is_guess=bool(shown))


async def _caller(guard: Guard, headers: Mapping[str, str], asked: str | None) -> Caller:
    """Whoever makes a request. Raises HttpRefusal."""
    assert guard.callers is not None
    shown = _shown(headers, asked)
    caller = await guard.callers.caller(shown) if shown else None
    if caller is None:
        raise _unknown(shown, guard.metadata(headers.get("host", "")) if guard.metadata else "")
    return caller


@dataclass
class _Seen:
    """One request as the guard sees it."""

    scope: Scope
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    message: Any = None
    status: int = 0
    bytes_out: int = 0
    begun: float = field(default_factory=time.perf_counter)
    caller: Caller | None = None


def guarded(app: App, guard: Guard, log: Callable[[str], None] | None = None) -> App:
    """The application behind its guard. `log` takes one line of JSON a request; None keeps none."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        seen = _Seen(scope)

        async def counted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                there = {name.lower() for name, _ in message["headers"]}
                added = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in there)]
            else:
                seen.bytes_out += len(message.get("body", b""))
            await send(message)

        try:
            await _admit(seen, guard, receive)
            client = scope.get("client")
            name = seen.caller.name if seen.caller else seen.headers.get("mcp-session-id")
            CLIENT.set(name or (client[0] if client else ""))
            TRACE.set(seen.headers.get("traceparent", ""))
            FACE.set("mcp" if scope["path"] == "/mcp" else "rest")
            gone = scope[GONE] = asyncio.Event()
            watching = asyncio.create_task(_watch(receive, gone))
            try:
                await app(scope, _replayed(seen.body, gone), counted)
            finally:
                watching.cancel()
        except HttpRefusal as refusal:
            await _answer(counted, refusal.status, error_text(refusal.problem, refusal.code), refusal.headers)
        except ConnectionError:
            pass
        except Exception:
            _log.exception("%s failed", scope["method"])
            if not seen.status:
                await _answer(counted, 500, error_text("an error inside Shardwise"))
        finally:
            if log is not None:
                log(_line(seen))

    return serve


def error_text(error: PlanError | str, code: int | None = None) -> str:
    """The one form of an error as JSON: the sentence that every face shows, and its parts. `code` is JSON-RPC's."""
    body: dict[str, Any] = {"message": str(error)}
    if code is not None:
        return dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, **body}})
    if isinstance(error, PlanError):
        body |= {"field": error.field, "problem": error.problem, "valid": error.valid}
    return dumps({"error": body})


async def _admit(seen: _Seen, guard: Guard, receive: Receive) -> None:
    """Reads the body of a request that may speak. Raises HttpRefusal, ConnectionError."""
    raw = tuple(seen.scope["headers"])
    asked = _token_of_page(seen.scope)
    client = seen.scope.get("client")
    is_open = seen.scope["path"].startswith(guard.opened)
    seen.headers, refusal = _verdict(replace(guard, token=None) if is_open else guard, raw, asked)
    if refusal is None and guard.callers is not None and not is_open:
        try:
            seen.caller = seen.scope[CALLED_BY] = await _caller(guard, seen.headers, asked)
            CALLER.set(seen.caller)
            database.USER.set(seen.caller.name)
        except HttpRefusal as unknown:
            refusal = unknown
    # What is refused is read as well, so that the client reads the answer.
    with suppress(*([HttpRefusal, ConnectionError] if refusal else [])):
        try:
            async with asyncio.timeout(_BODY_S):
                seen.body = await read_body(seen.headers, receive)
        except TimeoutError:
            raise HttpRefusal(408, "the body did not arrive in time", ((b"connection", b"close"),)) from None
    if refusal and refusal.is_guess and not await guard.guesses.wrong(client[0] if client else ""):
        raise HttpRefusal(429, "too many wrong tokens", ((b"retry-after", b"2"), (b"connection", b"close")))
    if refusal:
        raise refusal
    if seen.scope["path"] == "/mcp" and seen.scope["method"] != "DELETE":
        if seen.scope["method"] != "POST":
            # No stream that the server opens by itself: it has nothing to announce, and its end would wait for them.
            raise HttpRefusal(405, "this address takes POST, DELETE", ((b"allow", b"POST, DELETE"),))
        if not _accepts(seen.headers.get("accept", "")):
            raise HttpRefusal(406, "a client must accept both application/json and text/event-stream", code=-32600)
        seen.message = seen.scope[MESSAGE] = _message(seen.body)


def _token_of_page(scope: Scope) -> str | None:
    """The token in the query of a page that is opened by a link, which is taken out of it."""
    if scope["method"] not in ("GET", "HEAD") or b"token=" not in scope["query_string"]:
        return None
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    scope["query_string"] = urlencode([pair for pair in pairs if pair[0] != "token"]).encode()
    return next((value for name, value in pairs if name == "token"), None)


def _verdict(
    guard: Guard, raw: tuple[tuple[bytes, bytes], ...], asked: str | None
) -> tuple[Mapping[str, str], HttpRefusal | None]:
    """A request's headers by name, and why it is refused for them, if it is."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name = raw_name.decode("latin-1")
        if name in headers and name in _ONCE:
            return headers, HttpRefusal(400, "a header that says who calls whom is there twice")
        headers[name] = raw_value.decode("latin-1")
    try:
        check(guard, headers, asked)
    except HttpRefusal as refusal:
        return headers, refusal
    return headers, None


def _message(body: bytes) -> dict[str, Any]:
    """The one JSON-RPC message in a body; what comes after this can count on its form. Raises HttpRefusal."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise HttpRefusal(400, "the body is not valid JSON", code=-32700) from None
    if isinstance(message, list):
        raise HttpRefusal(400, "send one message at a time, not a batch", code=-32600)
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise HttpRefusal(400, 'a message must be an object with "jsonrpc": "2.0"', code=-32600)
    id, method = message.get("id"), message.get("method")
    if "id" in message and (isinstance(id, bool) or not isinstance(id, str | int)):
        raise HttpRefusal(400, "id must be text or a whole number", code=-32600)
    answers = "id" in message and (isinstance(message.get("result"), dict) or isinstance(message.get("error"), dict))
    if not isinstance(method, str) and not (method is None and answers):
        raise HttpRefusal(400, "a message needs a method, or an id with a result or an error", code=-32600)
    if not isinstance(message.get("params"), dict | None):
        raise HttpRefusal(400, "params must be an object", code=-32600)
    return message


def _accepts(accept: str) -> bool:
    """Whether an answer over MCP may be one message or a stream of them, as the protocol has it."""
    kinds = {kind.partition(";")[0].strip().lower() for kind in accept.split(",")}
    return "*/*" in kinds or (
        not kinds.isdisjoint({"application/json", "application/*"})
        and not kinds.isdisjoint({"text/event-stream", "text/*"})
    )


async def read_body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """The body of a request. Raises HttpRefusal(413) when too large, ConnectionError when the client goes away."""
    too_large = HttpRefusal(413, f"the body is larger than {LARGEST_BODY_BYTES:,} bytes", ((b"connection", b"close"),))
    announced = headers.get("content-length", "0")
    if len(announced) > 12 or not announced.isdigit() or int(announced) > _DRAINED_BYTES:
        raise too_large
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size <= LARGEST_BODY_BYTES:
            parts.append(part)
        elif size > _DRAINED_BYTES:
            break
        else:
            parts.clear()
    if size > LARGEST_BODY_BYTES:
        raise too_large
    return b"".join(parts)


async def _watch(receive: Receive, gone: asyncio.Event) -> None:
    """Sees whoever asked go away while the answer is made."""
    with suppress(Exception):
        while (await receive())["type"] != "http.disconnect":
            await asyncio.sleep(0.05)
        gone.set()


def _replayed(body: bytes, gone: asyncio.Event) -> Receive:
    is_replayed = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal is_replayed
        if is_replayed:
            await gone.wait()
            return {"type": "http.disconnect"}
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _answer(send: Send, status: int, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    body = text.encode("ascii")
    described = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": described})
    await send({"type": "http.response.body", "body": body})


def _line(seen: _Seen) -> str:
    """One request as a line of JSON: never its token, its query or its body but for what it calls."""
    scope, client = seen.scope, seen.scope.get("client")
    message = seen.message or {}
    params = message.get("params") or {}
    called = (("rpc", message.get("method")), ("name", params.get("name")))
    noted = {key: value[:60] for key, value in called if isinstance(value, str)}
    if seen.caller is not None:
        noted["user"] = seen.caller.name
    return dumps(
        {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "client": client[0] if client else None,
            "method": scope["method"][:20], "path": scope["path"][:200], **noted, "status": seen.status,
            "bytes_in": len(seen.body), "bytes_out": seen.bytes_out,
            "ms": round((time.perf_counter() - seen.begun) * 1e3, 2),
        }
    )  # fmt: skip


@lru_cache(maxsize=256)
def _host_name(host: str) -> str:
    """A Host header without its port, in lower case; empty when it is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return ""
    if parts.path or parts.query or parts.fragment or "@" in host:
        return ""
    return (parts.hostname or "").rstrip(".")


def _is_ours(guard: Guard, name: str) -> bool:
    if name in guard.hosts:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return guard.any_address


def _may_call(guard: Guard, origin: str) -> bool:
    folded = origin.casefold()
    if folded in guard.origins:
        return True
    scheme, _, rest = folded.partition("://")
    return scheme in ("http", "https") and _is_ours(guard, _host_name(rest))
