"""recommend_cluster: which accelerators, how many, from whom, with which layout."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from estimator.plan.schema import Inference
from estimator.search.fleet import balance, front
from knowledge.jobs.training import job_of
from planner.clusters.candidates import Candidate, Refusal, missed, rank
from planner.clusters.exact import exact, few_layouts
from planner.clusters.request import Asked, Sort, Where, asked
from planner.clusters.results import ClusterOption, ClusterRejected, RecommendedCluster, Why
from planner.clusters.serving import exact as exact_serving
from planner.clusters.serving import screened as serving_clusters
from planner.clusters.training import screened as training_clusters
from planner.evidence import evidence_of, serving_evidence_of
from planner.result import Assumption
from planner.serving.planned import Served
from planner.training.planned import Planned

_SORTS: dict[str, Sort] = {"cost": "cost", "time": "time", "throughput": "time", "memory": "cost"}


class ClusterRequest(Where):
    sort: Sort | None = Field(
        None, description="cost, time or balanced (geometric mean of both); the plan's objective decides unless given."
    )
    limit: int = Field(10, ge=1, le=100, description="Most options to return.")


@dataclass(frozen=True)
class Choice:
    """An option with the estimate behind it."""

    option: ClusterOption
    found: Planned | Served

    @property
    def within(self) -> bool:
        return self.option.fits_deadline is not False and self.option.fits_budget is not False


@dataclass(frozen=True)
class Recommended:
    choices: list[Choice]
    rejected: list[ClusterRejected]
    tried: int
    satisfied: bool


def recommend_cluster(request: ClusterRequest) -> RecommendedCluster:
    """Recommend a cluster."""
    started = time.perf_counter()
    ask = asked(request)
    sort = request.sort or sort_of(ask)
    result = recommended(ask, sort, request.limit)
    options = [choice.option for choice in result.choices]
    first = result.choices[0] if result.choices else None
    return RecommendedCluster(
        plan=first.found.plan.model_dump(mode="json") if first else None,
        options=options,
        rejected=result.rejected,
        sort=sort,
        satisfied=result.satisfied,
        why=list(_why(ask, options, sort, result.satisfied)),
        sizes_tried=result.tried,
        priced=max((option.price_date for option in options if option.price_date), default=None),
        seconds=time.perf_counter() - started,
        assumptions=list(_assumptions(ask, first, options)),
        warnings=list(_warnings(ask, options, result)),
        evidence=evidence(first),
    )


def sort_of(ask: Asked) -> Sort:
    """By the plan's objective where it names one."""
    goal = ask.plan.goal
    return _SORTS[goal.objective] if "objective" in goal.model_fields_set else "balanced"


def recommended(ask: Asked, sort: Sort, limit: int) -> Recommended:
    """The options of `asked`, in order, each estimated exactly; raises PlanError where the plan itself cannot be."""
    serving = isinstance(ask.plan.workload, Inference)
    if serving:
        candidates, refused, tried = serving_clusters(ask)
    else:
        candidates, refused, tried = training_clusters(ask, sort, 2 * limit)
    likely = [one for one in candidates if one.likely(ask)]
    choices = _exact(ask, _winners(likely, sort, limit), serving)
    within = [choice for choice in choices if choice.within]
    satisfied = bool(within)
    if not within:
        # Nothing keeps to the limits: what comes nearest is shown, and marked.
        choices = _exact(ask, _winners(_nearest(ask, candidates, limit), sort, limit), serving)
        within = [choice for choice in choices if choice.within] or choices
        satisfied = any(choice.within for choice in within)
    _score(within)
    if satisfied:
        ordered = sorted(within, key=lambda choice: _key(choice.option, sort))
    else:
        ordered = sorted(within, key=lambda choice: (_missed(ask, choice.option), _key(choice.option, sort)))
    refused += _beyond(ask, candidates)
    refused += _behind(ask, candidates, ordered[:limit])
    return Recommended(ordered[:limit], [*_grouped(refused), *ask.rejected], tried, satisfied)


def cost_of(option: ClusterOption) -> float:
    """USD, or USD per million tokens where the length of the run is not known; inf without a price."""
    value = option.usd if option.hours is not None else option.usd_per_million_tokens
    return np.inf if value is None else value


def duration_of(option: ClusterOption) -> float:
    """Hours of the run, or seconds per token; of serving seconds per request."""
    if option.engine:
        return np.inf if option.e2e_s is None else option.e2e_s
    return option.hours if option.hours is not None else 1.0 / option.tokens_per_s


