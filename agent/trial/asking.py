"""What a configured language model can do, found out by asking it: one step for each question of ours, no tool is run.

A question's score is the share of what it takes: the right tool for each call, and each argument that the question
says. Arguments are compared as the tool reads them, so that a name's other spellings and `8xh100` are as good.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import BaseModel

from agent.budget import Usage
from agent.models import ModelFailed, ThinkingModel, Thought, Turn
from agent.wire import Call, calls_of, has_thoughts, said, text_of
from estimator.errors import PlanError
from knowledge.machines.counted import find_devices
from knowledge.models.catalogue import find_model
from planner.requests import ALL_PATHS, PlanArguments
from tools.registry import find, registry


@dataclass(frozen=True)
class WantedCall:
    """A call that a question takes, of any of these tools."""

    tools: Sequence[str]
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class TrialQuestion:
    text: str
    calls: Sequence[WantedCall]


@dataclass(frozen=True)
class Tried:
    """What a model did with a question. `pieces` is in how many its text came, `wrong` what is not as it should be."""

    question: TrialQuestion
    score: float
    calls: Sequence[str] = ()
    wrong: Sequence[str] = ()
    pieces: int = 0
    thinks: bool = False
    failure: str = ""
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)


@cache
def questions() -> tuple[TrialQuestion, ...]:
    rows = yaml.safe_load(files("agent.trial").joinpath("questions.yaml").read_text(encoding="utf-8"))
    return tuple(_question(**row) for row in rows)


def _question(ask: str, calls: Sequence[Mapping[str, Any]]) -> TrialQuestion:
    return TrialQuestion(ask, [_wanted(**call) for call in calls])


def _wanted(tool: str, arguments: Mapping[str, Any]) -> WantedCall:
    return WantedCall(tool.split(), arguments)


async def tried(model: ThinkingModel, asked: Sequence[TrialQuestion]) -> AsyncIterator[Tried]:
    """One after the other, as answers come. A model that fails is told with its sentence, and asked the next."""
    for question in asked:
        start = time.monotonic()
        try:
            result = await _asked(model, question)
        except ModelFailed as failure:
            result = Tried(question, 0.0, failure=str(failure), seconds=time.monotonic() - start, usage=failure.usage)
        yield result


async def _asked(model: ThinkingModel, question: TrialQuestion) -> Tried:
    start = time.monotonic()
    turn = Turn([said(question.text)], {}, {}, registry(), datetime.now(UTC))
    pieces, final = 0, None
    async for piece in model.think(turn):
        pieces += isinstance(piece, str)
        final = piece if isinstance(piece, Thought) else final
    if final is None:
        raise ModelFailed("The model ended without an answer.")
    calls = calls_of(final.content)
    score, wrong = scored(question, calls, text_of(final.content))
    names = [call.name for call in calls]
    return Tried(
        question, score, names, wrong, pieces, has_thoughts(final.content), "", time.monotonic() - start, final.usage
    )


def scored(question: TrialQuestion, calls: Sequence[Call], text: str) -> tuple[float, list[str]]:
    """From 0 to 1, and what is missing from it."""
    if not question.calls:
        wrong = [f"called {call.name}"[:60] for call in calls] or ([] if text.strip() else ["said nothing"])
        return float(not wrong), wrong
    left, points, most, wrong = list(calls), 0, 0, []
    for wanted in question.calls:
        most += 1 + len(wanted.arguments)
        same = [call for call in left if call.name in wanted.tools]
        if not same:
            wrong.append(f"did not call {wanted.tools[0]}")
            continue
        best, missing = min(((call, _missing(wanted, call)) for call in same), key=lambda pair: len(pair[1]))
        left.remove(best)
        points += 1 + len(wanted.arguments) - len(missing)
        wrong += missing
    return points / most, wrong


def _missing(wanted: WantedCall, call: Call) -> list[str]:
    """The arguments that are not as the question says them."""
    tool = find(call.name)
    try:
        read = tool.parse(call.arguments)
        told = tool.parse({**call.arguments, **wanted.arguments})
        values = {name: (_value(read, name), _value(told, name)) for name in wanted.arguments}
    except PlanError as error:
        return [f"{name}: {error}"[:200] for name in wanted.arguments]
    return [f"{name}: {value!r} for {right!r}"[:200] for name, (value, right) in values.items() if value != right]


def _value(request: BaseModel, name: str) -> Any:
    """An argument as the plan has it; models and devices by their ids in the catalogues, '8xh100' as eight of them."""
    value: Any = getattr(request, name)
    if isinstance(request, PlanArguments) and name in ALL_PATHS:
        plan: Any = request.to_plan()
        for part in ALL_PATHS[name].split("."):
            plan = getattr(plan, part, None)
        value = plan
        if name == "count" and value is None and (device := request.to_plan().cluster.accelerator):
            value = find_devices(device).count
    if name == "model" and isinstance(value, str):
        return find_model(value).value.id
    if name == "accelerator" and isinstance(value, str):
        return find_devices(value).match.value.id
    return value
