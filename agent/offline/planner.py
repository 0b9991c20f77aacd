"""The offline planner as a thinking model: reads words into one form, calls the tools that the answer needs, answers.

It is deterministic and holds no state of its own: what it must remember between steps and turns is the session's
`topic`, plain data, which `agent.offline.begin` describes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from agent.models import Thought, Turn
from agent.offline import language
from agent.offline.answers import need as told_need
from agent.offline.answers import serving as told_serving
from agent.offline.answers import training as told_training
from agent.offline.answers import wishes as told_wishes
from agent.offline.answers.outcomes import summed
from agent.offline.begin import NAME, begin, pending, whole
from agent.offline.calls import need, serving, training, wishes
from agent.offline.catalogue import Catalogue, known
from agent.offline.form import Reading
from agent.offline.queued import in_a_row
from agent.offline.settling import searched, settled
from agent.offline.turn import AnsweredPart, TurnWork
from agent.wire import Call, Outcome, text_of, thought, turn_outcomes, turn_start
from estimator.plan.schema import merge
from knowledge.own.files import looked_at_once
from pages.answers import change
from pages.blocks import offered
from planner.compare.scenarios import Comparison
from planner.requests import ALL_PATHS
from planner.results import Limit
from tools.registry import Tool

Read = Callable[[str, Catalogue, Mapping[str, Any], Mapping[str, Any], datetime], Reading]
"""(text, catalogue, the session's partial plan, its topic, the clock) → the form."""
_Calls = list[tuple[str, dict[str, Any]]]
# Answers to limits that later questions are about, by find_limit's goal.
_REMEMBERED = {"devices": "fewest", "model": "largest"}


class OfflinePlanner:
    """Needs no key and no network. `catalogue` is Shardwise's own unless a test gives another, as `read` is."""

    name = NAME

    def __init__(self, catalogue: Catalogue | None = None, read: Read = language.read) -> None:
        self._catalogue, self._read = catalogue, read

    async def think(self, turn: Turn) -> AsyncIterator[str | Thought]:
        final = step(turn, self._catalogue or known(), self._read)
        if text := text_of(final.content):
            # Paragraph by paragraph, as a model would stream it.
            for number, paragraph in enumerate(text.split("\n\n")):
                yield paragraph if number == 0 else f"\n\n{paragraph}"
        yield final


def step(turn: Turn, catalogue: Catalogue, read: Read = language.read) -> Thought:
    """One step: the calls that are still needed, or the answer."""
    start = turn_start(turn.messages)
    current = turn.topic.get("turn")
    with looked_at_once():
        if current is None or current["start"] != start:
            return _begun(turn, text_of(turn.messages[start]), catalogue, read, AnsweredPart())
        return _gone_on(turn, turn.plan, turn.topic, catalogue, read)


def _begun(turn: Turn, words: str, catalogue: Catalogue, read: Read, before: AnsweredPart) -> Thought:
    """The first step of a question; `before` is what the turn asked before it."""
    start = turn_start(turn.messages)
    reading = read(words, catalogue, turn.plan, turn.topic, turn.now)
    reading = in_a_row(reading, lambda part: read(part, catalogue, {}, {}, turn.now), turn, catalogue)
    begun = begin(turn, start, reading, catalogue)
    if isinstance(begun, Thought):
        kept = begun.topic if begun.topic is not None else turn.topic
        told = Thought(begun.content, begun.plan, kept | {"reading": _plain(reading)}, begun.asked, begun.origins)
        return _with_the_next(turn, told, reading.then, catalogue, read, before)
    plan, topic = begun[0], begun[1] | {"reading": _plain(reading)}
    topic["turn"] |= {"answered": asdict(before), "then": reading.then}
    return _gone_on(turn, plan, topic, catalogue, read)


def _gone_on(turn: Turn, plan: dict[str, Any], topic: dict[str, Any], catalogue: Catalogue, read: Read) -> Thought:
    work = TurnWork(**topic["turn"])
    before = AnsweredPart(**work.answered)
    about = topic["supposed"] if work.supposed else plan
    # Calls that a language model made before it failed were about its own reading of the question.
    every = [outcome for outcome in turn_outcomes(turn.messages) if outcome.call.id.startswith(f"{NAME}-")]
    outcomes = every[before.calls :]
    calls = _CALLS[work.kind](about, work, outcomes, turn)
    if calls:
        numbered = [
            Call(f"{NAME}-{work.start}-{len(every) + index}", name, arguments)
            for index, (name, arguments) in enumerate(calls)
        ]
        return Thought(thought(NAME, calls=numbered), plan, topic)
    told = _concluded(plan, topic, about, work, outcomes)
    return _with_the_next(turn, told, work.then, catalogue, read, replace(before, calls=len(every)))


def _with_the_next(
    turn: Turn, told: Thought, then: str, catalogue: Catalogue, read: Read, before: AnsweredPart
) -> Thought:
    """An answer behind those before it in a turn; with another question in it, that one's first step."""
    text = "\n\n".join(filter(None, (before.text, text_of(told.content))))
    asked, origins = [*before.asked, *told.asked], [*before.origins, *told.origins]
    if not then:
        return replace(told, content=thought(NAME, text), asked=asked, origins=origins) if before.text else told
    plan = turn.plan if told.plan is None else told.plan
    topic = turn.topic if told.topic is None else told.topic
    answered = AnsweredPart(text, asked, origins, before.calls)
    return _begun(replace(turn, plan=plan, topic=topic), then, catalogue, read, answered)


def _concluded(
    plan: dict[str, Any], topic: dict[str, Any], about: dict[str, Any], work: TurnWork, outcomes: list[Outcome]
) -> Thought:
    if work.frameworks and (framework := training.chosen_framework(outcomes)):
        about = merge(about, {"workload.framework": framework})
        plan, topic = (plan, topic | {"supposed": about}) if work.supposed else (about, topic)
        tried = ", ".join(work.frameworks)
        work = replace(work, lead=[*work.lead, f"{framework} taken instead, the best of {tried} for this run"])
    if taken := _taken_instead(about, work, outcomes):
        about = merge(about, taken)
        plan, topic = (plan, topic | {"supposed": about}) if work.supposed else (about, topic)
    text, asked = _ANSWERS[work.kind](about, work, outcomes)
    earlier = change.values(change.ShortAnswer(**work.earlier))
    origins = [*work.notes, *work.lead, *work.unread, *earlier, *offered(text)]
    before, kept = work.before
    failed = bool(outcomes) and not any(_answered(outcome) for outcome in outcomes)
    if failed and whole(before) and not kept.get("failed"):
        # A turn that fails changes nothing; what it had in mind is there for a correction.
        mind = {"pending": pending(about, topic, work.supposed, _wrong(topic, outcomes))} if about != before else {}
        return Thought(thought(NAME, text), before, {**kept, **mind, **_last(topic)}, asked, origins)
    if work.kind == "wish":
        plan, topic = settled(plan, topic, outcomes)
    if work.kind == "serving" or "layout" in work.intents or work.sweep:
        topic = topic | searched(outcomes)
    if told := summed(outcomes):
        topic = topic | {"told": asdict(told)}
    limits = [outcome.result for outcome in outcomes if isinstance(outcome.result, Limit)]
    answers = {_REMEMBERED[limit.goal]: limit.value for limit in limits if limit.goal in _REMEMBERED and limit.value}
    return Thought(thought(NAME, text), plan, topic | answers | {"failed": failed}, asked, origins)


def _taken_instead(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome]) -> dict[str, str]:
    """{path: value} of what was told where none was named and the usual has no room."""
    if work.methods and (method := training.method_taken(outcomes)):
        return {"workload.method": method}
    taken = serving.format_with_room(plan, outcomes) if work.format_open else {}
    if len(outcomes) > 1:
        taken = taken or work.shared_format
    return {ALL_PATHS[name]: value for name, value in taken.items()}


