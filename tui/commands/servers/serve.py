"""`shardwise serve`: the tools over HTTP."""

from __future__ import annotations

import argparse
import sys

from estimator.errors import PlanError
from server.http.guard import guard_for
from server.http.server import serve
from server.http.token import token
from server.service import Service
from tui.root_folder import root_folder


def run(arguments: argparse.Namespace) -> int:
    secret, is_new = token(arguments.token_file)
    if not 0 <= arguments.port <= 65535:
        raise PlanError("--port", f"{arguments.port} is no port", ["0 to 65535"])
    guard = guard_for(arguments.host, secret, frozenset(arguments.allow_host), frozenset(arguments.allow_origin))

    def ready(port: int) -> None:
        shown = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        print(f"shardwise: serving http://{shown}:{port} (MCP at /mcp, docs at /docs)", file=sys.stderr, flush=True)
        if is_new:
            # Without one, every user of this machine could act as whoever started it.
            print(f"  page: http://{shown}:{port}/?token={secret}", file=sys.stderr, flush=True)
            print(
                f"  programs: Authorization: Bearer {secret} (SHARDWISE_TOKEN keeps one)", file=sys.stderr, flush=True
            )

    service = Service(root_folder(arguments.root), remote=True, full=arguments.full)
    serve(service, arguments.host, arguments.port, guard, not arguments.no_log, ready)
    return 0
