"""Tool calls beside each other: off the event loop, each answer computed once, and long ones out of the others' way.

A tool is a pure function of its arguments and of the user's own catalogue and scenarios, so an answer is kept for a
while and equal calls that run at the same time share one computation, which ends when nobody waits for it any more.
What reads another file on disk is never kept. What writes empties the store, and runs in a thread, to its end.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from estimator.errors import PlanError
from knowledge.own import database
from knowledge.own.files import stamp_of_all
from knowledge.own.home import expanded
from planner.files.below import written_below
from server import workers
from server.places import Places
from server.work import CallAnswer, answer, bug_of
from tools.registry import Tool, is_declared

_THREADS = 8
# A tool that took longer the last time waits for one of few places, so that short calls always find a free thread.
_LONG_S = 0.25
_LONG_AT_ONCE = 2
# Threads take turns at one interpreter, so calls that start together would all end late, and hold up the event loop as
# one does. Each has this long to itself; then the next begins beside it.
_TURN_S = 0.05
_MOST_WAITING = 1000
TOO_MANY = "too many calls are waiting; try again in a moment"
_DEEPEST = 64
_KEPT_S = 600.0
# For how long the user's own files are taken to be as they were.
_LOOK_S = 0.05
# An answer is 5 to 60 KB of text. Fewer than there are different calls in turn would be as good as none.
_MOST_KEPT = 4096
_MOST_KEPT_BYTES = 40 * 2**20
# Arguments that may name a file or folder on this machine.
_PATHS = frozenset({"model", "path", "paths", "files", "log", "logs", "config"})
# One that names what a tool reads below the root; what is there may change at any time.
FOLDER = "folder"

# On two processors one is left for short calls, whatever is searched meanwhile.
_PROCESSES = min(max((os.cpu_count() or 1) + 1, 3), 9)
# Who calls: in whose name a place is waited for.
CLIENT: ContextVar[str] = ContextVar("client", default="")
# Under this name a request of HTTP knows when whoever made it has gone.
GONE = "shardwise.gone"
# And under these who made it, and over which face.
CALLED_BY, FACE = "shardwise.caller", ContextVar("face", default="")
# Its message, where it is one of MCP, and a list for the answer of the call that it makes.
MESSAGE, ANSWERED = "shardwise.message", "shardwise.answered"
# The trace that a request says it is part of, as W3C writes it.
TRACE: ContextVar[str] = ContextVar("trace", default="")
Made = TypeVar("Made")


class Busy(Exception):
    """More calls wait than will be served in a reasonable time."""


@dataclass(eq=False)
class _Kept:
    """An answer that is there or on its way, how long it is good, and how many wait for it."""

    until: float
    task: asyncio.Task[CallAnswer]
    waiters: int = 0

    @property
    def is_good(self) -> bool:
        if not self.task.done():
            return True
        failed = self.task.cancelled() or self.task.exception() is not None or self.task.result().bug is not None
        return not failed and self.until >= time.monotonic()

    @property
    def bytes(self) -> int:
        if not self.task.done() or self.task.cancelled() or self.task.exception():
            return 0
        answer = self.task.result()
        written = sum(len(each.tail) for each in answer.written.values())
        return len(answer.text) + sum(map(len, answer.brief or ())) + written


@dataclass
class Calls:
    """The calls of one server. All methods but `close` belong to its event loop."""

    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS, "tool"))
    _waits: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_PROCESSES, "wait"))
    _long: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LONG_AT_ONCE))
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _seconds: dict[str, float] = field(default_factory=dict)
    _kept: OrderedDict[bytes, _Kept] = field(default_factory=OrderedDict)
    _waiting: int = 0
    _expecting: bool = False
    _looked: tuple[float, Any] | None = None
    _places: Places = field(default_factory=lambda: Places(_PROCESSES, _PROCESSES - 1))

    async def run(self, tool: Tool, arguments: Mapping[str, Any], keep: bool = True) -> CallAnswer:
        """The answer of a tool. Raises Busy."""
        if not keep or _reads_files(arguments):
            return await self._compute(tool, arguments)
        stamp = self._stamp() if not database.address() else [database.user(), await self.other(stamp_of_all)]
        key = _key(tool, arguments, stamp)
        kept = self._kept.get(key)
        if kept is None or not kept.is_good:
            task = asyncio.create_task(self._compute(tool, arguments))
            kept = self._kept[key] = _Kept(time.monotonic() + _KEPT_S, task)
            task.add_done_callback(lambda _: self._bound())
        self._kept.move_to_end(key)
        if kept.task.done():
            return kept.task.result()
        kept.waiters += 1
        try:
            # Shielded: a caller that goes away must not take the answer from the others.
            return await asyncio.shield(kept.task)
        finally:
            kept.waiters -= 1
            if not kept.waiters and not kept.task.done():
                kept.task.cancel()
                self._kept.pop(key, None)

    def kept(self, tool: Tool, arguments: Mapping[str, Any]) -> CallAnswer | None:
        """The answer that `run` would give at once, of a server without a database."""
        kept = None if _reads_files(arguments) else self._kept.get(_key(tool, arguments, self._stamp()))
        return kept.task.result() if kept is not None and kept.task.done() and kept.is_good else None

    def _stamp(self) -> Any:
        """Of the user's own files, looked at once for the calls of a moment: it takes longer than a kept answer."""
        now = time.monotonic()
        if self._looked is None or now - self._looked[0] > _LOOK_S:
            self._looked = now, stamp_of_all()
        return self._looked[1]

    def _bound(self) -> None:
        """Lets go of the answers that were not asked for the longest, as long as there are too many."""
        size = sum(kept.bytes for kept in self._kept.values())
        while len(self._kept) > _MOST_KEPT or size > _MOST_KEPT_BYTES:
            size -= self._kept.popitem(last=False)[1].bytes

    async def other(self, work: Callable[[], Any]) -> Any:
        """Anything else that would hold up the loop, done in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, contextvars.copy_context().run, work)

    def expect(self) -> None:
        """A call may come soon: a process for it gets ready, and this one what it makes of answers."""
        if not self._expecting:
            self._expecting = True
            threading.Thread(target=_ready, daemon=True).start()

    def forget(self) -> None:
        """After a write, what was computed before it may no longer hold."""
        self._kept.clear()
        self._looked = None

    def close(self) -> None:
        self._waits.shutdown(wait=False, cancel_futures=True)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _compute(self, tool: Tool, arguments: Mapping[str, Any]) -> CallAnswer:
        if self._waiting >= _MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            if tool.read_only and is_declared(tool):
                return await self._by_process(tool, arguments)
            async with self._long if self._seconds.get(tool.name, 0.0) > _LONG_S else nullcontext():
                async with self._turn:
                    work = asyncio.ensure_future(self.other(lambda: answer(tool, arguments)))
                    await asyncio.wait({work}, timeout=_TURN_S)
                made, self._seconds[tool.name] = await work
        finally:
            self._waiting -= 1
        return made

    async def _by_process(self, tool: Tool, arguments: Mapping[str, Any]) -> CallAnswer:
        """By a process of its own, which ends when nobody waits any more or it takes too long."""
        is_long = self._seconds.get(tool.name, 1.0) > _LONG_S
        async with self._places.taken(CLIENT.get(), is_long):
            ticket = workers.Ticket()
            run = partial(workers.run, tool.name, arguments, written_below(), ticket)
            # In the name of whoever calls.
            run = partial(contextvars.copy_context().run, run)
            work = asyncio.get_running_loop().run_in_executor(self._waits, run)
            try:
                made, self._seconds[tool.name] = await asyncio.shield(work)
            except asyncio.CancelledError:
                work.add_done_callback(lambda done: done.cancelled() or done.exception())
                ticket.give_up()
                raise
            except workers.TookTooLong:
                self._seconds[tool.name] = workers.MOST_CPU_S
                problem = f"took more than {workers.MOST_CPU_S} s of a processor and was stopped; ask for less at once"
                return CallAnswer(error=PlanError(tool.name, problem))
            except Exception:
                return bug_of(tool)
        return made


def _reads_files(arguments: Mapping[str, Any]) -> bool:
    """Whether what a call answers depends on files beside the user's own."""
    return FOLDER in arguments or any(os.path.exists(expanded(path)) for _, path in named_paths(arguments))


