"""What is told of the memory that a model needs: the sum first, its parts, then which cards hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.answers.outcomes import joined, refused
from agent.offline.turn import TurnWork
from agent.wire import Outcome
from pages.answers import assumptions, lead, memory
from pages.blocks import Folded
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
    rest = assumptions.assumed([estimate], work.notes, layout=not serving)
    return joined([*lead.short(blocks), Folded(rest)], work), []
