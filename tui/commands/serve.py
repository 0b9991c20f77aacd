"""`shardwise serve`: the tools over HTTP."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from estimator.errors import PlanError
from knowledge.own.files import read_text
from server.http.guard import guard_for, is_loopback
from server.http.server import serve
from tui.root_folder import root_folder

_SHORTEST_TOKEN = 16


def run(arguments: argparse.Namespace) -> int:
    token = _token(arguments.token_file)
    if token is None and not is_loopback(arguments.host):
        problem = f"{arguments.host} can be reached from elsewhere, so a bearer token is required"
        raise PlanError("--host", problem, ["--token-file FILE", "SHARDWISE_TOKEN=…", "--host 127.0.0.1"])
    if not 0 <= arguments.port <= 65535:
        raise PlanError("--port", f"{arguments.port} is no port", ["0 to 65535"])
    guard = guard_for(arguments.host, token, frozenset(arguments.allow_host), frozenset(arguments.allow_origin))

    def ready(port: int) -> None:
        shown = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        print(f"shardwise: serving http://{shown}:{port} (MCP at /mcp, docs at /docs)", file=sys.stderr, flush=True)

    serve(root_folder(arguments.root), arguments.host, arguments.port, guard, not arguments.no_log, ready)
    return 0


def _token(path: str | None) -> str | None:
    """The token from a file or the environment; never from the command line, which other users can see."""
    if path is None:
        name, token = "SHARDWISE_TOKEN", os.environ.get("SHARDWISE_TOKEN", "").strip()
        if not token:
            return None
    else:
        name, token = "--token-file", read_text(Path(path).expanduser(), "--token-file").strip()
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise PlanError(name, f"must be at least {_SHORTEST_TOKEN} printable ASCII characters without spaces")
    return token
