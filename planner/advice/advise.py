"""Advice: what the playbook says to a plan, with what each change would gain, estimated."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from estimator.errors import PlanError, nearest
from estimator.plan.schema import Plan
from knowledge.figures import percent
from knowledge.playbook import PlaybookAdvice, entries, topics
from planner.advice.conditions import filled, holds, names_in
from planner.advice.facts import facts_of
from planner.advice.facts.words import in_words
from planner.advice.gains import LEAST_GAIN, Bench, Gain, figure, figures, gain_of, speed_of
from planner.asked.lookups import AdviseRequest
from planner.estimates import PlanEstimate, estimate_to_fit, warnings_of
from planner.evidence import evidence_of
from planner.result import Assumption, Evidence, Result
from planner.serving.planned import Served

# Changes that are estimated for one answer, those of the most specific entries first.
_MOST_TRIED = 60
# Changes that may be put together.
_MOST_TOGETHER = 8
# What is told of every plan beside the objective, and what gains are put first by the plan's goal.
_ALWAYS = {"training": ("tokens_per_s", "per_device_bytes"), "serving": ("output_tokens_per_s", "per_device_bytes")}
_GOALS = {
    "throughput": ("tokens_per_s", "output_tokens_per_s"),
    "time": ("hours", "tokens_per_s", "ttft_s", "tpot_s"),
    "cost": ("usd_per_million_tokens", "usd_per_million_output_tokens", "tokens_per_s", "output_tokens_per_s"),
    "memory": ("per_device_bytes", "max_concurrency"),
}


class Advised(Result):
    """An entry of the playbook that applies to the plan."""

    id: str
    topic: str
    title: str
    advice: str = Field(description="With the plan's own figures.")
    objective: str | None = Field(description="What the gain is of; null where no change was estimated.")
    gain: float | None = Field(
        description="Improvement of the objective as a fraction: 0.1 is 10 % more tokens/s, or 10 % fewer bytes, "
        "seconds or USD. Null where it was not estimated or the changed plan alone does not fit."
    )
    effect: str | None = Field(
        description="What else changes: setting (nothing), training, quality, hardware or load; null without a patch."
    )
    patch: dict[str, Any] | None = Field(description="Over the complete plan; null values are chosen anew.")
    before: dict[str, float | None] | None
    after: dict[str, float | None] | None
    fits: bool | None = Field(description="Whether the changed plan fits.")
    settings: dict[str, str] = Field(description="Environment variables, flags and fields that do it.")
    source: str


class NotWorth(Result):
    """An entry that applies, but whose change does not help this plan."""

    id: str
    title: str
    why: str


class Together(Result):
    """Several pieces of advice at once: gains do not add up, so their sum is estimated too."""

    ids: list[str]
    patch: dict[str, Any]
    objective: str
    gain: float
    before: dict[str, float | None]
    after: dict[str, float | None]
    fits: bool


class Advice(Result):
    plan: dict[str, Any]
    assumptions: list[Assumption]
    fits: bool
    bottleneck: str
    entries: list[Advised] = Field(
        description="Those with a computed gain first, by the plan's goal and then by gain (for a plan that does not "
        "fit: what makes it fit first, the fastest of it ahead); then advice without figures, the most specific first."
    )
    together: Together | None = Field(description="The told settings that help at once, one after the other.")
    applying: int = Field(description="How many entries of the playbook apply to this plan.")
    not_worth: list[NotWorth] = Field(description="Estimated and of no use to this plan.")
    untried: list[str] = Field(description="Ids of entries whose change was not estimated, to keep the answer quick.")
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]


def advise(request: AdviseRequest) -> Advice:
    """Advise on a plan."""
    started = time.perf_counter()
    asked = request.to_plan()
    advice = advice_of(estimate_to_fit(asked), asked, request)
    return advice.model_copy(update={"seconds": time.perf_counter() - started})


def advice_of(estimate: PlanEstimate, asked: Plan, request: AdviseRequest) -> Advice:
    """The same on a plan that was estimated as `estimate_to_fit` does; the seconds are those of the advice alone."""
    started = time.perf_counter()
    chosen = _chosen_topics(request.topics)
    facts = facts_of(estimate)
    apply = applying(facts, chosen)
    bench = Bench(estimate, asked, facts, _MOST_TRIED)
    gains: list[tuple[PlaybookAdvice, Gain]] = []
    useless: list[NotWorth] = []
    untried: list[str] = []
    for entry in (entry for entry in apply if entry.computable):
        # Only memory counts for a plan that does not fit: its speed is none.
        if bench.spent or (not estimate.fits and entry.objective != "per_device_bytes"):
            untried.append(entry.id)
        elif (gain := bench.best(entry)) is None:
            useless.append(NotWorth(id=entry.id, title=entry.title, why="the changed plan is not valid"))
        elif why := _no_use(estimate, gain):
            useless.append(NotWorth(id=entry.id, title=entry.title, why=why))
        else:
            gains.append((entry, gain))
    gains = _ordered(estimate, _distinct(gains))
    told = [_advised(entry, facts, estimate, gain) for entry, gain in gains]
    plain = [
        _advised(entry, facts, estimate, None) for entry in _first_aid_first(apply, estimate) if not entry.computable
    ]
    if request.all:
        rest = {item.id for item in useless} | set(untried)
        shown = [*told, *plain, *(_advised(entry, facts, estimate, None) for entry in apply if entry.id in rest)]
    else:
        # A third of the places is kept for what no estimate covers.
        kept = min(len(plain), request.limit // 3)
        shown = [*told[: request.limit - kept], *plain]
        shown = shown[: request.limit]
    return Advice(
        plan=estimate.complete_plan,
        assumptions=estimate.assumptions,
        fits=estimate.fits,
        bottleneck=str(facts["estimate.bottleneck"]),
        entries=shown,
        together=_together(bench, gains),
        applying=len(apply),
        not_worth=useless,
        untried=untried,
        seconds=time.perf_counter() - started,
        warnings=warnings_of(estimate),
        evidence=evidence_of(estimate.job),
    )


def applying(facts: dict[str, Any], chosen: Sequence[str] | None = None) -> list[PlaybookAdvice]:
    """The entries whose condition holds, those that ask for the most facts first."""
    kind = facts["workload.kind"]
    applying_entries = [
        entry
        for entry in entries()
        if entry.kind in (kind, "any") and (chosen is None or entry.topic in chosen) and holds(entry.when, facts)
    ]
    return sorted(applying_entries, key=lambda entry: -len(list(names_in(entry.when))))


def _chosen_topics(names: list[str] | None) -> list[str] | None:
    if names is None:
        return None
    return [find_topic(name) for name in names]


def find_topic(name: str) -> str:
    """The topic of a name or of another word for it, in any case. Raises PlanError with the nearest."""
    known = {word.casefold(): topic.id for topic in topics() for word in topic.also}
    known |= {word.casefold(): topic.id for topic in topics() for word in (topic.title, topic.id)}
    said_as = name.strip().casefold()
    for word in (said_as, said_as.replace(" ", "-").replace("_", "-")):
        if word in known:
            return known[word]
    short = name if len(name) <= 80 else name[:77] + "..."
    raise PlanError(
        "topics", f"there is no topic {short!r}", nearest(said_as[:80], [topic.id for topic in topics()], 8)
    )


def _no_use(estimate: PlanEstimate, gain: Gain) -> str | None:
    """Why a change is not told as a gain; None where it is."""
    other = gain.estimate
    if estimate.fits and not other.fits:
        return "the changed plan does not fit"
    if gain.gain < LEAST_GAIN:
        return f"{gain.objective} would be {percent(-gain.gain)} worse" if gain.gain < -0.0005 else "no gain"
    if isinstance(estimate, Served) and isinstance(other, Served) and estimate.meets_slo and not other.meets_slo:
        return "a latency limit would be missed"
    return None


def _distinct(gains: list[tuple[PlaybookAdvice, Gain]]) -> list[tuple[PlaybookAdvice, Gain]]:
    """Each patch and objective once, told by the most specific entry."""
    seen: set[str] = set()
    kept = []
    for entry, gain in gains:
        key = repr((sorted(gain.patch.items(), key=lambda item: item[0]), gain.objective))
        if key not in seen:
            seen.add(key)
            kept.append((entry, gain))
    return kept


def _ordered(estimate: PlanEstimate, gains: list[tuple[PlaybookAdvice, Gain]]) -> list[tuple[PlaybookAdvice, Gain]]:
    if not estimate.fits:
        return sorted(gains, key=lambda row: (not row[1].estimate.fits, -_first_aid(row[1])))
    first = _GOALS[estimate.job.plan.goal.objective]
    return sorted(gains, key=lambda row: (row[1].objective not in first, -row[1].gain))


def _first_aid_first(apply: list[PlaybookAdvice], estimate: PlanEstimate) -> list[PlaybookAdvice]:
    """Of a plan that does not fit, the entries that are about that before the others."""
    return apply if estimate.fits else sorted(apply, key=lambda entry: "fits" not in names_in(entry.when))


def _first_aid(gain: Gain) -> float:
    """Of what fits the fastest is best, of what does not the one that saves most."""
    return speed_of(gain.estimate) if gain.estimate.fits else gain.gain


def _advised(entry: PlaybookAdvice, facts: dict[str, Any], estimate: PlanEstimate, gain: Gain | None) -> Advised:
    shown: list[str] = []
    if gain:
        shown = [*_ALWAYS[facts["workload.kind"]]]
        shown += [] if gain.objective in shown else [gain.objective]
    return Advised(
        id=entry.id,
        topic=entry.topic,
        title=entry.title,
        advice=filled(entry.advice, facts, in_words),
        objective=gain.objective if gain else None,
        gain=gain.gain if gain and gain.estimate.fits else None,
        effect=gain.effect if gain else None,
        patch=gain.patch if gain else None,
        before=figures(estimate, shown) if gain else None,
        after=figures(gain.estimate, shown) if gain else None,
        fits=gain.estimate.fits if gain else None,
        settings={name: filled(text, facts, in_words) for name, text in entry.settings.items()},
        source=entry.source,
    )


def _together(bench: Bench, gains: list[tuple[PlaybookAdvice, Gain]]) -> Together | None:
    """Settings put together while each still helps: until the plan fits, or as long as the first's objective gains."""
    base = bench.base
    usable = [row for row in gains if row[1].effect == "setting" and (base.fits or not row[1].estimate.fits)]
    if not usable or (not base.fits and any(gain.estimate.fits for _, gain in gains)):
        return None
    objective = usable[0][1].objective
    patch: dict[str, Any] = {}
    ids: list[str] = []
    best: PlanEstimate = base
    for entry, gain in [row for row in usable if row[1].objective == objective][:_MOST_TOGETHER]:
        both = patch | gain.patch
        other = bench.estimate(both)
        now, then = figure(best, objective), figure(other, objective) if other else None
        if other is None or now is None or then is None or gain_of(objective, now, then) < LEAST_GAIN:
            continue
        if base.fits and not other.fits:
            continue
        patch, best = both, other
        ids.append(entry.id)
        if not base.fits and other.fits:
            break
    before, after = figure(base, objective), figure(best, objective)
    if len(ids) < 2 or before is None or after is None:
        return None
    shown = list(dict.fromkeys((*_ALWAYS[bench.facts["workload.kind"]], objective)))
    return Together(
        ids=ids,
        patch=patch,
        objective=objective,
        gain=gain_of(objective, before, after),
        before=figures(base, shown),
        after=figures(best, shown),
        fits=best.fits,
    )
