"""What one server serves, through whichever face: the tools, the checks before a call, and consent to write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from estimator.errors import PlanError
from knowledge.own.files import ELSEWHERE
from planner.files.below import writing_below
from server.calls import FACE, FOLDER, Busy, Calls, refuse_depth, refuse_paths
from server.mcp.brief import KeptResults, Results
from server.mcp.writes import Codes, Consent, OwnCodes, Writing, nobody, write
from server.team.identity import refuse_role
from server.work import CallAnswer, outward
from tools.registry import OnDemand, Tool, find

Tell = Callable[[float, str], Awaitable[None]]


@dataclass(frozen=True)
class SeenCall:
    """A call as it is noted: over which face (rest, mcp), and what came of it (done, refused, error, busy, gone)."""

    face: str
    name: str
    arguments: Mapping[str, Any]
    outcome: str
    seconds: float


class Conversations(Protocol):
    """Conversations with the agent, each in the name of whoever calls. All raise PlanError."""

    async def ask(self, text: str, session: str | None) -> dict[str, Any]: ...

    async def settle(self, session: str, approved: bool) -> dict[str, Any]: ...

    def listed(self) -> list[dict[str, Any]]: ...

    def shown(self, session: str) -> dict[str, Any]: ...

    def delete(self, session: str) -> None: ...


@dataclass
class _Noted:
    """What came of a call, as far as it is known."""

    outcome: str = "error"


@dataclass
class Service:
    """`root` is the one folder that may be written to (absolute; None: none). `remote` says that callers may be
    elsewhere: then no argument may name a file outside `root`. `full` says that MCP lists every tool with its whole
    schemas and gives whole results, for programs; an assistant's model gets the usual tools and brief answers. `codes`
    and `results` outlive this process where several serve as one; `watches` are told of every call."""

    root: Path | None = None
    remote: bool = False
    full: bool = False
    calls: Calls = field(default_factory=Calls)
    tools: Mapping[str, Tool] = field(default_factory=OnDemand, repr=False)
    codes: Codes = field(default_factory=OwnCodes, repr=False)
    results: KeptResults = field(default_factory=Results, repr=False)
    conversations: Conversations | None = None
    watches: Sequence[Callable[[SeenCall], None]] = ()

    def __post_init__(self) -> None:
        self.root = self.root.resolve() if self.root else None
        self.writing = Writing(self.root, self.codes)

    def tool(self, name: str) -> Tool:
        """The tool of that name. Raises PlanError, with those that there are."""
        return self.tools.get(name) or find(name)

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], consent: Consent = nobody, tell: Tell | None = None
    ) -> CallAnswer:
        """The answer of a tool; a tool that writes runs once `consent` is given. `tell` is told that a call goes on.

        Raises Busy, and whatever `consent` raises beside PlanError and CannotAsk.
        """
        with self.watched(tool.name, arguments) as noted:
            answer = await self._called(tool, arguments, consent, tell)
            if self.remote and answer.error:
                answer = CallAnswer(error=outward(answer.error))
            noted.outcome = "error" if answer.bug else "refused" if answer.error else "done"
        return answer

    @contextmanager
    def watched(self, name: str, arguments: Mapping[str, Any]) -> Iterator[_Noted]:
        """Tells the watches of what is done within."""
        noted, started = _Noted(), time.perf_counter()
        try:
            yield noted
        except PlanError:
            noted.outcome = "refused"
            raise
        except Busy:
            noted.outcome = "busy"
            raise
        except (asyncio.CancelledError, ConnectionError):
            noted.outcome = "gone"
            raise
        finally:
            seen = SeenCall(FACE.get(), name, arguments, noted.outcome, time.perf_counter() - started)
            for watch in self.watches:
                watch(seen)

    def refuse(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """PlanError where a caller may not make this call."""
        refuse_depth(arguments)
        refuse_role(tool.role, tool.name)
        if self.remote:
            refuse_paths(arguments, self.root)
            if self.root is None and tool.read_only and FOLDER in arguments:
                raise PlanError(FOLDER, "this server was started without a folder to read from (--root FOLDER)")

    def close(self) -> None:
        """Ends what the service runs, once what was begun is written down."""
        self.calls.close()
        for watch in self.watches:
            getattr(watch, "close", lambda: None)()

    async def _called(
        self, tool: Tool, arguments: Mapping[str, Any], consent: Consent, tell: Tell | None
    ) -> CallAnswer:
        try:
            self.refuse(tool, arguments)
        except PlanError as error:
            return CallAnswer(error=error)
        if self.remote:
            # A path may be where no check of arguments looks: in the text of a plan.
            ELSEWHERE.set(str(self.root or ""))
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
