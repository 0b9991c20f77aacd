"""The one graph of the agent, whichever model thinks.

    hear -> think -> act (one task per call) ----> join -> think ... -> check -> done
                  -> approve (interrupt) --------/

`think` asks the model; calls of tools that only read go to `act` in parallel, those that write to `approve`, which
stops the run until the person has answered. `join` puts all responses, in the order of their calls, into one content.
`check` looks for figures without an origin: the model may rewrite once, then their sentences are left out.

What a language model streams is a draft until `check` has passed it: its text events say so, and a `discard` event
takes back what was streamed since the last tool call or discard.
"""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypedDict

from agent.approval import Proposal, carry_out, propose
from agent.figures import headlines
from agent.grounding import Figure, mark, ungrounded
from agent.history import shortened
from agent.models import ModelFailed, ThinkingModel, Thought, Turn
from agent.offline.patching import nested
from agent.screen import plain_data
from agent.wire import (
    Call,
    Content,
    Outcome,
    answered,
    calls_of,
    repair,
    said,
    storable,
    text_of,
    thought,
    turn_outcomes,
)
from agent.withheld import withhold
from estimator.errors import PlanError
from tools.clock import on
from tools.registry import Tool
from tools.requests import PlanArguments

RECURSION_LIMIT = 25
# Rounds of think, act and join in one turn; below the recursion limit, so that the turn ends with an answer.
_MOST_ROUNDS = 7
_TOO_LONG = "I stopped here because this took more tool calls than one answer should."
_DECLINED = "declined by the user; nothing was written"


class State(TypedDict):
    """All plain JSON data. `heard` is the new utterance; `results` collects what the tools of this round gave."""

    heard: str
    messages: Annotated[list[Content], operator.add]
    plan: dict[str, Any]
    topic: dict[str, Any]
    results: Annotated[list[dict[str, Any]], operator.add]
    rounds: int
    rewritten: bool
    fallen: bool
    asked: list[str]
    origins: list[str]
    answer: str
    ungrounded: list[str]


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


