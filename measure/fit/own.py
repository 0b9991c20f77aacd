"""A local calibration from one's own runs: the shipped factors, moved as far as these runs say.

By family of accelerator what a whole step takes on this machine (its clocks, cooling, power limit and the age of its
software cost all of a step), by model what an estimate has wrong of its architecture, and the same physical factors as
those of `measure.fit.training.time`, each with the shipped value in the middle of its prior. That of the step has a
wide prior, so that few runs move it all the way; the others are moved a little by few runs, and all the way by what
many agree on. With a part of its own for each model, several runs of one say little more of the others than one does.
A run counts as far as runs of its framework are off by what is shipped, and one that is further off than that counts
less. It is used only where runs that were left out of it are estimated better than by what is shipped.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import Floats
from estimator.plan.schema import Plan
from knowledge.own.calibration import FORMAT, calibration_file, shipped_factors
from knowledge.own.files import write_file
from measure.fit.hierarchy import Factor, Node, Values
from measure.fit.spreads import Miss, blended, spread_of
from measure.fit.training.held_out_times import LEAST_SPREAD
from measure.fit.training.time import TimedRun, factors_of, residual, responses_of, timed_runs
from measure.history.run import MeasuredRun
from measure.history.training import Case, Observed

STEP = Factor("step", 0.2, 5.0, 1.0, 0.3)
# How far runs of one model are off alike beyond what all are: 0.06 to 0.13 in the five largest sources, each estimated
# by a fit without it (analysis of variance), 0.08 in the middle.
_MODEL_SIGMA = 0.08
# How far (in the fitted scale) one's own machines and programs may be from those that the shipped factors are of.
_SIGMAS = {
    STEP.name: STEP.sigma,
    "compute": 0.2, "data_overlap": 1.0, "tensor_overlap": 0.7, "expert_overlap": 0.7, "kernel_host_s": 0.4,
    "step_host_s": 0.5, "expert_wait_s": 0.5, "dispatch_wait_s": 0.5, "straggler": 0.5, "memory": 0.1, "scaleup": 0.15,
    "scaleout": 0.4, "matmul": 0.1, "attention": 0.05, "scan": 0.2,
}  # fmt: skip
# Normal quantile of 80 % intervals, which are kept as half widths.
_QUANTILE = 1.2816
# Median of the size of a normal variable of variance one; as many runs as the expected noise stands for.
_MEDIAN_OF_NORMAL, _EXPECTED_RUNS = 0.6745, 5
_STEPS, _ROUNDS, _LONGEST = 4, 5, 0.6
_FOLDS = 8
# By so much of their error runs that were left out are estimated better where a fit counts: less is chance in few runs
# (benchmarks/own_calibration.py; none, a fifth and three tenths were tried beside it).
_LEAST_GAIN = 0.1
# With so many runs one's own misses say how wide an interval is; before, those of what is shipped too.
_MANY, _MOST_TRUST = 12, 0.8


@dataclass(frozen=True)
class FamilyFit:
    """What the runs on one family say. `before` and `after` are mean sizes of the errors (logarithms of times) of runs
    that were left out; `used` is whether the fit counts, which is one of all families: that of a family with a run or
    two would be chance."""

    family: str
    runs: int
    frameworks: dict[str, int]
    models: frozenset[str]
    values: Values
    before: float
    after: float | None
    spread: dict[str, float]
    used: bool

    @property
    def step(self) -> float:
        return self.values["device", self.family][STEP.name]


def cases_of(runs: Iterable[MeasuredRun]) -> list[Case]:
    """The runs with a speed and a plan that can be estimated."""
    cases = []
    for run in runs:
        if run.kind != "training" or run.outcome != "ran":
            continue
        rate, step = run.rate_per_device, run.figures.get("step_s")
        try:
            plan = Plan.parse(run.plan)
        except PlanError:
            continue
        complete = plan.training.seq_len and plan.cluster.accelerator and plan.cluster.count
        if rate and complete and plan.training.framework != "auto":
            observed = Observed(
                tokens_per_s_per_device=rate, step_s=step, peak_bytes=None, peak_kind=None, out_of_memory=False
            )
            cases.append(Case(run.id, "own", plan, observed, None, (), (), run.date or "", run.source))
    return cases


def fitted(runs: Iterable[MeasuredRun]) -> list[FamilyFit]:
    """A fit for each family that runs were made on, those that do not help among them. All runs are fitted to at once:
    families share what their owner's software does to a step."""
    with shipped_factors():
        timed = timed_runs(cases_of(runs))
        return family_fits(timed, shipped(timed))


