"""What people put up with where a plan names no limit of latency: answers as fast as they read, and a start soon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from estimator.plan.schema import Plan
from knowledge.jobs.serving import PATIENT_TPOT_MS
from knowledge.machines.catalogue import find_accelerator
from planner.result import Assumption
from planner.serving.pool import Goal

TTFT_MS = 2000.0
_TOLD = {
    "workload.tpot_slo_ms": "20 tokens/s for each user, as no limit was named",
    "workload.ttft_slo_ms": "2 s to the first token, as no limit was named",
}
_SHORT = {
    "workload.tpot_slo_ms": "20 tokens/s for each user",
    "workload.ttft_slo_ms": "2 s to the first token",
}
Assumed = list[tuple[str, Any, str]]


def patient(plan: Plan, goal: Goal) -> tuple[Plan, Assumed]:
    """The plan with a person's limits where it has none and somebody waits for each answer, and what was assumed. A
    limit of the first token alone would let answers crawl; one of the others bounds the first, too."""
    workload = plan.inference
    if workload.tpot_slo_ms is not None or goal == "latency" or workload.scenario not in ("server", "interactive"):
        return plan, []
    limits = {"workload.tpot_slo_ms": PATIENT_TPOT_MS}
    limits |= {"workload.ttft_slo_ms": TTFT_MS} if workload.ttft_slo_ms is None else {}
    return plan.patch(limits), [(field, value, _TOLD[field]) for field, value in limits.items()]


def without_first(plan: Plan, assumed: Assumed) -> tuple[Plan, Assumed]:
    """The same without the limit of the first token, which no deployment meets with prompts of this length."""
    return _without(plan, assumed, "workload.ttft_slo_ms")


def relaxed(plan: Plan, assumed: Assumed) -> Iterator[tuple[Plan, Assumed]]:
    """The plan without one after the other of the limits that were assumed."""
    for field in ("workload.ttft_slo_ms", "workload.tpot_slo_ms"):
        if any(row[0] == field for row in assumed):
            plan, assumed = _without(plan, assumed, field)
            yield plan, assumed


def _without(plan: Plan, assumed: Assumed, field: str) -> tuple[Plan, Assumed]:
    return plan.patch({field: None}), [row for row in assumed if row[0] != field]


def kept(assumptions: Iterable[Assumption]) -> Assumed:
    """Those of an answer's assumptions that are a person's limits."""
    return [(row.field, row.value, row.why) for row in assumptions if row.why == _TOLD.get(row.field)]


def told(assumed: Assumed) -> list[str]:
    """What was assumed of a person's patience, as a sentence to begin with."""
    limits = [_SHORT[field] for field, *_ in assumed if field in _SHORT]
    named = "latency" if len(limits) > 1 else "speed per user"
    return [f"No limit on {named} was named; taken: {' and '.join(limits)}."] if limits else []


def taken(assumptions: Iterable[Assumption]) -> str:
    """The same beside a verdict that it decides; empty where limits were named, or none was needed."""
    limits = [_SHORT[field] for field, *_ in kept(assumptions)]
    return f"Assumed limits: {' and '.join(limits)}." if limits else ""


def beside(why: Iterable[str], assumptions: Iterable[Assumption]) -> list[str]:
    """The reasons of an answer without that sentence."""
    sentences = told(kept(assumptions))
    return [text for text in why if text not in sentences]


def alone(plan: Plan, accelerators: list[str] | None) -> bool:
    """Whether one person uses what is searched: one device of a kind that people have at home."""
    names = accelerators or ([plan.cluster.accelerator] if plan.cluster.accelerator else [])
    return (
        bool(names) and (plan.cluster.count or 1) == 1 and all(find_accelerator(name).value.personal for name in names)
    )
