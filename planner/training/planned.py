"""What the planning tools share: a Plan looked up, estimated, and put into the shape of the results."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import OFFLOAD, Layouts
from estimator.plan.schema import Plan
from estimator.plan.training.defaults import option_words, recipe_options
from estimator.plan.training.job import Job
from estimator.plan.training.options import decided
from estimator.search.fastest import fastest
from estimator.search.layouts import SearchResult, search_whole
from estimator.training.bottleneck import Diagnosis, diagnosis
from estimator.training.estimates import Estimates, at_own_mfu, warnings
from estimator.training.schedule import step_time
from estimator.training.timeline import step_by_stage
from knowledge.figures import percent
from knowledge.fitted.training import timed_framework
from knowledge.jobs.training import job_of
from knowledge.offers import check_offered, choices, is_unstarted, movable_to, other_choices
from planner.announced import before_release
from planner.rejected_rows import rejected_rows_of
from planner.results import (
    Assumption,
    LayoutChoice,
    StageTime,
    Throughput,
    TimeEstimate,
)
from planner.training.concessions import CONCESSIONS, Concession
from planner.training.host import HostNeeds, host_needs, hosted_first
from planner.training.ladder import Grower, names_of, rungs, steps_down, told_of
from planner.training.lightest import Lightest, lacks_hosts, lightest, usual_names
from planner.training.programs import has_program, refused

# The first ZeRO stage that shards more than optimizer states.
_SHARDS = 2
# The usual framework is left for one that is so many times as fast: that is another kind of run, not a matter of taste.
_FAR = 2.0
_SEARCHED = "the best of the layouts searched"
_STARTED = "launch files have this run with it"


@dataclass(frozen=True)
class Planned:
    """A plan's estimate: `estimates` has at `index` the layout that the answer is about, with everything about it, and
    `search` what that was chosen from."""

    job: Job
    estimates: Estimates
    index: int
    search: SearchResult
    conceded: tuple[Assumption, ...] = ()
    """What was switched on since nothing fits without."""
    beyond_usual: bool = False
    """Whether no usual framework has it on the devices alone."""
    hopeless: Sequence[Concession] = ()
    """Of a plan that does not fit, what was given up on every framework, one after the other, and was not enough."""

    @property
    def searched(self) -> bool:
        return self.search.valid > 1

    @property
    def fits(self) -> bool:
        return bool(self.estimates.fits[self.index])

    @property
    def is_on_device(self) -> bool:
        """Whether it has nothing in host memory but what the plan puts there."""
        asked = OFFLOAD.index(self.job.plan.layout.offload or self.job.framework.recipe.offload)
        return int(self.estimates.layouts.offload[self.index]) in (0, asked)

    @property
    def fits_on_device(self) -> bool:
        return self.fits and self.is_on_device

    @property
    def offloads_more(self) -> str:
        """Why more is in host memory than the plan puts there; nothing where it is not so."""
        named = self.job.plan.layout.offload
        chosen = OFFLOAD[int(self.estimates.layouts.offload[self.index])]
        return "" if named in (None, chosen) else f"nothing fits with {named} alone in host memory"

    @property
    def has_host_memory(self) -> bool:
        """Whether the hosts have the memory that it needs of them, as far as that is known."""
        return self.host_needs.host.fits is not False

    @property
    def expected_mfu(self) -> float | None:
        """What is estimated, where the plan names its own MFU."""
        own = self.job.plan.overrides.mfu
        return None if own is None else float(self.search.estimates.mfu[int(self.search.order[0])])

    @property
    def summary(self) -> str:
        """The layout in a few words, with what was switched on since nothing fits without."""
        changes = {item.field: item.value for item in self.conceded}
        words = next((each.words for each in CONCESSIONS if changes and changes.items() <= each.changes.items()), "")
        return ", ".join(filter(None, (self.estimates.layouts.summary(self.index), words)))

    @property
    def score(self) -> float:
        """What the goal makes small: memory, or the time of a step."""
        if self.job.plan.goal.objective == "memory":
            return float(self.estimates.high_bytes[self.index])
        return float(self.estimates.step.seconds[self.index])

    @cached_property
    def plan(self) -> Plan:
        """The complete plan, with the chosen layout and micro-batch."""
        row = self.estimates.layouts.row(self.index)
        chosen: dict[str, Any] = {
            "layout": row,
            "workload.micro_batch": int(self.estimates.layouts.micro_batch[self.index]),
        }
        if self.job.calibration.device.split_kernel is not None and (row["cp"] or 1) > 1:
            chosen["workload.attention"] = self.job.framework.limits.split_attention
        return self.job.plan.patch(chosen)

    @cached_property
    def _varied(self) -> dict[str, Planned | None]:
        return {}

    def varied(self, changes: Mapping[str, Any]) -> Planned | None:
        """`varied` of its complete plan: what would help and what is advised try the same changes."""
        key = json.dumps(changes, sort_keys=True, default=str)
        if key not in self._varied:
            self._varied[key] = varied(self.plan, changes)
        return self._varied[key]

    @cached_property
    def options(self) -> dict[str, bool | str]:
        """Options of the workload that the search decided, by name. They stay open in the plan, as another layout would
        have others."""
        return decided(self.job, self.estimates.layouts, self.index)

    def is_started(self, asked: Plan) -> bool:
        """Whether its framework's usual program takes what `asked` gives, of which this is the plan."""
        return _is_started(asked, self.job, self.estimates.layouts, self.index)

    @cached_property
    def settled_plan(self) -> Plan:
        """The complete plan with these options said, as files have to."""
        return self.plan.patch({f"workload.{name}": value for name, value in self.options.items()})

    @property
    def complete_plan(self) -> dict[str, Any]:
        """The same as plain data."""
        return self.plan.model_dump(mode="json")

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What the step of the chosen layout waits for."""
        return diagnosis(self.job, self.estimates.layouts, self.estimates.step, self.index)

    @cached_property
    def host_needs(self) -> HostNeeds:
        """Host memory and saving, of the chosen layout alone."""
        return host_needs(self.job, self.estimates.layouts, self.estimates.memory, self.index, self.fits)

    @property
    def assumptions(self) -> list[Assumption]:
        """What was filled in by look-up, by defaults and by the search."""
        filled_in = [Assumption(**asdict(filled)) for filled in self.job.assumptions]
        filled_in += [*self.conceded, *_settings(self.job)]
        filled_in += [Assumption(**asdict(option)) for option in recipe_options(self.job)]
        named_fields = self.job.plan.layout.model_fields_set
        layout = self.plan.layout
        why = _SEARCHED if self.searched else "follows from the other sizes"
        for name in type(layout).model_fields:
            value = getattr(layout, name)
            if name not in named_fields and value is not None:
                filled_in.append(Assumption(field=f"layout.{name}", value=value, why=why))
        if self.offloads_more:
            filled_in.append(Assumption(field="layout.offload", value=layout.offload, why=self.offloads_more))
        if self.job.training.micro_batch is None:
            micro = int(self.estimates.layouts.micro_batch[self.index])
            filled_in.append(Assumption(field="workload.micro_batch", value=micro, why=why))
        for name, value in self.options.items():
            if name in self.job.training.model_fields_set:
                continue
            on = value in (True, "flex")
            why = "it saves time and takes no memory" if on else "this layout has no place for it"
            why = f"{option_words(value)}: {why}"
            filled_in.append(Assumption(field=f"workload.{name}", value="auto", why=why))
        goal = self.job.plan.goal
        if "objective" not in goal.model_fields_set:
            why = "layouts are ranked by speed unless another goal is named"
            filled_in.append(Assumption(field="goal.objective", value=goal.objective, why=why))
        return filled_in


def _settings(job: Job) -> Iterator[Assumption]:
    """Fields with a default of their own that the user left open, as far as the run has a use for them."""
    training, plan = job.training, job.plan.training
    rows: list[tuple[str, Any, str]] = [
        ("weights", training.weights, "held as the framework does"),
        ("gradients", training.gradients, "summed as the framework does"),
        ("optimizer_in_backward", training.optimizer_in_backward, "weights are updated after the backward pass"),
        ("tiled_mlp", training.tiled_mlp, "MLPs read whole sequences"),
        ("fp8_healing", training.fp8_healing, "all steps are in one precision"),
    ]
    if training.stage in ("ppo", "grpo"):
        rows.append(("rollout", training.rollout, "the trained model generates the samples itself"))
        if training.rollout == "colocated":
            rows.append(("engine_share", training.engine_share, "the usual share of an engine beside a trainer"))
    if training.stage == "grpo":
        rows.append(("group_size", training.group_size, "the usual number of samples per prompt"))
    for name, value, why in rows:
        if name not in plan.model_fields_set:
            yield Assumption(field=f"workload.{name}", value=value, why=why)
    if not job.uses_adapters:
        return
    lora = training.lora
    rows = [
        ("train_embeddings", lora.train_embeddings, "adapters alone are trained"),
    ]
    for name, value, why in rows:
        if "lora" not in plan.model_fields_set or name not in lora.model_fields_set:
            yield Assumption(field=f"workload.lora.{name}", value=value, why=why)


def plan_training(
    plan: Plan,
    *,
    every_framework: bool = False,
    offload: bool = True,
    beyond_usual: bool = True,
) -> Planned:
    """The estimate of `plan`: of its layout where it names one whole, else of the best that agrees with it. Where
    nothing fits on the devices alone, host memory is used if the plan leaves that open and `offload` does, and the
    hosts have as much.

    Where the plan leaves the framework open, the usual one is taken, and another where that refuses the plan or does
    not fit (or, with `every_framework`, whichever does best). Raises the usual one's PlanError where all refuse it.

    Where the usual ones do not fit on the devices, or the one that is named, less usual ones are tried if the plan
    leaves the framework open, then host memory as far as it leaves that open, then what `CONCESSIONS` gives up, unless
    `offload` or `beyond_usual` is false.
    """
    beyond = beyond_usual and offload
    if offload and not beyond and lacks_hosts(plan) and (alone := _of_usual(plan, every_framework, offload=False)[0]):
        return alone
    best, refusal = _of_usual(plan, every_framework, offload and not beyond)
    if best is None:
        assert refusal
        left_open = beyond_usual and plan.training.framework == "auto"
        names = names_of(plan, job_of(plan).framework.name) if left_open else []
        if other := first_that_fits(plan, {}, names[1:]):
            return replace(other, beyond_usual=True)
        raise refusal
    if beyond and not best.fits:
        if conceded := _conceded(plan, best.job.framework.name, every_framework):
            return conceded
        return nearest_fit(plan, replace(best, hopeless=rungs(plan)), every_framework)
    if best.fits and not (best.fits_on_device or best.has_host_memory):
        # More host memory than there is helps nobody.
        return _of_usual(plan, every_framework, offload=False)[0] or best
    return best


def nearest_fit(plan: Plan, best: Planned, every_framework: bool = False) -> Planned:
    """What is told of a plan that does not fit: the `best` on its devices alone, but with host memory where it may fit
    so. More of that than the hosts have helps nobody."""
    if lightest(plan, offload=True).fits:
        return best
    hosted = _of_usual(plan, every_framework, offload=True)[0]
    near = hosted and hosted.estimates.memory.total[hosted.index] <= hosted.job.usable_bytes
    return replace(hosted, hopeless=best.hopeless) if hosted and near and hosted.has_host_memory else best


def plan_to_fit(plan: Plan) -> Planned:
    """The plan on its devices alone; where it does not fit there, with what it leaves open in host memory, if it fits
    so and the hosts have that. What verdicts and limits rest on."""
    planned = plan_training(plan, offload=False)
    if planned.fits:
        return planned
    return beyond_devices(plan, planned.job.framework.name) or replace(planned, hopeless=rungs(plan))


def known_to_fit(plan: Plan, whole: Planned) -> Planned:
    """What `plan_to_fit` has of a plan of which `whole` is what `plan_training` has: it takes the same way down."""
    if whole.fits and (whole.fits_on_device or whole.has_host_memory):
        return whole
    if not whole.fits and whole.is_on_device:
        return whole
    return replace(plan_training(plan, offload=False), hopeless=whole.hopeless)


def on_every_framework(plan: Plan, whole: Planned) -> Planned:
    """What `plan_training` has of `every_framework`, of a plan of which `whole` is what it has of the first that will
    do: where none of the usual ones does, all of them were tried."""
    enough = plan.training.framework == "auto" and whole.fits_on_device and not whole.beyond_usual
    return plan_training(plan, every_framework=True) if enough else whole


def beyond_devices(plan: Plan, framework: str) -> Planned | None:
    """A plan that does not fit on its devices alone, with host memory and concessions as far as it leaves them open, on
    `framework` rather than others; None where that is not enough."""
    return _conceded(plan, framework, every_framework=False)


def _of_usual(plan: Plan, every_framework: bool, offload: bool) -> tuple[Planned | None, PlanError | None]:
    """The best of the usual frameworks, or of the one that is named, and what the first of them refuses."""
    first = job_of(plan)
    best, refusal = None, None
    try:
        best = _choose(first, offload)
    except PlanError as error:
        refusal = error
    left_open = plan.training.framework == "auto"
    tried = [best] if best else []
    for choice in other_choices(plan, first) if left_open or best else ():
        if best and best.fits_on_device and not (every_framework and left_open):
            break
        try:
            other = _choose(job_of(plan, choice), offload)
        except PlanError:
            continue
        tried.append(other)
        if best is None or _is_better(other, best):
            best = other
    if left_open and best and best.fits_on_device:
        if not every_framework:
            best = next((_choose(job, offload) for job, _ in _far_ahead(plan, best.job, best.score)), best)
        best = _with_program(plan, best, tried)
    return best, refusal


def _with_program(plan: Plan, best: Planned, tried: Sequence[Planned]) -> Planned:
    """`best`, or where no launch files have what the plan gives with its framework, what fits on the devices of one
    with which there are some: the best of those that were `tried`, else the usual ones first."""
    if best.is_started(plan):
        return best
    able = [other for other in tried if other.fits_on_device and other.is_started(plan)]
    if able:
        return min(able, key=lambda other: other.score)
    known = {other.job.framework.name for other in tried}
    return next((_choose(job, offload=False) for job, _ in _startable(plan, best.job, known)), best)


def _startable(plan: Plan, usual: Job, known: Container[str]) -> Iterator[tuple[Job, Layouts]]:
    """The plan on those frameworks, but the `known` ones, with which launch files have what it gives in the layout that
    is best and fits on the devices, the usual ones first; each with that layout."""
    machine = usual.machine
    others = [*choices(plan, machine.accelerator, machine.count), *((name, _STARTED) for name in movable_to(usual))]
    for name, why in others:
        if name not in known and has_program(plan, name):
            with suppress(PlanError):
                job = job_of(plan, (name, why))
                layout = _best_alone(job)
                if layout is not None and _is_started(plan, job, layout):
                    yield job, layout


def _best_alone(job: Job) -> Layouts | None:
    """The layout, alone, that is best for the goal on the devices; None where none fits there. Raises PlanError."""
    if job.plan.goal.objective != "memory":
        check_offered(job)
        return fastest(job, offload=False)
    planned = _choose(job, offload=False)
    return planned.estimates.layouts.take(np.array([planned.index])) if planned.fits_on_device else None


def _is_started(plan: Plan, job: Job, layouts: Layouts, index: int = 0) -> bool:
    """Whether the usual program of a job's framework takes what `plan` gives, in that layout."""
    name = job.framework.name
    if is_unstarted(name):
        return True
    chosen = {"layout": layouts.row(index), "workload.micro_batch": int(layouts.micro_batch[index])}
    return has_program(plan, name) and refused(job.plan.patch(chosen), plan.given()) is None


