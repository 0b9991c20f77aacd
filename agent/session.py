"""A conversation: the agent's public face. Say something, get events; approve or decline what it wants to write.

Events are plain dicts with a `type`: text (delta), tool_call, tool_result, approval, notice, and last done. After an
approval event the run waits, across processes if need be, for `resume`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from agent.imports import quick_imports
from agent.screen import plain, plain_data
from agent.store import check_exists, checkpoints, list_sessions, record_use
from agent.wire import calls_of, turn_outcomes, turn_start
from estimator.errors import PlanError

ModelName = Literal["auto", "offline", "gemini"]
Event = dict[str, Any]
_MODEL_NAMES = ("auto", "offline", "gemini")
_MOST_CHARACTERS = 100_000
# With these on, the graph library would send conversations to a tracing service, for whatever project they were set.
_TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")


@dataclass(frozen=True)
class Session:
    """One conversation, kept on disk under `id`.

    Files are written below `root`, by default in its `folder` (None: one named after the plan); `clock` is a fixed now,
    or None.
    """

    id: str
    model: ModelName
    root: Path
    folder: str | None = None
    clock: datetime | None = None

    async def send(self, text: str) -> AsyncGenerator[Event, None]:
        """Says `text`. Ends with an approval event (go on with `resume`) or a done event."""
        text = plain(text).strip()
        if not text:
            raise PlanError("text", "there is nothing to answer", ["a question about training or serving a model"])
        if len(text) > _MOST_CHARACTERS:
            raise PlanError("text", f"is longer than {_MOST_CHARACTERS:,} characters")
        async for event in self._run({"heard": text}, text):
            yield event

    async def resume(self, approved: bool) -> AsyncGenerator[Event, None]:
        """Answers the pending approval. Raises PlanError when nothing waits for one."""
        async for event in self._run(approved, None):
            yield event

    def now(self) -> datetime:
        return self.clock or datetime.now().astimezone()

    @cached_property
    def _graph(self) -> Any:
        """The compiled graph, without a checkpointer: that one is opened for each run."""
        with quick_imports():
            for name in _TRACING:
                os.environ[name] = "false"
            from agent.graph import Surroundings, build
            from agent.offline.planner import OfflinePlanner
            from tools.registry import registry

            return build(
                Surroundings(_model(self.model), OfflinePlanner(), registry(), self.root, self.folder, self.now)
            )

    async def _run(self, given: dict[str, Any] | bool, said: str | None) -> AsyncGenerator[Event, None]:
        compiled = self._graph
        from langgraph.errors import GraphRecursionError
        from langgraph.types import Command

        from agent.graph import RECURSION_LIMIT

        config = {"configurable": {"thread_id": self.id}, "recursion_limit": RECURSION_LIMIT}
        async with checkpoints() as saver:
            graph = compiled.copy(update={"checkpointer": saver})
            start: Any = given
            if isinstance(given, bool):
                start = Command(resume=_verdict(await graph.aget_state(config), given))
            record_use(self.id, said or "", self.now())
            try:
                async for event in graph.astream(start, config, stream_mode="custom", durability="exit"):
                    yield event
                stopped = ""
            except GraphRecursionError:
                stopped = "I stopped: this took more steps than one answer should. Ask me for a part of it."
                yield {"type": "text", "text": stopped}
            yield self._last(await graph.aget_state(config), stopped)

    def _last(self, state: Any, stopped: str) -> Event:
        """What the run ended with: a question for approval, or the answer."""
        if state.interrupts:
            waiting = state.interrupts[0]
            calls = [{key: call[key] for key in ("name", "arguments", "preview")} for call in waiting.value["calls"]]
            return {"type": "approval", "id": waiting.id, "calls": calls}
        values = state.values
        return {
            "type": "done",
            "answer": plain(values.get("answer") or stopped),
            "plan": values.get("plan", {}),
            "asked": list(values.get("asked", [])),
            "files": _files(values.get("messages", [])),
            "ungrounded": list(values.get("ungrounded", [])),
            "tool_calls": _calls(values.get("messages", [])),
            "session": self.id,
        }


def open_session(
    session_id: str | None = None,
    model: ModelName = "auto",
    *,
    output: str | Path | None = None,
    now: datetime | None = None,
) -> Session:
    """A new session, or the one with `session_id`.

    Files go into `output`, by default into a folder of their own below the working folder. `auto` is Gemini where a
    key is set, else offline.
    Raises PlanError for an unknown session or model name, an unusable output folder, or gemini without a key.
    """
    if model not in _MODEL_NAMES:
        raise PlanError("model", f"{model!r} is not a way to think", _MODEL_NAMES)
    if model == "gemini" and not _key():
        raise PlanError("GEMINI_API_KEY", "is not set, and Gemini needs a key", ["set GEMINI_API_KEY", "use --offline"])
    if session_id is not None:
        check_exists(session_id)
    root = Path(output or ".").expanduser().resolve()
    if root.exists() and not root.is_dir():
        raise PlanError("output", f"{str(output)!r} is not a folder")
    if now is not None and now.tzinfo is None:
        now = now.astimezone()
    return Session(session_id or secrets.token_hex(4), model, root, "." if output else None, now)


def ask(
    text: str,
    *,
    approve: bool,
    session_id: str | None = None,
    model: ModelName = "auto",
    output: str | Path | None = None,
    now: datetime | None = None,
) -> dict[str, Any]:
    """One question and its answer: {session, tool_calls, plan, answer, asked, files, ungrounded}.

    What it wants to write is approved or declined as `approve` says. Raises PlanError as `open_session` does.
    """
    session = open_session(session_id, model, output=output, now=now)

    async def run() -> Event:
        last = await _last_event(session.send(text))
        if last["type"] == "approval":
            last = await _last_event(session.resume(approve))
        return last

    done = asyncio.run(run())
    return {key: done[key] for key in ("session", "tool_calls", "plan", "answer", "asked", "files", "ungrounded")}


async def _last_event(events: AsyncIterator[Event]) -> Event:
    last: Event = {}
    async for event in events:
        last = event
    return last


def _model(name: ModelName) -> Any:
    """The language model that thinks, or None for the offline planner alone."""
    if name == "offline" or not _key():
        return None
    from agent.gemini import Gemini

    return Gemini()


def _key() -> str | None:
    return os.environ.get("GOOGLE_API_KEY") or os.environ.get("GEMINI_API_KEY")


def _verdict(state: Any, approved: bool) -> dict[str, Any]:
    """The answer to the pending question, bound to the bytes that were shown."""
    if not state.interrupts:
        raise PlanError("approval", "nothing is waiting for approval in this session")
    calls = state.interrupts[0].value["calls"]
    return {"approved": approved, "digests": {call["id"]: call["digest"] for call in calls}}


def _files(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The files that this turn wrote."""
    written = [
        outcome.response
        for outcome in turn_outcomes(messages)
        if outcome.call.name == "write_configs" and not outcome.error
    ]
    return [plain_data(file) for result in written for file in result["files"]]


def _calls(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tool calls of this turn in order."""
    turn = messages[max(turn_start(messages), 0) :]
    return [{"name": call.name, "arguments": call.arguments} for content in turn for call in calls_of(content)]


__all__ = ["Event", "ModelName", "Session", "ask", "list_sessions", "open_session"]
