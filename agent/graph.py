"""The one graph of the agent, whichever model thinks.

    hear -> think -> act (one task per call) ----> join -> think ... -> check -> done
                  -> approve (interrupt) --------/

`think` asks the model; calls of tools that only read go to `act` in parallel, those that write to `approve`, which
stops the run until the person has answered. `join` puts all responses, in the order of their calls, into one content.
`check` looks for figures without an origin: the model may rewrite once, then their sentences are left out.

What a language model streams is a draft until `check` has passed it: its pieces say so, and a `Discard` takes back what
was streamed since the last tool call or discard.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph.state import END, StateGraph
from langgraph.types import Overwrite, Send, interrupt

from agent.acting import Surroundings, called, proposed, reported, settled, writes
from agent.approval import Proposal
from agent.budget import Usage, left_tokens, used, why_none_left
from agent.events import Discard, Event, Remark, TextPiece, ToolCall
from agent.figures import headlines
from agent.grounding.check import mark, ungrounded
from agent.grounding.figures import Figure
from agent.grounding.own import own_figures
from agent.grounding.verdicts import Contradiction, contradictions, marked
from agent.grounding.verdicts import told as verdicts_told
from agent.grounding.withheld import withhold
from agent.history import person_words, shortened
from agent.models import ModelFailed, ThinkingModel, Thought, Turn, Waiting
from agent.plan_of_calls import plan_of
from agent.wire import (
    Call,
    Content,
    Outcome,
    answered,
    calls_of,
    first_calls,
    identified,
    repair,
    said,
    storable,
    text_of,
    thought,
    turn_outcomes,
    turn_start,
)
from pages.rendering.first_lines import held

RECURSION_LIMIT = 25
# Rounds of think, act and join in one turn; below the recursion limit, so that the turn ends with an answer.
_MOST_ROUNDS = 7
# Calls of one step.
_MOST_CALLS = 64
_TOO_LONG = "I stopped here because this took more tool calls than one answer should."


class State(TypedDict):
    """All plain JSON data. `heard` is the new utterance; `results` collects what the tools of this round gave;
    `reading` is the form of this turn, where the offline planner read it."""

    heard: str
    messages: Annotated[list[Content], operator.add]
    plan: dict[str, Any]
    topic: dict[str, Any]
    reading: dict[str, Any]
    results: Annotated[list[dict[str, Any]], operator.add]
    rounds: int
    rewritten: bool
    asked: list[str]
    origins: list[str]
    answer: str
    ungrounded: list[str]
    failure: str
    used: dict[str, Any]
    used_in_all: dict[str, Any]


def build(surroundings: Surroundings) -> Any:
    """The compiled graph; a run gives it its checkpointer."""
    graph = StateGraph(State)
    graph.add_node("hear", _hear)
    graph.add_node("think", partial(_think, surroundings))
    graph.add_node("act", partial(_act, surroundings))  # pyright: ignore[reportArgumentType]
    graph.add_node("approve", partial(_approve, surroundings))  # pyright: ignore[reportArgumentType]
    graph.add_node("join", _join)
    graph.add_node("check", partial(_check, surroundings))
    graph.set_entry_point("hear")
    graph.add_edge("hear", "think")
    graph.add_conditional_edges("think", partial(_route, surroundings), ["act", "approve", "check"])
    graph.add_edge("act", "join")
    graph.add_edge("approve", "join")
    graph.add_edge("join", "think")
    graph.add_conditional_edges("check", _after_check)
    return graph.compile()


def _hear(state: State) -> dict[str, Any]:
    messages = state.get("messages", [])
    before = shortened([*messages, *repair(messages)])
    # The planner knows its turn by where it starts, and that has moved.
    topic = {key: value for key, value in _topic(state).items() if key != "turn"}
    return {
        "messages": Overwrite([*before, said(state["heard"])]),
        "topic": topic,
        "reading": {},
        "results": Overwrite([]),
        "rounds": 0,
        "rewritten": False,
        "asked": [],
        "origins": [],
        "answer": "",
        "ungrounded": [],
        "failure": "",
        "used": {},
    }


async def _think(surroundings: Surroundings, state: State) -> dict[str, Any]:
    write = get_stream_writer()
    if state["rounds"] >= _MOST_ROUNDS:
        text = _stopped(state["messages"])
        write(TextPiece(text))
        return {"messages": [thought("shardwise", text)], "asked": []}
    tools = surroundings.tools
    before = used(state.get("used")), used(state.get("used_in_all"))
    left = left_tokens(*before) if surroundings.model else 0
    turn = Turn(state["messages"], state.get("plan", {}), _topic(state), tools, surroundings.now(), left)
    final, failed, usage = await _thought_of(surroundings, turn, write, state["failure"], why_none_left(*before))
    if final.notice:
        write(Remark(final.notice))
    content = storable(identified(_bounded(final.content, write), state["messages"]))
    calls = calls_of(content)
    changes: dict[str, Any] = {
        "messages": [content],
        "rounds": state["rounds"] + 1,
        "failure": failed,
        "used": asdict(before[0] + usage),
        "used_in_all": asdict(before[1] + usage),
        "asked": final.asked,
        "origins": final.origins,
    }
    plan = final.plan if final.plan is not None else plan_of(calls, tools)
    if plan is not None:
        changes["plan"] = storable(plan)
    if final.topic is not None:
        changes["topic"] = storable(final.topic)
        changes["reading"] = changes["topic"].get("reading", {})
    if (
        calls
        and not failed
        and surroundings.model
        and _unfounded({**state, "messages": [*turn.messages, content]}, True)
    ):
        # Words before a tool call are shown, not checked; with figures that nothing gave yet they are not shown.
        write(Discard())
    for call in calls:
        write(ToolCall(call.cleaned))
    return changes


async def _thought_of(
    surroundings: Surroundings, turn: Turn, write: Callable[[Event], None], failed: str, used_up: str
) -> tuple[Thought, str, Usage]:
    """What the model thinks, or the offline planner where there is no model, it fails or its budget is `used_up`; why
    that one has `failed` in this turn; and what was used."""
    usage = Usage()
    if surroundings.model is not None and not failed:
        try:
            if used_up:
                raise ModelFailed(used_up)
            final = await _thinking(surroundings.model, turn, write, draft=True)
            return final, "", final.usage
        except ModelFailed as failure:
            write(Discard())
            write(Remark(f"{failure} I go on with the offline planner.", bad=True))
            failed, usage = str(failure), failure.usage
    return await _thinking(surroundings.offline, turn, write, draft=False), failed, usage


def _bounded(content: Content, write: Callable[[Event], None]) -> Content:
    """With no more calls than one step may have."""
    count = len(calls_of(content))
    if count > _MOST_CALLS:
        write(Remark(f"The model asked for {count:,} calls at once; the first {_MOST_CALLS} are made."))
        return first_calls(content, _MOST_CALLS)
    return content


def _route(surroundings: Surroundings, state: State) -> Any:
    calls = calls_of(state["messages"][-1])
    if not calls:
        return "check"
    tasks = [{"index": index, "call": vars(call)} for index, call in enumerate(calls)]
    writing = [task for task, call in zip(tasks, calls, strict=True) if writes(call, surroundings.tools)]
    sends = [Send("act", task) for task in tasks if task not in writing]
    return [*sends, Send("approve", {"tasks": writing})] if writing else sends


async def _act(surroundings: Surroundings, task: dict[str, Any]) -> dict[str, Any]:
    outcome = await reported(get_stream_writer(), called(Call(**task["call"]), surroundings))
    return {"results": [{**task, "response": outcome.response}]}


async def _approve(surroundings: Surroundings, writing: dict[str, Any]) -> dict[str, Any]:
    """One question for all that is to be written. Rendered afresh before it and again after it: the answer counts
    only for the same bytes in the place of the same files."""
    calls = [Call(**task["call"]) for task in writing["tasks"]]
    proposals = [await proposed(call, surroundings) for call in calls]
    ready = [proposal for proposal in proposals if isinstance(proposal, Proposal)]
    verdict = interrupt(storable({"calls": [proposal.question.model_dump() for proposal in ready]})) if ready else {}
    results: list[dict[str, Any]] = []
    for task, call, proposal in zip(writing["tasks"], calls, proposals, strict=True):
        outcome = await reported(get_stream_writer(), settled(call, proposal, verdict, surroundings))
        results.append({**task, "response": outcome.response})
    return {"results": results}


def _join(state: State) -> dict[str, Any]:
    ordered = sorted(state["results"], key=lambda result: result["index"])
    outcomes = [Outcome(Call(**result["call"]), result["response"]) for result in ordered]
    return {"messages": [answered(outcomes)], "results": Overwrite([])}


def _check(surroundings: Surroundings, state: State) -> dict[str, Any]:
    write = get_stream_writer()
    messages = state["messages"]
    text = text_of(messages[-1])
    model = surroundings.model
    drafted = model is not None and messages[-1].get("by") == model.name
    unfounded = _unfounded(state, drafted)
    shown = list(dict.fromkeys(figure.text for figure in unfounded))
    outcomes = turn_outcomes(messages)
    denied = contradictions(text, outcomes, _asked(messages)) if drafted else []
    told = verdicts_told(outcomes) if drafted else ""
    if drafted and (unfounded or denied or told):
        write(Discard())
    if not unfounded and not denied:
        return {"answer": _laid_out(told, text), "ungrounded": []}
    if drafted and state["rounds"] < _MOST_ROUNDS and not state["rewritten"]:
        write(Remark(_why_rewritten(shown, denied)))
        return {"messages": [said(_send_back(shown, denied), by="check")], "rewritten": True}
    if drafted:
        # The sentences that deny a verdict first: what is left out of the rest moves them.
        text = marked(text, denied)
        text = withhold(text, _unfounded_in(text, state, drafted), () if told else outcomes)
    else:
        text = mark(text, unfounded)
    others = [part for part in messages[-1]["parts"] if "text" not in part]
    last = {**messages[-1], "parts": [*others, {"text": text}]}
    return {"messages": Overwrite([*messages[:-1], last]), "answer": _laid_out(told, text), "ungrounded": shown}


# Below the verdicts of the tools: no rule of language hears every sentence that denies one.
_MODEL_HEAD = "**What the model says of it**"


def _laid_out(told: str, text: str) -> str:
    """The answer as every face shows it: its first lines, and all else folded. `told` are the verdicts of the tools;
    what the model wrote stands apart from them, under a head of its own."""
    parts = (told, _MODEL_HEAD, text) if told and text else (told, text)
    return held("\n\n".join(part for part in parts if part))


def _after_check(state: State) -> str:
    """Back to the model where its answer was sent back, else the end."""
    messages = state.get("messages", [])
    return "think" if messages and messages[-1].get("by") == "check" else END


async def _thinking(model: ThinkingModel, turn: Turn, write: Callable[[Event], None], draft: bool) -> Thought:
    """Runs a model to the end of its step, passing a draft on as it comes, and what is no draft once it is whole."""
    async for piece in model.think(turn):
        if isinstance(piece, Thought):
            if not draft and (text := text_of(piece.content)):
                write(TextPiece(held(text)))
            return piece
        if isinstance(piece, Waiting):
            write(Remark(piece.text))
        elif draft:
            write(TextPiece(piece, draft))
    raise ModelFailed(f"The model {model.name} stopped without an answer.")


def _unfounded(state: Mapping[str, Any], drafted: bool) -> list[Figure]:
    """The figures in the last thing said that nothing in this turn gives."""
    return _unfounded_in(text_of(state["messages"][-1]), state, drafted)


def _unfounded_in(text: str, state: Mapping[str, Any], drafted: bool) -> list[Figure]:
    """Those in a text. What a language model `drafted` may rest on nothing but results and the person's own words; the
    offline planner writes with code, which tells of errors and plans as well."""
    messages = state["messages"]
    outcomes = turn_outcomes(messages)
    words = list(person_words(messages))
    if drafted:
        return ungrounded(text, [*own_figures(outcomes), {"plan": _topic(state).get("edited", {})}], words)
    results = [outcome.response for outcome in outcomes] + [{"plan": state.get("plan", {})}]
    return ungrounded(text, results, [*words, *state["origins"]])


def _topic(state: Mapping[str, Any]) -> dict[str, Any]:
    return state.get("topic", {})


def _asked(messages: list[Content]) -> str:
    start = turn_start(messages)
    return text_of(messages[start]) if start >= 0 else ""


def _stopped(messages: list[Content]) -> str:
    """What is said when a turn has taken too many calls: what they gave so far."""
    lines = "\n".join(f"- {line}" for line in dict.fromkeys(headlines(turn_outcomes(messages))))
    have = f"\n\nWhat I have so far:\n\n{lines}" if lines else ""
    return f"{_TOO_LONG}{have}\n\nAsk me for the part that you still need."


def _why_rewritten(figures: list[str], denied: list[Contradiction]) -> str:
    reasons = [f"had figures that no tool gave ({', '.join(figures)})"] if figures else []
    reasons += [f"denied a result ({'; '.join(dict.fromkeys(each.truth for each in denied))})"] if denied else []
    return f"The draft {' and '.join(reasons)}; it is rewritten."


def _send_back(figures: list[str], denied: list[Contradiction]) -> str:
    wrong = [f"These figures in your answer are in no tool result: {', '.join(figures)}."] if figures else []
    wrong += [f"You wrote {each.text!r}, but the tools say that {each.truth}." for each in denied]
    return (
        f"{' '.join(wrong)} Write the answer again with verdicts and figures from tool results only; call a tool if "
        "one is missing. Do not mention this message."
    )
