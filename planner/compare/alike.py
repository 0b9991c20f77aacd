"""What scenarios that are compared have alike: batch, framework and layout of the first, as far as what they vary
leaves them open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from estimator.plan.schema import Plan
from estimator.plan.training.job import ADAPTER_METHODS
from planner.fields import leaves, value_at
from planner.training.planned import Planned

# Where these are varied it is another training.
_ANOTHER = ("model", "workload.kind", "workload.seq_len", "workload.global_batch")
# Stages have batches of their own.
_STAGE = "workload.stage"
# Where these are, each runs in the framework that suits it, and is split anew.
_ELSEWHERE = ("cluster.accelerator", "workload.framework")
_SPLITS = ("workload.method", "workload.micro_batch", "workload.packing")


def as_the_first(first: Planned, asked: Plan, plan: Plan) -> Iterator[Plan]:
    """The plan with what the first, which was `asked` for, has and it leaves open, the most first: on the same
    accelerator the framework and, where no more than a switch is varied, the layout; in any case the batch."""
    before, own = dict(leaves(asked.given())), dict(leaves(plan.given()))
    varied = [path for path in {*before, *own} if before.get(path) != own.get(path)]
    if not varied or any(path.startswith(_ANOTHER) for path in varied):
        return
    batch: dict[str, Any] = {}
    if _STAGE not in varied:
        batch = {"workload.seq_len": first.job.seq_len, "workload.global_batch": first.job.global_batch}
    adapters = are_adapters([asked, plan])
    for held in ({**batch, **_held(first, varied, adapters)}, batch):
        if kept := {path: value for path, value in held.items() if value is not None and own.get(path) is None}:
            yield plan.patch(kept)


def are_adapters(plans: Sequence[Plan | None]) -> bool:
    """Whether all plans name ways of training adapters, which differ in what is loaded more than in how it is split."""
    return all(plan and value_at(plan.given(), "workload.method") in ADAPTER_METHODS for plan in plans)


def _held(first: Planned, varied: list[str], adapters: bool) -> dict[str, Any]:
    if any(path.startswith(_ELSEWHERE) for path in varied):
        return {}
    held: dict[str, Any] = {"workload.framework": first.job.framework.name}
    splits = [path for path in _SPLITS if not (adapters and path == "workload.method")]
    if all(path.startswith("workload.") and not path.startswith(tuple(splits)) for path in varied):
        chosen = first.plan
        held |= {f"layout.{name}": getattr(chosen.layout, name) for name in type(chosen.layout).model_fields}
        held["workload.micro_batch"] = chosen.training.micro_batch
        held["workload.fused_loss"] = first.job.fused_loss or None
    return held
