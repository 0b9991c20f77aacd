"""Fits the factors of serving engines to measured runs: few, and shared between engines and families (hierarchy.py).

Time per output token, time to first token and throughput are fitted together; a source weighs by a root of its rows.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import ServingEstimates, estimate
from estimator.serving.space import deployments
from knowledge.engines import engine_lineage, kernels_of
from knowledge.fitted.decode import decode_evidence
from knowledge.fitted.serving import ENGINE, SHARED
from knowledge.fitted.training import device_lineage
from measure.fit.hierarchy import NUDGE, Design, Factor, Node, Values, nearest, step
from measure.history.serving import METRICS, Metric, ServingCase, case_job, serving_cases

ENGINE_FACTORS = (
    Factor("decode", 0.2, 5.0, 1.1, 0.15),
    Factor("prefill", 0.2, 5.0, 1.1, 0.15),
    Factor("experts", 0.2, 5.0, 1.0, 0.2),
    Factor("collective", 0.2, 5.0, 1.0, 0.2),
    Factor("launch", 0.1, 2.0, 0.7, 0.3),
    Factor("layer_s", 1e-7, 1e-4, 5e-6, 0.6),
    Factor("host", 0.05, 10.0, 1.0, 0.5),
    Factor("step_s", 1e-5, 3e-2, 5e-4, 0.6),
    Factor("request", 0.05, 10.0, 1.0, 0.5),
    Factor("clumped", 0.1, 5.0, 1.0, 0.4),
)
DEVICE_FACTORS = (
    Factor("decode", 0.2, 5.0, 1.0, 0.15),
    Factor("prefill", 0.2, 5.0, 1.0, 0.15),
    Factor("experts", 0.2, 5.0, 1.0, 0.2),
    # Kernels were timed alone on each kind of link: what is left of a family is little (MI355X: 1.0 of what was timed).
    Factor("collective", 0.2, 5.0, 1.0, 0.05),
)
# What misses of each metric are measured against: the noise of a good source.
_NOISE: dict[Metric, float] = {"tpot": 0.1, "ttft": 0.35, "throughput": 0.1}
# Misses beyond this many times the noise pull no harder than at it.
_HUBER = 2.5
_SOURCE_POWER = 0.5
# Estimates are made anew in every round, and taken to be straight lines in its steps, which cost next to nothing.
_ROUNDS, _STEPS = 14, 5


Responses = Mapping[int, Mapping[Metric, Floats]]


@dataclass(frozen=True)
class ServedRun:
    """Measured runs of one job: `these` has one entry a run. A run has one observation of each of `metrics` at most."""

    cases: tuple[ServingCase, ...]
    job: ServingJob
    these: Deployments


@dataclass(frozen=True)
class Observation:
    """One measured figure: of which run of the sample, which entry of it, and the metric in SI units."""

    case: ServingCase
    group: int
    entry: int
    metric: Metric
    value: float


def runs_of(cases: Iterable[ServingCase]) -> list[ServedRun]:
    """The runs of `cases` that the estimator has an answer for, those that differ in load and layout only together."""
    by_key: dict[str, list[tuple[ServingCase, ServingJob, Deployments]]] = defaultdict(list)
    for case in cases:
        try:
            job, these = _placed(case)
        except PlanError:
            continue
        by_key[_key(case)].append((case, job, these))
    return [
        ServedRun(tuple(case for case, _, _ in part), part[0][1], _joined([these for _, _, these in part]))
        for part in by_key.values()
    ]


def _placed(case: ServingCase) -> tuple[ServingJob, Deployments]:
    """The job of a case, and the deployment that it names or that the search would take."""
    job = case_job(case)
    these = deployments(job)
    if len(these) > 1:
        these = these.take(np.array([best(estimate(job, these))]))
    return job, these


def best(estimates: ServingEstimates) -> int:
    """The deployment with the highest rate of those that fit (of all, where none does)."""
    rate = estimates.output_tokens_per_s / estimates.steady.e2e_s**1e-6
    return int(np.argmax(np.where(estimates.memory.fits, rate, rate * 1e-9)))


def _key(case: ServingCase) -> str:
    assert case.plan is not None
    data = case.plan.given()
    data.pop("layout", None)
    load = ("input_len", "output_len", "concurrency", "request_rate", "requests", "prefix_hit", "max_batch")
    workload = {key: value for key, value in data["workload"].items() if key not in load}
    closed = case.plan.inference.request_rate is None
    return repr((data | {"workload": workload}, closed, case.balanced))


def _joined(parts: Sequence[Deployments]) -> Deployments:
    names = Deployments.__dataclass_fields__
    return Deployments(*[np.concatenate([getattr(part, name) for part in parts]) for name in names])


def figures(estimates: ServingEstimates) -> dict[Metric, Floats]:
    """What is compared with measurements; arrays of shape (n,)."""
    return {
        "tpot": estimates.steady.tpot_s,
        "ttft": estimates.steady.ttft_s,
        "throughput": estimates.output_tokens_per_s,
    }


def observations(runs: Sequence[ServedRun]) -> list[Observation]:
    """Every figure that counts."""
    return [
        Observation(case, group, entry, metric, case.observed[metric])
        for group, run in enumerate(runs)
        for entry, case in enumerate(run.cases)
        for metric in METRICS
        if metric in case.observed and case.reason_unscored is None
    ]


def _leaves(run: ServedRun) -> tuple[tuple[Node, tuple[Factor, ...]], ...]:
    return (
        (("engine", run.job.engine.name), ENGINE_FACTORS),
        (("device", device_of(run.job)), _device_factors(device_of(run.job))),
    )


@cache
def _device_factors(family: str) -> tuple[Factor, ...]:
    """A family's factors; that of experts is little where their kernels were timed alone, too."""
    timed = decode_evidence(family, "experts", "bf16")[0] > 0
    return tuple(replace(f, sigma=0.05) if timed and f.name == "experts" else f for f in DEVICE_FACTORS)


