"""`shardwise serve --database`: a team's server, of one process or several."""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from knowledge.own.home import expanded
from server.http.guard import OPEN, App, Guard
from server.http.server import Ending, app, listening, print_line, run
from server.service import Service
from server.team import schema, watching
from server.team.identity import Callers, Oidc, Provider, TokenFile, provider_of
from server.team.routes import TeamFace, metadata_of
from server.team.shared import Audit, SharedCodes, SharedResults
from server.team.supervisor import Workers
from tui.commands.servers.talking import Talking

_MOST_WORKERS = 64
# What is on its way when the server is told to end is still taken, for so long; what runs may take that long.
_STILL_S, _FINISH_S = 2.0, 30


@dataclass(frozen=True)
class TeamOptions:
    """What each process of the server needs; it goes to them as it is."""

    guard: Guard
    root: Path | None
    full: bool
    log: bool
    tokens: str | None = None
    provider: Provider | None = None


def serve_team(arguments: argparse.Namespace, guard: Guard, root: Path | None, told: Any) -> int:
    """Serves until it is told to end; returns the exit code. `told` says where. Raises PlanError."""
    if not 1 <= arguments.workers <= _MOST_WORKERS:
        raise PlanError("--workers", f"must be from 1 to {_MOST_WORKERS}")
    # What is wrong is said here, once and before anything is served; processes that start later need no provider.
    if problem := schema.problem():
        raise PlanError("--database", problem)
    issuer, audience = arguments.oidc_issuer, arguments.oidc_audience or ""
    provider = provider_of(issuer, audience) if issuer else None
    options = TeamOptions(guard, root, arguments.full, not arguments.no_log, arguments.tokens, provider)
    _callers(options)
    with listening(arguments.host, arguments.port) as place:
        port = place.getsockname()[1]
        if arguments.workers == 1:
            _serve(options, place, lambda: told(port))
            return 0
        figures = tempfile.mkdtemp(prefix="shardwise-figures-")
        os.environ[watching.FOLDER] = figures
        try:
            place.listen(2048)
            workers = Workers(arguments.workers, _worker, (options, place), _STILL_S + _FINISH_S + 5)
            return workers.run(lambda: told(port), watching.gone)
        finally:
            shutil.rmtree(figures, ignore_errors=True)


def _worker(options: TeamOptions, place: socket.socket, started: Any) -> None:
    place.setblocking(False)
    try:
        _serve(options, place, started.set)
    except PlanError as error:
        print_line(f"shardwise: {error}")
        sys.exit(2)


def _serve(options: TeamOptions, place: socket.socket, ready: Any) -> None:
    served, leave = team_app(options, print_line if options.log else None)
    run(served, place, ready, Ending(leave, _STILL_S, _FINISH_S))


def team_app(options: TeamOptions, log: Callable[[str], None] | None) -> tuple[App, Callable[[], None]]:
    """One process of the server as an ASGI application, and what to call when it is about to end."""
    figures = watching.CallFigures()
    traces = [watching.Traces()] if watching.is_traced() else []
    service = Service(
        options.root, remote=True, full=options.full, codes=SharedCodes(), results=SharedResults(),
        watches=[Audit(), figures, *traces],
    )  # fmt: skip
    service.conversations = Talking(service)
    callers = _callers(options)
    guard = replace(options.guard, callers=callers, opened=OPEN)
    if callers is not None:
        guard = replace(guard, token=None, metadata=metadata_of if callers.oidc else None)
    face = TeamFace(service, figures.text, callers.oidc if callers else None)
    return app(service, guard, log, face.routes(), alone=False), face.leave


def _callers(options: TeamOptions) -> Callers | None:
    """Those who may call; None where one token is everybody's. Raises PlanError."""
    tokens = TokenFile(expanded(options.tokens)) if options.tokens else None
    oidc = Oidc(options.provider) if options.provider else None
    return Callers(tokens, oidc) if tokens or oidc else None
