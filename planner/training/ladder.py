"""The ladder that a plan goes down which does not fit on its devices with the usual framework: less usual frameworks,
host memory, concessions. Told by memory alone, without the times of anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from knowledge.fitted.training import usual_rollout
from knowledge.jobs.training import job_of
from knowledge.offers import check_offered, movable_to, other_choices
from planner.results import Assumption
from planner.training.concessions import CONCEDED, CONCESSIONS, UNUSUAL, Concession
from planner.training.host import is_beyond
from planner.training.lightest import Lightest, lightest_of, may_fit, usual_names
from planner.training.programs import has_program


@dataclass
class Grower:
    """`lightest_of` with host memory, sooner known of jobs that grow from one asked for before. By what was changed,
    the largest that fits and the smallest that does not."""

    fitting: dict[tuple[str, str], Lightest] = field(default_factory=dict)
    refused: dict[tuple[str, str], Lightest] = field(default_factory=dict)

    def lightest(self, job: Job, changes: Mapping[str, Any]) -> Lightest | None:
        """None where weights and states alone leave no chance. Raises PlanError where no layout is valid."""
        way = (job.framework.name, repr(changes))
        before = (each.get(way) for each in (self.fitting, self.refused))
        known = (light.grown(job) for light in before if light and light.grows_into(job))
        light = next(filter(None, known), None)
        if light is None and may_fit(job):
            light = lightest_of(job, offload=True)
        if light:
            (self.fitting if light.fits else self.refused)[way] = light
        return light

    def hopeful(self, plan: Plan, changes: Mapping[str, Any], names: list[str]) -> Iterator[Lightest]:
        """The lightest layouts of the changed plan on those of the frameworks on whose devices it fits with as much in
        host memory as helps. A name is dropped where weights and states alone are too large: no rung that leaves the
        optimizer changes those."""
        for name in list(names):
            with suppress(PlanError):
                job = job_of(plan.patch(changes), (name, UNUSUAL))
                check_offered(job)
                light = self.lightest(job, changes)
                if light is None:
                    names.remove(name)
                elif light.fits:
                    yield light


@dataclass(frozen=True)
class Way:
    """How a plan fits that does not on its devices with a usual framework."""

    light: Lightest
    changes: Mapping[str, Any]


def names_of(plan: Plan, framework: str) -> list[str]:
    """The frameworks that a plan can be moved to, this one first, those with launch files before those without; where
    it names one, what that shards weights through."""
    first = job_of(plan)
    if plan.training.framework == "auto":
        names = dict.fromkeys([framework, *movable_to(first)])
        return sorted(names, key=lambda name: not has_program(plan, name))
    return list(dict.fromkeys([framework, first.framework.name, *(name for name, _ in other_choices(plan, first))]))


def rungs(plan: Plan) -> list[Concession]:
    """What may be given up of the plan, the least first. Nothing but what generates samples where it names its
    framework, how devices share the work, its recompute and what lies in host memory: then it is of a run as it is."""
    layout, open_ones = plan.layout, [each for each in CONCESSIONS if each.left_open(plan.training)]
    shared = any(getattr(layout, name) is not None for name in ("tp", "pp", "cp", "dp", "zero_stage"))
    if plan.training.framework != "auto" and shared and None not in (layout.recompute, layout.offload):
        return [each for each in open_ones if set(each.changes) <= {"workload.rollout"}]
    return [each for each in open_ones if each.same_training]


def steps_down(plan: Plan, framework: str) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
    """What each rung changes, and the frameworks to try with it. Usual ones go down what leaves the states as they are
    before others are tried: a loss by chunks is given up sooner than what people run. A framework that a rung drops is
    tried again where states change."""
    every, steps = names_of(plan, framework), rungs(plan)
    usual = [name for name in usual_names(plan) if plan.training.framework != "auto" or has_program(plan, name)]
    for names in ([name for name in every if name in usual], [name for name in every if name not in usual]):
        for rung in steps:
            if not rung.changes_states:
                yield rung.changes, names
    for rung in steps:
        if rung.changes_states:
            yield rung.changes, list(every)


def has_room(plan: Plan, framework: str) -> bool:
    """Whether weights and states leave a chance to fit on any framework, `framework` and others, hosts included, with
    whatever is given up: known before any layout is."""
    states = [rung.changes for rung in rungs(plan) if rung.changes_states]
    for changes in ({}, *states):
        for name in names_of(plan, framework):
            with suppress(PlanError):
                if not is_beyond(job_of(plan.patch(changes), (name, UNUSUAL))):
                    return True
    return False


def told_of(changes: Mapping[str, Any], job: Job) -> tuple[Assumption, ...]:
    """What was given up of the job's plan, but for what its framework does by itself."""
    by_itself = {"workload.fused_loss"} if job.framework.loss.fused else set[str]()
    if usual_rollout(job.framework.name) == job.training.rollout:
        by_itself.add("workload.rollout")
    return tuple(
        Assumption(field=path, value=value, why=CONCEDED) for path, value in changes.items() if path not in by_itself
    )


def way_beyond(plan: Plan, framework: str, grower: Grower) -> Way | None:
    """Whether a plan that does not fit on its devices alone does with what it leaves open, on `framework` rather than
    others: the first way down the ladder. None where nothing is enough."""
    for changes, names in steps_down(plan, framework):
        hosted: list[Lightest] = []
        for light in grower.hopeful(plan, changes, names):
            if not light.offloads and light.holds:
                return Way(light, changes)
            hosted.append(light)
        if light := next((light for light in hosted if light.holds), None):
            return Way(light, changes)
    return None