def device_of(job: ServingJob) -> str:
    """The accelerator family that a job's device factors are fitted for."""
    return kernels_of(job.machine.accelerator.family)


def lineage(node: Node) -> list[Node]:
    """An engine or family and its kin."""
    kind, name = node
    line = engine_lineage(name) if kind == "engine" else device_lineage(name)
    return [(kind, member) for member in line]


def _of(values: Values, node: Node) -> dict[str, float]:
    return nearest(values, [*lineage(node), (node[0], "default")])


def applied(job: ServingJob, engine: Mapping[str, object], device: Mapping[str, object]) -> ServingJob:
    """The job with fitted values, which may be arrays of shape (n,)."""
    shared = {name: engine[name] * device[name] for name in SHARED}  # type: ignore[operator]
    return replace(job, factors=replace(job.factors, **shared, **{name: engine[name] for name in ENGINE}))


def estimates(run: ServedRun, values: Values) -> dict[Metric, Floats]:
    """What is estimated of a group with fitted values."""
    engine, device = (_of(values, node) for node, _ in _leaves(run))
    return figures(estimate(applied(run.job, engine, device), run.these))


def _responses(run: ServedRun, values: Values) -> dict[Metric, Floats]:
    """Logs of the figures as they are, and derivatives by the run's factors; shape (1 + factors, entries)."""
    count, total = len(run.cases), 1 + sum(len(factors) for _, factors in _leaves(run))
    parts: list[dict[str, Floats]] = []
    at = 0
    for node, factors in _leaves(run):
        node_values, columns = _of(values, node), {}
        for factor in factors:
            at += 1
            column = np.full((total, count), node_values[factor.name])
            column[at] = factor.nudged(node_values[factor.name], NUDGE)
            columns[factor.name] = column.reshape(-1)
        parts.append(columns)
    these = run.these.take(np.tile(np.arange(count), total))
    values_of = figures(estimate(applied(run.job, *parts), these))
    logs: dict[Metric, Floats] = {
        metric: np.log(np.clip(value, 1e-9, 1e9)).reshape(total, count) for metric, value in values_of.items()
    }
    for value in logs.values():
        value[1:] = (value[1:] - value[0]) / NUDGE
    return logs


