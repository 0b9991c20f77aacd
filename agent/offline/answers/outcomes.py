"""What the tools of a turn answered, by type; and what is said where they did not, or where words had no place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from agent.offline.answers.talk import not_placed
from agent.offline.turn import TurnWork
from agent.wire import DECLINED, Outcome
from pages.answers import lead, limit
from pages.answers.change import PRICE, ShortAnswer, changed, differing, moved, summary
from pages.answers.clusters import first_cluster
from pages.blocks import Block, Folded, Headline, Prose, Steps, ranked
from pages.rendering import markdown
from pages.results.basis import notes
from planner.clusters.results import RecommendedCluster
from planner.money.results import CostEstimate
from planner.results import Limit, TrainingEstimate
from planner.serving.results import ServingEstimate
from planner.training.length import DATA

Result = TypeVar("Result", bound=BaseModel)


def result_of(outcomes: Sequence[Outcome], kind: type[Result]) -> Result | None:
    """The last result of that type."""
    return next((outcome.result for outcome in reversed(outcomes) if isinstance(outcome.result, kind)), None)


def last_answered(outcomes: Sequence[Outcome]) -> Outcome:
    """The last that gave a result; the first where none did."""
    return next((outcome for outcome in reversed(outcomes) if outcome.result is not None), outcomes[0])


def results(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The last result of each tool by the tool's name."""
    return {outcome.call.name: outcome.result for outcome in outcomes if outcome.result is not None}


def errors(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """What each tool refused, by the tool's name."""
    return {outcome.call.name: outcome.error for outcome in outcomes if outcome.error}


def summed(outcomes: Sequence[Outcome]) -> ShortAnswer | None:
    """The run, deployment, limit or cluster that an answer was about, in short."""
    limits = [outcome.result for outcome in outcomes if isinstance(outcome.result, Limit)]
    if limits and limits[0] is outcomes[0].result and (len(limits) == 1 or limits[0].value is None):
        return limit.summary(limits[-1])
    if (clusters := result_of(outcomes, RecommendedCluster)) and clusters.options:
        return first_cluster(clusters)
    estimate = result_of(outcomes, TrainingEstimate) or result_of(outcomes, ServingEstimate)
    return summary(estimate, result_of(outcomes, CostEstimate)) if estimate else None


def is_told_again(outcomes: Sequence[Outcome], work: TurnWork) -> bool:
    """Whether the answer before was about the same run or deployment, at whatever price."""
    now = summed(outcomes)
    other = differing(ShortAnswer(**work.earlier), now) if now and work.earlier else None
    return other is not None and set(other) <= {PRICE}


def changes(outcomes: Sequence[Outcome], work: TurnWork) -> list[Block]:
    """What a follow-up changed, beside the answer before; where it set what was so already, that."""
    now = summed(outcomes)
    if not (now and work.earlier):
        return []
    before = ShortAnswer(**work.earlier)
    if work.edited and before == now:
        return [Prose("No change from the previous answer.")]
    return changed(before, now, _first(work))


def told_beside(outcomes: Sequence[Outcome], work: TurnWork) -> list[str]:
    """The figures that these changes tell."""
    now = summed(outcomes)
    return moved(ShortAnswer(**work.earlier), now, _first(work)) if now and work.earlier else []


def _first(work: TurnWork) -> str:
    if work.figures:
        return work.figures[0].rpartition(".")[2]
    return "memory" if "fit" in work.intents else ""


def without_method(taken: str, why: str) -> Prose:
    """Which method is told, where none was named."""
    return Prose(f"No method was named: {taken} is taken, since {why}.")


ASK_DATA = (
    "**How many tokens will it train on?** Hours, money and a deadline depend on it: say how many tokens, how many "
    "samples of which length, or how many steps."
)


def refused(error: str | None, work: TurnWork) -> tuple[list[Block], list[str]]:
    """The blocks of an answer that there is not, and what it asks. `work` is the planner's reading of the turn."""
    problem = error or "no tool gave a result"
    if problem == DECLINED:
        return [Headline("Nothing was written: it was not approved.", None, beware=True), *notes("", work.notes)], []
    if problem.startswith(f"{DATA}: is required"):
        return [Prose(ASK_DATA), *notes("", work.notes)], [problem]
    return [Prose(f"I cannot do that as asked: {in_words(problem)}"), *notes("", work.notes), *_instead(problem)], [
        problem
    ]


_FIELD, _VALID = re.compile(r"^[a-z_]+(\.[a-z_]+)*: "), re.compile(r"; valid: (?=[^;]*$)")


def in_words(problem: str) -> str:
    """An error's sentence without where the field stands in a plan: 'torchtitan has no lora. Valid: full.'"""
    what, *valid = _VALID.split(_FIELD.sub("", problem))
    if not valid:
        return f"{what.rstrip('.')}."
    names = valid[0].rstrip(".").split(", ")
    more = f" and {len(names) - _MOST_VALID} more" if len(names) > _MOST_VALID + 1 else ""
    return f"{what}. Valid: {', '.join(names[:_MOST_VALID] if more else names)}{more}."


_DEGREE = re.compile(r"layout\.(\w+): .*?\b\1[= ](\d+) .*; valid: ([\d ]+)$")
_MOST_INSTEAD, _MOST_VALID = 3, 6


def _instead(problem: str) -> list[Block]:
    """The nearest degrees that can be, where one cannot."""
    if not (degree := _DEGREE.match(problem)):
        return []
    name, wrong, valid = degree[1], int(degree[2]), map(int, degree[3].split())
    near = sorted(sorted(valid, key=lambda value: abs(value - wrong))[:_MOST_INSTEAD])
    return [Steps([f"use {name} {value}" for value in near])]


def joined(blocks: Sequence[Block], work: TurnWork) -> str:
    """The answer in Markdown. What was not understood comes first, since it decides whether the answer is one to the
    question; what had to be assumed to understand the rest ends the lead."""
    front, behind = ranked(blocks)
    unread = [Prose(not_placed(work.unread))] if work.unread else []
    return markdown.render([*unread, *front, *lead.read_as(work.lead), Folded(behind)])
