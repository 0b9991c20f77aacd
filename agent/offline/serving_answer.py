"""What is told of serving: the verdict first, then latency, throughput, memory, cost, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.answer import files_made
from agent.offline.outcomes import errors, joined, refused, result_of, results
from agent.reader.answers.serving import deployment
from agent.wire import Outcome
from pages.answers import assumptions, choice, limit, sweep
from planner.results import Limit
from planner.serving.results import MlperfProjection, ServingEstimate


def compose(plan: Mapping[str, Any], work: Mapping[str, Any], outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """The answer and what it asks. `work` is the planner's reading of the turn."""
    by_name = results(outcomes)
    if not by_name:
        blocks, asked = refused(next(iter(errors(outcomes).values()), None), work)
        return joined(blocks, work), asked
    if found := result_of(outcomes, MlperfProjection):
        blocks = choice.mlperf(found)
    elif "sweep" in by_name:
        blocks = sweep.describe(by_name["sweep"])
    elif found := result_of(outcomes, Limit):
        blocks = limit.serving(found)
    else:
        blocks = deployment(outcomes, set(work["intents"]), work["asked"])
    estimate = result_of(outcomes, ServingEstimate)
    fits = estimate is None or estimate.memory.fits
    blocks += files_made(outcomes, set(work["intents"]), not fits and not work["anyway"])
    blocks += assumptions.warnings(by_name.values())
    blocks += [assumptions.how_sure(next(iter(by_name.values())).evidence)] if fits else []
    blocks += assumptions.assumed(by_name.values(), work["notes"], layout=False)
    return joined(blocks, work), []
