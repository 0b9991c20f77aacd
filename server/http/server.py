"""The HTTP server: FastMCP's application with the REST face beside it, behind the guard, and an end in good order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.exceptions import HTTPException

from estimator.errors import PlanError
from server import workers
from server.calls import Busy
from server.http import rest as http_rest
from server.http.again import Again
from server.http.guard import App, Guard, guarded
from server.http.limits import BoundedHttp
from server.http.sessions import Sessions
from server.mcp.server import hush, server
from server.service import Service

_FINISH_S = 10
# Sessions end when there are too many (server.http.sessions), whatever their age.
_IDLE_S = 30 * 86400.0
_MOST_AT_ONCE = 1000


def app(
    service: Service,
    guard: Guard,
    log: Callable[[str], None] | None = None,
    more: Iterable[tuple[str, list[str], http_rest.Route]] = (),
    alone: bool = True,
) -> App:
    """The server as an ASGI application. `log` takes one line of JSON a request; None keeps none. `more` are other
    paths. Where it is not `alone` others serve as one with it, and it keeps nothing from one request to the next."""
    served = server(service)
    secured = guard.token is not None or guard.callers is not None
    for path, methods, route in (*http_rest.routes(service, secured), *more):
        served.custom_route(path, methods)(route)
    built = served.http_app(
        path="/mcp", host_origin_protection=False, stateless_http=not alone,
        session_idle_timeout=_IDLE_S if alone else None,
    )  # fmt: skip
    for error in (PlanError, Busy, HTTPException):
        built.add_exception_handler(error, http_rest.refused)
    inner = Sessions(built).serve
    return guarded(Again(inner, service).serve if alone else inner, guard, log)


def serve(service: Service, host: str, port: int, guard: Guard, log: bool, ready: Callable[[int], None]) -> None:
    """Serves until SIGINT or SIGTERM; running requests get a few seconds to finish. `ready` is told the port.

    Raises PlanError when the address cannot be used.
    """
    with listening(host, port) as place:
        bound = place.getsockname()[1]
        run(app(service, guard, print_line if log else None), place, lambda: ready(bound))


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def listening(host: str, port: int) -> Generator[socket.socket, None, None]:
    """A socket that is bound to an address. Raises PlanError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise PlanError("--port", f"cannot listen on {host} port {port}: {reason}") from None
        place.setblocking(False)
        yield place


@dataclass(frozen=True)
class Ending:
    """How a server ends: for how long it still takes requests once it is told to, after `leaving` was called, and how
    long those that run may take to finish."""

    leaving: Callable[[], None] = lambda: None
    still_s: float = 0.0
    finish_s: int = _FINISH_S


def run(application: App, place: socket.socket, ready: Callable[[], None], ending: Ending | None = None) -> None:
    """Serves on a bound socket until SIGINT or SIGTERM."""
    ending = ending or Ending()
    hush()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what a client sends is no incident here either
    # Computations in threads must not keep the loop from answering the others.
    sys.setswitchinterval(0.001)
    threading.Thread(target=workers.warm, args=(2,), daemon=True).start()
    config = uvicorn.Config(
        application, log_config=None, access_log=False, server_header=False, lifespan="on", ws="none",
        timeout_graceful_shutdown=ending.finish_s, timeout_keep_alive=30, limit_concurrency=_MOST_AT_ONCE, backlog=2048,
        http=BoundedHttp, proxy_headers=False, interface="asgi3",
    )  # fmt: skip
    running = uvicorn.Server(config)
    running.capture_signals = lambda: _signals(running, ending)  # type: ignore[method-assign]
    # The loop that uvicorn finds best: uvloop where it is installed.
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_run(running, place, ready))


async def _run(running: Any, listening: Any, ready: Callable[[], None]) -> None:
    async def announce() -> None:
        while not running.started and not running.should_exit:
            await asyncio.sleep(0.01)
        if running.started:
            # What is loaded by now stays. To look through it for garbage takes a tenth of a second, in which nobody is
            # answered.
            gc.freeze()
            ready()

    announcing = asyncio.create_task(announce())
    try:
        await running.serve(sockets=[listening])
    finally:
        announcing.cancel()


@contextlib.contextmanager
def _signals(running: Any, ending: Ending) -> Generator[None, None, None]:
    """SIGINT and SIGTERM end the server in good order, and the process with code 0; a second one ends it at once."""
    told = 0

    def end() -> None:
        running.should_exit = True

    def stop(*_: object) -> None:
        nonlocal told
        told += 1
        ending.leaving()
        if told > 1 or not ending.still_s:
            running.force_exit = told > 1
            end()
        else:
            threading.Timer(ending.still_s, end).start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
