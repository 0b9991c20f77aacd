"""`shardwise web`: the same app in a browser, each tab with an app of its own.

Whoever opens the app acts as the person who started it: sessions, scenarios and files are theirs. So it opens by a
link that holds a token, which the page keeps where pages of other ports do not come to, as they do to cookies; it is
served to this machine alone unless that is asked for, and only pages of its own may speak to it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from aiohttp import web
from textual_serve.server import Server

from estimator.errors import PlanError
from server.http.guard import LOOPBACK, is_loopback
from server.http.token import Guesses, is_same, token

# The page that holds the app: ours, as the one of textual-serve loads a font from a third party.
PAGE = Path(__file__).parents[1] / "web_page"
SOCKET = "/ws"
_EVERYWHERE = ("0.0.0.0", "::")
# In a frame of another page the clicks would be the person's.
_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    if not is_loopback(arguments.host) and not arguments.anyone:
        problem = f"{arguments.host} can be reached from elsewhere, and whoever opens the page acts as you, unasked"
        raise PlanError("--host", problem, ["--host 127.0.0.1", "--anyone, behind a gate of your own"])
    if not 1 <= arguments.port <= 65535:
        raise PlanError("--port", f"{arguments.port} is no port", ["1 to 65535"])
    if arguments.host in _EVERYWHERE and not arguments.allow_host:
        raise PlanError(
            "--allow-host", "is needed: the name that is typed into the browser", ["--allow-host my-machine"]
        )
    name = (arguments.allow_host or [arguments.host])[0]
    shown = f"http://[{name}]:{arguments.port}" if ":" in name else f"http://{name}:{arguments.port}"
    names = {name.casefold() for name in (*arguments.allow_host, arguments.host)} | LOOPBACK
    secret, _ = token(arguments.token_file)
    if not 1 <= arguments.tabs <= 1000:
        raise PlanError("--tabs", f"{arguments.tabs} is no number of tabs", ["1 to 1000"])
    _serve(arguments.host, arguments.port, _command(arguments), shown, Gate(names, secret, arguments.tabs))
    return 0


def _command(arguments: argparse.Namespace) -> str:
    """What each tab starts: this program's chat."""
    words = [sys.executable, "-m", "tui.cli", "chat", "--model", arguments.model]
    words += ["--output", os.path.abspath(arguments.output)] if arguments.output else []
    return shlex.join(words)


@dataclass
class Gate:
    """Who gets in: by the names that the server goes by, with the token, and while there is room for another tab."""

    names: set[str]
    secret: str
    most_tabs: int
    open_tabs: int = 0
    guesses: Guesses = field(default_factory=Guesses)

    async def pass_on(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """The page itself holds nothing of anybody's, and a file to download has an address that nobody guesses; the
        app needs the token."""
        if not may_speak(request.host, request.headers.get("Origin"), self.names):
            raise web.HTTPForbidden(text="This page may not speak to Shardwise.")
        if not request.path.startswith(SOCKET):
            return await handler(request)
        shown = request.match_info.get("token")
        if not shown or not is_same(self.secret, shown):
            if shown and not await self.guesses.wrong(request.remote or ""):
                raise web.HTTPTooManyRequests(text="Too many wrong tokens.", headers={"Retry-After": "2"})
            raise web.HTTPForbidden(text="Open the link that 'shardwise web' printed: it holds the token.")
        if self.open_tabs >= self.most_tabs:
            raise web.HTTPServiceUnavailable(text=f"{self.most_tabs} tabs are open; close one, or start with --tabs.")
        if not web.WebSocketResponse().can_prepare(request):
            raise web.HTTPBadRequest(text="This address takes a WebSocket, which the page opens.")
        self.open_tabs += 1
        try:
            return await handler(request)
        finally:
            self.open_tabs -= 1


def _serve(host: str, port: int, command: str, shown: str, gate: Gate) -> None:
    try:
        # The server's own words of a port in use are a traceback.
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            pass
    except OSError as error:
        problem = f"{port} at {host} cannot be listened on: {error.strerror}"
        raise PlanError("--port", problem, ["another one"]) from None

    @web.middleware
    async def ours(request: web.Request, handler: Any) -> web.StreamResponse:
        return await gate.pass_on(request, handler)

    class Ours(Server):
        async def _make_app(self) -> web.Application:
            app = await super()._make_app()
            app.add_routes([
                web.get(f"{SOCKET}/{{token}}", self.handle_websocket), web.get("/favicon.ico", _nothing),
            ])  # fmt: skip
            app.middlewares.append(ours)
            app.on_response_prepare.append(_dress)
            return app

        def initialize_logging(self) -> None:
            """Its log would hold what is typed."""

        async def on_startup(self, app: web.Application) -> None:
            # Behind '#' it is sent to nobody, and the page takes it out of the address.
            link = f"{shown}/#{quote(gate.secret, safe='')}"
            print(f"shardwise: the app is at {link} (Ctrl+C ends it)", file=sys.stderr, flush=True)

    asyncio.set_event_loop(asyncio.new_event_loop())
    Ours(command, host, port, title="Shardwise", public_url=shown, templates_path=PAGE).serve()


async def _nothing(_: web.Request) -> web.Response:
    """The page names its icon itself, which some browsers do not wait for."""
    return web.Response(status=204)


async def _dress(_: web.Request, answer: web.StreamResponse) -> None:
    answer.headers.update(_HEADERS)


def may_speak(host: str, origin: str | None, names: set[str]) -> bool:
    """Whether a request is for this server by a known name, and no other page's: a name server may point any name
    here, and sockets are open to every page of a browser."""
    asked = _parted(host)
    if asked is None or asked[0] not in names:
        return False
    if origin is None:
        return True
    page = urlsplit(origin)
    parted = _parted(page.netloc)
    return page.scheme in ("http", "https") and parted is not None and parted[0] in names and parted[1] == asked[1]


def _parted(netloc: str) -> tuple[str, int | None] | None:
    try:
        parts = urlsplit(f"//{netloc}")
        return (parts.hostname or "", parts.port)
    except ValueError:
        return None
