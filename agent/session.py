"""A conversation: the agent's public face. Say something, get events; approve or decline what it wants to write.

The events are those of `agent.events`.
Sessions are listed, renamed, forked, deleted, exported and read back by the functions named here that take an id.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from agent import settings
from agent.acting import Surroundings
from agent.alone import alone
from agent.budget import used
from agent.checkpoints import checkpoints
from agent.events import Approval, Done, Event, PlannedWrite, Remark, TextPiece, ToolCall, ToolResult, done_data
from agent.export import export_session
from agent.figures import headline
from agent.graph import RECURSION_LIMIT, build
from agent.offline.planner import OfflinePlanner
from agent.store import (
    FileWritten,
    begin_turn,
    delete_session,
    end_turn,
    find_session,
    fork_session,
    go_on,
    list_sessions,
    new_id,
    ready,
    rename_session,
    transcript,
)
from agent.wire import Call, calls_of, storable, turn_outcomes, turn_start
from estimator.credentials import without_credentials
from estimator.errors import PlanError
from knowledge.own.files import working_folder
from knowledge.own.home import expanded
from pages.rendering.clean import plain
from tools.registry import OnDemand, Tool

ModelName = Literal["auto", "offline", "gemini", "openai"]
_MODEL_NAMES = ("auto", "offline", "gemini", "openai")
_MOST_CHARACTERS = 100_000
_MOST_PLANS = 20
# What other programs are told of a turn and no transcript holds.
_NOT_KEPT = ("session", "tool_calls", "reading", "usage", "failed")
# With these on, the graph library would send conversations to a tracing service, for whatever project they were set.
_TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")


@dataclass(frozen=True)
class Session:
    """One conversation, kept on disk under `id`. Sessions share nothing with each other.

    Files are written below `root`, by default in its `folder` (None: one named after the plan); `clock` is a fixed now,
    or None.
    """

    id: str
    model: ModelName
    root: Path
    folder: str | None = None
    clock: datetime | None = None
    tools: Mapping[str, Tool] = field(default_factory=OnDemand, compare=False)

    async def send(self, text: str) -> AsyncGenerator[Event, None]:
        """Says `text`. Ends with an `Approval` (go on with `resume`) or `Done`."""
        text = without_credentials(plain(text).strip())
        if not text:
            raise PlanError("text", "there is nothing to answer", ["a question about training or serving a model"])
        if len(text) > _MOST_CHARACTERS:
            raise PlanError("text", f"is longer than {_MOST_CHARACTERS:,} characters")
        async with aclosing(self._run(text)) as events:
            async for event in events:
                yield event

    async def resume(self, approved: bool) -> AsyncGenerator[Event, None]:
        """Answers the pending approval. Raises PlanError when nothing waits for one."""
        async with aclosing(self._run(None, approved)) as events:
            async for event in events:
                yield event

    def now(self) -> datetime:
        return self.clock or datetime.now().astimezone()

    @cached_property
    def _graph(self) -> Any:
        """The compiled graph, without a checkpointer: that one is opened for each run."""
        for name in _TRACING:
            os.environ[name] = "false"
        surroundings = Surroundings(
            model_of(self.model), OfflinePlanner(), self.tools, self.root, self.folder, self.now
        )
        return build(surroundings)

    async def plan(self) -> dict[str, Any]:
        """The session's plan as it stands, a partial Plan."""
        async with checkpoints(self.id) as saver:
            state = await self._graph.copy(update={"checkpointer": saver}).aget_state(self._config)
        return dict(state.values.get("plan", {}))

    async def waiting(self) -> Approval | None:
        """What a run waits for, from whichever process; None when nothing waits."""
        async with checkpoints(self.id) as saver:
            state = await self._graph.copy(update={"checkpointer": saver}).aget_state(self._config)
        return _approval(state)

    async def set_plan(self, plan: Mapping[str, Any], chosen: Mapping[str, Any] | None = None) -> None:
        """Puts `plan` (a partial Plan) in the place of the session's, as an edit by the person; "undo that" undoes it.

        `chosen` are those of its values, by path, that a search chose: they are open again when the best is looked for.
        Raises PlanError while an approval is waiting.
        """
        if not isinstance(plan, Mapping):
            raise PlanError("plan", "must be a mapping")
        async with alone(self.id), checkpoints(self.id) as saver:
            graph = self._graph.copy(update={"checkpointer": saver})
            state = await graph.aget_state(self._config)
            if state.interrupts:
                raise PlanError("plan", "files are waiting for approval; answer that first")
            await asyncio.to_thread(go_on, self.id, self.now())
            before, topic = state.values.get("plan", {}), dict(state.values.get("topic", {}))
            if before and before != plan:
                topic["plans"] = [*topic.get("plans", []), before][-_MOST_PLANS:]
            # The person's own figures, like their words.
            topic["edited"] = storable(plan)
            topic |= {"taken": storable(chosen)} if chosen else {}
            new = {"plan": storable(plan), "topic": topic}
            await graph.aupdate_state(self._config, new, as_node="check")

    @property
    def _config(self) -> Any:
        return {"configurable": {"thread_id": self.id}, "recursion_limit": RECURSION_LIMIT}

    async def _run(self, heard: str | None, approved: bool = False) -> AsyncGenerator[Event, None]:
        """A turn that begins with what was `heard`, or (None) goes on with the answer to what waits for approval."""
        compiled = self._graph
        kept = _Kept()
        number: int | None = None
        if problem := await asyncio.to_thread(ready):
            kept.note(remark := Remark(problem, bad=True))
            yield remark
        try:
            async with alone(self.id), checkpoints(self.id) as saver:
                graph = compiled.copy(update={"checkpointer": saver})
                if heard is not None:
                    start, begin = {"heard": heard}, partial(begin_turn, self.id, heard)
                else:
                    start = Command(resume=_verdict(_approval(await graph.aget_state(self._config)), approved))
                    begin = partial(go_on, self.id)
                # Never on the loop's own thread: it may be what another session waits for to let go of the file.
                number = await asyncio.to_thread(begin, self.now())
                stopped = ""
                # Closed with us: what it still writes, it writes while the file is open.
                stream = graph.astream(start, self._config, stream_mode="custom", durability="exit")
                try:
                    async with aclosing(stream) as events:
                        async for event in events:
                            kept.note(event)
                            yield event
                except GraphRecursionError:
                    stopped = "I stopped: this took more steps than one answer should. Ask me for a part of it."
                    yield TextPiece(stopped)
                state = await graph.aget_state(self._config)
                last = _approval(state) or self._done(state, stopped)
                if isinstance(last, Done):
                    last = replace(last, notices=kept.notices)
            kept.conclude(last, state.values.get("messages", []))
            yield last
        except (asyncio.CancelledError, GeneratorExit):
            if kept.state == "open":
                kept.state = "stopped"
            raise
        except BaseException:
            kept.state = "failed"
            raise
        finally:
            if number:
                await asyncio.to_thread(end_turn, self.id, number, kept.state, kept.told)

    def _done(self, state: Any, stopped: str) -> Done:
        values = state.values
        messages = values.get("messages", [])
        return Done(
            answer=plain(values.get("answer") or stopped),
            plan=values.get("plan", {}),
            session=self.id,
            asked=list(values.get("asked", [])),
            files=_files(messages),
            ungrounded=list(values.get("ungrounded", [])),
            tool_calls=[call for content in messages[max(turn_start(messages), 0) :] for call in calls_of(content)],
            reading=dict(values.get("reading", {})),
            failed=values.get("failure", ""),
            turn_usage=used(values.get("used")),
            session_usage=used(values.get("used_in_all")),
        )


