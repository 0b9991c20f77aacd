"""recommend_cluster: which accelerators, how many, from whom, with which layout."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from estimator.plan.schema import Inference
from estimator.search.fleet import balance, front
from estimator.training.estimates import unmeasured
from knowledge.figures import percent
from knowledge.jobs.training import job_of
from knowledge.models.catalogue import find_architecture
from planner.announced import before_release
from planner.asked.clusters import ClusterRequest, Sort
from planner.clusters.candidates import Beyond, Candidate, ClusterChoice, Rank, Refusal, missed, rank, unpriced_words
from planner.clusters.options import cheaper, cost_of, described, duration_of, outlay_of
from planner.clusters.request import Asked, asked
from planner.clusters.results import (
    UNMET,
    ClusterOption,
    ClusterRejected,
    LooserLimit,
    RecommendedCluster,
    Why,
)
from planner.clusters.serving.option import option_of as serving_option
from planner.clusters.serving.screening import screened as serving_clusters
from planner.clusters.training.option import option_of as training_option
from planner.clusters.training.screening import screened as training_clusters
from planner.clusters.verdicts import knee, nearest, winner_changes
from planner.estimates import uncounted
from planner.evidence import evidence_of
from planner.money.offers import open_words
from planner.result import Assumption
from planner.serving.warnings import unmeasured as unmeasured_serving
from planner.training.planned import Planned

_SORTS: dict[str, Sort] = {"cost": "cost", "time": "time", "throughput": "time", "memory": "cost"}


# Options whose launch files are tried beside the cheapest and the quickest: more than a person takes.
_WRITTEN = 3


@dataclass(frozen=True)
class Recommended:
    ask: Asked
    choices: list[ClusterChoice]
    refused: Callable[[], Iterable[Refusal]]
    """What fell out, looked for where it is asked: how much of a device would do takes another search."""
    place: Callable[[ClusterChoice], tuple[Any, ...]]
    """What they are in the order of."""
    tried: int
    satisfied: bool
    front: list[ClusterOption]
    """Those that no other beats in cost or time without being worse in the other, whatever was asked for."""
    beyond: Sequence[Beyond] = ()
    """What breaks a limit."""
    ahead: int = 0
    """How many right behind the first would come before it, but cannot be launched from here."""
    told: Sequence[str] = ()
    """What was assumed of limits that nobody named."""

    @property
    def missed(self) -> float:
        """By what factor the nearest misses the limits; inf where nothing fits."""
        return min((_missed(self.ask, choice.option) for choice in self.choices), default=math.inf)

    @cached_property
    def rejected(self) -> list[ClusterRejected]:
        """What fell out, those of the same reason together."""
        return [*_grouped([*self.refused()]), *self.ask.rejected]


def recommend_cluster(request: ClusterRequest) -> RecommendedCluster:
    """Recommend a cluster."""
    started = time.perf_counter()
    ask = asked(request)
    sort = request.sort or sort_of(ask)
    result = recommended(ask, sort, request.limit)
    options = [choice.option for choice in result.choices]
    for choice in _named(result.choices):
        choice.option.launch_targets = choice.launched_by
    first = result.choices[0] if result.choices else None
    return RecommendedCluster(
        plan=first.estimate.complete_plan if first else None,
        options=options,
        rejected=result.rejected,
        sort=sort,
        satisfied=result.satisfied,
        why=list(_why(ask, options, sort, result)),
        looser=list(_looser(ask, sort, first, result.beyond)),
        knee=_as_listed(options, knee(result.front, cost_of, lambda option: max(duration_of(option), ask.unhurried_h))),
        winner_changes=list(winner_changes(result.choices, sort, lambda option: _value(option, sort, ask.unhurried_h))),
        nearest=[] if result.satisfied else nearest(ask, options, _cheapest),
        sizes_tried=result.tried,
        priced=max((option.price_date for option in options if option.price_date), default=None),
        seconds=time.perf_counter() - started,
        assumptions=list(_assumptions(ask, first, options)),
        warnings=list(_warnings(ask, options, result)),
        evidence=evidence_of(first.estimate.job) if first else [],
    )


def _as_listed(options: Sequence[ClusterOption], option: ClusterOption | None) -> ClusterOption | None:
    """The same cluster as it stands among the options, whose layout may be another that files can say."""
    if option is None:
        return None
    return next((each for each in options if _cluster(each) == _cluster(option)), option)


def _cluster(option: ClusterOption) -> tuple[str, int, str | None]:
    return option.accelerator, option.count, option.provider


def _one_of_each(choices: Sequence[ClusterChoice]) -> list[ClusterChoice]:
    """Of those that are one cluster laid out in several ways, the first."""
    first: dict[tuple[str, int, str | None], ClusterChoice] = {}
    for choice in choices:
        first.setdefault(_cluster(choice.option), choice)
    return list(first.values())


def _named(choices: list[ClusterChoice]) -> list[ClusterChoice]:
    """Those that an answer may name: the first, the cheapest and the quickest, and the cheapest with launch files."""
    if not choices:
        return []
    dearer = sorted(choices, key=lambda each: outlay_of(each.option))
    written = next((place for place, each in enumerate(dearer) if each.is_launched), 0)
    return [*choices[:_WRITTEN], *dearer[: written + 1], min(choices, key=lambda each: duration_of(each.option))]


def sort_of(ask: Asked) -> Sort:
    """By the plan's objective where it names one. A deadline says how fast is fast enough, so that the cheapest that
    meets it comes first; a budget alone what may be spent, so that the fastest run or deployment within it does. Of a
    run whose length is not known more devices always take less time for the same money, so that cost alone decides."""
    goal, known = ask.plan.goal, ask.ends or isinstance(ask.plan.workload, Inference)
    if "objective" in goal.model_fields_set:
        return _SORTS[goal.objective]
    if ask.deadline_h is not None:
        return "cost"
    if known and ask.max_usd is not None:
        return "time"
    return "balanced" if known else "cost"


def recommended(ask: Asked, sort: Sort, limit: int) -> Recommended:
    """The options of `asked`, in order, each estimated exactly, the best that can be launched first; raises PlanError
    where the plan itself cannot be."""
    return launched(ranked(ask, sort, limit), limit)


def launched(result: Recommended, limit: int) -> Recommended:
    """With the best that can be launched first."""
    choices, ahead = written_first(result.ask, result.choices, limit, result.place)
    return replace(result, choices=choices, ahead=ahead)


def ranked(ask: Asked, sort: Sort, limit: int) -> Recommended:
    """The options in order, whether or not they can be launched."""
    find_architecture(ask.plan.model)
    serving = isinstance(ask.plan.workload, Inference)
    screened = serving_clusters(ask) if serving else training_clusters(ask, sort, 2 * limit)
    candidates = screened.candidates
    likely = [candidate for candidate in candidates if candidate.likely(ask)]
    choices = _exact(ask, _winners(ask, likely, sort, limit))
    within = [choice for choice in choices if choice.within]
    satisfied = bool(within)
    if not within:
        # Nothing keeps to the limits: what comes nearest is shown, and marked.
        choices = _exact(ask, _winners(ask, _nearest(ask, candidates, limit), sort, limit))
        within = [choice for choice in choices if choice.within] or choices
        satisfied = any(choice.within for choice in within)
    _score(within, ask.unhurried_h)

    def place(choice: ClusterChoice) -> tuple[Any, ...]:
        missed = 0.0 if satisfied else _missed(ask, choice.option)
        return missed, _may_be_late(ask, choice.option), _key(choice.option, sort, ask.unhurried_h)

    late = (Beyond(each.money, each.time, each.missed(ask), each.measured) for each in candidates)

    def refused() -> Iterator[Refusal]:
        yield from screened.refused()
        yield from _beyond(ask, candidates)
        yield from _behind(ask, candidates, ordered)

    ordered = _one_of_each(sorted(within, key=place))[:limit]
    return Recommended(
        ask=ask,
        choices=ordered,
        refused=refused,
        place=place,
        tried=screened.tried,
        satisfied=satisfied,
        front=[choice.option for choice in within if choice.option.pareto],
        beyond=[each for each in (*screened.beyond, *late) if each.missed > 1.0],
        told=screened.told,
    )


def written_first(
    ask: Asked, choices: list[ClusterChoice], limit: int, key: Callable[[ClusterChoice], Any]
) -> tuple[list[ClusterChoice], int]:
    """The best option that a launch target writes comes first, if need be in a layout or framework that it can say; and
    how many are better by `key`, and cannot be launched. Options that miss a limit are not put before others."""
    helpless: set[str] = set()
    able: list[tuple[ClusterChoice, int]] = []
    for place, choice in enumerate(choices[:limit]):
        if choice.within != choices[0].within:
            break
        if choice.is_launched:
            able.append((choice, place))
            break
        device = choice.option.accelerator
        if not able and device not in helpless and not isinstance(ask.plan.workload, Inference):
            other = training_option(ask, choice.candidate, writable=True)
            helpless |= {device} if other is None else set()
            if other is not None and other.within == choice.within:
                other.option.balanced_score = _rescored(ask, other.option, choice.option)
                able.append((other, place))
    if not able:
        return choices, 0
    first, place = min(able, key=lambda row: key(row[0]))
    others = [*choices[:place], *choices[place + 1 :]]
    return [first, *others], sum(key(choice) < key(first) for choice in others[:limit])


def _never_measured(ask: Asked, options: Sequence[ClusterOption], sort: Sort) -> Iterator[str]:
    """What comes behind the first only since nothing was measured on it."""
    values = [_value(option, sort, ask.unhurried_h) for option in options]
    first = options[0]
    behind = [
        (value, option)
        for value, option in zip(values[1:], options[1:], strict=True)
        if first.measured and not option.measured and value < values[0]
    ]
    if behind:
        other = min(behind, key=lambda row: row[0])[1]
        yield f"{described(other)} would come first by its estimate, but no run on it was measured."


def _passed_over(options: Sequence[ClusterOption], ahead: int) -> Iterator[str]:
    """What the first of those gives that come before it, and cannot be launched."""
    if not ahead:
        return
    first, other = options[:2]
    gains = [
        f"{words} {percent(abs(theirs / here - 1.0))} {'less' if theirs < here else 'more'}"
        for words, theirs, here in (
            ("costs", cost_of(other), cost_of(first)), ("takes", duration_of(other), duration_of(first)),
        )
        if np.isfinite(theirs) and np.isfinite(here) and here > 0.0
    ]  # fmt: skip
    yield f"{described(other)} {' and '.join(gains)}, but Shardwise writes no launch files for it."


def _cheapest(ask: Asked) -> ClusterChoice | None:
    """That keeps to the limits, or where none does, that misses them least. In which layout files can say it is found
    where they are written."""
    choices = ranked(ask, "cost", 1).choices
    return choices[0] if choices else None


def _rank(option: ClusterOption, sort: Sort, unhurried_h: float) -> Rank:
    return rank(sort, cost_of(option), duration_of(option), unhurried_h, option.measured)


def _key(option: ClusterOption, sort: Sort, unhurried_h: float) -> tuple[Any, ...]:
    return (*_rank(option, sort, unhurried_h), option.count, option.accelerator)


def _value(option: ClusterOption, sort: Sort, unhurried_h: float) -> float:
    """What options of a kind are ranked by."""
    return _rank(option, sort, unhurried_h)[2]


def _score(choices: Sequence[ClusterChoice], unhurried_h: float) -> None:
    """Writes the Pareto flag and the balanced score into the options."""
    money = np.array([cost_of(choice.option) for choice in choices])
    took = np.array([duration_of(choice.option) for choice in choices])
    for choice, flag, score in zip(
        choices, front(money, took), balance(money, np.maximum(took, unhurried_h)), strict=True
    ):
        choice.option.pareto = bool(flag)
        choice.option.balanced_score = float(score) if np.isfinite(score) else None


def _rescored(ask: Asked, option: ClusterOption, other: ClusterOption) -> float | None:
    """The balanced score of an option where another, at the same devices, has its own."""
    score = other.balanced_score
    here, there = (_value(each, "balanced", ask.unhurried_h) for each in (option, other))
    return score if score is None or not math.isfinite(here / there) else score * math.sqrt(here / there)


def _winners(ask: Asked, candidates: list[Candidate], sort: Sort, limit: int) -> list[Candidate]:
    """The first `limit` by each order that counts: the asked one, and the front of cost against time."""
    if not candidates:
        return []
    order = sorted(candidates, key=lambda candidate: candidate.rank(sort, ask.unhurried_h))
    flags = front(
        np.array([candidate.money for candidate in candidates]), np.array([candidate.time for candidate in candidates])
    )
    ahead = [candidate for candidate, flag in zip(candidates, flags, strict=True) if flag]
    ahead.sort(key=lambda candidate: candidate.rank("balanced", ask.unhurried_h))
    return list({id(candidate): candidate for candidate in order[:limit] + ahead[:limit]}.values())


def _nearest(ask: Asked, candidates: list[Candidate], limit: int) -> list[Candidate]:
    """Those that miss the limits by the least factor."""
    return sorted(candidates, key=lambda candidate: (candidate.missed(ask), candidate.money))[:limit]


def _may_be_late(ask: Asked, option: ClusterOption) -> bool:
    """Whether the upper end of its time is past the deadline."""
    high_h = option.high_hours
    return ask.deadline_h is not None and high_h is not None and high_h > ask.deadline_h


def _missed(ask: Asked, option: ClusterOption) -> float:
    return missed(ask, option.spent_usd, option.hours)


def _exact(ask: Asked, winners: list[Candidate]) -> list[ClusterChoice]:
    if isinstance(ask.plan.workload, Inference):
        choices = [serving_option(ask, candidate) for candidate in winners]
    else:
        choices = [training_option(ask, candidate) for candidate in winners]
    return [choice for choice in choices if choice]


def _beyond(ask: Asked, candidates: list[Candidate]) -> Iterator[Refusal]:
    """Accelerators that fit in no number that keeps to the limits."""
    by_device: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_device.setdefault(candidate.shape.accelerator.id, []).append(candidate)
    for name, here in by_device.items():
        if any(not candidate.late(ask) and not candidate.dear(ask) for candidate in here):
            continue
        in_time = [candidate for candidate in here if not candidate.late(ask)]
        if not in_time:
            hours = min(candidate.hours for candidate in here if candidate.hours is not None)
            yield Refusal(name, "past_deadline", "misses the deadline on any number tried", hours)
            continue
        tail = " wherever it is in time" if ask.deadline_h else ""
        yield Refusal(
            name, "over_budget", f"costs more than the budget{tail}", min(candidate.money for candidate in in_time)
        )


def _behind(ask: Asked, candidates: list[Candidate], shown: list[ClusterChoice]) -> Iterator[Refusal]:
    """Accelerators that would do, and are not among the options."""
    listed = {choice.option.accelerator for choice in shown}
    least: dict[str, float] = {}
    for candidate in candidates:
        name = candidate.shape.accelerator.id
        if name not in listed and not candidate.late(ask) and not candidate.dear(ask):
            least[name] = min(candidate.money, least.get(name, np.inf))
    for name, money in least.items():
        if np.isfinite(money):
            yield Refusal(name, "outdone", "fits, but ranks below the options shown: raise limit, or name it", money)
        else:
            yield Refusal(name, "no_price", "fits, but no price is known for that many together")


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
    for refusal in refused:
        groups.setdefault((refusal.reason, refusal.why), []).append(refusal)
    rejected = []
    for (reason, why), rows in groups.items():
        rows.sort(key=lambda refusal: np.inf if refusal.least is None else refusal.least)
        known = {refusal.accelerator: refusal.least for refusal in rows if refusal.least is not None}
        row = ClusterRejected(accelerators=[refusal.accelerator for refusal in rows], reason=reason, why=why)
        if known and reason in _LEAST:
            setattr(row, _LEAST[reason], known)
        rejected.append(row)
    return rejected


def _why(ask: Asked, options: list[ClusterOption], sort: Sort, result: Recommended) -> Iterator[str]:
    if not options:
        yield "No device of those tried can run this plan within the limits; rejected says why for each."
        return
    if not result.satisfied:
        yield f"Nothing meets every limit. The closest is {described(options[0])}."
        yield from result.told
        return
    words = {"cost": "the least cost", "time": "the least time", "balanced": "the best balance of cost and time"}
    limits = ask.limit_names
    able = f"meets the {' and the '.join(limits)}" if limits else "fits"
    able += " and has launch files" if result.ahead else ""
    yield f"First is {described(options[0])}: {words[sort]} of what {able}."
    yield from result.told
    yield from _never_measured(ask, options, sort)
    priced = [option for option in options if option.usd_per_hour is not None]
    if priced:
        cheapest = min(priced, key=outlay_of)
        if cheapest is not options[0]:
            yield f"{cheaper(cheapest, 'Cheapest')}."
    serving = isinstance(ask.plan.workload, Inference)
    quickest = min(options, key=lambda option: duration_of(option))
    if quickest is not options[0]:
        yield f"{'Quickest to answer' if serving else 'Fastest'}: {described(quickest)}."
    yield from _passed_over(options, result.ahead)


# Of how many the exact estimates decide which comes first: those of the screen are of usual layouts, and are close.
_CLOSE = 3


# How many times as much of a limit is looked at.
_TWICE = 2.0


def _looser(ask: Asked, sort: Sort, choice: ClusterChoice | None, beyond: Sequence[Beyond]) -> Iterator[LooserLimit]:
    """The limits that decide, each with what comes first where there is twice as much of it: looked for where something
    that breaks them by no more may come first."""
    first = choice.option if choice else None
    if first is None or not any(_may_come_first(each, ask, sort, choice) for each in beyond):
        return
    for limit, value in (("deadline_h", ask.deadline_h), ("budget_usd", ask.max_usd)):
        if value is None:
            continue
        looser = replace(ask, plan=ask.plan.patch({f"goal.{limit}": _TWICE * value}))
        found = recommended(looser, sort, _CLOSE)
        if not (found.choices and found.satisfied):
            continue
        other = found.choices[0].option
        within = choice is not None and choice.within
        if first is None or not within or (other.accelerator, other.count) != (first.accelerator, first.count):
            yield LooserLimit(
                deadline_h=2.0 * value if limit == "deadline_h" else None,
                budget_usd=2.0 * value if limit == "budget_usd" else None,
                accelerator=other.accelerator,
                count=other.count,
                provider=other.provider,
                hours=other.hours,
                usd=other.usd,
            )


def _may_come_first(beyond: Beyond, ask: Asked, sort: Sort, choice: ClusterChoice | None) -> bool:
    if choice is None or not choice.within or isinstance(ask.plan.workload, Inference):
        return beyond.missed <= _TWICE
    here = _key(choice.option, sort, ask.unhurried_h)
    there = rank(sort, beyond.money, beyond.time, ask.unhurried_h, beyond.measured)
    return beyond.missed <= _TWICE and there[:3] < here[:3]


def _assumptions(ask: Asked, first: ClusterChoice | None, options: list[ClusterOption]) -> Iterator[Assumption]:
    yield from ask.assumptions
    if first:
        yield from assumed(ask, first)
    if len({option.global_batch for option in options}) > 1:
        why = "the usual batch, rounded up so that each option's devices divide it: larger clusters take larger steps"
        yield Assumption(field="workload.global_batch", value="by option", why=why)


def assumed(ask: Asked, choice: ClusterChoice) -> list[Assumption]:
    """What the plan leaves open besides cluster and layout, as it is filled in for this option."""
    option, estimate = choice.option, choice.estimate
    filled = [Assumption(field=item.field, value=item.value, why=item.why) for item in estimate.assumptions]
    if isinstance(estimate, Planned):
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
    if not options:
        return
    if not result.satisfied:
        yield UNMET
    serving = isinstance(ask.plan.workload, Inference)
    if not serving and options[0].hours is None:
        yield "the plan names no data: ranked by USD per million tokens; say how many tokens for hours and USD"
    if options[0].size_open:
        names = dict.fromkeys(option.provider for option in options if option.size_open and option.provider)
        yield open_words(list(names), options[0].count)
    if options[0].usd_per_hour is None:
        shape = result.choices[0].candidate.shape
        yield unpriced_words(ask, shape, shape.node)
    first = result.choices[0].estimate
    yield from uncounted(first)
    yield from before_release(first.job.machine.accelerator)
    yield from unmeasured(first.job) if isinstance(first, Planned) else unmeasured_serving(first.job)
    others = [option for option in options if option.accelerator != options[0].accelerator and not option.measured]
    if others:
        names = ", ".join(dict.fromkeys(option.accelerator for option in others))
        yield f"no {names} runs measured: {'speed' if serving else 'timing'} is less certain"