def _key(tool: Tool, arguments: Mapping[str, Any], stamp: Any) -> bytes:
    return sha256(f"{tool.name} {json.dumps(arguments, sort_keys=True)} {stamp}".encode()).digest()


def _ready() -> None:
    with suppress(Exception):  # what is wrong is said to the call that it keeps from being answered
        workers.warm(1)
    importlib.import_module("pages.answers.page")


async def unless_gone(work: Awaitable[Made], gone: asyncio.Event | None) -> Made:
    """Waits for `work`, and ends it when whoever asked is `gone`. Raises ConnectionError."""
    if gone is None:
        return await work
    task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone.wait())
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ConnectionError
        return task.result()
    finally:
        leaving.cancel()
        if not task.done():
            task.cancel()


def named_paths(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(argument, text) of every argument, at any depth, that could name a file on this machine."""
    for name, value in arguments.items():
        if isinstance(value, str):
            if name in _PATHS and len(value) <= 4096 and "\0" not in value:
                yield name, value
        elif isinstance(value, dict):
            yield from named_paths(value)
        elif isinstance(value, list):
            for each in value:
                yield from named_paths({name: each})


def refuse_depth(value: Any) -> None:
    """PlanError where containers lie in each other too deeply; without recursion, as it may be by thousands."""
    layer = [value]
    for _ in range(_DEEPEST):
        inner = (each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, dict | list))
        if not (layer := [item for items in inner for item in items]):
            return
    raise PlanError("arguments", f"are nested deeper than {_DEEPEST} levels")


def refuse_paths(arguments: Mapping[str, Any], root: Path | None) -> None:
    """For callers elsewhere: PlanError where an argument names a file outside `root`, whether it is there or not."""
    for name, text in named_paths(arguments):
        looks = text.startswith(("/", "~", "\\")) or ".." in text.replace("\\", "/").split("/") or text[1:2] == ":"
        if not looks and not os.path.lexists(text):
            continue
        if root is None or not _inside(text, root):
            raise PlanError(name, f"{_short(text)} is a path outside what this server may read", ["a catalogue name"])


def _inside(text: str, root: Path) -> bool:
    try:
        return expanded(text).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return False


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
