"""explain: where a figure comes from, with its formula, inputs and arithmetic, and the measured runs next door."""

from __future__ import annotations

import math

from estimator.account import Account
from estimator.plan.schema import Inference, Plan
from estimator.training.time_account import PHASES
from knowledge.figure_facts import FigureFacts, figure, find_figure
from measure.history.nearest import File, nearest_runs
from planner.asked.money import CostTerms, ExplainRequest
from planner.explain.origins import origin_of
from planner.explain.results import (
    Check,
    ExplainedCollective,
    ExplainedFigure,
    ExplainedOperator,
    ExplainedTerm,
    Explanation,
    Interval,
    MeasuredFigure,
    NearestRun,
)
from planner.explain.serving import serving_subject
from planner.explain.subject import Spread, Subject
from planner.explain.text import WHOLES, told
from planner.explain.training import training_subject
from planner.explain.words import ALIASES

_EXACT = 1e-6
_COVERAGE = 0.8
_MOST_STEPS = 60
_PHASES = {f"time.components.{phase}": phase for phase in PHASES}
_COLLECTIVES = ("tensor_parallel", "context_parallel", "expert_parallel", "data_parallel", "pipeline")


def explain(request: ExplainRequest) -> Explanation:
    """Explain where a figure comes from."""
    asked = request.to_plan()
    words = request.figure.strip()
    subject = _subject(asked, words, request)
    alias = ALIASES.get(words, words.removeprefix("cost.") if subject.kind == "serving" else words)
    key = find_figure(alias, subject.offered, subject.kind)
    if key not in subject.accounts:
        raise subject.refused[key]
    first, *deeper = _steps(subject, key, request.depth)
    in_turn = deeper if request.depth > 1 else _steps(subject, key, 2)[1:]
    spread, value = subject.spreads.get(key), subject.values.get(key, first.value)
    low, high = _interval(key, value, spread, subject)
    nearest = _nearest(subject, key, request.nearest)
    interval = None if spread is None or low is None else _spread(spread)
    return Explanation(
        plan=subject.plan.model_dump(mode="json"),
        assumptions=subject.assumptions,
        figure=key,
        name=first.name,
        value=value,
        unit=first.unit,
        low=low,
        high=high,
        share=_share(key, value, subject),
        formula=first.formula,
        symbol=first.symbol,
        source=first.source,
        code=first.code,
        terms=first.terms,
        check=first.check,
        note=first.note,
        steps=deeper,
        operators=_operators(subject, key),
        collectives=_collectives(subject, key),
        interval=interval,
        nearest=nearest,
        text=told(first, value, (low, high), _share(key, value, subject), interval, nearest, in_turn),
        figures=_related(subject, key),
        warnings=subject.warnings,
        evidence=[row for row in subject.evidence if row.figure == ("memory" if _of_memory(key) else "time")],
    )


def _share(key: str, value: float | bool | None, subject: Subject) -> float | None:
    whole = subject.values.get(next((of for kind, of in WHOLES.items() if key.startswith(kind)), ""))
    return value / whole if value and whole else None


def _subject(asked: Plan, words: str, terms: CostTerms) -> Subject:
    if isinstance(asked.workload, Inference):
        return serving_subject(asked, terms)
    return training_subject(asked, terms, every_framework=words.startswith("best."))


def _steps(subject: Subject, key: str, depth: int) -> list[ExplainedFigure]:
    """The figure, and breadth first the terms that have an account, `depth` levels in all. A figure of one term says
    nothing by itself: that term belongs to its level."""
    explained_figures, seen, level = [], {key}, [key]
    for _ in range(depth):
        following: list[str] = []
        for name in level:  # grows on the way
            if len(explained_figures) == _MOST_STEPS:
                return explained_figures
            explained = _explained(subject, name)
            explained_figures.append(explained)
            further = [term.figure for term in explained.terms if term.figure and term.figure not in seen]
            seen.update(further)
            (level if len(explained.terms) == 1 else following).extend(further)
        level = following
    return explained_figures


def _explained(subject: Subject, key: str) -> ExplainedFigure:
    account, about = subject.accounts[key](), figure(key, subject.kind)
    value = subject.values.get(key, account.value)
    value = account.value if value is None else float(value)
    return ExplainedFigure(
        figure=key,
        name=about.name,
        value=value,
        unit=about.unit,
        symbol=about.symbol,
        formula=about.formula,
        source=about.source,
        code=about.code,
        terms=_terms(subject, key, account),
        check=_check(account, value),
        note=account.note,
    )