def _key(option: ClusterOption, sort: Sort) -> tuple[Any, ...]:
    return (*rank(sort, cost_of(option), duration_of(option)), option.count, option.accelerator)


def _score(choices: Sequence[Choice]) -> None:
    """Writes the Pareto flag and the balanced score into the options."""
    money = np.array([cost_of(choice.option) for choice in choices])
    took = np.array([duration_of(choice.option) for choice in choices])
    for choice, flag, score in zip(choices, front(money, took), balance(money, took), strict=True):
        choice.option.pareto = bool(flag)
        choice.option.balanced_score = float(score) if np.isfinite(score) else None


def _winners(candidates: list[Candidate], sort: Sort, limit: int) -> list[Candidate]:
    """The first `limit` by each order that counts: the asked one, and the front of cost against time."""
    if not candidates:
        return []
    order = sorted(candidates, key=lambda one: rank(sort, one.money, one.time))
    flags = front(np.array([one.money for one in candidates]), np.array([one.time for one in candidates]))
    ahead = [one for one, flag in zip(candidates, flags, strict=True) if flag]
    ahead.sort(key=lambda one: rank("balanced", one.money, one.time))
    return list({id(one): one for one in order[:limit] + ahead[:limit]}.values())


def _nearest(ask: Asked, candidates: list[Candidate], limit: int) -> list[Candidate]:
    """Those that miss the limits by the least factor."""
    return sorted(candidates, key=lambda one: (one.missed(ask), one.money))[:limit]


def _missed(ask: Asked, option: ClusterOption) -> float:
    return missed(ask, option.usd, option.hours)


def _exact(ask: Asked, winners: list[Candidate], serving: bool) -> list[Choice]:
    found: list[Choice | None] = []
    if serving:
        found = [Choice(*pair) if (pair := exact_serving(ask, one)) else None for one in winners]
    else:
        whole = few_layouts(winners)
        found = [Choice(*pair) if (pair := exact(ask, one, whole)) else None for one in winners]
    return [choice for choice in found if choice]


def _beyond(ask: Asked, candidates: list[Candidate]) -> Iterator[Refusal]:
    """Accelerators that fit in no number that keeps to the limits."""
    by_device: dict[str, list[Candidate]] = {}
    for one in candidates:
        by_device.setdefault(one.shape.accelerator.id, []).append(one)
    for name, here in by_device.items():
        if any(not one.late(ask) and not one.dear(ask) for one in here):
            continue
        in_time = [one for one in here if not one.late(ask)]
        if not in_time:
            hours = min(one.hours for one in here if one.hours is not None)
            yield Refusal(name, "past_deadline", "takes longer than the deadline on as many as were tried", hours)
            continue
        tail = " wherever it is in time" if ask.deadline_h else ""
        yield Refusal(name, "over_budget", f"costs more than the budget{tail}", min(one.money for one in in_time))


def _behind(ask: Asked, candidates: list[Candidate], shown: list[Choice]) -> Iterator[Refusal]:
    """Accelerators that would do, and are not among the options."""
    listed = {choice.option.accelerator for choice in shown}
    least: dict[str, float] = {}
    for one in candidates:
        name = one.shape.accelerator.id
        if name not in listed and not one.late(ask) and not one.dear(ask):
            least[name] = min(one.money, least.get(name, np.inf))
    for name, money in least.items():
        if np.isfinite(money):
            yield Refusal(name, "outdone", "fits, but the options come before it: raise limit, or name it", money)
        else:
            yield Refusal(name, "no_price", "fits, but no price is known of as many together")


# What is told of each accelerator that fell out for a reason.
_LEAST = {
    "does_not_fit": "least_devices",
    "past_deadline": "least_hours",
    "over_budget": "least_usd",
    "outdone": "least_usd",
    "over_hourly": "least_usd_per_hour",
}


def _grouped(refused: Sequence[Refusal]) -> list[ClusterRejected]:
    """Those of the same reason together, what is nearest first."""
    groups: dict[tuple[Why, str], list[Refusal]] = {}
    for one in refused:
        groups.setdefault((one.reason, one.why), []).append(one)
    found = []
    for (reason, why), rows in groups.items():
        rows.sort(key=lambda one: np.inf if one.least is None else one.least)
        known = {one.accelerator: one.least for one in rows if one.least is not None}
        row = ClusterRejected(accelerators=[one.accelerator for one in rows], reason=reason, why=why)
        if known and reason in _LEAST:
            setattr(row, _LEAST[reason], known)
        found.append(row)
    return found


