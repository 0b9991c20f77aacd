"""What a change to a plan gains: the changed plan estimated as one of its own, for training and serving alike."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.playbook import PlaybookAdvice
from planner.change import Change
from planner.estimates import PlanEstimate
from planner.fit import remedies
from planner.fit import serving as serving_fit
from planner.layouts import improvements
from planner.money.offers import cheapest, offers
from planner.serving.planned import Served, finite, money_of, plan_serving
from planner.serving.planned import memory_of as serving_memory_of
from planner.serving.warnings import reads
from planner.training.planned import Planned
from planner.training.run import run_of

TRAINING_OBJECTIVES = ("tokens_per_s", "per_device_bytes", "usd_per_million_tokens", "hours")
SERVING_OBJECTIVES = (
    "output_tokens_per_s", "per_device_bytes", "ttft_s", "tpot_s", "max_concurrency", "usd_per_million_output_tokens",
)  # fmt: skip
MORE_IS_BETTER = ("tokens_per_s", "output_tokens_per_s", "max_concurrency")
# One percent is within what an estimate can tell apart; less is no reason to change a plan.
LEAST_GAIN = 0.01
_TIMES = {"half": 0.5, "double": 2, "quadruple": 4}
_SIZES = {"node": "machine.per_node", "domain": "machine.fast_domain"}
# What largest_that_fits tries, times the present value, until one does not fit.
_GROWTH = (2, 4, 8, 16)
RULES = (*_TIMES, *_SIZES, "largest_that_fits")


@dataclass(frozen=True)
class Gain:
    """A change that was estimated: `gain` of its objective as a fraction, positive for better."""

    patch: dict[str, Any]
    effect: str
    objective: str
    gain: float
    estimate: PlanEstimate


@dataclass
class Bench:
    """Estimates changes to the plan `base`, each patch once, and no more than `most` of them."""

    base: PlanEstimate
    asked: Plan
    facts: Mapping[str, Any]
    most: int
    tried: int = 0
    _known: dict[str, PlanEstimate | None] = field(default_factory=dict)
    _changes: dict[str | None, list[Change]] = field(default_factory=dict)

    def best(self, entry: PlaybookAdvice) -> Gain | None:
        """The best of an entry's alternatives; None where none can be had or says its objective.

        Of a plan that fits the most gain that fits too counts. Of one that does not, what fits comes first, then
        what slows least.
        """
        gains = [gain for change in self._alternatives(entry) if (gain := self._gain(entry, change))]
        if not gains:
            return None
        if self.base.fits:
            return max(gains, key=lambda gain: (gain.estimate.fits, gain.gain))
        return min(
            gains,
            key=lambda gain: (not gain.estimate.fits, -speed_of(gain.estimate) if gain.estimate.fits else -gain.gain),
        )

    def estimate(self, patch: Mapping[str, Any]) -> PlanEstimate | None:
        """The changed plan; None where it is not valid."""
        key = json.dumps(patch, sort_keys=True, default=str)
        if key not in self._known:
            self.tried += 1
            self._known[key] = changed(self.base, patch)
        return self._known[key]

    @property
    def spent(self) -> bool:
        return self.tried >= self.most

    def _alternatives(self, entry: PlaybookAdvice) -> Iterator[Change]:
        effect = entry.effect or "setting"
        for patch in entry.patches:
            for resolved in self._resolved(patch):
                yield Change(entry.id, resolved, entry.title, "", effect)
        if entry.change is not None:
            if entry.objective not in self._changes:
                self._changes[entry.objective] = known_changes(self.base, self.asked, entry.objective)
            for change in self._changes[entry.objective]:
                if change.knob == entry.change:
                    yield change
                    other = self.estimate(change.patch)
                    # More devices than are needed are no better.
                    if change.kind == "hardware" and other and other.fits:
                        break

    def _resolved(self, patch: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The patch with its rules worked out on the plan; nothing where one has no value."""
        values: dict[str, Any] = {}
        growing = None
        for path, value in patch.items():
            rule = value["rule"] if isinstance(value, Mapping) and set(value) == {"rule"} else None
            if rule == "largest_that_fits":
                growing = path
            values[path] = value if rule is None else resolved(rule, self.facts[path], self.facts)
            if rule not in (None, "largest_that_fits") and values[path] is None:
                return
        if growing is None:
            yield values
            return
        best = None
        now = self.facts[growing]
        for times in _GROWTH if isinstance(now, int) else ():
            larger = values | {growing: now * times}
            other = self.estimate(larger)
            if other is None or not other.fits:
                break
            best = larger
        if best is not None:
            yield best

    def _gain(self, entry: PlaybookAdvice, change: Change) -> Gain | None:
        assert entry.objective is not None
        other = self.estimate(change.patch)
        if other is None or not is_measured(change, other):
            return None
        before, after = figure(self.base, entry.objective), figure(other, entry.objective)
        if before is None or after is None or before <= 0.0 or after <= 0.0:
            return None
        patch = improvements.told_patch(change, other) if isinstance(other, Planned) else _told(change, other)
        return Gain(patch, change.kind, entry.objective, gain_of(entry.objective, before, after), other)


