"""What one server serves, through whichever face: the tools, the checks before a call, and consent to write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from planner.files.render import writing_below
from server.calls import FOLDER, Calls, refuse_depth, refuse_paths
from server.mcp.writes import Consent, Writing, nobody, write
from server.work import CallAnswer
from tools.registry import Tool, find, registry

Tell = Callable[[float, str], Awaitable[None]]


@dataclass
class Service:
    """`root` is the one folder that may be written to (absolute; None: none). `remote` says that callers may be
    elsewhere: then no argument may name a file outside `root`. `full` says that MCP lists every tool with its whole
    schemas and gives whole results, for programs; an assistant's model gets the usual tools and brief answers."""

    root: Path | None = None
    remote: bool = False
    full: bool = False
    calls: Calls = field(default_factory=Calls)
    tools: dict[str, Tool] = field(default_factory=registry, repr=False)

    def __post_init__(self) -> None:
        self.root = self.root.resolve() if self.root else None
        self.writing = Writing(self.root)

    def tool(self, name: str) -> Tool:
        """The tool of that name. Raises PlanError, with those that there are."""
        return self.tools.get(name) or find(name)

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], consent: Consent = nobody, tell: Tell | None = None
    ) -> CallAnswer:
        """The answer of a tool; a tool that writes runs once `consent` is given. `tell` is told that a call goes on.

        Raises Busy, and whatever `consent` raises beside PlanError and CannotAsk.
        """
        try:
            refuse_depth(arguments)
            if self.remote:
                refuse_paths(arguments, self.root)
                if self.root is None and tool.read_only and FOLDER in arguments:
                    raise PlanError(FOLDER, "this server was started without a folder to read from (--root FOLDER)")
        except PlanError as error:
            return CallAnswer(error=error)
        if not tool.read_only:
            return await write(self.writing, self.calls, tool, arguments, consent)
        with self._below_root(arguments):
            work = self.calls.run(tool, arguments)
            return await work if tell is None else await _watched(work, tell, tool.title)

    def _below_root(self, arguments: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Where a tool that reads looks for a folder: below the root, as those that write put it there."""
        if self.root is None or FOLDER not in arguments:
            return nullcontext()
        return writing_below(self.root)


async def _watched(work: Awaitable[CallAnswer], tell: Tell, title: str) -> CallAnswer:
    """Awaits `work` and tells from time to time for how many seconds it has been going on.

    A search is one computation over all candidates at once, so there is no share of it that could be told instead.
    """
    task = asyncio.ensure_future(work)
    started = time.monotonic()
    await tell(0.0, f"{title}: started")
    try:
        while not (await asyncio.wait({task}, timeout=1.0))[0]:
            seconds = round(time.monotonic() - started, 1)
            await tell(seconds, f"{title}: running for {seconds:.0f} s")
    except BaseException:
        task.cancel()
        raise
    return task.result()