def _terms(subject: Subject, key: str, account: Account) -> list[ExplainedTerm]:
    rows = []
    for term in account.terms:
        about = figure(term.name, subject.kind)
        further = term.name if term.name in subject.accounts and term.name != key else None
        kind, source = _origin(subject, about) if further is None else ("computed", about.code or None)
        rows.append(
            ExplainedTerm(
                symbol=about.symbol,
                value=term.value,
                unit=about.unit,
                what=_what(about, term.name, subject),
                enters=term.enters,
                origin=kind,
                source=source,
                figure=further,
            )
        )
    return rows


def _origin(subject: Subject, about: FigureFacts) -> tuple[str, str | None]:
    return origin_of(about, subject.job, subject.asked, subject.assumptions, subject.price, subject.facts)


def _what(about: FigureFacts, name: str, subject: Subject) -> str:
    """The name, with what a pattern leaves open."""
    if "*" not in about.key:
        return about.name
    last = name.rpartition(".")[2]
    if last == "layer":
        return about.name
    if last.startswith("layers_") or about.key.startswith("cache_of_layers"):
        kind = int(last.rpartition("_")[2])
        block = subject.job.architecture.blocks[kind]
        return f"{about.name}: {block.mixer} with {block.feed} feed-forward"
    return f"{about.name}: {last.replace('_', ' ')}"


def _check(account: Account, value: float | None) -> Check:
    made = account.recomputed
    if made is None or value is None:
        return Check(rule=account.rule, recomputed=made, holds=None)
    scale = max([abs(value), *(abs(term.value) for term in account.terms if account.rule == "sum")])
    return Check(rule=account.rule, recomputed=made, holds=abs(made - value) <= _EXACT * max(scale, 1e-30))


def _interval(
    key: str, value: float | bool | None, spread: Spread | None, subject: Subject
) -> tuple[float | None, float | None]:
    if key == "latency.e2e_s":
        low, high = (subject.values.get(f"latency.e2e_{end}_s") for end in ("low", "high"))
        return (None, None) if low is None or high is None else (float(low), float(high))
    if spread is None or value is None or not math.isfinite(value):
        return None, None
    return value / (1.0 + spread.below), value * (1.0 + spread.above)


def _spread(spread: Spread) -> Interval:
    return Interval(below=spread.below, above=spread.above, coverage=_COVERAGE, runs=spread.runs, how=spread.how)


def _of_memory(key: str) -> bool:
    return key.startswith("memory.") or key in (
        "headroom_bytes",
        "max_concurrency",
        "request_bytes",
        "cache_room_bytes",
    )


def _operators(subject: Subject, key: str) -> list[ExplainedOperator]:
    """Of compute time, and of figures that all compute time is in."""
    whole = ("time.step_s", "time.compute_s", "throughput.mfu", "throughput.hfu", "time.micro_batch_s")
    if subject.step is None or not (key in _PHASES or key in whole):
        return []
    step = subject.step
    rows = [operator for operator in step.operators if _PHASES.get(key, operator.phase) == operator.phase]
    return [
        ExplainedOperator(
            name=operator.name,
            phase=operator.phase,
            shape=operator.shape,
            runs=operator.runs,
            flop=operator.flop,
            traffic_bytes=operator.traffic_bytes,
            seconds=operator.seconds,
            share=operator.seconds / step.seconds,
            bound=operator.bound,
        )
        for operator in rows[:10]
    ]


def _collectives(subject: Subject, key: str) -> list[ExplainedCollective]:
    component = key.removeprefix("time.components.")
    if subject.step is None or not (component in _COLLECTIVES or key == "time.step_s"):
        return []
    rows = [row for row in subject.step.collectives if key == "time.step_s" or row.component == component]
    return [ExplainedCollective(**vars(row)) for row in rows]


def _nearest(subject: Subject, key: str, count: int) -> list[NearestRun]:
    if not count:
        return []

    file: File = "serving" if subject.kind == "serving" else "memory" if _of_memory(key) else "training"
    return [
        NearestRun(
            id=run.id,
            distance=round(run.distance, 1),
            differs=run.differs,
            run=run.settings,
            source=run.source,
            reference=run.reference,
            figures=[
                MeasuredFigure(
                    name=figure.name,
                    unit=figure.unit,
                    measured=figure.measured,
                    estimated=figure.estimated,
                    error=figure.error,
                )
                for figure in run.figures
            ],
        )
        for run in nearest_runs(subject.asked, subject.plan, file, count)
    ]


def _related(subject: Subject, key: str) -> list[str]:
    """Keys of the same part of a result."""
    part = key.partition(".")[0]
    return [
        other
        for other in subject.accounts
        if other != key and other.partition(".")[0] == part and not other.startswith("memory.stages.")
    ][:30]
