"""What the tools say that one question asks of: the verdict first, its figures, the why, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.outcomes import joined, refused
from agent.reader.answers.wishes import ANSWERS
from agent.wire import Outcome
from pages.answers import assumptions, files

# Tools whose assumptions are worth saying: they estimate.
_ASSUMING = ("recommend_cluster", "auto_configure", "compare", "apply_strategies", "project_scaling", "peak_throughput",
             "advise")  # fmt: skip


def compose(work: Mapping[str, Any], outcomes: list[Outcome]) -> str:
    outcome, readings = outcomes[0], work.get("notes", [])
    name, result = outcome.call.name, outcome.result
    if result is None:
        return joined(refused(outcome.error, work)[0], work)
    blocks = [*ANSWERS.get(name, files.row)(result), *assumptions.warnings([result])]
    blocks += assumptions.assumed([result] if name in _ASSUMING else [], readings)
    return joined(blocks, work)
