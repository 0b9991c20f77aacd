"""Writes the fitted factors to knowledge/calibration.yaml: `python -m measure.calibrate` (a few minutes on one
core)."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import knowledge
from knowledge.data_files import document
from measure import memory_fit
from measure.cases import memory_cases, training_cases
from measure.fit import Miss, Run, Values, blended, fit, residual, runs, spread_of

_FILE = Path(knowledge.__file__).parent / "calibration.yaml"
_HEADER = """\
# Fitted factors, written by `python -m measure.calibrate`. Meanings: estimator/profile.py. `runs` counts the measured
# points behind an entry; 0 means that nothing was measured and defaults stand in. Matmul surfaces come from matmul
# timings and are kept by the fit; everything else in `devices` and `frameworks` is fitted on the runs of
# knowledge/measurements. `time_spread`, `memory_below` and `memory_above` are half widths of 80 % intervals.
# `witnesses` are runs that ran, which bound how far above its estimate a peak can be. `measured` is what measured
# peaks cover.
"""
# A framework with fewer runs than this also answers for the spread over all frameworks.
_FEW_RUNS = 12
_LEAST_TIME_SPREAD = 0.08


def calibrated(old: Mapping[str, Any], values: Values, sample: list[Run]) -> dict[str, Any]:
    """The new contents of the calibration file: `old` with fitted factors, spreads and run counts."""
    errors: dict[str, list[Miss]] = defaultdict(list)
    by_family: dict[str, list[Run]] = defaultdict(list)
    for run in sample:
        errors[run.job.framework.name].append(Miss(residual(run, values), run.case.source))
        by_family[run.job.machine.accelerator.family].append(run)
    everything = [error for part in errors.values() for error in part]
    devices = {family: dict(row) for family, row in old["devices"].items()}
    for (kind, name), fitted in values.items():
        if kind != "device":
            continue
        row = devices.get(name, dict(devices["default"]) | {"source": "no matmul timings: height fitted on runs"})
        devices[name] = row | {key: _rounded(value) for key, value in fitted.items()}
        devices[name]["runs"] = len(by_family[name])
    frameworks: dict[str, Any] = {}
    memory, weighed = remembered(old)
    overall = {"time_spread": _rounded(spread_of(everything))} | _bounds(weighed["default"])
    frameworks["default"] = old["frameworks"]["default"] | overall
    for name in sorted({*errors, *weighed} - {"default"}):
        fitted = values.get(("framework", name), {})
        row = frameworks["default"] | {key: _rounded(value) for key, value in fitted.items()}
        row["time_spread"] = _spread(errors.get(name, []), everything, _LEAST_TIME_SPREAD)
        row["runs"] = len(errors.get(name, []))
        row |= _bounds(weighed.get(name, weighed["default"]))
        sources = sorted({run.case.source for run in sample if run.job.framework.name == name})
        row["source"] = "; ".join(sources) or "memory only"
        frameworks[name] = row
    return dict(old) | {"devices": devices, "frameworks": frameworks, "memory": memory}


def remembered(old: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, memory_fit.Spread]]:
    """The memory part of the calibration, and how far each framework's peaks are off."""
    sample = memory_fit.peaks(filter(memory_fit.countable, memory_cases()))
    ran = memory_fit.peaks(case for case in training_cases() if case.reason_unscored is None)
    factors = {name: _rounded(value) for name, value in memory_fit.fit(sample).items()}
    memory = dict(old["memory"]) | factors | {"measured": memory_fit.measured_kinds(sample, ran)}
    return memory, memory_fit.spreads(sample, factors, ran)


def _bounds(spread: memory_fit.Spread) -> dict[str, float | int]:
    return {
        "memory_below": _rounded(spread.below),
        "memory_above": _rounded(spread.above),
        "memory_runs": spread.rows,
        "witnesses": spread.witnesses,
    }


def _spread(own: list[Miss], everything: list[Miss], least: float) -> float:
    """The 80 % half width of a framework's own errors, moved towards everybody's where it has few."""
    pooled = spread_of(everything)
    if not own:
        return _rounded(pooled)
    return _rounded(max(least, blended(spread_of(own), pooled, min(1.0, len(own) / _FEW_RUNS))))


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def main() -> int:
    sample = runs()
    values = fit(sample)
    _write(calibrated(document("../calibration.yaml"), values, sample))
    print(f"{len(sample)} runs; wrote {_FILE.name}")
    return 0


def _write(new: Mapping[str, Any]) -> None:
    import yaml

    text = _HEADER + yaml.safe_dump(new, sort_keys=False, width=120, default_flow_style=None)
    partial = _FILE.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(_FILE)


if __name__ == "__main__":
    sys.exit(main())
