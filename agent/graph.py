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

import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict

from agent.acting import Surroundings, called, proposed, reported, settled, writes
from agent.approval import Proposal
from agent.figures import headlines
from agent.grounding.check import Figure, mark, ungrounded
from agent.grounding.withheld import withhold
from agent.history import shortened
from agent.models import ModelFailed, ThinkingModel, Thought, Turn
from agent.plan_of_calls import plan_of
from agent.wire import (
    Call,
    Content,
    Outcome,
    answered,
    calls_of,
    identified,
    repair,
    said,
    storable,
    text_of,
    thought,
    turn_outcomes,
)
from pages.screen import plain_data

RECURSION_LIMIT = 25
# Rounds of think, act and join in one turn; below the recursion limit, so that the turn ends with an answer.
_MOST_ROUNDS = 7
_TOO_LONG = "I stopped here because this took more tool calls than one answer should."


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
        content = storable(identified(final.content, state["messages"]))
        changes: dict[str, Any] = {
            "messages": [content],
            "rounds": state["rounds"] + 1,
            "fallen": fallen,
            "asked": final.asked,
            "origins": final.origins,
        }
        plan = final.plan if final.plan is not None else plan_of(calls_of(content), around.tools)
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
        tasks = [{"index": index, "call": vars(call)} for index, call in enumerate(calls)]
        writing = [task for task, call in zip(tasks, calls, strict=True) if writes(call, around.tools)]
        sends = [Send("act", task) for task in tasks if task not in writing]
        return [*sends, Send("approve", {"tasks": writing})] if writing else sends

    async def act(task: dict[str, Any]) -> dict[str, Any]:
        outcome = await reported(get_stream_writer(), called(Call(**task["call"]), around))
        return {"results": [{**task, "response": outcome.response}]}

    async def approve(given: dict[str, Any]) -> dict[str, Any]:
        """One question for all that is to be written. Rendered afresh before it and again after it: the answer counts
        only for the same bytes in the place of the same files."""
        calls = [Call(**task["call"]) for task in given["tasks"]]
        proposals = [await proposed(call, around) for call in calls]
        ready = [proposal for proposal in proposals if isinstance(proposal, Proposal)]
        verdict = interrupt(storable({"calls": [proposal.question for proposal in ready]})) if ready else {}
        results: list[dict[str, Any]] = []
        for task, call, proposal in zip(given["tasks"], calls, proposals, strict=True):
            outcome = await reported(get_stream_writer(), settled(call, proposal, verdict, around))
            results.append({**task, "response": outcome.response})
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


def _send_back(figures: list[str]) -> str:
    return (
        f"These figures in your answer are in no tool result: {', '.join(figures)}. Write the "
        "answer again with figures from tool "
        "results only; call a tool if one is missing. Do not mention this message."
    )
