"""What the planning tools share: a Plan looked up, estimated, and put into the shape of the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator.defaults import framework_choices
from estimator.errors import PlanError
from estimator.job import Job
from estimator.layouts import Layouts
from estimator.plan import Plan
from estimator.search import candidates, objective_order
from estimator.training import Estimates, bottleneck, estimate, stages_of, warnings
from knowledge.jobs import job as look_up
from tools.results import (
    Assumption,
    Evidence,
    LayoutChoice,
    MemoryEstimate,
    RunLength,
    StageMemory,
    Throughput,
    TimeEstimate,
)

_SEARCHED = "the best of the layouts searched"


@dataclass(frozen=True)
class Planned:
    """A plan's estimates: all candidates, their order, and `index`, the one the answer is about."""

    job: Job
    estimates: Estimates
    order: np.ndarray
    index: int

    @property
    def searched(self) -> bool:
        return len(self.estimates.layouts) > 1

    @property
    def fits(self) -> bool:
        return bool(self.estimates.fits[self.index])

    @property
    def score(self) -> float:
        """What the goal makes small: memory, or the time of a step."""
        if self.job.plan.goal.objective == "memory":
            return float(self.estimates.high_bytes[self.index])
        return float(self.estimates.step.seconds[self.index])

    @property
    def plan(self) -> Plan:
        """The complete plan, with the chosen layout and micro-batch."""
        row = self.estimates.layouts.row(self.index)
        micro = int(self.estimates.layouts.micro_batch[self.index])
        return self.job.plan.patch({"layout": row, "workload.micro_batch": micro})

    @property
    def assumptions(self) -> list[Assumption]:
        """What was filled in by look-up, by defaults and by the search."""
        found = [Assumption(field=a.field, value=a.value, why=a.why) for a in self.job.assumptions]
        given = self.job.plan.layout.model_fields_set
        layout = self.plan.layout
        why = _SEARCHED if self.searched else "follows from the other sizes"
        for name in type(layout).model_fields:
            value = getattr(layout, name)
            if name not in given and value is not None:
                found.append(Assumption(field=f"layout.{name}", value=value, why=why))
        if self.job.training.micro_batch is None:
            micro = int(self.estimates.layouts.micro_batch[self.index])
            found.append(Assumption(field="workload.micro_batch", value=micro, why=why))
        goal = self.job.plan.goal
        if "objective" not in goal.model_fields_set:
            why = "layouts are ranked by speed unless another goal is named"
            found.append(Assumption(field="goal.objective", value=goal.objective, why=why))
        return found


def planned(plan: Plan, *, every_framework: bool = False) -> Planned:
    """Estimates of `plan`: of its layout where it names one whole, else of all layouts that agree with it.

    Where the plan leaves the framework open, the usual one is taken, and another where that does not fit (or, with
    `every_framework`, whichever does best).
    """
    first = look_up(plan)
    best = _choose(first, candidates(first))
    if plan.training.framework != "auto":
        return best
    for choice in framework_choices(plan, first.machine.accelerator, first.machine.count)[1:]:
        if best.fits and not every_framework:
            break
        try:
            job = look_up(plan, choice)
            other = _choose(job, candidates(job))
        except PlanError:
            continue
        if other.fits and (not best.fits or other.score < best.score):
            best = other
    return best


def _choose(job: Job, layouts: Layouts) -> Planned:
    estimates = estimate(job, layouts)
    order = objective_order(estimates)
    return Planned(job, estimates, order, int(order[0]))


def varied(plan: Plan, changes: Mapping[str, Any]) -> Planned | None:
    """As `planned` for the changed plan, but None where that cannot be; used to try variations of a valid plan."""
    try:
        return planned(plan.patch(changes))
    except PlanError:
        return None


def complete(planned: Planned) -> dict[str, Any]:
    return planned.plan.model_dump(mode="json")


def memory_of(planned: Planned) -> MemoryEstimate:
    estimates, index = planned.estimates, planned.index
    one = estimates.layouts.take(np.array([index]))
    components = {name: float(values[index]) for name, values in estimates.memory.components.items()}
    decisive = {name: size for name, size in components.items() if name != "allocator_slack"}
    return MemoryEstimate(
        per_device_bytes=float(estimates.memory.total[index]),
        low_bytes=float(estimates.low_bytes[index]),
        high_bytes=float(estimates.high_bytes[index]),
        capacity_bytes=planned.job.machine.accelerator.usable_bytes,
        fits=planned.fits,
        components=components,
        stages=[StageMemory(**stage) for stage in stages_of(planned.job, one)],
        fullest_stage=int(estimates.fullest_stage[index]),
        decided_by=max(decisive, key=lambda name: decisive[name]),
        peak="optimizer_step" if estimates.memory.step_peak[index] else "forward_backward",
    )