def _far_ahead(plan: Plan, usual: Job, seconds: float) -> Iterator[tuple[Job, Layouts]]:
    """The plan on those frameworks of its choices that were timed, have the model and launch files, and are far faster
    than the `usual` one, which takes `seconds` a step, each with its fastest layout; none on a device nobody timed."""
    if plan.goal.objective == "memory" or not usual.calibration.device_measured:
        return
    for choice in choices(plan, usual.machine.accelerator, usual.machine.count)[1:]:
        name, _ = choice
        known = timed_framework(name)[0] == name and name in movable_to(usual) and has_program(plan, name)
        if name == usual.framework.name or not known:
            continue
        with suppress(PlanError):
            job = job_of(plan, choice)
            check_offered(job)
            if (layout := fastest(job, seconds / _FAR, offload=False)) is not None:
                yield job, layout


def _conceded(plan: Plan, framework: str, every_framework: bool) -> Planned | None:
    """The plan with the least given up with which it fits, on `framework` rather than others; None where nothing is
    enough."""
    grower = Grower()
    for changes, names in steps_down(plan, framework):
        beyond_devices = []
        for light in grower.hopeful(plan, changes, names):
            # States that are paged lie in host memory, as what is offloaded does.
            hosted = plan.layout.offload is not None or "workload.optimizer" in changes
            if not light.offloads and (chosen := _first_that_fits([light], offload=hosted)):
                return replace(chosen, conceded=told_of(changes, chosen.job), beyond_usual=True)
            beyond_devices.append(light)
        if not changes and any(light.hosted and light.framework in usual_names(plan) for light in beyond_devices):
            usual = _of_usual(plan, every_framework, offload=True)[0]
            started = usual and (plan.training.framework != "auto" or usual.is_started(plan))
            if usual and started and usual.fits and usual.has_host_memory:
                return usual
        if chosen := _first_that_fits(beyond_devices, offload=True):
            return replace(chosen, conceded=told_of(changes, chosen.job), beyond_usual=True)
    return None