def fitted_numbers(runs: Sequence[ServedRun]) -> int:
    """How many numbers are fitted to runs: what all share, what kin add, and each one's own."""
    return len(Design({node: factors for run in runs for node, factors in _leaves(run)}, lineage).columns)


def responses_at(runs: Sequence[ServedRun], values: Values) -> Responses:
    """What `fit` needs of all groups at some values, which are the same whatever is left out."""
    return {group: _responses(run, values) for group, run in enumerate(runs)}


def fit(
    runs: Sequence[ServedRun], seen: Sequence[Observation], start: tuple[Values, Responses] | None = None
) -> Values:
    """The factors of every engine and family; `seen` are the observations that count, of `runs`. `start` is a fit of
    nearly the same observations with its responses, which stand for those of this one."""
    leaves = {node: factors for run in runs for node, factors in _leaves(run)}
    design = Design(leaves, lineage)
    parts = design.parts(start[0]) if start else np.zeros(len(design.columns))
    rows = Counter((observation.case.source, observation.metric) for observation in seen)
    weight = np.array(
        [rows[observation.case.source, observation.metric] ** (_SOURCE_POWER - 1.0) for observation in seen]
    )
    weight = weight / weight.mean()
    noise = np.array([_NOISE[observation.metric] for observation in seen])
    needed = sorted({observation.group for observation in seen})
    least, best = np.inf, parts
    for _ in range(1 if start else _ROUNDS):
        values = design.values(parts)
        parts = design.parts(values)
        responses = start[1] if start else {group: _responses(runs[group], values) for group in needed}
        misses, jacobian = _straight(design, runs, seen, responses)
        misses, jacobian = misses / noise, jacobian / noise[:, None]
        loss = _loss(design, parts, misses, weight)
        if loss > least:
            # The lines were not straight so far: half of the way from the best values.
            parts = 0.5 * (parts + best)
            continue
        least, best = loss, parts
        for _ in range(_STEPS):
            parts = step(design, parts, misses + jacobian @ (parts - best), jacobian, weight, 1.0, _HUBER)
    return design.values(parts if start else best)


def _loss(design: Design, parts: Floats, misses: Floats, weight: Floats) -> float:
    """What steps make less: Huber's loss of the misses, and how far the parts are from what is expected of them."""
    size = np.abs(misses)
    pulled = np.where(size <= _HUBER, 0.5 * size**2, _HUBER * (size - 0.5 * _HUBER))
    return float(np.sum(weight * pulled) + 0.5 * np.sum((parts / design.sigma) ** 2))


def _straight(
    design: Design, runs: Sequence[ServedRun], seen: Sequence[Observation], responses: Responses
) -> tuple[Floats, Floats]:
    """Logs of estimated over measured, shape (rows,), and their derivatives by the parts, (rows, parts)."""
    columns = {group: _columns(design, runs[group]) for group in {observation.group for observation in seen}}
    misses, jacobian = np.zeros(len(seen)), np.zeros((len(seen), len(design.columns)))
    for row, observation in enumerate(seen):
        response = responses[observation.group][observation.metric][:, observation.entry]
        misses[row] = response[0] - math.log(observation.value)
        for entry, indices in enumerate(columns[observation.group], start=1):
            jacobian[row, indices] = response[entry]
    return misses, jacobian


def _columns(design: Design, run: ServedRun) -> list[list[int]]:
    return [design.columns_of(node, factor) for node, factors in _leaves(run) for factor in factors]


@cache
def everything() -> tuple[list[ServedRun], list[Observation], Values]:
    """All runs that count, what was observed of them, and the fit."""

    runs = runs_of(case for case in serving_cases() if case.reason_unscored is None)
    seen = observations(runs)
    return runs, seen, fit(runs, seen)