def family_fits(timed: Sequence[TimedRun], start: Values) -> list[FamilyFit]:
    """Those of runs from the factors that stand for all of them."""
    values, misses = moved(timed, start), held_back(timed, start)
    before = sum(abs(missed(run, start)) for run in timed)
    used = bool(misses) and sum(abs(miss) for _, miss in misses) < (1.0 - _LEAST_GAIN) * before
    families: dict[str, list[TimedRun]] = defaultdict(list)
    for run in timed:
        families[run.job.machine.accelerator.family].append(run)
    return [
        FamilyFit(
            family=family,
            runs=len(members),
            frameworks=dict(Counter(run.job.framework.name for run in members)),
            models=frozenset(run.job.architecture.id for run in members),
            values=values,
            before=fmean(abs(missed(run, start)) for run in members),
            after=_mean(misses, family),
            spread=spreads(members, [miss for miss in misses if _machine(miss[0])[1] == family]),
            used=used,
        )
        for family, members in sorted(families.items())
    ]


def _mean(misses: Sequence[tuple[TimedRun, float]], family: str) -> float | None:
    own = [abs(miss) for run, miss in misses if _machine(run)[1] == family]
    return fmean(own) if own else None


def shipped(runs: Sequence[TimedRun]) -> Values:
    """The factors that the jobs of the runs have."""
    values: Values = {}
    for run in runs:
        for node, factors in factors_of(run).items():
            part = run.job.calibration.framework if node[0] == "framework" else run.job.calibration.device
            values.setdefault(node, {factor.name: float(getattr(part, factor.name)) for factor in factors})
    return values


def spreads(runs: Sequence[TimedRun], misses: Sequence[tuple[TimedRun, float]]) -> dict[str, float]:
    """By framework the half width of the 80 % interval of a step: of one's own misses as far as there are many of them,
    else that of what is shipped, with what so few runs leave unknown of the step."""
    unknown = _QUANTILE / math.sqrt(STEP.sigma**-2 + sum(_noise(run) ** -2 for run in runs))
    spread = {}
    for name, count in Counter(run.job.framework.name for run in runs).items():
        before = next(run for run in runs if run.job.framework.name == name).job.calibration.time_spread
        wide = math.expm1(math.hypot(math.log1p(before), unknown))
        own = [Miss(miss, run.case.id) for run, miss in misses if run.job.framework.name == name]
        trust = _MOST_TRUST * min(1.0, count / _MANY)
        spread[name] = max(LEAST_SPREAD, blended(spread_of(own), wide, trust)) if own else wide
    return spread


def held_back(runs: Sequence[TimedRun], start: Values) -> list[tuple[TimedRun, float]]:
    """The misses of runs that were left out, one by one or in folds; none of one run alone."""
    if len(runs) < 2:
        return []
    folds = min(len(runs), _FOLDS)
    misses = []
    for fold in range(folds):
        values = moved([run for place, run in enumerate(runs) if place % folds != fold], start)
        misses += [(run, missed(run, start | values)) for place, run in enumerate(runs) if place % folds == fold]
    return misses


def missed(run: TimedRun, values: Values) -> float:
    """Log of estimated over measured step time, on the machine that the values are of."""
    parts = (values.get(node, {}).get(STEP.name, 1.0) for node in (_machine(run), _model(run)))
    return residual(run, values) + sum(map(math.log, parts))


def _model(run: TimedRun) -> Node:
    return ("model", run.job.architecture.id)


def _machine(run: TimedRun) -> Node:
    return ("device", run.job.machine.accelerator.family)


def _noise(run: TimedRun) -> float:
    """How far runs of the framework are off by what is shipped, as a standard deviation of logarithms."""
    return math.log1p(run.job.calibration.time_spread) / _QUANTILE


def _noise_of(misses: Floats, expected: Floats) -> Floats:
    """How far runs are off that nothing explains, as standard deviations: as expected, which counts as some runs do,
    and as they are (the median's scale, so that no one run says it)."""
    seen = float(np.median(np.abs(misses))) / _MEDIAN_OF_NORMAL
    return np.sqrt((_EXPECTED_RUNS * expected**2 + len(misses) * seen**2) / (_EXPECTED_RUNS + len(misses)))


