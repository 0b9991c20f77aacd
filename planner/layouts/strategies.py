"""apply_strategies: models on platforms under named strategies, each with the layout that its strategy takes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from pydantic import Field

from estimator.errors import PlanError, nearest
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import SearchResult, search, search_whole
from estimator.search.strategies import CRITERIA, CUSTOM, IDENTICAL, STRATEGIES, USUAL, choose, identical
from estimator.training.estimates import Estimates
from estimator.training.memory import taken
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import find_accelerator
from knowledge.offers import check_offered, choices
from planner.estimates import common_assumptions
from planner.evidence import union_evidence
from planner.layouts.rows import StrategyChoice, StrategyRow, misfit, plots, rows_of
from planner.named import counted
from planner.plots import Plot
from planner.requests import PlanRequest
from planner.result import Assumption, Evidence, Result
from planner.training.planned import Planned, plan_training, warnings_of

MOST_ROWS = 200
_MOST_PLATFORMS = 24
# How many of the best of the whole space join the usual candidates.
_BEST = 64
# How often what a strategy takes may be refused, one field of the layout at a time.
_MOST_REFUSALS = 8
_MEANING = {
    "maximum_performance": "the shortest step",
    IDENTICAL: "the same layout on all platforms: the lowest geometric mean of step times",
    "memory_optimized": "the least memory per device",
    "minimal_communication": "the least exposed communication in a step, with TP 1 and PP 1 where that fits",
    "balanced": "the lowest geometric mean of step time, step time with exposed communication, and memory, each over "
    "the best",
    CUSTOM: "the layout given; the fastest of what it leaves open",
    "data": "the shortest step with TP 1 and PP 1",
    "model": "the shortest step with tensor parallelism and no pipeline stages",
    "pipeline": "the shortest step with pipeline stages and no tensor parallelism",
    "hybrid": "the shortest step with both tensor parallelism and pipeline stages",
}


class StrategiesRequest(PlanRequest):
    strategies: list[str] | None = Field(
        None, description=f"Of {', '.join(STRATEGIES)}; the first five unless given, custom where custom_layout is."
    )
    accelerators: list[str] | None = Field(None, description="Platforms; the plan's accelerator unless given.")
    models: list[str] | None = Field(None, description="Models; the plan's model unless given.")
    custom_layout: dict[str, Any] | None = Field(None, description="For custom, e.g. {tp: 4, pp: 2, recompute: full}.")
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")

    def _data(self) -> dict[str, Any]:
        """The plan's data; where models are named it needs none of its own."""
        data = super()._data()
        return data if data.get("model") is not None or not self.models else data | {"model": self.models[0]}


class AppliedStrategies(Result):
    plan: dict[str, Any] = Field(
        description="The plan as given; a row's framework, layout and micro_batch complete it."
    )
    rows: list[StrategyRow] = Field(description="Model by model, strategy by strategy, platform by platform.")
    strategies: dict[str, str] = Field(description="What each strategy makes small.")
    identical_in: dict[str, list[str]] = Field(
        description="By model, the layout fields that truly_identical has the same on all platforms."
    )
    assumptions: list[Assumption]
    plots: list[Plot]
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]


@dataclass(frozen=True)
class Platform:
    """A model on one accelerator: estimates of what may be chosen, by framework in order of preference, and why what
    is left out of them was refused."""

    plan: Plan
    job: Job
    first: Estimates
    refused: tuple[str, ...] = ()

    @cached_property
    def others(self) -> list[Estimates]:
        """Of the frameworks besides the usual one, where the plan leaves that open."""
        if self.plan.training.framework != "auto":
            return []
        return list(self._estimated(choices(self.plan, self.job.machine.accelerator, self.job.machine.count)[1:]))

    @property
    def options(self) -> Iterator[Estimates]:
        yield self.first
        yield from self.others

    def _estimated(self, others: Sequence[tuple[str, str]]) -> Iterator[Estimates]:
        for choice in others:
            try:
                yield platform_estimates(job_of(self.plan, choice))
            except PlanError:
                continue


