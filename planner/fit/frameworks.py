"""What fits on the devices that there are, once framework, layout, host memory, loss and optimizer are all free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from estimator.plan.schema import Layout, Plan
from knowledge.offers import movable_to
from planner.results import Remedy
from planner.training.concessions import CONCESSIONS
from planner.training.planned import Planned, first_that_fits

_MOST_TOLD = 3


def movable(planned: Planned, method: str) -> list[str]:
    """Frameworks that have the plan with a method, the plan's own first."""
    job = planned.job
    able = movable_to(job, method)
    own, limits = job.framework.name, job.framework.limits
    return [own, *(name for name in able if name != own)] if method in limits.methods_of(job.training.stage) else able


def other_ways(planned: Planned, asked: Plan) -> list[Remedy]:
    """For a plan that does not fit the fastest ways in which it does on the same devices, each of another framework;
    that of the plan's own is always told.

    Each is the best layout of the whole search, host memory included, with as little given up besides as is enough.
    """
    own, ways = planned.job.framework.name, list[tuple[bool, int, Remedy]]()
    for name in movable(planned, planned.job.training.method):
        ways += [(name != own, level, remedy) for level, remedy in _first_that_fits(planned, asked, name)]
    ordered = sorted(ways, key=lambda row: (row[0], row[1], row[2].slowdown))
    return [remedy for _, _, remedy in ordered[:_MOST_TOLD]]


def _first_that_fits(planned: Planned, asked: Plan, name: str) -> Iterator[tuple[int, Remedy]]:
    """(How much is given up, the change) for one framework; nothing where it never fits."""
    free: dict[str, Any] = {"layout": dict.fromkeys(Layout.model_fields), "workload.micro_batch": None}
    # Then the way down the ladder was the same.
    as_asked = not asked.layout.model_fields_set and asked.training.micro_batch is None
    batch, names = planned.job.global_batch, [name]
    for level, concession in enumerate(CONCESSIONS):
        if (as_asked and concession in planned.hopeless) or not concession.is_for(asked.training.stage):
            continue
        if "workload.optimizer" in concession.changes and not _has_moments(planned):
            continue
        changes: dict[str, Any] = {"workload.framework": name, "workload.global_batch": batch, **concession.changes}
        if asked.training.global_batch is None and "workload.optimizer_in_backward" in concession.changes:
            # A step is one micro-batch then.
            changes["workload.global_batch"] = None
        other = first_that_fits(asked, free | changes, [name] if concession.changes_states else names)
        if other is None:
            continue
        patch = changes | {
            "layout": other.plan.layout.model_dump(mode="json"),
            "workload.micro_batch": other.plan.training.micro_batch,
        }
        how = ", ".join(filter(None, (other.estimates.layouts.summary(other.index), concession.words)))
        before, after = (float(each.estimates.memory.total[each.index]) for each in (planned, other))
        seconds = [
            float(each.estimates.step.seconds[each.index]) / each.job.tokens_per_step for each in (planned, other)
        ]
        yield (
            level,
            Remedy(
                patch=patch,
                what=f"{name}: {how}",
                why=f"the fastest of {other.search.valid} layouts of {name} that fits, with all of these together",
                per_device_bytes=after,
                saves_bytes=before - after,
                fits=True,
                slowdown=seconds[1] / seconds[0],
            ),
        )
        return


def _seconds_per_token(planned: Planned) -> float:
    return float(planned.estimates.step.seconds[planned.index]) / planned.job.tokens_per_step


def _has_moments(planned: Planned) -> bool:
    return planned.job.training.optimizer == "adamw" and not planned.job.uses_adapters