class _Kept:
    """What is kept of a turn as it goes: its state, its calls, and in the end what was told."""

    def __init__(self) -> None:
        self.state = "open"
        self.told: dict[str, Any] = {}
        self.notices: list[str] = []
        self._calls: dict[str, dict[str, Any]] = {}

    def note(self, event: Event) -> None:
        match event:
            case ToolCall(call):
                self._note(call)
            case Remark(text):
                self.notices.append(plain(text))
            case ToolResult(outcome, seconds):
                self._note(outcome.call, seconds=seconds, **({"error": outcome.error} if outcome.error else {}))

    def conclude(self, last: Approval | Done, messages: list[dict[str, Any]]) -> None:
        """`messages` are those of the whole session; a turn that waited for approval began before this run."""
        for outcome in turn_outcomes(messages):
            failed = outcome.error and plain(outcome.error)
            self._note(outcome.call.cleaned, **({"error": failed} if failed else {"figures": plain(headline(outcome))}))
        self.state = "waiting" if isinstance(last, Approval) else "done"
        if isinstance(last, Done):
            told = {key: value for key, value in done_data(last).items() if key not in _NOT_KEPT}
            self.told |= told | {"by": str(messages[-1].get("by", "")) if messages else ""}

    def _note(self, call: Call, **more: Any) -> None:
        self._calls.setdefault(call.id, {}).update(name=call.name, arguments=call.arguments, **more)
        self.told["calls"] = list(self._calls.values())


