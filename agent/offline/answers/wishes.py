"""What the tools say that one question asks of: the verdict first, its figures, the why, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent.offline.answers.outcomes import (
    changes,
    is_told_again,
    joined,
    last_answered,
    refused,
    without_method,
)
from agent.offline.calls.training import method_taken
from agent.offline.calls.wishes import ROWS
from agent.offline.turn import TurnWork
from agent.wire import Outcome
from pages.answers import advice, assumptions, clusters, comparison, facts, files, lead, scenarios
from pages.blocks import Block, Folded, Prose
from pages.results import measured, runs
from pages.results.of_results import blocks_of
from planner.clusters.results import RecommendedCluster
from planner.compare.scenarios import Comparison

ANSWERS: dict[str, Callable[[Any], list[Block]]] = {
    "recommend_cluster": clusters.recommended,
    "auto_configure": clusters.configured,
    "compare": comparison.compared,
    "apply_strategies": comparison.strategies,
    "project_scaling": comparison.scaling,
    "peak_throughput": comparison.peak,
    "advise": advice.advice,
    "search_playbook": advice.playbook,
    "explain": files.explanation,
    "save_scenario": scenarios.saved,
    "load_scenario": scenarios.loaded,
    "list_scenarios": scenarios.listed,
    "delete_scenario": scenarios.deleted,
    "diff_scenarios": scenarios.differences,
    "list_catalogue": facts.catalogue,
    "report": files.report,
    "render_report": files.report_shown,
    "import_config": scenarios.imported,
    "benchmark_matrix": files.matrix,
    "matrix_results": files.measured,
    "rate_run": runs.rating,
    "read_run": runs.reading,
    "describe_machine": measured.machine,
    "render_scenario": files.plan_text,
    **dict.fromkeys(("add_price", "add_hardware", "add_model"), files.added),
    **dict.fromkeys(("preview_price", "preview_hardware", "preview_model"), files.shown),
}
# Tools whose assumptions are worth saying: they estimate.
_ASSUMING = ("recommend_cluster", "auto_configure", "compare", "apply_strategies", "project_scaling", "peak_throughput",
             "advise")  # fmt: skip


def compose(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """The answer; it asks nothing."""
    outcome, readings = last_answered(outcomes), work.notes
    name, result = outcome.call.name, outcome.result
    if result is None:
        return joined(refused(outcome.error, work)[0], work), []
    if isinstance(result, Comparison) and "why" in work.intents:
        told = comparison.reasons(result)
    elif isinstance(result, Comparison):
        told = comparison.compared(result, work.figures)
    else:
        told = ANSWERS.get(name, blocks_of)(result)
    stays = False
    if isinstance(result, RecommendedCluster) and (stays := is_told_again(outcomes, work)):
        told = clusters.unchanged(result)
    # Of a row that is shown its text is the answer.
    blocks = lead.short(told, 2 if name.startswith("preview_") and name in ROWS else 1, 0 if stays else lead.MOST_ROWS)
    if isinstance(result, RecommendedCluster) and not stays:
        blocks[1:1] = changes(outcomes, work)
    if work.methods and len(outcomes) > 1 and (taken := method_taken(outcomes)):
        blocks.insert(1, without_method(f"{taken} for all", "not all have room for all weights"))
    elif work.shared_format and len(outcomes) > 1:
        taken, why = " in ".join(work.shared_format.values()), "since not all have room for the published weights"
        blocks.insert(1, Prose(f"No weight format was named: {taken} is taken for all, {why}."))
    rest = [*assumptions.warnings([result]), *assumptions.assumed([result] if name in _ASSUMING else [], readings)]
    return joined([*blocks, Folded(rest)], work), []