def _wrong(topic: Mapping[str, Any], outcomes: list[Outcome]) -> list[str]:
    """The fields that a correction may say: those that were said, where one of them is what is wrong; else any, since
    what was said may be meant and something else be in its way."""
    fields = [edit["field"] for edit in topic["reading"]["edits"]]
    named = {outcome.error.partition(":")[0] for outcome in outcomes if outcome.error}
    return fields if named & {ALL_PATHS.get(name, name) for name in fields} else []


def _answered(outcome: Outcome) -> bool:
    """Whether a call gave a figure: a comparison of what cannot be is none."""
    result = outcome.result
    return result is not None and not (isinstance(result, Comparison) and all(row.error for row in result.rows))


def _last(topic: Mapping[str, Any]) -> dict[str, Any]:
    """What of this turn belongs to no plan."""
    return {name: topic[name] for name in ("turn", "reading") if name in topic}


def _plain(reading: Reading) -> dict[str, Any]:
    """The form as plain data, without the words: those are in the conversation."""
    return {name: value for name, value in asdict(reading).items() if name != "text"}


def _each(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome], tools: Mapping[str, Tool]) -> _Calls:
    return [] if outcomes else [(name, arguments) for name, arguments in work.calls]


def _wish(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome], turn: Turn) -> _Calls:
    tool, own = work.wish
    instead: dict[str, str] = {}
    if outcomes:
        more = [
            *({"method": method} for method in work.methods),
            *([work.shared_format] if work.shared_format else []),
        ][len(outcomes) - 1 :]
        compared = outcomes[-1].result
        if not more or not isinstance(compared, Comparison) or all(row.error or row.fits for row in compared.rows):
            return []
        instead = more[0]
    return [(tool, wishes.arguments(tool, own, plan, work.pricing, turn.tools, turn.messages) | instead)]


def _chain(next_calls: Callable[..., _Calls]) -> Callable[..., _Calls]:
    """A chain of calls goes by the tools that there are."""
    return lambda plan, work, outcomes, turn: next_calls(plan, work, outcomes, turn.tools)


_CALLS: Mapping[str, Callable[..., _Calls]] = {
    "each": _each,
    "wish": _wish,
    "need": _chain(need.next_calls),
    "serving": _chain(serving.next_calls),
    "training": _chain(training.next_calls),
}
_ANSWERS: Mapping[str, Callable[..., tuple[str, list[str]]]] = {
    "each": told_training.each,
    "wish": told_wishes.compose,
    "need": told_need.compose,
    "serving": told_serving.compose,
    "training": told_training.compose,
}
