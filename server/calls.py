"""Tool calls beside each other: off the event loop, each answer computed once, and long ones out of the others' way.

A tool is a pure function of its arguments and of the user's own catalogue and scenarios, so an answer is kept for a
while and equal calls that run at the same time share one computation. What reads another file on disk is never kept.
What writes empties the store.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from knowledge.own.files import stamp_of_all
from tools.registry import Tool

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
# An answer is 5 to 60 KB of text. Fewer than there are different calls in turn would be as good as none.
_MOST_KEPT = 4096
_MOST_KEPT_BYTES = 40 * 2**20
# Arguments that may name a file or folder on this machine.
_PATHS = frozenset({"model", "path", "paths", "files", "log", "logs", "config"})
# One that names what a tool reads below the root; what is there may change at any time.
FOLDER = "folder"

_log = logging.getLogger("shardwise")


class Busy(Exception):
    """More calls wait than will be served in a reasonable time."""


@dataclass(eq=False)
class CallAnswer:
    """What a call came to: its result as JSON text, or what the caller did wrong, or what we did (`bug`)."""

    text: str = ""
    error: PlanError | None = None
    bug: str | None = None

    @property
    def failure(self) -> str | None:
        """What went wrong, as text that any encoding can carry."""
        sentence = self.bug or (str(self.error) if self.error else None)
        return sentence and sentence.encode(errors="backslashreplace").decode()

    @property
    def value(self) -> dict[str, Any]:
        return json.loads(self.text)


@dataclass
class Calls:
    """The calls of one server. All methods but `close` belong to its event loop."""

    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS, "tool"))
    _long: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LONG_AT_ONCE))
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _seconds: dict[str, float] = field(default_factory=dict)
    _kept: OrderedDict[bytes, tuple[float, asyncio.Task[CallAnswer]]] = field(default_factory=OrderedDict)
    _waiting: int = 0

    async def run(self, tool: Tool, arguments: Mapping[str, Any], keep: bool = True) -> CallAnswer:
        """The answer of a tool. Raises Busy."""
        if (
            not keep
            or FOLDER in arguments
            or any(os.path.exists(os.path.expanduser(path)) for _, path in named_paths(arguments))
        ):
            return await self._compute(tool, arguments)
        key = sha256(f"{tool.name} {json.dumps(arguments, sort_keys=True)} {stamp_of_all()}".encode()).digest()
        until, task = self._kept.get(key, (0.0, None))
        if task is None or (task.done() and (until < time.monotonic() or _spoilt(task))):
            until, task = time.monotonic() + _KEPT_S, asyncio.create_task(self._compute(tool, arguments))
            self._kept[key] = (until, task)
            task.add_done_callback(lambda _: self._bound())
        self._kept.move_to_end(key)
        # Shielded: a caller that goes away must not take the answer from the others.
        return task.result() if task.done() else await asyncio.shield(task)

    def _bound(self) -> None:
        """Lets go of the answers that were not asked for the longest, as long as there are too many."""
        size = sum(_bytes(task) for _, task in self._kept.values())
        while len(self._kept) > _MOST_KEPT or size > _MOST_KEPT_BYTES:
            size -= _bytes(self._kept.popitem(last=False)[1][1])

    async def other(self, work: Callable[[], Any]) -> Any:
        """Anything else that would hold up the loop, done in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, contextvars.copy_context().run, work)

    def forget(self) -> None:
        """After a write, what was computed before it may no longer hold."""
        self._kept.clear()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _compute(self, tool: Tool, arguments: Mapping[str, Any]) -> CallAnswer:
        if self._waiting >= _MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._long if self._seconds.get(tool.name, 0.0) > _LONG_S else nullcontext():
                async with self._turn:
                    work = asyncio.ensure_future(self.other(lambda: _answer(tool, arguments)))
                    await asyncio.wait({work}, timeout=_TURN_S)
                answer, self._seconds[tool.name] = await work
        finally:
            self._waiting -= 1
        return answer


def _bytes(task: asyncio.Task[CallAnswer]) -> int:
    if not task.done() or task.cancelled() or task.exception():
        return 0
    return len(task.result().text)


def _spoilt(task: asyncio.Task[CallAnswer]) -> bool:
    return task.cancelled() or task.exception() is not None or task.result().bug is not None


def _answer(tool: Tool, arguments: Mapping[str, Any]) -> tuple[CallAnswer, float]:
    """The answer and the processor seconds it took. A bug of ours is logged under a reference; the caller learns only
    that."""
    # Not those of the clock: a short call beside many others would pass for a long one, and wait with these.
    started = time.thread_time()
    try:
        answer = CallAnswer(dumps(tool(arguments)))
    except PlanError as error:
        answer = CallAnswer(error=error)
    except Exception:
        reference = secrets.token_hex(4)
        _log.exception("tool %s failed (%s)", tool.name, reference)
        answer = CallAnswer(bug=f"{tool.name}: an error inside Shardwise (reference {reference} in the server's log)")
    return answer, time.thread_time() - started


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
        return Path(text).expanduser().resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return False


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def dumps(value: Any) -> str:
    """Compact JSON in ASCII. Infinities and NaN, which JSON does not have, become null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return dumps(json.loads(json.dumps(value), parse_constant=lambda _: None))