def first_that_fits(plan: Plan, changes: Mapping[str, Any], names: list[str]) -> Planned | None:
    """Of these frameworks the first that has the changed plan and on which it fits, hosts included; the others before
    it that no change short of another training would help are dropped from `names`."""
    return _first_that_fits(Grower().hopeful(plan, changes, names), offload=True)


def _first_that_fits(hopeful: Iterable[Lightest], offload: bool) -> Planned | None:
    for light in hopeful:
        if offload and not light.hosted:
            continue
        with suppress(PlanError):
            chosen = _choose(light.job, offload)
            if chosen.fits and (not offload or chosen.has_host_memory):
                return chosen
    return None


def _is_better(other: Planned, best: Planned) -> bool:
    """What fits wins, then what serves the goal; of two that do not fit the one that is nearer to it."""
    if other.fits != best.fits:
        return other.fits
    if other.fits or other.job.plan.goal.objective == "memory":
        return other.score < best.score
    high = (float(each.estimates.high_bytes[each.index]) for each in (other, best))
    return next(high) < next(high)


def _choose(job: Job, offload: bool) -> Planned:
    check_offered(job)
    searched = search_whole(job, offload=offload)
    searched = replace(searched, order=hosted_first(job, searched.estimates, searched.order))
    return Planned(job, at_own_mfu(searched.estimates.of(int(searched.order[0]))), 0, searched)


