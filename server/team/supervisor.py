"""Several processes that serve as one: they accept from the same socket, and one that ends is started anew."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

from server import forking

# A process that lives for less has not served; so many in a row, and there is something wrong with all of them.
_SHORT_S, _MOST_SHORT = 5.0, 5
_LOOK_S = 0.5


class Workers:
    """`count` processes that each run `target(*arguments, started)`, where `started` is an event to set."""

    def __init__(self, count: int, target: Callable[..., None], arguments: tuple[Any, ...], finish_s: float) -> None:
        self._context = forking.loading(target.__module__)
        self._target, self._arguments, self._finish_s = target, arguments, finish_s
        self._stopping = threading.Event()
        self._short = 0
        self._processes = {self._started(): time.monotonic() for _ in range(count)}

    def run(self, ready: Callable[[], None], gone: Callable[[int], None]) -> int:
        """Until SIGINT or SIGTERM, which all of them get; returns the exit code. `ready` is called once all serve,
        `gone` told of each that ended."""
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        is_ready = False
        try:
            while not self._stopping.is_set():
                wait([process.sentinel for process in self._processes], _LOOK_S if is_ready else 0.02)
                self._replace(gone)
                if self._short >= _MOST_SHORT:
                    _say("shardwise: workers end as soon as they start; what they say above is why")
                    return 1
                if not is_ready and all(process.started.is_set() for process in self._processes):
                    is_ready = True
                    ready()
            return 0
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _started(self) -> Any:
        started = self._context.Event()
        process: Any = self._context.Process(target=_work, args=(self._target, self._arguments, started))
        process.started, process.told = started, False
        forking.start(process)
        return process

    def _replace(self, gone: Callable[[int], None]) -> None:
        for process, began in list(self._processes.items()):
            if process.is_alive() or self._stopping.is_set():
                continue
            del self._processes[process]
            gone(process.pid)
            self._short = self._short + 1 if time.monotonic() - began < _SHORT_S else 0
            _say(f"shardwise: worker {process.pid} ended ({_how(process.exitcode)}); another takes its place")
            if self._short:
                self._stopping.wait(min(0.2 * 2**self._short, 3.0))
            if self._short < _MOST_SHORT:
                self._processes[self._started()] = time.monotonic()

    def _stop(self, *_: object) -> None:
        self._stopping.set()
        self._tell()

    def _tell(self) -> None:
        """Each once: told twice, they would not finish what they serve."""
        for process in list(self._processes):
            if not process.told:
                process.told = True
                process.terminate()

    def _end(self) -> None:
        """They finish what they serve; what takes too long is ended."""
        self._stopping.set()
        self._tell()
        until = time.monotonic() + self._finish_s
        for process in self._processes:
            process.join(max(until - time.monotonic(), 0.0))
            if process.is_alive():
                process.kill()
                process.join()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


def _work(target: Callable[..., None], arguments: tuple[Any, ...], started: Any) -> None:
    forking.begin()
    # Ctrl-C in a terminal is for whoever started us, who tells us to end.
    with suppress(AttributeError, OSError):
        os.setpgid(0, 0)
    threading.Thread(target=_watch_parent, daemon=True).start()
    target(*arguments, started)


def _watch_parent() -> None:
    """Nobody is left to end a worker whose parent was killed: it ends itself, in good order."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