def build(around: Surroundings) -> Any:
    """The compiled graph; a run gives it its checkpointer."""
    from langgraph.config import get_stream_writer
    from langgraph.graph.state import StateGraph
    from langgraph.types import Overwrite, Send, interrupt

    def hear(state: State) -> dict[str, Any]:
        messages = state.get("messages", [])
        before = shortened([*messages, *repair(messages)])
        # The planner knows its turn by where it starts, and that has moved.
        topic = {key: value for key, value in state.get("topic", {}).items() if key != "turn"}
        return {
            "messages": Overwrite([*before, said(state["heard"])]),
            "topic": topic,
            "results": Overwrite([]),
            "rounds": 0,
            "rewritten": False,
            "fallen": False,
            "asked": [],
            "origins": [],
            "answer": "",
            "ungrounded": [],
        }

    async def think(state: State) -> dict[str, Any]:
        write = get_stream_writer()
        if state["rounds"] >= _MOST_ROUNDS:
            text = _stopped(state["messages"])
            write({"type": "text", "text": text, "draft": False})
            return {"messages": [thought("shardwise", text)], "asked": []}
        turn = Turn(state["messages"], state.get("plan", {}), state.get("topic", {}), around.tools, around.now())
        model, fallen = around.model, state["fallen"]
        final: Thought | None = None
        if model is not None and not fallen:
            try:
                final = await _thinking(model, turn, write, draft=True)
            except ModelFailed as failure:
                write({"type": "discard"})
                write({"type": "notice", "text": f"{failure} I go on with the offline planner."})
                fallen = True
        if final is None:
            final = await _thinking(around.offline, turn, write, draft=False)
        if final.notice:
            write({"type": "notice", "text": final.notice})
        content = storable(final.content)
        changes: dict[str, Any] = {
            "messages": [content],
            "rounds": state["rounds"] + 1,
            "fallen": fallen,
            "asked": final.asked,
            "origins": final.origins,
        }
        plan = final.plan if final.plan is not None else _plan_of(calls_of(content), around.tools)
        if plan is not None:
            changes["plan"] = storable(plan)
        if final.topic is not None:
            changes["topic"] = storable(final.topic)
        if calls_of(content) and not fallen and model and _unfounded({**state, "messages": [*turn.messages, content]}):
            # Words before a tool call are shown, not checked; with figures that nothing gave yet they are not shown.
            write({"type": "discard"})
        for call in calls_of(content):
            write({"type": "tool_call", "id": call.id, "name": call.name, "arguments": plain_data(call.arguments)})
        return changes

    def route(state: State) -> Any:
        calls = calls_of(state["messages"][-1])
        if not calls:
            return "check"
        tasks = [(index, call) for index, call in enumerate(calls)]
        writing = [[index, vars(call)] for index, call in tasks if _writes(call, around.tools)]
        sends = [Send("act", {"index": i, "call": vars(call)}) for i, call in tasks if not _writes(call, around.tools)]
        return [*sends, Send("approve", {"calls": writing})] if writing else sends

    async def act(task: dict[str, Any]) -> dict[str, Any]:
        write = get_stream_writer()
        call = Call(**task["call"])
        started = time.perf_counter()
        response = await asyncio.to_thread(
            _response, _dated(lambda: around.tools[call.name](call.arguments), around), call, around.tools
        )
        _report(write, call, response, time.perf_counter() - started)
        return {"results": [{"index": task["index"], "call": task["call"], "response": response}]}

    async def approve(task: dict[str, Any]) -> dict[str, Any]:
        """Rendered afresh before the question and again after it: the answer counts only for the same bytes."""
        write = get_stream_writer()
        proposals: list[tuple[int, Proposal | None, dict[str, Any], Call]] = []
        for index, fields in task["calls"]:
            call = Call(**fields)
            try:
                proposals.append((index, await asyncio.to_thread(_dated(_proposing(call, around), around)), {}, call))
            except PlanError as error:
                proposals.append((index, None, {"error": str(error)}, call))
        ready = [proposal for _, proposal, _, _ in proposals if proposal]
        verdict: dict[str, Any] = {}
        if ready:
            asked = [
                {"id": p.call.id, "name": p.call.name, "arguments": plain_data(p.call.arguments)}
                | {"preview": p.preview, "digest": p.digest}
                for p in ready
            ]
            verdict = interrupt(storable({"calls": asked}))
        digests = verdict.get("digests", {})
        results: list[dict[str, Any]] = []
        for index, proposal, response, call in proposals:
            started = time.perf_counter()
            if proposal is not None:
                if verdict.get("approved"):
                    run = _dated(_carrying_out(proposal, digests.get(call.id), around), around)
                    response = await asyncio.to_thread(_response, run, proposal.call, around.tools)
                else:
                    response = {"error": _DECLINED}
            _report(write, call, response, time.perf_counter() - started)
            results.append({"index": index, "call": vars(call), "response": response})
        return {"results": results}

    def join(state: State) -> dict[str, Any]:
        ordered = sorted(state["results"], key=lambda result: result["index"])
        outcomes = [Outcome(Call(**result["call"]), result["response"]) for result in ordered]
        return {"messages": [answered(outcomes)], "results": Overwrite([])}

    def check(state: State) -> Any:
        write = get_stream_writer()
        messages = state["messages"]
        text = text_of(messages[-1])
        unfounded = _unfounded(state)
        shown = list(dict.fromkeys(figure.text for figure in unfounded))
        if not unfounded:
            return {"answer": text, "ungrounded": []}
        drafted = around.model is not None and messages[-1].get("by") == around.model.name
        if drafted:
            write({"type": "discard"})
        if drafted and state["rounds"] < _MOST_ROUNDS and not state["rewritten"]:
            figures = ", ".join(shown)
            write({"type": "notice", "text": f"The draft had figures that no tool gave ({figures}); it is rewritten."})
            return {"messages": [said(_send_back(shown), by="check")], "rewritten": True}
        text = withhold(text, unfounded, turn_outcomes(messages)) if drafted else mark(text, unfounded)
        others = [part for part in messages[-1]["parts"] if "text" not in part]
        last = {**messages[-1], "parts": [*others, {"text": text}]}
        return {"messages": Overwrite([*messages[:-1], last]), "answer": text, "ungrounded": shown}

    graph = StateGraph(State)
    graph.add_node("hear", hear)
    graph.add_node("think", think)
    graph.add_node("act", act)  # pyright: ignore[reportArgumentType]
    graph.add_node("approve", approve)  # pyright: ignore[reportArgumentType]
    graph.add_node("join", join)
    graph.add_node("check", check)
    graph.set_entry_point("hear")
    graph.add_edge("hear", "think")
    graph.add_conditional_edges("think", route, ["act", "approve", "check"])
    graph.add_edge("act", "join")
    graph.add_edge("approve", "join")
    graph.add_edge("join", "think")
    graph.add_conditional_edges(
        "check", lambda state: "think" if _is_sent_back(state.get("messages", [])) else "__end__"
    )
    return graph.compile()


