"""Running the tools that a model calls. A call always has an outcome: a result, or what went wrong, as data."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.approval import Proposal, carry_out, propose
from agent.events import Event, ToolResult
from agent.models import ThinkingModel
from agent.wire import DECLINED, Call, Outcome, storable
from estimator.errors import PlanError
from planner.clock import on
from tools.registry import Tool


@dataclass(frozen=True)
class Surroundings:
    """What a run of the graph works with.

    `model` is None when only the offline planner is to think; files are written below `root`, in `folder` where a call
    names none; `now` is the clock.
    """

    model: ThinkingModel | None
    offline: ThinkingModel
    tools: Mapping[str, Tool]
    root: Path
    folder: str | None
    now: Callable[[], datetime]


def writes(call: Call, tools: Mapping[str, Tool]) -> bool:
    return call.name in tools and not tools[call.name].read_only


async def called(call: Call, surroundings: Surroundings) -> Outcome:
    """What a tool that only reads answers."""
    if call.name not in surroundings.tools:
        known = ", ".join(surroundings.tools)
        return Outcome(call, {"error": f"tool: there is no tool {call.name!r}; valid: {known}"})
    return await _outcome(call, lambda: surroundings.tools[call.name](call.arguments), surroundings)


async def proposed(call: Call, surroundings: Surroundings) -> Proposal | Outcome:
    """What a tool that writes would write, or why it cannot."""
    proposals: list[Proposal] = []

    def render() -> dict[str, Any]:
        proposals.append(propose(call, surroundings.tools, surroundings.root, surroundings.folder))
        return {}

    failed = await _outcome(call, render, surroundings)
    return proposals[0] if proposals else failed


async def settled(
    call: Call, proposal: Proposal | Outcome, verdict: Mapping[str, Any], surroundings: Surroundings
) -> Outcome:
    """What came of a call that writes. `verdict` holds what the person said and the digests of what they were shown."""
    if isinstance(proposal, Outcome):
        return proposal
    if not verdict.get("approved"):
        return Outcome(call, {"error": DECLINED})
    shown = verdict.get("digests", {}).get(call.id)
    return await _outcome(call, lambda: carry_out(proposal, shown, surroundings.tools, surroundings.root), surroundings)


async def reported(write: Callable[[Event], None], running: Any) -> Outcome:
    """Waits for an outcome and tells of it as an event."""
    started = time.perf_counter()
    outcome: Outcome = await running
    write(ToolResult(outcome.cleaned, round(time.perf_counter() - started, 3)))
    return outcome


async def _outcome(call: Call, run: Callable[[], dict[str, Any]], surroundings: Surroundings) -> Outcome:
    """Runs in a thread. A mistake in the arguments is for the model and the person to settle; so is a defect of ours,
    which ends neither the turn nor the session."""

    def dated() -> dict[str, Any]:
        # The session's day is today, so that prices have their age of that day.
        with on(surroundings.now().date()):
            return run()

    try:
        return Outcome(call, storable(await asyncio.to_thread(dated)))
    except PlanError as error:
        return Outcome(call, storable({"error": str(error)}))
    except Exception as error:
        text = f"{call.name} failed ({type(error).__name__}: {error}); this is a defect of Shardwise"
        return Outcome(call, storable({"error": text}))
