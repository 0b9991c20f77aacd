"""A local calibration from one's own runs: the shipped factors, moved as far as these runs say.

By family of accelerator the same physical factors as those of `measure.fit.training.time`, each with the shipped value
in the middle of its prior: what few runs say moves them little, what many agree on moves them all the way. It counts
only where runs that were left out of it are estimated better than by what is shipped.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.own.calibration import FORMAT, calibration_file, shipped_factors
from knowledge.own.files import write_file
from measure.fit.hierarchy import Factor, Node, Values
from measure.fit.spreads import Miss, blended, spread_of
from measure.fit.training.held_out_times import LEAST_SPREAD
from measure.fit.training.time import TimedRun, factors_of, residual, responses_of, timed_runs
from measure.history.run import MeasuredRun
from measure.history.training import Case, Observed

# How far (in the fitted scale) one's own machines and programs may be from those that the shipped factors are of. A
# cluster's clocks, its power limit and the age of its software are in `compute`.
_SIGMAS = {
    "compute": 0.2, "data_overlap": 1.0, "tensor_overlap": 0.7, "expert_overlap": 0.7, "kernel_host_s": 0.4,
    "step_host_s": 0.5, "expert_wait_s": 0.5, "dispatch_wait_s": 0.5, "straggler": 0.5, "memory": 0.1, "scaleup": 0.15,
    "scaleout": 0.4, "matmul": 0.1, "attention": 0.05, "scan": 0.2,
}  # fmt: skip
_NOISE, _HUBER = 0.06, 0.2
_STEPS, _LONGEST = 4, 0.6
_FOLDS = 8
# With so many runs one's own misses say how wide an interval is; before, those of what is shipped too.
_MANY, _MOST_TRUST = 12, 0.8


@dataclass(frozen=True)
class FamilyFit:
    """What the runs on one family say. `before` and `after` are mean sizes of the errors (logarithms of times) of runs
    that were left out; `used` is whether the fit counts."""

    family: str
    runs: int
    frameworks: dict[str, int]
    values: Values
    before: float
    after: float | None
    spread: dict[str, float]

    @property
    def used(self) -> bool:
        return self.after is not None and self.after < self.before


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
    """A fit for each family that runs were made on, those that do not help among them."""
    with shipped_factors():
        timed = timed_runs(cases_of(runs))
        families: dict[str, list[TimedRun]] = defaultdict(list)
        for run in timed:
            families[run.job.machine.accelerator.family].append(run)
        return [of_family(family, members, shipped(members)) for family, members in sorted(families.items())]


def shipped(runs: Sequence[TimedRun]) -> Values:
    """The factors that the jobs of the runs have."""
    values: Values = {}
    for run in runs:
        for node, factors in factors_of(run).items():
            part = run.job.calibration.framework if node[0] == "framework" else run.job.calibration.device
            values.setdefault(node, {factor.name: float(getattr(part, factor.name)) for factor in factors})
    return values


def of_family(family: str, runs: Sequence[TimedRun], start: Values) -> FamilyFit:
    """The fit to runs on one family, from the values that are shipped for them."""
    values = moved(runs, start)
    before = fmean(abs(residual(run, start)) for run in runs)
    misses = _held_back(runs, start)
    frameworks: dict[str, int] = defaultdict(int)
    for run in runs:
        frameworks[run.job.framework.name] += 1
    spread = {}
    for name, count in frameworks.items():
        shipped_spread = next(r for r in runs if r.job.framework.name == name).job.calibration.time_spread
        own = [Miss(miss, run.case.id) for run, miss in misses if run.job.framework.name == name]
        trust = _MOST_TRUST * min(1.0, count / _MANY)
        spread[name] = max(LEAST_SPREAD, blended(spread_of(own), shipped_spread, trust)) if own else shipped_spread
    after = fmean(abs(miss) for _, miss in misses) if misses else None
    return FamilyFit(family, len(runs), dict(frameworks), values, before, after, spread)


def _held_back(runs: Sequence[TimedRun], start: Values) -> list[tuple[TimedRun, float]]:
    """The misses of runs that were left out, one by one or in folds; none of one run alone."""
    if len(runs) < 2:
        return []
    folds = min(len(runs), _FOLDS)
    misses = []
    for fold in range(folds):
        values = moved([run for place, run in enumerate(runs) if place % folds != fold], start)
        misses += [(run, residual(run, start | values)) for place, run in enumerate(runs) if place % folds == fold]
    return misses


def moved(runs: Sequence[TimedRun], start: Values) -> Values:
    """The factors of the runs' nodes after damped Gauss-Newton from `start`, which is the middle of their priors."""
    columns: list[tuple[Node, Factor]] = []
    for run in runs:
        for node, factors in factors_of(run).items():
            columns += [(node, factor) for factor in factors if (node, factor) not in columns]
    places = {(node, factor.name): place for place, (node, factor) in enumerate(columns)}
    sigma = np.array([_SIGMAS[factor.name] for _, factor in columns])
    parts = np.zeros(len(columns))
    values = start
    for _ in range(_STEPS):
        responses = [responses_of(run, values) for run in runs]
        jacobian = np.zeros((len(runs), len(columns)))
        for row, (run, response) in enumerate(zip(runs, responses, strict=True)):
            own = [places[node, factor.name] for node, factors in factors_of(run).items() for factor in factors]
            jacobian[row, own] = response[1:]
        misses = np.array([response[0] for response in responses])
        scale = np.minimum(1.0, _HUBER / np.maximum(1e-9, np.abs(misses))) / _NOISE**2
        normal = jacobian.T @ (jacobian * scale[:, None]) + np.diag(1.0 / sigma**2)
        gradient = jacobian.T @ (scale * misses) + parts / sigma**2
        parts = parts - np.clip(np.linalg.solve(normal, gradient), -_LONGEST, _LONGEST)
        values = start | _at(columns, parts, start)
    return {node: values[node] for node in {node for node, _ in columns}}


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
    return {"device": device, "frameworks": frameworks, "held_back_error": error}


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
