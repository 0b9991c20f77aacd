"""The figures that matter most in a tool's result, each with its unit: for a summary, or where an answer cannot be
trusted with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agent.wire import Outcome
from pages.answers import headline as told

_FIGURES: dict[str, Callable[[Any], list[str]]] = {
    "estimate_training": told.training,
    "estimate_inference": told.serving,
    "check_fit": told.fit,
    "find_limit": told.limit,
    "best_parallelism": told.layout,
    "best_serving": told.deployment,
    "size_serving": told.deployment,
    "estimate_cost": told.cost,
    "recommend_cluster": told.recommended,
    "auto_configure": told.plan,
    "compare": told.compared,
    "apply_strategies": told.strategies,
    "import_config": told.plan,
}


def headline(outcome: Outcome) -> str:
    """One line: what was called about which run, and its main figures ('' when it gave none)."""
    name = outcome.call.name
    if outcome.error:
        return f"{name}: refused ({outcome.error[:200]})"
    about, parts = figures_of(outcome)
    return f"{name}{f' of {about}' if about else ''}: {', '.join(parts)}" if parts else ""


def figures_of(outcome: Outcome) -> tuple[str, list[str]]:
    """Of which run a result tells, and its main figures."""
    name, result = outcome.call.name, outcome.result
    parts = _FIGURES[name](result) if name in _FIGURES and result is not None else []
    return told.subject(getattr(result, "plan", None)), parts


def headlines(outcomes: Iterable[Outcome]) -> list[str]:
    return [line for outcome in outcomes if (line := headline(outcome))]
