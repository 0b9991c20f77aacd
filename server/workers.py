"""Processes that compute tool calls, so that a call nobody waits for any more ends with its process, and one that takes
too long by the system's own clock of it.

They are forked by a server that has the tools loaded (server.forking), so a new one takes milliseconds and little
memory. All that runs in this process shares them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from knowledge.own import database
from knowledge.own.files import ELSEWHERE, working_folder
from server import forking

try:
    import resource
except ImportError:  # Windows
    resource = None

# Seconds of one processor that a call may take, and bytes of its process: 140 MB at most with the tools as they are.
MOST_CPU_S = 60
MOST_BYTES = 500 * 10**6
_IDLE = 4


class TookTooLong(Exception):
    """A call that used up its processor time."""


class Abandoned(Exception):
    """A call whose process was ended, since nobody waits for it."""


@dataclass(eq=False)
class _Worker:
    process: Any
    pipe: Connection

    def end(self) -> None:
        self.process.kill()
        self.pipe.close()


@dataclass(eq=False)
class Ticket:
    """One call on its way. `give_up` may come from any thread and at any time."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _worker: _Worker | None = None
    gone: Future[None] = field(default_factory=Future)

    @property
    def is_given_up(self) -> bool:
        return self.gone.done()

    def give_up(self) -> None:
        with self._lock:
            if not self.gone.done():
                self.gone.set_result(None)
            if self._worker is not None:
                self._worker.process.kill()

    def holds(self, worker: _Worker | None) -> None:
        """Raises Abandoned."""
        with self._lock:
            self._worker = worker
            if self.is_given_up and worker is not None:
                raise Abandoned


_idle: list[_Worker] = []
_lock = threading.Lock()


def run(name: str, arguments: Mapping[str, Any], root: Path | None, ticket: Ticket) -> tuple[Any, float]:
    """What `server.work.answered` gives, by a process; blocks. Raises TookTooLong, Abandoned."""
    worker = _taken(ticket)
    try:
        ticket.holds(worker)
        worker.pipe.send((name, dict(arguments), root, _surroundings()))
        answer = worker.pipe.recv()
        ticket.holds(None)
    except (EOFError, OSError):
        worker.process.join(5)
        ended_by = worker.process.exitcode
        worker.end()
        if ticket.is_given_up:
            raise Abandoned from None
        if resource is not None and ended_by in (-signal.SIGXCPU, -signal.SIGKILL):
            raise TookTooLong from None
        raise RuntimeError(f"the process of {name} ended ({ended_by})") from None
    except BaseException:
        worker.end()
        raise
    _lay_by(worker)
    return answer


def warm(count: int) -> None:
    """Has `count` processes ready; takes seconds."""
    with _lock:
        missing = count - len(_idle)
    made = [_started() for _ in range(missing)]
    with _lock:
        _idle.extend(made)


def _taken(ticket: Ticket) -> _Worker:
    while True:
        with _lock:
            worker = _idle.pop() if _idle else None
        if worker is None:
            return _begun(ticket)
        if worker.process.is_alive():
            return worker
        worker.end()


def _begun(ticket: Ticket) -> _Worker:
    """A new process, started beside this thread: as long as what forks it loads that takes seconds, for which neither
    who gave up waits nor the end of this process."""
    made: Future[_Worker] = Future()
    threading.Thread(target=_make, args=(made,), daemon=True).start()
    first: set[Future[Any]] = {made, ticket.gone}
    wait(first, return_when=FIRST_COMPLETED)
    if made.done():
        return made.result()
    made.add_done_callback(lambda done: done.exception() or _lay_by(done.result()))
    raise Abandoned


def _make(made: Future[_Worker]) -> None:
    try:
        made.set_result(_started())
    except Exception as error:
        made.set_exception(error)


def _lay_by(worker: _Worker) -> None:
    """Keeps a process for the next call, where there are not enough."""
    with _lock:
        is_kept = len(_idle) < _IDLE
        if is_kept:
            _idle.append(worker)
    if not is_kept:
        worker.end()


def _started() -> _Worker:
    context = forking.context("server.warmed")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True, name="shardwise-call")
    forking.start(process)
    there.close()
    return _Worker(process, here)


def _serve(pipe: Connection) -> None:
    """Computes what comes, one call after another, until nobody is at the other end."""
    from server.work import answered  # what takes seconds is loaded where it is computed

    forking.begin()
    # Over a pipe standard output is the protocol's alone.
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: whoever started us ends us
    with contextlib.suppress(EOFError, OSError):
        while True:
            name, arguments, root, (folder, variables, elsewhere) = pipe.recv()
            ELSEWHERE.set(elsewhere)
            with contextlib.suppress(OSError):
                os.chdir(folder)
            for variable in _variables():
                os.environ.pop(variable, None)
            os.environ.update(variables)
            _limit(MOST_CPU_S, MOST_BYTES)
            pipe.send(answered(name, arguments, root))
    sys.exit(0)


def _surroundings() -> tuple[str, dict[str, str], str | None]:
    """What an answer depends on beside its arguments: the working folder, where the user's own files are, and which
    files may be read."""
    return str(working_folder()), _variables(), ELSEWHERE.get()


def _variables() -> dict[str, str]:
    named = {"SHARDWISE_USER": database.user()} if database.address() else {}
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("SHARDWISE_", "XDG_")) or name in ("HOME", "PWD")
    } | named


def _limit(seconds: float, data_bytes: int) -> None:
    """Ends this process once it has computed for so many more seconds; more memory than that it is not given."""
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, hard))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (data_bytes if hard < 0 else min(data_bytes, hard), hard))