def moved(runs: Sequence[TimedRun], start: Values) -> Values:
    """The factors of the runs' nodes, models among them, after damped Gauss-Newton from `start`, which is the middle of
    their priors; the step's from the median of the misses on."""
    if not runs:
        return {}
    nodes = {node: factors for run in runs for node, factors in factors_of(run).items()}
    columns = [(node, factor) for node, factors in nodes.items() for factor in factors]
    places = {(node, factor.name): place for place, (node, factor) in enumerate(columns, 1)}
    models = {node: place for place, node in enumerate(sorted({_model(run) for run in runs}), 1 + len(columns))}
    physical = slice(1, 1 + len(columns))
    sigma = np.array([STEP.sigma, *(_SIGMAS[factor.name] for _, factor in columns), *(_MODEL_SIGMA for _ in models)])
    expected = np.array([_noise(run) for run in runs])
    parts, values = np.zeros(len(sigma)), start
    for turn in range(_STEPS):
        responses = [responses_of(run, values) for run in runs]
        jacobian = np.zeros((len(runs), len(sigma)))
        for row, (run, response) in enumerate(zip(runs, responses, strict=True)):
            own = [places[node, factor.name] for node, factors in factors_of(run).items() for factor in factors]
            jacobian[row, [0, *own, models[_model(run)]]] = [1.0, *response[1:], 1.0]
        misses = np.array([response[0] for response in responses])
        if turn == 0:
            parts[0] = -np.median(misses)
        # A step, and a model's, is the same multiple of every time: they are no parts of the responses.
        misses = misses - jacobian[:, physical] @ parts[physical]
        for _ in range(_ROUNDS):
            now = misses + jacobian @ parts
            noise = _noise_of(now, expected)
            scale = np.minimum(1.0, noise / np.maximum(1e-9, np.abs(now))) / noise**2
            normal = jacobian.T @ (jacobian * scale[:, None]) + np.diag(1.0 / sigma**2)
            longer = np.linalg.solve(normal, jacobian.T @ (scale * now) + parts / sigma**2)
            parts = parts - np.clip(longer, -_LONGEST, _LONGEST)
        values = start | _at(columns, parts[physical], start)
    step = {STEP.name: STEP.from_free(float(parts[0]))}
    of_models = {node: {STEP.name: STEP.from_free(float(parts[place]))} for node, place in models.items()}
    return {node: values[node] | (step if node[0] == "device" else {}) for node in nodes} | of_models


def _at(columns: Sequence[tuple[Node, Factor]], parts: np.ndarray, start: Values) -> Values:
    values: Values = {}
    for (node, factor), part in zip(columns, parts, strict=True):
        middle = factor.inside(start[node][factor.name])
        value = factor.inside(factor.from_free(factor.to_free(middle) + float(part)))
        values.setdefault(node, {})[factor.name] = value
    return values


def save(fits: Sequence[FamilyFit]) -> bool:
    """Writes what helps; whether there was any. What was there before is replaced."""
    import yaml

    families = {fit.family: _row(fit) for fit in fits if fit.used}
    if not families:
        return False
    data = {"format": FORMAT, "date": datetime.now(UTC).date().isoformat(), "families": families}
    path = calibration_file()
    write_file(path, yaml.safe_dump(data, sort_keys=False, width=120), True, str(path))
    return True


def _row(fit: FamilyFit) -> Mapping[str, Any]:
    frameworks = {
        name: {key: _rounded(value) for key, value in fit.values["framework", name].items()}
        | {"time_spread": _rounded(fit.spread[name]), "runs": count}
        for name, count in fit.frameworks.items()
    }
    device = {key: _rounded(value) for key, value in fit.values["device", fit.family].items()}
    error = {"before": _rounded(fit.before), "after": _rounded(fit.after or 0.0)}
    models = {name: _rounded(fit.values["model", name][STEP.name]) for name in sorted(fit.models)}
    return {"device": device, "models": models, "frameworks": frameworks, "held_back_error": error}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}") if math.isfinite(value) else value


def reset() -> bool:
    """Takes the local calibration away; whether there was one."""
    path = calibration_file()
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise PlanError("calibration", f"{path} cannot be removed: {error.strerror or error}") from None
    return True