async def _thinking(model: ThinkingModel, turn: Turn, write: Callable[[Any], None], draft: bool) -> Thought:
    """Runs a model to the end of its step, passing its text on as it comes."""
    async for piece in model.think(turn):
        if isinstance(piece, Thought):
            return piece
        write({"type": "text", "text": piece, "draft": draft})
    raise ModelFailed(f"The model {model.name} stopped without an answer.")


def _unfounded(state: Mapping[str, Any]) -> list[Figure]:
    """The figures in the last thing said that nothing in this turn gives."""
    messages = state["messages"]
    words = [text_of(content) for content in messages if content.get("by") == "person"] + state["origins"]
    results = [outcome.response for outcome in turn_outcomes(messages)] + [{"plan": state.get("plan", {})}]
    return ungrounded(text_of(messages[-1]), results, words)


def _is_sent_back(messages: list[Content]) -> bool:
    return bool(messages) and messages[-1].get("by") == "check"


def _stopped(messages: list[Content]) -> str:
    """What is said when a turn has taken too many calls: what they gave so far."""
    found = "\n".join(f"- {line}" for line in dict.fromkeys(headlines(turn_outcomes(messages))))
    have = f"\n\nWhat I have so far:\n\n{found}" if found else ""
    return f"{_TOO_LONG}{have}\n\nAsk me for the part that you still need."


def _writes(call: Call, tools: Mapping[str, Tool]) -> bool:
    return call.name in tools and not tools[call.name].read_only


def _plan_of(calls: list[Call], tools: Mapping[str, Tool]) -> dict[str, Any] | None:
    """What a language model's calls say about the session's plan: the last one that takes a plan and names a model."""
    for call in reversed(calls):
        if call.name in tools and "plan" in tools[call.name].request.model_fields:
            plan = nested(_spelled_out(call, tools), _serves(call, tools))
            if plan.get("model") is not None:
                return plan
    return None


def _spelled_out(call: Call, tools: Mapping[str, Tool]) -> Mapping[str, Any]:
    """A call's arguments with the plan of the scenario that they name in place of its name."""
    if not isinstance(call.arguments.get("plan"), str):
        return call.arguments
    try:
        request = tools[call.name].parse(call.arguments)
    except PlanError:
        return call.arguments
    return {**call.arguments, "plan": getattr(request, "plan", None)}


def _serves(call: Call, tools: Mapping[str, Tool]) -> bool:
    """Whether the plan of a call is one for serving. Arguments that the tool refuses are taken as for training."""
    try:
        request = tools[call.name].parse(call.arguments)
        return isinstance(request, PlanArguments) and request.to_plan().workload.kind == "inference"
    except PlanError:
        return False


def _dated(run: Callable[[], Any], around: Surroundings) -> Callable[[], Any]:
    """`run` with the session's day as today, so that prices have their age of that day."""

    def dated() -> Any:
        with on(around.now().date()):
            return run()

    return dated


def _proposing(call: Call, around: Surroundings) -> Callable[[], Proposal]:
    return lambda: propose(call, around.tools, around.root, around.folder)


def _carrying_out(proposal: Proposal, approved: str | None, around: Surroundings) -> Callable[[], dict[str, Any]]:
    return lambda: carry_out(proposal, approved, around.tools, around.root)


def _response(run: Callable[[], dict[str, Any]], call: Call, tools: Mapping[str, Tool]) -> dict[str, Any]:
    """A tool's result, or its error as data: a mistake in the arguments is for the model and the person to settle."""
    if call.name not in tools:
        return {"error": f"tool: there is no tool {call.name!r}; valid: {', '.join(tools)}"}
    try:
        return storable(run())
    except PlanError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"{call.name} failed ({type(error).__name__}: {error}); this is a defect of Shardwise"}


def _report(write: Callable[[Any], None], call: Call, response: dict[str, Any], seconds: float) -> None:
    event: dict[str, Any] = {"type": "tool_result", "id": call.id, "name": call.name, "seconds": round(seconds, 3)}
    failed = Outcome(call, response).error
    write(event | ({"error": plain_data(failed)} if failed else {"result": plain_data(response)}))


def _send_back(figures: list[str]) -> str:
    return (
        f"These figures in your answer are in no tool result: {', '.join(figures)}. Write the "
        "answer again with figures from tool "
        "results only; call a tool if one is missing. Do not mention this message."
    )
