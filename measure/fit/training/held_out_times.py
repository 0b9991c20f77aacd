"""What would have been said of measured speeds had they, or their whole source, not been there to fit to."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from knowledge.fitted.training import device_lineage, factors_node
from measure.fit.spreads import Miss, blended, spread_of
from measure.fit.training.time import Fit, TimedRun, fit, residual, thinned, timed_runs
from measure.history.scores import CasePrediction
from measure.history.training import training_cases

HoldOut = Literal["rows", "source"]
# Rows are left out a tenth at a time, every tenth one, so that each tenth has rows of all large sources.
_FOLDS = 10
# A framework with fewer runs than this also answers for how far unseen sources are off.
_FEW_RUNS = 12
LEAST_SPREAD = 0.08
# And however many it has: the next run may be of a source of its own.
_MOST_TRUST = 0.8


@dataclass(frozen=True)
class MissedTime:
    """A run's log of estimated over measured step time, fitted without its fold, and without its source."""

    run: TimedRun
    rows: float
    source: float


@cache
def everything() -> tuple[list[TimedRun], Fit]:
    """All runs that count, and the fit to them."""
    runs = timed_runs(training_cases())
    return runs, fit(thinned(runs))


@cache
def missed() -> list[MissedTime]:
    """How far every run is off, both ways of leaving it out."""
    runs, full = everything()
    rows, source = (misses(runs, full, hold_out) for hold_out in ("rows", "source"))
    return [MissedTime(run, rows[run.case.id], source[run.case.id]) for run in runs]


def misses(
    runs: Sequence[TimedRun], full: Fit, hold_out: HoldOut, only: Collection[Hashable] | None = None
) -> dict[str, float]:
    """By case id, the log of estimated over measured step time with factors fitted without its fold or its source.

    The layout of a run whose source leaves it open is the one chosen with all runs. `only` names the folds or sources
    that are asked for, if not all.
    """
    sample = thinned(runs)
    keys = _keys(runs, hold_out)
    errors: dict[str, float] = {}
    for name in sorted(set(keys.values()) if only is None else only, key=str):
        values = fit([run for run in sample if keys[run.case.id] != name], full).values
        errors |= {run.case.id: residual(run, values) for run in runs if keys[run.case.id] == name}
    return errors


def _keys(runs: Sequence[TimedRun], hold_out: HoldOut) -> dict[str, Hashable]:
    """What each run is left out with."""
    if hold_out == "rows":
        return {run.case.id: index % _FOLDS for index, run in enumerate(runs)}
    return {run.case.id: run.case.source for run in runs}


def spreads(sample: Sequence[MissedTime]) -> dict[str, float]:
    """Half widths of 80 % intervals of a step time, as fractions: by framework, and 'default' for all others.

    A framework's own runs say how far runs like them are off; unseen sources how far anything else is.
    """
    by_framework: dict[str, list[Miss]] = defaultdict(list)
    for miss in sample:
        by_framework[miss.run.job.framework.name].append(Miss(miss.rows, miss.run.case.source))
    default = spread_of(Miss(miss.source, miss.run.case.source) for miss in sample)
    widths = {"default": default}
    for name, part in by_framework.items():
        trust = _MOST_TRUST * min(1.0, len(part) / _FEW_RUNS)
        widths[name] = max(LEAST_SPREAD, blended(spread_of(part), default, trust))
    return widths


def device_spread(sample: Sequence[MissedTime]) -> float:
    """Half width of the 80 % interval of a step time on a family that nobody ran, nor its kin, as a fraction.

    Sources on families that no other source ran say it; those of 'default' where there are none. Network, attention
    and libraries of such a machine are all guessed at once, so it is wider than that of a framework nobody ran.
    """
    sources: dict[str, set[str]] = defaultdict(set)
    for miss in sample:
        for name in device_lineage(_family(miss.run)):
            sources[name].add(miss.run.case.source)
    alone = [miss for miss in sample if all(len(sources[name]) == 1 for name in device_lineage(_family(miss.run)))]
    spread = spread_of(Miss(miss.source, miss.run.case.source) for miss in alone) if alone else 0.0
    return max(spread, spreads(sample)["default"])


def _family(run: TimedRun) -> str:
    return factors_node(run.job.machine.accelerator)


class _Width:
    """The half widths that a sample of runs gives others."""

    def __init__(self, sample: Sequence[MissedTime]) -> None:
        self.frameworks: Mapping[str, float] = spreads(sample)
        self.strange = device_spread(sample)
        self.families = {_family(miss.run) for miss in sample}

    def of(self, run: TimedRun) -> float:
        width = self.frameworks.get(run.job.framework.name, self.frameworks["default"])
        known = self.families.intersection(device_lineage(_family(run)))
        return width if known else max(width, self.strange)


def predictions(hold_out: HoldOut) -> dict[str, CasePrediction]:
    """By case id, tokens per second and device, and an interval from runs of other folds or sources only."""
    runs, _ = everything()
    keys = _keys(runs, hold_out)
    by_key = {
        name: _Width([miss for miss in missed() if keys[miss.run.case.id] != name]) for name in set(keys.values())
    }
    predicted: dict[str, CasePrediction] = {}
    for miss in missed():
        run, case = miss.run, miss.run.case
        measured = case.observed["tokens_per_s_per_device"]
        assert measured is not None
        value = measured * math.exp(-(miss.rows if hold_out == "rows" else miss.source))
        spread = 1.0 + by_key[keys[case.id]].of(run)
        predicted[case.id] = CasePrediction(value, value / spread, value * spread, fits=True)
    return predicted