def best_layout(plan: Plan) -> tuple[Job, Layouts]:
    """The job and the layout, alone, that `plan_training` has on the devices alone; sooner known where one fits on a
    usual framework. Raises PlanError."""
    if (known := layout_alone(plan)) is not None:
        return known
    planned = plan_training(plan, offload=False)
    return planned.job, planned.estimates.layouts.take(np.array([planned.index]))


def layout_alone(plan: Plan) -> tuple[Job, Layouts] | None:
    """As `best_layout`, with nothing estimated that cannot be the best; None where that takes more: memory is the goal,
    or nothing fits on a usual framework, or the one that is named. Raises PlanError."""
    if plan.goal.objective == "memory":
        return None
    first, left_open = job_of(plan), plan.training.framework == "auto"
    tried: list[str] = []
    for choice in (None, *other_choices(plan, first)):
        try:
            job = job_of(plan, choice) if choice else first
            layout = _best_alone(job)
        except PlanError:
            if not (choice or left_open):
                raise
            continue
        tried.append(job.framework.name)
        if layout is not None:
            return _with_files(plan, job, layout, tried) if left_open else (job, layout)
    return None


def _with_files(plan: Plan, job: Job, layout: Layouts, tried: Sequence[str]) -> tuple[Job, Layouts]:
    """What fits on a usual framework, or one that is far faster, or where no launch files have what the plan gives with
    these, on another with which there are some."""
    fit = [(job, layout), *islice(_far_ahead(plan, job, float(step_time(job, layout).seconds[0])), 1)]
    started = next((each for each in reversed(fit) if _is_started(plan, *each)), None)
    return started or next(_startable(plan, job, tried), fit[-1])