def apply_strategies(request: StrategiesRequest) -> AppliedStrategies:
    """Apply named strategies."""
    started = time.perf_counter()
    made = applied(request)
    table: list[StrategyRow] = []
    for group in made.groups:
        table += rows_of(group, request.usd_per_device_hour)
    shown = [choice.outcome for group in made.groups for choice in group if isinstance(choice.outcome, Planned)]
    return AppliedStrategies(
        plan=made.base.given(),
        rows=table,
        strategies=made.strategies,
        identical_in=made.identical_in,
        assumptions=common_assumptions(shown),
        plots=plots(table),
        seconds=time.perf_counter() - started,
        warnings=list(dict.fromkeys(text for estimate in shown for text in warnings_of(estimate))),
        evidence=union_evidence(planned.job for planned in shown),
    )


@dataclass(frozen=True)
class Applied:
    """The choices of all platforms together, model by model and strategy by strategy; `strategies` are in words."""

    base: Plan
    groups: list[list[StrategyChoice]]
    strategies: dict[str, str]
    identical_in: dict[str, list[str]]


def applied(
    request: StrategiesRequest,
    frameworks: Mapping[str, str] | None = None,
    refusal: Callable[[str, Planned], PlanError | None] | None = None,
) -> Applied:
    """The layouts that the strategies take; `frameworks` are those of single accelerators, by id. Raises PlanError.

    Where `refusal` (of an accelerator and what was taken there) names a field of the layout, no layout with that value
    of it is taken there, as long as there are others.
    """
    (base, _), strategies = counted(request.to_plan()), _strategies(request)
    models: list[Any] = _distinct(request.models) if request.models else [base.model]
    accelerators = _accelerators(request, base)
    rows = len(models) * len(accelerators) * len(strategies)
    if rows > MOST_ROWS:
        problem = f"{len(models)} models x {len(accelerators)} platforms x {len(strategies)} strategies are {rows} rows"
        raise PlanError("strategies", problem, [f"up to {MOST_ROWS} rows"])
    changes = {name: {"workload.framework": framework} for name, framework in (frameworks or {}).items()}
    groups: list[list[StrategyChoice]] = []
    shared: dict[str, list[str]] = {}
    for model in models:
        plans = [
            base.patch({"model": model, "cluster.accelerator": name, **changes.get(name, {})}) for name in accelerators
        ]
        platforms = [_or_why(plan) for plan in plans]
        _refuse_unknown(platforms)
        for strategy in strategies:
            if strategy == CUSTOM:
                chosen, names = [_custom(plan, request) for plan in plans], []
            else:
                chosen, names = _of_all(platforms, accelerators, strategy)
                for _ in range(_MOST_REFUSALS if refusal else 0):
                    narrowed = [
                        _narrowed(platform, name, outcome, refusal)
                        for platform, name, outcome in zip(platforms, accelerators, chosen, strict=True)
                    ]
                    if all(new is old for new, old in zip(narrowed, platforms, strict=True)):
                        break
                    platforms = narrowed
                    chosen, names = _of_all(platforms, accelerators, strategy)
            shared |= {model_name(model): names} if names else {}
            groups.append(
                [
                    StrategyChoice(model_name(model), strategy, name, outcome, refused)
                    for name, outcome, refused in zip(
                        accelerators, chosen, _refused_of_each(platforms, strategy), strict=True
                    )
                ]
            )
    return Applied(base, groups, {name: _MEANING[name] for name in strategies}, shared)


