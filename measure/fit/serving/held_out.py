"""What would have been said of measured serving runs had they, or their whole source, not been there to fit to."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from measure.fit.hierarchy import Values
from measure.fit.serving.factors import Observation, ServedRun, device_of, estimates, everything, fit, responses_at
from measure.fit.spreads import Miss, blended, spread_of
from measure.history.scores import CasePrediction
from measure.history.serving import Metric

HoldOut = Literal["rows", "source"]
# Configurations are left out a tenth at a time: rows that differ in their load only are left out together.
_FOLDS = 10
_FEW_RUNS = 40
LEAST_SPREAD = 0.08
_MOST_TRUST = 0.8
Key = tuple[str, Metric]


@dataclass(frozen=True)
class MissedServing:
    """A figure's log of estimated over measured, fitted without its fold, and without its source; of an engine on an
    accelerator family."""

    observation: Observation
    engine: str
    rows: float
    source: float
    family: str = ""


@cache
def missed() -> list[MissedServing]:
    """How far every figure is off, both ways of leaving it out."""
    runs, seen, full = everything()
    rows, source = (misses(runs, seen, full, hold_out) for hold_out in ("rows", "source"))
    jobs = [runs[observation.group].job for observation in seen]
    return [
        MissedServing(
            observation,
            job.engine.name,
            rows[_key(observation)],
            source[_key(observation)],
            device_of(job),
        )
        for observation, job in zip(seen, jobs, strict=True)
    ]


def _key(observation: Observation) -> Key:
    return observation.case.id, observation.metric


def misses(runs: Sequence[ServedRun], seen: Sequence[Observation], full: Values, hold_out: HoldOut) -> dict[Key, float]:
    """The log of estimated over measured of every figure, with factors fitted without its fold or its source."""
    keys = _folds(seen, hold_out)
    errors: dict[Key, float] = {}
    responses = responses_at(runs, full)
    for name in sorted(set(keys), key=str):
        kept = [observation for observation, key in zip(seen, keys, strict=True) if key != name]
        values = fit(runs, kept, (full, responses))
        left = [observation for observation, key in zip(seen, keys, strict=True) if key == name]
        estimated = {group: estimates(runs[group], values) for group in {observation.group for observation in left}}
        for observation in left:
            errors[_key(observation)] = math.log(
                float(estimated[observation.group][observation.metric][observation.entry]) / observation.value
            )
    return errors


def _folds(seen: Sequence[Observation], hold_out: HoldOut) -> list[Hashable]:
    """What each figure is left out with."""
    if hold_out == "rows":
        return [observation.group % _FOLDS for observation in seen]
    return [observation.case.source for observation in seen]


def spreads(sample: Sequence[MissedServing]) -> dict[tuple[str, Metric], float]:
    """Half widths of 80 % intervals, as fractions: by engine and metric, and by 'default' and metric for all others.

    What is asked about is in no source, so they hold what was said of sources that were left out whole.
    """
    by_engine: dict[tuple[str, Metric], list[Miss]] = defaultdict(list)
    unseen: dict[Metric, list[Miss]] = defaultdict(list)
    for miss in sample:
        case, metric = miss.observation.case, miss.observation.metric
        by_engine[miss.engine, metric].append(Miss(miss.source, case.source))
        unseen[metric].append(Miss(miss.source, case.source))
    widths: dict[tuple[str, Metric], float] = {
        ("default", metric): spread_of(part, power=0.5) for metric, part in unseen.items()
    }
    for (engine, metric), part in by_engine.items():
        trust = _MOST_TRUST * min(1.0, len(part) / _FEW_RUNS)
        widths[engine, metric] = max(
            LEAST_SPREAD, blended(spread_of(part, power=0.5), widths["default", metric], trust)
        )
    for metric in unseen:
        # What was never measured is no surer than anything that was.
        widths["default", metric] = max(value for (_, other), value in widths.items() if other == metric)
    return widths


def predictions(hold_out: HoldOut) -> dict[Key, CasePrediction]:
    """By case id and metric, the figure (tokens/s or seconds) and an interval from other folds or sources only."""
    _, seen, _ = everything()
    every = missed()
    keys = dict(zip(map(_key, seen), _folds(seen, hold_out), strict=True))
    kept = {name: [miss for miss in every if keys[_key(miss.observation)] != name] for name in set(keys.values())}
    known: dict[Hashable, Mapping[tuple[str, Metric], float]] = {name: spreads(part) for name, part in kept.items()}
    families = {name: {miss.family for miss in part} for name, part in kept.items()}
    predicted: dict[Key, CasePrediction] = {}
    for miss in every:
        key = _key(miss.observation)
        value = miss.observation.value * math.exp(miss.rows if hold_out == "rows" else miss.source)
        table, metric = known[keys[key]], miss.observation.metric
        # On devices that nothing else was measured on, nobody is surer than of an unknown engine.
        engine = miss.engine if miss.family in families[keys[key]] else "default"
        spread = 1.0 + table.get((engine, metric), table.get(("default", metric), 1.0))
        predicted[key] = CasePrediction(value, value / spread, value * spread, fits=True)
    return predicted