def time_of(planned: Planned) -> TimeEstimate:
    estimates, index = planned.estimates, planned.index
    return TimeEstimate(
        step_s=float(estimates.step.seconds[index]),
        low_s=float(estimates.low_s[index]),
        high_s=float(estimates.high_s[index]),
        components={name: float(values[index]) for name, values in estimates.step.components.items()},
    )


def throughput_of(planned: Planned) -> Throughput:
    job, estimates, index = planned.job, planned.estimates, planned.index
    step_s = float(estimates.step.seconds[index])
    tokens_per_s = job.tokens_per_step / step_s
    return Throughput(
        tokens_per_s=tokens_per_s,
        tokens_per_s_per_device=tokens_per_s / job.machine.count,
        samples_per_s=job.global_batch / step_s,
        model_tflops_per_device=float(estimates.step.model_flop[index]) / step_s / 1e12,
        mfu=float(estimates.mfu[index]),
        hfu=float(estimates.hfu[index]),
    )


def run_of(planned: Planned) -> RunLength | None:
    """Length of the whole run; None when the plan names no data."""
    job, index = planned.job, planned.index
    if job.steps is None or job.training.dataset_tokens is None:
        return None
    hours = job.steps / 3600.0
    return RunLength(
        tokens=job.training.dataset_tokens * job.training.epochs,
        steps=job.steps,
        hours=hours * float(planned.estimates.step.seconds[index]),
        low_hours=hours * float(planned.estimates.low_s[index]),
        high_hours=hours * float(planned.estimates.high_s[index]),
    )


def evidence_of(planned: Planned) -> list[Evidence]:
    calibration = planned.job.calibration
    device, framework = calibration.device, calibration.framework
    return [
        Evidence(
            figure="time",
            basis=f"factors of {device.family} devices ({device.source})",
            runs=device.runs,
            spread=calibration.time_spread,
        ),
        Evidence(
            figure="time",
            basis=f"factors of {framework.framework} ({framework.source})",
            runs=framework.runs,
            spread=calibration.time_spread,
        ),
        Evidence(
            figure="memory",
            basis=f"spread of {framework.framework} ({framework.source})",
            runs=framework.memory_runs,
            spread=calibration.memory_spread,
        ),
    ]


def warnings_of(planned: Planned) -> list[str]:
    return warnings(planned.estimates, planned.index)


def choice(estimates: Estimates, index: int) -> LayoutChoice:
    job, layouts = estimates.job, estimates.layouts
    return LayoutChoice(
        framework=job.framework.name,
        layout=layouts.row(index),
        micro_batch=int(layouts.micro_batch[index]),
        grad_accum=int(layouts.grad_accum[index]),
        per_device_bytes=float(estimates.memory.total[index]),
        headroom_bytes=float(job.machine.accelerator.usable_bytes - estimates.high_bytes[index]),
        step_s=float(estimates.step.seconds[index]),
        tokens_per_s=float(estimates.tokens_per_s[index]),
        mfu=float(estimates.mfu[index]),
        summary=layouts.summary(index),
    )


def why_chosen(planned: Planned) -> list[str]:
    """Sentences that say why the chosen layout won, with the nearest alternatives' figures."""
    estimates, index = planned.estimates, planned.index
    layouts, fits = estimates.layouts, estimates.fits
    limit = bottleneck(estimates.step, index)
    if not planned.searched:
        return [f"The plan names the whole layout; most of the step goes to {limit}."]
    goal = planned.job.plan.goal.objective
    feasible = int(fits.sum())
    sentences = [f"{len(layouts)} valid layouts were estimated; {feasible} of them fit."]
    if not feasible:
        return [*sentences, "None fits, so the one that needs the least memory is shown."]
    least = {"memory": "needs the least memory per device"}.get(goal, "has the shortest step")
    sentences.append(f"Of those that fit, this one {least}; most of its step goes to {limit}.")
    for other in planned.order[1:]:
        if fits[other] and layouts.summary(int(other)) != layouts.summary(index):
            slower = estimates.step.seconds[other] / estimates.step.seconds[index] - 1.0
            words = f"{100 * slower:.1f} % slower" if slower > 0 else "as fast"
            sentences.append(f"Next comes {layouts.summary(int(other))}: {words}.")
            break
    return sentences
