"""Writes the fitted factors to knowledge/calibration.yaml: `shardwise measure fit` (minutes on one core)."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import knowledge
from knowledge.data_files import document
from knowledge.fitted.training import factors_node, frameworks_known
from measure.fit.hierarchy import DEFAULT, Values
from measure.fit.training import memory as memory_fit
from measure.fit.training.held_out_times import device_spread, everything, missed, spreads
from measure.fit.training.time import TimedRun, values_of
from measure.history.training import memory_cases, training_cases

_FILE = Path(knowledge.__file__).parent / "calibration.yaml"
_HEADER = """\
# Fitted factors, written by `shardwise measure fit`. Meanings: estimator/plan/calibration.py. `runs` counts the
# measured runs behind an entry; where it is 0 its kin's factors stand in, or those that all share. `time_spread`,
# `memory_below` and `memory_above` are half widths of 80 % intervals, from runs that were left out of the fit; those of
# `default` from sources that were left out whole, and `strange_device_spread` of time from those on families that only
# they ran. `witnesses` are runs that ran, which bound how far above its estimate a peak can be. `measured` is what
# measured peaks cover. `fallback_family` names families that are built alike: one that few runs speak for is held
# near its kin. A device there is built unlike its family: TPUs since v6e have matrix units of 256 x 256, not 128 x 128.
# Surfaces of matmuls, attention and networks are files of their own.
"""
# Fixed, not fitted: what the smallest kernels of any family take on the device.
_LAUNCH_S = 2.5e-6


def calibrated(
    old: Mapping[str, Any], values: Values, runs: Sequence[TimedRun], spread: Mapping[str, float], strange: float
) -> dict[str, Any]:
    """The new contents of the calibration file: fitted factors, spreads and run counts. `strange` is the spread on
    families that nobody ran."""
    by_family: dict[str, list[TimedRun]] = defaultdict(list)
    by_framework: dict[str, list[TimedRun]] = defaultdict(list)
    for run in runs:
        by_family[factors_node(run.job.machine.accelerator)].append(run)
        by_framework[run.job.framework.name].append(run)
    devices = {
        name: {key: _rounded(value) for key, value in values["device", name].items()}
        | {"launch_s": _LAUNCH_S, "runs": len(by_family[name]), "source": _sources(by_family[name])}
        for name in [DEFAULT, *sorted(by_family)]
    }
    memory, weighed = remembered(old)
    frameworks: dict[str, Any] = {}
    for name in [DEFAULT, *sorted(frameworks_known())]:
        fitted = values_of(values, "framework", name) if name != DEFAULT else values["framework", DEFAULT]
        row: dict[str, Any] = {key: _rounded(value) for key, value in fitted.items()}
        row["time_spread"] = _rounded(spread.get(name, spread[DEFAULT]))
        row["runs"] = len(by_framework[name])
        row |= _bounds(weighed.get(name, weighed[DEFAULT]))
        row["source"] = _sources(by_framework[name])
        frameworks[name] = row
    return {
        "date": old["date"],
        "fallback_family": old["fallback_family"],
        "strange_device_spread": _rounded(strange),
        "devices": devices,
        "frameworks": frameworks,
        "memory": memory,
    }


def _sources(runs: Sequence[TimedRun]) -> str:
    return "; ".join(sorted({run.case.source for run in runs})) or "no measured speed"


def remembered(old: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, memory_fit.MemorySpread]]:
    """The memory part of the calibration, and how far each framework's peaks are off."""
    sample = memory_fit.peaks(filter(memory_fit.countable, memory_cases()))
    ran = memory_fit.peaks(case for case in training_cases() if case.reason_unscored is None)
    factors = {name: _rounded(value) for name, value in memory_fit.fit(sample).items()}
    memory = dict(old["memory"]) | factors | {"measured": memory_fit.measured_kinds(sample, ran)}
    return memory, memory_fit.spreads(sample, factors, ran)


def _bounds(spread: memory_fit.MemorySpread) -> dict[str, float | int]:
    return {
        "memory_below": _rounded(spread.below),
        # Rounded down: a run that bounds it has to stay inside.
        "memory_above": math.floor(spread.above * 1e4) / 1e4,
        "memory_runs": spread.rows,
        "witnesses": spread.witnesses,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def main() -> int:
    runs, full = everything()
    calibration = calibrated(
        document("../calibration.yaml"), full.values, runs, spreads(missed()), device_spread(missed())
    )
    _write(calibration)
    print(f"{len(runs)} runs of {len({run.case.source for run in runs})} sources; wrote {_FILE.name}")
    return 0


def _write(new: Mapping[str, Any]) -> None:
    import yaml

    text = _HEADER + yaml.safe_dump(new, sort_keys=False, width=120, default_flow_style=None)
    partial = _FILE.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(_FILE)


if __name__ == "__main__":
    sys.exit(main())
