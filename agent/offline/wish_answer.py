"""Answers of the tools that one question asks of: the verdict first, then its figures, the why, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent.offline import decision_answers, record_answers, sections
from agent.offline.small_talk import not_placed
from agent.wire import Outcome
from pages import figures

_ANSWERS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "recommend_cluster": decision_answers.clusters,
    "auto_configure": decision_answers.configured,
    "compare": decision_answers.compared,
    "apply_strategies": decision_answers.strategies,
    "project_scaling": decision_answers.scaling,
    "peak_throughput": decision_answers.peak,
    "advise": decision_answers.advice,
    "search_playbook": record_answers.playbook,
    "explain": record_answers.explained,
    "save_scenario": record_answers.saved,
    "load_scenario": record_answers.loaded,
    "list_scenarios": record_answers.listed,
    "delete_scenario": record_answers.deleted,
    "diff_scenarios": record_answers.differences,
    "list_catalogue": record_answers.catalogue,
    "report": record_answers.report,
    "import_config": record_answers.imported,
    "benchmark_matrix": record_answers.matrix,
    "matrix_results": record_answers.measured,
}
# Tools whose assumptions are worth saying: they estimate.
_ASSUMING = (
    "recommend_cluster",
    "auto_configure",
    "compare",
    "apply_strategies",
    "project_scaling",
    "peak_throughput",
    "advise",
)


def compose(work: Mapping[str, Any], outcomes: list[Outcome]) -> str:
    outcome, notes = outcomes[0], list(work.get("notes", []))
    unread = [not_placed(work["unread"])] if work.get("unread") else []
    if outcome.error:
        said = ["\n".join(f"- {note}" for note in notes)] if notes else []
        return "\n\n".join([f"I cannot work that out as asked. {outcome.error}", *said, *unread])
    name, found = outcome.call.name, outcome.response
    describe = _ANSWERS.get(name, record_answers.plain)
    blocks = describe(found)
    if name != "search_playbook":
        blocks += sections.warnings({name: found})
    if name in _ASSUMING:
        blocks += _assumed(found, notes)
    elif notes:
        blocks += sections.assumptions([], notes)
    return "\n\n".join([*blocks, *unread])


def _assumed(found: Mapping[str, Any], notes: list[str]) -> list[str]:
    """How words were read, and the values that were not said, in one line: these answers are about something else."""
    values: dict[str, str] = {}
    for item in found.get("assumptions", []):
        searched = item["field"].startswith("layout.") and "search" in item["why"]
        if not searched and item["value"] != "auto" and item["field"].startswith(("workload.", "cluster.")):
            values.setdefault(item["field"].rpartition(".")[2].replace("_", " "), figures.plain(item["value"]))
    lines = [f"- {note}" for note in notes]
    lines += [f"- {', '.join(f'{name} {value}' for name, value in values.items())}"] if values else []
    return ["\n".join(["Assumed:", *lines])] if lines else []