def _told(change: Change, other: Served) -> dict[str, Any]:
    """The patch, with the acceptance that was taken for drafts that it adds."""
    patch = dict(change.patch)
    if patch.get("workload.speculative_tokens"):
        patch.setdefault("workload.acceptance", other.job.inference.acceptance)
    return patch


def known_changes(estimate: PlanEstimate, asked: Plan, objective: str | None) -> list[Change]:
    """The changes that other tools try: for memory those that save it, else those that give speed."""
    if isinstance(estimate, Served):
        return [*serving_fit.changes(estimate), *serving_fit.looser(estimate)]
    if objective == "per_device_bytes":
        return [*remedies.changes(estimate), *remedies.device_changes(estimate, asked)]
    # Other frameworks take a search each.
    return [change for change in improvements.changes(estimate) if change.kind != "framework"]


def resolved(rule: str, now: Any, facts: Mapping[str, Any]) -> Any:
    """The value that a rule gives for a field that is `now`; None where it gives none or nothing new."""
    if rule in _SIZES:
        size = facts[_SIZES[rule]]
        return size if size != now else None
    if rule not in _TIMES or isinstance(now, bool) or not isinstance(now, int | float):
        return None
    value = now * _TIMES[rule]
    if isinstance(now, int):
        return int(value) if float(value).is_integer() and value >= 1 else None
    return value


def changed(base: PlanEstimate, patch: Mapping[str, Any]) -> PlanEstimate | None:
    if isinstance(base, Planned):
        return base.varied(patch)
    try:
        other = plan_serving(base.plan.patch(patch), base.own_usd)
    except PlanError:
        return None
    return other if reads(other.job) else None


def is_measured(change: Change, other: PlanEstimate) -> bool:
    """Whether there is reason to believe the figure: of other frameworks only those that were timed are told."""
    return change.kind != "framework" or not isinstance(other, Planned) or other.job.calibration.time_measured


def gain_of(objective: str, before: float, after: float) -> float:
    """As a fraction of `before`: more of what there should be more of, or less of what there should be less of."""
    return after / before - 1.0 if objective in MORE_IS_BETTER else 1.0 - after / before


def figures(estimate: PlanEstimate, objectives: Sequence[str]) -> dict[str, float | None]:
    return {name: figure(estimate, name) for name in objectives}


def figure(estimate: PlanEstimate, objective: str) -> float | None:
    """A plan's figure of an objective, in the unit of its name; None where it has none."""
    if isinstance(estimate, Served):
        return _serving_figure(estimate, objective)
    match objective:
        case "tokens_per_s":
            return speed_of(estimate)
        case "per_device_bytes":
            return float(estimate.estimates.memory.total[estimate.index])
        case "hours":
            run = run_of(estimate)
            return run.hours if run else None
        case "usd_per_million_tokens":
            best = cheapest(offers(estimate, 1.0))
            return best.usd / (speed_of(estimate) * 3600.0 / 1e6) if best and best.usd is not None else None
    return None


def speed_of(estimate: PlanEstimate) -> float:
    """Tokens/s: trained on, or generated."""
    if isinstance(estimate, Served):
        return float(estimate.estimates.output_tokens_per_s[estimate.entry])
    return estimate.job.tokens_per_step / float(estimate.estimates.step.seconds[estimate.index])


def _serving_figure(served: Served, objective: str) -> float | None:
    match objective:
        case "output_tokens_per_s":
            return speed_of(served)
        case "per_device_bytes":
            return float(served.estimates.memory.total[served.entry])
        case "ttft_s":
            return finite(served.estimates.steady.ttft_s[served.entry])
        case "tpot_s":
            return float(served.estimates.steady.tpot_s[served.entry])
        case "max_concurrency":
            return float(serving_memory_of(served).max_concurrency)
        case "usd_per_million_output_tokens":
            cost = money_of(served)
            return cost.usd_per_million_output_tokens if cost else None
    return None