def varied(plan: Plan, changes: Mapping[str, Any], offload: bool = True) -> Planned | None:
    """As `plan_training` for the changed plan, on usual frameworks or its own, but None where that cannot be: to try
    variations of a valid plan."""
    try:
        changed = plan.patch(changes)
        return plan_training(changed, offload=offload, beyond_usual=changed.training.framework != "auto")
    except PlanError:
        return None


def time_of(planned: Planned) -> TimeEstimate:
    estimates, index = planned.estimates, planned.index
    return TimeEstimate(
        step_s=float(estimates.step.seconds[index]),
        low_s=float(estimates.low_s[index]),
        high_s=float(estimates.high_s[index]),
        components={name: float(values[index]) for name, values in estimates.step.components.items()},
        stages=_stage_times(planned.estimates.of(planned.index)),
    )


def _stage_times(estimates: Estimates) -> list[StageTime]:
    last = int(estimates.layouts.pp[0]) - 1
    if not last:
        return []
    rows = step_by_stage(estimates.job, estimates.layouts, estimates.step)
    return [
        StageTime(stage=stage, components={name: float(values[0]) for name, values in row.items()})
        for stage, row in zip((0, last), rows, strict=True)
    ]


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
        expected_mfu=planned.expected_mfu,
    )


def warnings_of(planned: Planned) -> list[str]:
    texts = [*warnings(planned.estimates, planned.index), *planned.host_needs.warnings]
    if planned.offloads_more:
        texts.insert(0, f"{planned.plan.layout.offload} are offloaded: {planned.offloads_more}")
    name = planned.job.framework.name
    if is_unstarted(name):
        texts.insert(0, f"Shardwise writes no launch files for {name}: you start it yourself")
    texts[:0] = _splits_beside_sharding(planned)
    device = planned.job.machine.accelerator
    return [*before_release(device), *texts, *rejected_rows_of(device.id, planned.job.architecture.id)]


