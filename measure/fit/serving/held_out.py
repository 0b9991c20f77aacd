"""What would have been said of measured serving runs had they, or their whole source, not been there to fit to."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from measure.fit.hierarchy import Values
from measure.fit.serving.factors import Observation, ServedRun, estimates, everything, fit
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
    jobs = [runs[one.group].job for one in seen]
    return [
        MissedServing(one, job.engine.name, rows[_key(one)], source[_key(one)], job.machine.accelerator.family)
        for one, job in zip(seen, jobs, strict=True)
    ]


def _key(one: Observation) -> Key:
    return one.case.id, one.metric


def misses(runs: Sequence[ServedRun], seen: Sequence[Observation], full: Values, hold_out: HoldOut) -> dict[Key, float]:
    """The log of estimated over measured of every figure, with factors fitted without its fold or its source."""
    keys = _folds(seen, hold_out)
    found: dict[Key, float] = {}
    for name in sorted(set(keys), key=str):
        kept = [one for one, key in zip(seen, keys, strict=True) if key != name]
        values = fit(runs, kept, full)
        left = [one for one, key in zip(seen, keys, strict=True) if key == name]
        said = {group: estimates(runs[group], values) for group in {one.group for one in left}}
        for one in left:
            found[_key(one)] = math.log(float(said[one.group][one.metric][one.entry]) / one.value)
    return found


def _folds(seen: Sequence[Observation], hold_out: HoldOut) -> list[Hashable]:
    """What each figure is left out with."""
    if hold_out == "rows":
        return [one.group % _FOLDS for one in seen]
    return [one.case.source for one in seen]


def spreads(sample: Sequence[MissedServing]) -> dict[tuple[str, Metric], float]:
    """Half widths of 80 % intervals, as fractions: by engine and metric, and by 'default' and metric for all others."""
    own: dict[tuple[str, Metric], list[Miss]] = defaultdict(list)
    unseen: dict[Metric, list[Miss]] = defaultdict(list)
    for one in sample:
        case, metric = one.observation.case, one.observation.metric
        own[one.engine, metric].append(Miss(one.rows, case.source))
        unseen[metric].append(Miss(one.source, case.source))
    found: dict[tuple[str, Metric], float] = {
        ("default", metric): spread_of(part, power=0.5) for metric, part in unseen.items()
    }
    for (engine, metric), part in own.items():
        trust = _MOST_TRUST * min(1.0, len(part) / _FEW_RUNS)
        found[engine, metric] = max(LEAST_SPREAD, blended(spread_of(part, power=0.5), found["default", metric], trust))
    for metric in unseen:
        # What was never measured is no surer than anything that was.
        found["default", metric] = max(value for (_, other), value in found.items() if other == metric)
    return found


def predictions(hold_out: HoldOut) -> dict[Key, CasePrediction]:
    """By case id and metric, the figure (tokens/s or seconds) and an interval from other folds or sources only."""
    _, seen, _ = everything()
    every = missed()
    keys = dict(zip(map(_key, seen), _folds(seen, hold_out), strict=True))
    kept = {name: [one for one in every if keys[_key(one.observation)] != name] for name in set(keys.values())}
    known: dict[Hashable, Mapping[tuple[str, Metric], float]] = {name: spreads(part) for name, part in kept.items()}
    families = {name: {one.family for one in part} for name, part in kept.items()}
    found: dict[Key, CasePrediction] = {}
    for one in every:
        key = _key(one.observation)
        value = one.observation.value * math.exp(one.rows if hold_out == "rows" else one.source)
        table, metric = known[keys[key]], one.observation.metric
        # On devices that nothing else was measured on, nobody is surer than of an unknown engine.
        engine = one.engine if one.family in families[keys[key]] else "default"
        spread = 1.0 + table.get((engine, metric), table.get(("default", metric), 1.0))
        found[key] = CasePrediction(value, value / spread, value * spread, fits=True)
    return found