def _why(ask: Asked, options: list[ClusterOption], sort: Sort, satisfied: bool) -> Iterator[str]:
    if not options:
        yield "No device of those tried can run this plan within the limits; rejected says why for each."
        return
    if not satisfied:
        yield f"Nothing keeps to all limits. What comes nearest is {described(options[0])}."
        return
    words = {"cost": "the least cost", "time": "the least time", "balanced": "the best balance of cost and time"}
    yield f"First is {described(options[0])}: {words[sort]} of what fits."
    priced = [option for option in options if option.usd_per_hour is not None]
    if priced:
        cheapest = min(priced, key=cost_of)
        if cheapest is not options[0]:
            yield f"Cheapest of these is {described(cheapest)}."
    serving = isinstance(ask.plan.workload, Inference)
    quickest = min(options, key=lambda option: duration_of(option))
    if quickest is not options[0]:
        yield f"{'Quickest to answer' if serving else 'Fastest'} of these is {described(quickest)}."


def described(option: ClusterOption) -> str:
    where = f" at {option.provider}" if option.provider else ""
    figures = []
    if option.engine:
        figures += [f"{option.usd_per_hour:,.2f} USD an hour"] if option.usd_per_hour is not None else []
        figures += [f"{option.e2e_s:,.1f} s a request"] if option.e2e_s is not None else []
    elif option.hours is not None:
        figures += [f"{option.usd:,.2f} USD"] if option.usd is not None else ["no price known"]
        figures += [f"{option.hours:,.1f} h"]
    else:
        value = option.usd_per_million_tokens
        figures += [f"{value:,.3f} USD per million tokens"] if value is not None else ["no price known"]
        figures += [f"{option.tokens_per_s:,.0f} tokens/s"]
    return f"{option.count} x {option.accelerator}{where} ({', '.join(figures)})"


def _assumptions(ask: Asked, first: Choice | None, options: list[ClusterOption]) -> Iterator[Assumption]:
    yield from ask.said
    if first:
        yield from assumed(ask, first)
    if len({option.global_batch for option in options}) > 1:
        why = "the usual batch, rounded up so that each option's devices divide it: larger clusters take larger steps"
        yield Assumption(field="workload.global_batch", value="by option", why=why)


def assumed(ask: Asked, choice: Choice) -> list[Assumption]:
    """What the plan leaves open besides cluster and layout, as it is filled in for this option."""
    option, found = choice.option, choice.found
    filled = [Assumption(field=item.field, value=item.value, why=item.why) for item in found.assumptions]
    if isinstance(found, Planned):
        job = job_of(ask.plan.patch({"cluster.accelerator": option.accelerator, "cluster.count": option.count}))
        filled = [Assumption(field=item.field, value=item.value, why=item.why) for item in job.assumptions] + filled
    by_field: dict[str, Assumption] = {}
    for item in filled:
        if not item.field.startswith(("cluster.", "layout.")) and item.field != "goal.objective":
            by_field.setdefault(item.field, item)
    framework = by_field.get("workload.framework")
    if framework and framework.value != option.framework:
        framework.why = f"the usual {framework.value} does not fit, and it does"
        framework.value = option.framework
    return list(by_field.values())


def _warnings(ask: Asked, options: list[ClusterOption], result: Recommended) -> Iterator[str]:
    if options and not result.satisfied:
        yield "no option keeps to all limits: see fits_budget and fits_deadline of each"
    if isinstance(ask.plan.workload, Inference):
        return
    if options and options[0].hours is None:
        yield "the plan names no data: ranked by USD per million tokens; give dataset_tokens for hours and USD"
        if ask.max_usd is not None or ask.deadline_h is not None:
            yield "budget and deadline cannot be checked without dataset_tokens"
    if any(not option.measured for option in options):
        names = ", ".join(dict.fromkeys(option.accelerator for option in options if not option.measured))
        yield f"no measured run is behind the times of {names}: their intervals are wider"


def evidence(first: Choice | None) -> list[Any]:
    if first is None:
        return []
    found = first.found
    if isinstance(found, Planned):
        return evidence_of(found)
    return serving_evidence_of(found.job)
