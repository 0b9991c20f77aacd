"""auto_configure: from a model, data and a goal to a complete plan, with the reason for each decision."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from knowledge.figures import hours, shown, usd
from knowledge.models.catalogue import find_architecture
from planner.asked.clusters import ConfigureRequest, Sort, Where
from planner.clusters.candidates import ClusterChoice
from planner.clusters.options import cost_of, described, duration_of
from planner.clusters.recommend import (
    Recommended,
    assumed,
    launched,
    ranked,
    recommended,
    sort_of,
    written_first,
)
from planner.clusters.request import Asked, asked
from planner.clusters.results import AutoConfigured, ClusterOption, Considered, Reason, from_whom
from planner.estimates import run_warnings_of, warnings_of
from planner.evidence import evidence_of
from planner.result import Assumption
from planner.training.planned import plan_training

# From what keeps all of the model to what fits almost anywhere; each is tried only where the ones before do not do.
_METHODS = ("full", "lora", "qlora")
_FORMATS = ("bf16", "fp8", "awq")
_WHY_METHOD = {
    "full": "all weights can be trained within the limits, which leaves the most room to learn",
    "lora": "adapters need no gradients and optimizer states of the whole model",
    "qlora": "the frozen weights are held in 4 bits, which needs the least memory; a step takes longer",
}
_WHY_FORMAT = {
    "bf16": "the weights as they were trained serve the load within the limits",
    "fp8": "8 bits for each weight, usually with little loss of quality",
    "awq": "4 bits for each weight; check the quality on your own prompts",
}
# Sequences are made a multiple of this long, as kernels like.
_UNIT = 512
# Sequence lengths to fall back on where nothing fits and none was asked for.
_SHORTER = (2048, 1024, 512)
# Options that are looked at, and told beside the chosen one. What costs a tenth more is as cheap.
_LISTED, _TOLD, _NEAR = 10, 3, 1.1
# By what factor limits may be missed for others than the nearest to be looked at: the first estimates are not exact.
_NEARLY = 1.5
# What a device is left out for whatever the method.
_OF_NO_METHOD = ("filtered", "not_tried", "not_offered", "no_price", "no_framework")
_OF_LIMITS = ("over_hourly", "past_deadline", "over_budget")
# An Asked without limits of the cluster itself.
_NO_LIMITS: dict[str, Any] = dict.fromkeys(("count", "max_devices", "max_nodes", "max_usd_per_hour", "max_kw"))


@dataclass(frozen=True)
class Attempt:
    """One method (or weight format), and what was found with it."""

    name: str
    ask: Asked
    sort: Sort
    result: Recommended | None
    error: PlanError | None

    @property
    def choices(self) -> list[ClusterChoice]:
        """The options in order, the best first."""
        return self.result.choices if self.result else []

    @property
    def best(self) -> ClusterChoice | None:
        return self.choices[0] if self.choices else None

    @property
    def missed(self) -> float:
        return self.result.missed if self.result else math.inf

    @property
    def satisfied(self) -> bool:
        return self.result is not None and self.result.satisfied and self.best is not None


def auto_configure(request: ConfigureRequest) -> AutoConfigured:
    """Configure everything."""
    ask = asked(request, keep=True)
    serving = isinstance(ask.plan.workload, Inference)
    ask, lengths = (ask, []) if serving else _with_length(ask, request.longest_sample_tokens)
    field = "weight_dtype" if serving else "method"
    tried = list(_tries(ask, field, _FORMATS if serving else _METHODS))
    chosen = next((attempt for attempt in tried if attempt.satisfied), None)
    last = chosen or _nearest(tried)
    if last is None or last.best is None:
        return _nothing(ask, tried, field)
    choice, option = last.best, last.best.option
    estimate = choice.estimate
    others = [attempt for attempt in tried if attempt.name != last.name]
    assumptions = [*ask.assumptions, *lengths, *assumed(last.ask, choice)]
    return AutoConfigured(
        plan=estimate.complete_plan,
        satisfied=chosen is not None,
        fits=True,
        hours=option.hours,
        low_hours=option.low_hours,
        high_hours=option.high_hours,
        usd=option.usd,
        usd_per_hour=option.usd_per_hour,
        tokens_per_s=option.tokens_per_s,
        per_device_bytes=option.per_device_bytes,
        option=option,
        reasons=list(_reasons(ask, others, last, field, assumptions)),
        considered=[*_methods_considered(others), *_clusters_considered(last)],
        relax=[] if chosen else list(_relax(last)),
        launch_targets=choice.launched_by,
        assumptions=assumptions,
        warnings=[*run_warnings_of(estimate), *_unchecked(ask, option)],
        evidence=evidence_of(estimate.job),
    )


def _with_length(ask: Asked, longest: int | None) -> tuple[Asked, list[Assumption]]:
    """The sequence length that the data asks for, no longer than the model's context."""
    if longest is None:
        return ask, []
    if ask.plan.training.seq_len is not None:
        raise PlanError("longest_sample_tokens", "is another word for seq_len, which is given", ["leave one out"])
    context = find_architecture(ask.plan.model)[0].context
    wanted = -(-longest // _UNIT) * _UNIT
    length = min(wanted, context) if context else wanted
    why = f"the longest samples have {longest:,} tokens"
    if length < longest:
        why += f", but the model's context ends at {context:,}: longer ones are cut"
    plan = ask.plan.patch({"workload.seq_len": length})
    return replace(ask, plan=plan), [Assumption(field="workload.seq_len", value=length, why=why)]


def _tries(ask: Asked, field: str, names: tuple[str, ...]) -> Iterator[Attempt]:
    """Each method in turn, until one satisfies the goal; only the given one, or full for pretraining."""
    workload = ask.plan.workload
    if field in workload.model_fields_set:
        names = (getattr(workload, field),)
    elif field == "method" and ask.plan.training.stage == "pretrain":
        names = ("full",)
    sort = sort_of(ask) if "objective" in ask.plan.goal.model_fields_set else "cost"
    for name in names:
        asking = replace(ask, plan=ask.plan.patch({f"workload.{field}": name}), rejected=list(ask.rejected))
        try:
            recommendation = _first_nearest(asking, sort)
            if recommendation.satisfied:
                settle = sort == "cost"
                recommendation = _settled(asking, recommendation) if settle else launched(recommendation, _LISTED)
            attempt = Attempt(name, asking, sort, recommendation, None)
        except PlanError as error:
            # With one left the plan itself is what cannot be.
            if len(names) == 1 or error.field in ("model", "request_rate"):
                raise
            attempt = Attempt(name, asking, sort, None, error)
        yield attempt
        if attempt.satisfied:
            return


def _first_nearest(ask: Asked, sort: Sort) -> Recommended:
    """The options, or where nothing comes near the limits only the one that comes nearest: the others are not told."""
    goal = ask.plan.goal
    if goal.deadline_h is None and goal.budget_usd is None:
        return ranked(ask, sort, _LISTED)
    nearest = ranked(ask, sort, 1)
    return ranked(ask, sort, _LISTED) if nearest.missed <= _NEARLY else nearest


def _nearest(tried: list[Attempt]) -> Attempt | None:
    """The one that comes nearest to the limits, with all options, the best first that can be launched."""
    last = min((attempt for attempt in reversed(tried) if attempt.best), key=lambda each: each.missed, default=None)
    return replace(last, result=recommended(last.ask, last.sort, _LISTED)) if last else None


def _settled(ask: Asked, recommendation: Recommended) -> Recommended:
    """Of the options that cost about as little as the cheapest first the quickest: estimates are no closer than that.
    Devices that were measured come before others."""
    listed = [choice for choice in recommendation.choices if choice.option.usd_per_hour is not None]
    if not listed:
        return recommendation
    least = min(cost_of(choice.option) for choice in listed)

    def place(choice: ClusterChoice) -> tuple[bool, bool, float]:
        option = choice.option
        near = option.usd_per_hour is not None and cost_of(option) <= _NEAR * least
        return not near, near and not option.measured, duration_of(option) if near else cost_of(option)

    choices, ahead = written_first(ask, sorted(recommendation.choices, key=place), _LISTED, place)
    return replace(recommendation, choices=choices, ahead=ahead)


def _missing(attempt: Attempt) -> str:
    """Why a method does not do."""
    if attempt.error:
        return str(attempt.error)
    if attempt.best is None:
        whys: dict[bool, str] = {}
        for each in attempt.result.refused() if attempt.result else ():
            if each.reason not in _OF_NO_METHOD:
                whys.setdefault(each.reason in _OF_LIMITS, each.why)
        return whys.get(True) or whys.get(False) or "no device that may be used can run it"
    return "; ".join(_exceeded(attempt.ask, attempt.best.option)) or "it meets no limit"


def _exceeded(ask: Asked, option: ClusterOption) -> Iterator[str]:
    goal = ask.plan.goal
    if option.fits_budget is False and option.spent_usd is not None:
        yield f"costs {usd(option.spent_usd)} of a budget of {shown('usd', goal.budget_usd)}"
    if option.fits_deadline is False and option.hours is not None:
        yield f"takes {hours(option.hours)} of {shown('hours', goal.deadline_h)}"


def _reasons(
    ask: Asked, others: list[Attempt], last: Attempt, field: str, assumptions: list[Assumption]
) -> Iterator[Reason]:
    option, workload = last.best.option if last.best else None, ask.plan.workload
    assert option is not None
    why = {"method": _WHY_METHOD, "weight_dtype": _WHY_FORMAT}[field].get(last.name, "it was given")
    before = [f"{attempt.name} does not do ({_missing(attempt)})" for attempt in others]
    if field in workload.model_fields_set:
        why = "it was given"
    elif field == "method" and ask.plan.training.stage == "pretrain":
        why = "pretraining trains all weights"
    elif not last.satisfied:
        why = "it comes nearest to the goal"
    elif before:
        why = f"{why}; {'; '.join(before)}"
    yield Reason(field=f"workload.{field}", value=last.name, why=why)
    yield Reason(field="cluster", value=f"{option.count} x {option.accelerator}", why=_why_cluster(ask, last, option))
    split = "the fastest of the layouts that fit on these devices" if option.framework else "it serves the load best"
    yield Reason(field="layout", value=option.summary, why=split)
    if option.engine and "engine" not in workload.model_fields_set:
        yield Reason(field="workload.engine", value=option.engine, why="the usual server that runs on these devices")
    told = {f"workload.{field}", "workload.engine"}
    for item in assumptions:
        if item.field not in told:
            yield Reason(field=item.field, value=item.value, why=item.why)


def _why_cluster(ask: Asked, last: Attempt, option: ClusterOption) -> str:
    if ask.count is not None and len(ask.devices) == 1:
        return "it was given"
    goal, words = ask.plan.goal, []
    if goal.deadline_h is not None and option.fits_deadline:
        words.append(f"in time ({shown('hours', option.hours)} of {hours(goal.deadline_h)})")
    if goal.budget_usd is not None and option.fits_budget:
        words.append(f"within budget ({shown('usd', option.spent_usd)} of {usd(goal.budget_usd)})")
    quick = "objective" in goal.model_fields_set and sort_of(ask) == "time"
    best = "the quickest" if quick else "the quickest of what costs about as little as the cheapest"
    kept = f", {' and '.join(words)}" if words else ""
    others = f", of {last.result.tried} sizes that were estimated" if last.result else ""
    return (
        f"{best}{others}{kept}: {described(option)}"
        if last.satisfied
        else f"nearest to the limits: {described(option)}"
    )


def _methods_considered(others: list[Attempt]) -> Iterator[Considered]:
    for attempt in others:
        option = attempt.best.option if attempt.best else None
        yield Considered(
            choice=f"{attempt.name} on {option.count} x {option.accelerator}" if option else attempt.name,
            fits=option is not None,
            usd=option.usd if option else None,
            hours=option.hours if option else None,
            why=_missing(attempt),
        )


def _clusters_considered(last: Attempt) -> Iterator[Considered]:
    for choice in last.choices[1 : 1 + _TOLD]:
        option = choice.option
        yield Considered(
            choice=f"{option.count} x {option.accelerator}" + from_whom(option.provider),
            fits=True,
            usd=option.usd,
            hours=option.hours,
            why="; ".join(_exceeded(last.ask, option)) or "it costs more, or takes longer",
        )


def _relax(last: Attempt) -> Iterator[str]:
    """What would meet the goal with one limit less."""
    ask = last.ask
    limits = [("goal.budget_usd", "the budget"), ("goal.deadline_h", "the deadline")]
    some = False
    for field, name in limits:
        if getattr(ask.plan.goal, field.removeprefix("goal.")) is None:
            continue
        freed = replace(ask, plan=ask.plan.patch({field: None}), rejected=[])
        told = _first(freed)
        if told:
            some = True
            yield f"Without {name} of {getattr(ask.plan.goal, field.removeprefix('goal.')):,g}: {told}."
    if ask.count is not None or ask.max_devices or ask.max_nodes or ask.max_usd_per_hour or ask.max_kw:
        told = _first(replace(ask, **_NO_LIMITS, rejected=[]))
        if told:
            some = True
            yield f"With another number of these devices: {told}."
    if not some:
        yield "No single limit is enough: ask recommend_cluster without budget, deadline and filters."


def _first(ask: Asked) -> str | None:
    """The cheapest that satisfies; None where nothing does."""
    result = _satisfying(ask)
    return result and _described(result)


def _satisfying(ask: Asked) -> Recommended | None:
    """The cheapest that satisfies, whether or not it can be launched so; None where nothing does."""
    try:
        result = ranked(ask, "cost", 1)
    except PlanError:
        return None
    return result if result.satisfied and result.choices else None


def _described(result: Recommended) -> str:
    return described(launched(result, 1).choices[0].option)


def _nothing(ask: Asked, tried: list[Attempt], field: str) -> AutoConfigured:
    """Nothing fits on what may be used: the estimate of the last method there, and what would fit."""
    last = tried[-1]
    plan: Plan = last.ask.plan
    planned = None
    if field == "method" and len(ask.devices) == 1:
        per_node = ask.devices[0].per_node
        count = ask.count or ask.most(per_node, last.ask.devices[0]) or per_node
        try:
            cluster = {"cluster.accelerator": ask.devices[0].id, "cluster.count": count}
            planned = plan_training(plan.patch(cluster), offload=False)
        except PlanError:
            planned = None
    relax = list(_relax_hardware(last))
    considered = [
        Considered(choice=attempt.name, fits=False, usd=None, hours=None, why=_missing(attempt)) for attempt in tried
    ]
    return AutoConfigured(
        plan=planned.complete_plan if planned else None,
        satisfied=False,
        fits=False,
        hours=None,
        low_hours=None,
        high_hours=None,
        usd=None,
        usd_per_hour=None,
        tokens_per_s=None,
        per_device_bytes=float(planned.estimates.memory.total[planned.index]) if planned else None,
        option=None,
        reasons=[Reason(field=f"workload.{field}", value=last.name, why="the last that was tried; none fits")],
        considered=considered,
        relax=relax or ["Nothing of the price book can run it: take a smaller model, or shorter sequences."],
        launch_targets=[],
        assumptions=planned.assumptions if planned else [],
        warnings=warnings_of(planned) if planned else [],
        evidence=evidence_of(planned.job) if planned else [],
    )


def _relax_hardware(last: Attempt) -> Iterator[str]:
    """What would do with another number of the devices, and with any devices."""
    more = replace(last.ask, **_NO_LIMITS, rejected=[])
    of_these = _first(more)
    if of_these:
        yield f"With another number of these devices: {of_these}."
    plan = last.ask.plan
    if not isinstance(plan.workload, Inference) and "seq_len" not in plan.workload.model_fields_set:
        longest: tuple[int, Recommended] | None = None
        # From the shortest on: where it does not do, no longer one does.
        for length in reversed(_SHORTER):
            shorter = replace(last.ask, plan=plan.patch({"workload.seq_len": length}), rejected=[])
            if (cluster := _satisfying(shorter)) is None:
                break
            longest = length, cluster
        if longest:
            yield f"With sequences of {longest[0]:,} tokens: {_described(longest[1])}."
    anything = asked(Where.model_validate({"plan": plan.given()}))
    told = _first(anything) if (anything.devices, anything.providers) != (more.devices, more.providers) else None
    if told and told != of_these:
        yield f"With other devices: {told}."


def _unchecked(ask: Asked, option: ClusterOption) -> Iterator[str]:
    goal = ask.plan.goal
    if goal.budget_usd is not None and option.hours is not None and option.usd is None:
        yield "the budget cannot be checked: no price of these devices is known"
