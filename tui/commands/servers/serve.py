"""`shardwise serve`: the tools over HTTP."""

from __future__ import annotations

import argparse
import os
import sys

from estimator.errors import PlanError
from knowledge.own import database
from server import forking
from server.http.guard import guard_for
from server.http.server import serve
from server.http.token import token
from server.service import Service
from tui.root_folder import root_folder


def run(arguments: argparse.Namespace) -> int:
    has_callers = bool(arguments.tokens or arguments.oidc_issuer)
    secret, is_new = (None, False) if has_callers else token(arguments.token_file)
    if not 0 <= arguments.port <= 65535:
        raise PlanError("--port", f"{arguments.port} is no port", ["0 to 65535"])
    if has_callers and arguments.token_file:
        raise PlanError("--token-file", "is everybody's one token; --tokens and --oidc-issuer tell callers apart")
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

    root = root_folder(arguments.root)
    if arguments.database:
        os.environ[database.ADDRESS] = arguments.database
    if database.address():
        # Said at once, and not after seconds of loading what serves.
        if problem := database.schema_problem():
            raise PlanError("--database", problem)
        if arguments.workers > 1:
            forking.loading("tui.commands.servers.team")
        from tui.commands.servers.team import serve_team  # the libraries of a database, which others do not need

        return serve_team(arguments, guard, root, ready)
    if has_callers or arguments.workers != 1:
        flag = "--workers" if arguments.workers != 1 else "--tokens" if arguments.tokens else "--oidc-issuer"
        raise PlanError(flag, "is for a team's server, which needs --database", ["postgresql://user@host/name"])
    service = Service(root, remote=True, full=arguments.full)
    serve(service, arguments.host, arguments.port, guard, not arguments.no_log, ready)
    return 0
