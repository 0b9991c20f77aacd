"""What is told of the memory that a model needs: the sum first, its parts, then which cards hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.answers.outcomes import joined, refused
from agent.offline.turn import TurnWork
from agent.wire import Outcome
from pages.answers import assumptions, lead, memory
from pages.answers.asked import named_figures
from pages.blocks import Folded, Prose
from planner.results import Limit, TrainingEstimate
from planner.serving.results import ServingEstimate


def compose(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """The answer and what it asks."""
    first, *limits = outcomes
    estimate = first.result
    if not isinstance(estimate, TrainingEstimate | ServingEstimate):
        blocks, asked = refused(first.error, work)
        return joined(blocks, work), asked
    serving = isinstance(estimate, ServingEstimate)
    cards = [(outcome.call.arguments["accelerator"], outcome.result) for outcome in limits]
    blocks = memory.need(estimate, [(card, limit if isinstance(limit, Limit) else None) for card, limit in cards])
    # A part that was asked for comes before the sum.
    asked_for = "" if serving else named_figures([estimate], work.figures)
    blocks = [*([Prose(asked_for)] if asked_for else []), *blocks]
    rest = assumptions.assumed([estimate], work.notes, layout=not serving)
    return joined([*lead.short(blocks, 2 if asked_for else 1), Folded(rest)], work), []