def _splits_beside_sharding(planned: Planned) -> list[str]:
    """What was put beside ZeRO-2 or 3 that a plan names alone, where that alone does not fit."""
    named, chosen = planned.job.plan.layout, planned.estimates.layouts.row(planned.index)
    ways = ("tp", "pp", "cp")
    added = [f"{name.upper()} {chosen[name]}" for name in ways if (chosen[name] or 1) > 1]
    if (named.zero_stage or 0) < _SHARDS or any(getattr(named, name) for name in ways) or not (added and planned.fits):
        return []
    searched = planned.search.estimates
    alone = np.all([getattr(searched.layouts, name) == 1 for name in ways], axis=0)
    if bool((searched.fits & alone).any()):
        return []
    return [
        f"ZeRO-{named.zero_stage} alone does not fit: {' and '.join(added)} {'are' if len(added) > 1 else 'is'} added"
    ]


def warning_kinds_of(planned: Planned) -> dict[str, str]:
    return dict.fromkeys(planned.host_needs.warnings, "host memory")


def choice(estimates: Estimates, index: int) -> LayoutChoice:
    job, layouts = estimates.job, estimates.layouts
    return LayoutChoice(
        framework=job.framework.name,
        layout=layouts.row(index),
        micro_batch=int(layouts.micro_batch[index]),
        grad_accum=int(layouts.grad_accum[index]),
        per_device_bytes=float(estimates.memory.total[index]),
        headroom_bytes=float(job.usable_bytes - estimates.high_bytes[index]),
        step_s=float(estimates.step.seconds[index]),
        tokens_per_s=float(estimates.tokens_per_s[index]),
        mfu=float(estimates.mfu[index]),
        summary=layouts.summary(index),
    )


def why_chosen(planned: Planned) -> list[str]:
    """Sentences that say why the chosen layout won, with the nearest alternatives' figures."""
    search, limit = planned.search, planned.diagnosis.bottleneck
    if not planned.searched:
        return [f"The plan names the whole layout; most of the step goes to {limit}."]
    goal = planned.job.plan.goal.objective
    estimates, fits = search.estimates, search.estimates.fits
    count, feasible = len(estimates.layouts), int(fits.sum())
    of = f"of the {count:,} estimated" if count < search.valid else "of them"
    sentences = [f"{search.valid:,} valid layouts; {feasible:,} {of} fit."]
    if not feasible:
        return [*sentences, "None fits; the one that needs the least memory is shown."]
    least = {"memory": "needs the least memory per device"}.get(goal, "has the shortest step")
    sentences.append(f"Of those that fit, this one {least}; most of its step goes to {limit}.")
    best, layouts = int(search.order[0]), estimates.layouts
    for other in search.order[1:]:
        if fits[other] and layouts.summary(int(other)) != layouts.summary(best):
            slower = estimates.step.seconds[other] / estimates.step.seconds[best] - 1.0
            words = f"{percent(slower)} slower" if slower > 0 else "as fast"
            sentences.append(f"Next comes {layouts.summary(int(other))}: {words}.")
            break
    return sentences