def open_session(
    session_id: str | None = None,
    model: ModelName = "auto",
    *,
    output: str | Path | None = None,
    now: datetime | None = None,
    tools: Mapping[str, Tool] | None = None,
) -> Session:
    """A new session, or the one with `session_id`.

    `tools` are those that may be called, all unless others are named. Files go into `output`, by default into a folder
    of their own below the working folder. `auto` is what the settings say, and without that the first language model of
    their order that is configured, else offline.
    Raises PlanError for an unknown session or model name, an unusable output folder, unusable settings, or a language
    model that is not configured.
    """
    if model not in _MODEL_NAMES:
        raise PlanError("model", f"{model!r} is not a way to think", _MODEL_NAMES)
    model = settings.value("model") if model == "auto" else model
    output = output or settings.value("output") or None
    if model == "gemini" and not settings.key_variable():
        raise PlanError("GEMINI_API_KEY", "is not set, and Gemini needs a key", ["set GEMINI_API_KEY", "use --offline"])
    if model == "openai" and not settings.configured("openai"):
        ways = ["set openai_model, and openai_base_url or OPENAI_API_KEY", "use --offline"]
        raise PlanError("openai_model", "is not set, or neither an address nor a key is", ways)
    if session_id is not None:
        find_session(session_id)
    root = (working_folder() / expanded(output or ".")).resolve()
    if root.exists() and not root.is_dir():
        raise PlanError("output", f"{str(output)!r} is not a folder")
    if now is not None:
        if not 1970 < now.year < 2200:
            raise PlanError("now", f"{now.year} is no year to plan in", ["1971 to 2199"])
        now = now if now.tzinfo else now.astimezone()
    return Session(session_id or new_id(), model, root, "." if output else None, now, tools or OnDemand())


def ask(
    text: str,
    *,
    approve: bool,
    session_id: str | None = None,
    model: ModelName = "auto",
    output: str | Path | None = None,
    now: datetime | None = None,
    told: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """One question and its answer, as `agent.events.done_data` gives it.

    What it wants to write is approved or declined as `approve` says; `told` hears each remark as it comes, such as that
    a model is asked again. Raises PlanError as `open_session` does.
    """
    session = open_session(session_id, model, output=output, now=now)

    async def run() -> Event:
        last = await _last_event(session.send(text), told)
        while isinstance(last, Approval):
            last = await _last_event(session.resume(approve), told)
        return last

    done = asyncio.run(run())
    if not isinstance(done, Done):
        raise RuntimeError("the turn ended without an answer")
    return done_data(done)


async def _last_event(events: AsyncIterator[Event], told: Callable[[str], None] | None) -> Event:
    last: Event | None = None
    async for last in events:
        if told and isinstance(last, Remark):
            told(last.text)
    if last is None:
        raise RuntimeError("the turn ended without an answer")
    return last


def model_of(name: ModelName) -> Any:
    """The language model that thinks, or None for the offline planner alone."""
    order = settings.value("auto_order").split() if name == "auto" else [name]
    first = next((each for each in order if each != "offline" and settings.configured(each)), None)
    if first == "gemini":
        from agent.gemini.model import Gemini  # its SDK takes seconds, and the offline planner needs none

        return Gemini()
    if first == "openai":
        from agent.compatible.model import Compatible  # as above

        return Compatible()
    return None


def _approval(state: Any) -> Approval | None:
    """What the run waits for, if it does."""
    if not state.interrupts:
        return None
    waiting = state.interrupts[0]
    return Approval(waiting.id, [PlannedWrite.model_validate(call) for call in waiting.value["calls"]])


def _verdict(approval: Approval | None, approved: bool) -> dict[str, Any]:
    """The answer to the pending question, bound to the bytes that were shown."""
    if approval is None:
        raise PlanError("approval", "nothing is waiting for approval in this session")
    return {"approved": approved, "digests": {call.id: call.digest for call in approval.calls}}


def _files(messages: list[dict[str, Any]]) -> list[FileWritten]:
    """The files that this turn wrote."""
    results = [outcome.cleaned.result for outcome in turn_outcomes(messages) if _has_written(outcome.call)]
    files = [file for each in results for file in getattr(each, "files", ())]
    return [FileWritten.model_validate(file, from_attributes=True) for file in files]


def _has_written(call: Call) -> bool:
    tool = OnDemand().get(call.name)
    return tool is not None and not tool.read_only and not call.name.startswith("delete")


__all__ = [
    "Event",
    "ModelName",
    "Session",
    "ask",
    "delete_session",
    "export_session",
    "find_session",
    "fork_session",
    "list_sessions",
    "open_session",
    "rename_session",
    "transcript",
]