def platform_estimates(job: Job) -> Estimates:
    """What strategies choose from: all usual candidates of the job, with the best of the whole space by speed and by
    memory. Raises PlanError where no layout is valid."""
    check_offered(job)
    usual, _ = search(job)
    for objective in ("throughput", "memory"):
        aimed = replace(job, plan=job.plan.patch({"goal.objective": objective}))
        searched = search_whole(aimed, offload=False)
        order = searched.order[: _BEST // 2]
        usual = usual.joined(searched.estimates.of(*(int(place) for place in order)))
    return usual


def strategy_name(name: str) -> str:
    """'Truly-Identical' as truly_identical; whether there is such a strategy is for others to say."""
    words = name.strip().lower().replace("-", "_").replace(" ", "_")
    return words.removesuffix("_parallelism").removesuffix("_parallel")


def strategic(plan: Plan, strategy: str, known_platforms: dict[str, Platform]) -> Planned:
    """The estimate of `plan` with the layout that a strategy of one platform takes. What it is chosen from is kept in
    `known_platforms` for other strategies of the same plan.

    Raises PlanError where nothing fits.
    """
    known = [name for name in CRITERIA if name != CUSTOM]
    if strategy == IDENTICAL:
        raise PlanError("strategy", f"{strategy} is of several platforms at once: apply_strategies has it", known)
    if strategy not in known:
        raise PlanError("strategy", f"{strategy!r} is no strategy of a single platform", nearest(strategy, known, 6))
    key = json.dumps(plan.given(), sort_keys=True)
    if key not in known_platforms:
        known_platforms[key] = _platform(plan)
    outcome = _taken(known_platforms[key], strategy)
    if isinstance(outcome, str):
        raise PlanError("strategy", f"{strategy}: {outcome}")
    return outcome


def _accelerators(request: StrategiesRequest, base: Plan) -> list[str]:
    named = request.accelerators if request.accelerators is not None else [base.cluster.accelerator or ""]
    try:
        accelerators = [find_accelerator(name).value.id for name in named if name]
    except PlanError as error:
        raise PlanError("accelerators", error.problem, error.valid) from None
    if not accelerators:
        raise PlanError("accelerators", "is required: name the platforms", ["h100-sxm", "mi300x"])
    if len(accelerators) > _MOST_PLATFORMS:
        raise PlanError("accelerators", f"{len(accelerators)} platforms are too many", [f"up to {_MOST_PLATFORMS}"])
    return _distinct(accelerators)


def _strategies(request: StrategiesRequest) -> list[str]:
    if request.strategies is None:
        return [*USUAL, *([CUSTOM] if request.custom_layout else [])]
    wanted = [strategy_name(name) for name in request.strategies]
    for name in wanted:
        if name not in STRATEGIES:
            raise PlanError("strategies", f"there is no strategy {name!r}", nearest(name, STRATEGIES, len(STRATEGIES)))
    if not wanted:
        raise PlanError("strategies", "has no strategies", STRATEGIES)
    return _distinct(wanted)


def _distinct(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def model_name(model: Any) -> str:
    return model if isinstance(model, str) else str(model.get("_name_or_path") or model.get("name") or "inline model")


def _platform(plan: Plan) -> Platform:
    job = job_of(plan)
    return Platform(plan, job, platform_estimates(job))


def _or_why(plan: Plan) -> Platform | PlanError:
    try:
        return _platform(plan)
    except PlanError as error:
        return error


def _refuse_unknown(platforms: Sequence[Platform | PlanError]) -> None:
    """Raises what no platform can help: a model or a field that cannot be, or the same refusal of all."""
    refusals = [platform for platform in platforms if isinstance(platform, PlanError)]
    if len(refusals) == len(platforms) and len({refusal.field for refusal in refusals}) == 1:
        raise refusals[0]


def _taken(platform: Platform | PlanError, strategy: str) -> Planned | str:
    """The candidate that the strategy takes, of the first framework in which anything fits; or why there is none."""
    if isinstance(platform, PlanError):
        return str(platform)
    for estimates in platform.options:
        index = choose(strategy, estimates)
        if index is not None:
            return _planned(estimates, index)
    if platform.first.fits.any():
        return f"no layout that fits is of this kind: {_MEANING[strategy]}"
    return misfit(platform.first)


def _of_all(
    platforms: Sequence[Platform | PlanError], names: Sequence[str], strategy: str
) -> tuple[list[Planned | str], list[str]]:
    """What a strategy takes on each platform, and of IDENTICAL in which fields that is the same."""
    if strategy == IDENTICAL:
        return _same_everywhere(platforms, names)
    return [_taken(platform, strategy) for platform in platforms], []


def _narrowed(
    platform: Platform | PlanError,
    name: str,
    outcome: Planned | str,
    refusal: Callable[[str, Planned], PlanError | None] | None,
) -> Platform | PlanError:
    """The platform without the layouts that share what `outcome` is refused for; the same one where there is no such
    thing, or nothing that fits would be left."""
    if (
        isinstance(platform, PlanError)
        or isinstance(outcome, str)
        or outcome.job is not platform.first.job
        or not refusal
    ):
        return platform
    error = refusal(name, outcome)
    section, _, field = (error.field if error else "").partition(".")
    if error is None or ((section, field) != ("workload", "micro_batch") and section != "layout"):
        return platform
    first = platform.first
    value = getattr(outcome.estimates.layouts, field, None)
    if value is None:
        return platform
    index = np.flatnonzero(getattr(first.layouts, field) != value[outcome.index])
    if not first.fits[index].any():
        return platform
    memory, step = taken(first.memory, index), taken(first.step, index)
    left = Estimates(first.job, first.layouts.take(index), memory, first.fullest_stage[index], step)
    return replace(platform, first=left, refused=(*platform.refused, " ".join(str(error).split())))


def _refused_of_each(platforms: Sequence[Platform | PlanError], strategy: str) -> list[tuple[str, ...]]:
    """What was passed over on each platform; of a layout that all share what was on any."""
    if strategy == CUSTOM:
        return [() for _ in platforms]
    each = [_refused(platform) for platform in platforms]
    return [tuple(dict.fromkeys(chain(*each)))] * len(each) if strategy == IDENTICAL else each


def _refused(platform: Platform | PlanError) -> tuple[str, ...]:
    return () if isinstance(platform, PlanError) else platform.refused


def _planned(estimates: Estimates, index: int) -> Planned:
    chosen = estimates.of(index)
    return Planned(estimates.job, chosen, 0, SearchResult(estimates, np.array([index]), len(estimates.layouts)))


def _same_everywhere(
    platforms: Sequence[Platform | PlanError], names: Sequence[str]
) -> tuple[list[Planned | str], list[str]]:
    """The layout that all platforms can have with the fields in which it is the same, or why there is none.

    Frameworks are tried in order of preference, of all platforms alike."""
    none: list[str] = []
    able: list[Platform] = []
    for name, platform in zip(names, platforms, strict=True):
        if isinstance(platform, PlanError):
            return [f"there is no common layout, as {name} has none: {platform}"] * len(platforms), none
        able.append(platform)
    tried = [list(row.options) if _nothing_common(able) else [row.first] for row in able]
    for rank in range(max(map(len, tried))):
        options = [attempt[min(rank, len(attempt) - 1)] for attempt in tried]
        if common := identical(options):
            chosen = [_planned(option, index) for option, index in zip(options, common.index, strict=True)]
            return list(chosen), list(common.fields)
    for name, options in zip(names, tried, strict=True):
        if not any(estimates.fits.any() for estimates in options):
            return [f"there is no common layout, as on {name} {misfit(options[0])}"] * len(platforms), none
    return ["no layout is valid and fits on all platforms"] * len(platforms), none


def _nothing_common(platforms: Sequence[Platform]) -> bool:
    return identical([platform.first for platform in platforms]) is None


def _custom(plan: Plan, request: StrategiesRequest) -> Planned | str:
    sizes = dict(request.custom_layout or {})
    micro = sizes.pop("micro_batch", None)
    changes: dict[str, Any] = {"layout": sizes} | ({} if micro is None else {"workload.micro_batch": micro})
    if not sizes and micro is None and not plan.layout.model_fields_set:
        raise PlanError("custom_layout", "is required for the strategy custom", ["{tp: 4, pp: 2, dp: 1}"])
    try:
        patched = plan.patch(changes)
    except PlanError as error:
        raise PlanError(f"custom_layout.{error.field.rpartition('.')[2]}", error.problem, error.valid) from None
    try:
        planned = plan_training(patched, offload=False)
    except PlanError as error:
        return str(error)
    return planned
