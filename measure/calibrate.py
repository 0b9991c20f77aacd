"""Writes the fitted factors to knowledge/calibration.yaml: `python -m measure.calibrate` (a few minutes on one
core)."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import knowledge
from knowledge.data_files import document
from measure.fit import Miss, Run, Values, fit, memory_misses, residual, runs, spread_of

_FILE = Path(knowledge.__file__).parent / "calibration.yaml"
_HEADER = """\
# Fitted factors, written by `python -m measure.calibrate`. Meanings: estimator/profile.py. `runs` counts the measured
# points behind an entry; 0 means that nothing was measured and defaults stand in. Matmul surfaces come from matmul
# timings and are kept by the fit; everything else in `devices` and `frameworks` is fitted on the runs of
# knowledge/measurements. `time_spread` and `memory_spread` are the half widths of 80 % intervals, in-sample.
"""
# A framework with fewer runs than this also answers for the spread over all frameworks.
_FEW_RUNS = 12
_LEAST_TIME_SPREAD = 0.08
_LEAST_MEMORY_SPREAD = 0.05


def calibrated(
    old: Mapping[str, Any], values: Values, sample: list[Run], memory: dict[str, list[Miss]]
) -> dict[str, Any]:
    """The new contents of the calibration file: `old` with fitted factors, spreads and run counts."""
    errors: dict[str, list[Miss]] = defaultdict(list)
    by_family: dict[str, list[Run]] = defaultdict(list)
    for run in sample:
        errors[run.job.framework.name].append(Miss(residual(run, values), run.case.source))
        by_family[run.job.machine.accelerator.family].append(run)
    everything = [error for part in errors.values() for error in part]
    all_memory = [error for part in memory.values() for error in part]
    devices = {family: dict(row) for family, row in old["devices"].items()}
    for (kind, name), fitted in values.items():
        if kind != "device":
            continue
        row = devices.get(name, dict(devices["default"]) | {"source": "no matmul timings: height fitted on runs"})
        devices[name] = row | {key: _rounded(value) for key, value in fitted.items()}
        devices[name]["runs"] = len(by_family[name])
    frameworks: dict[str, Any] = {}
    overall = {"time_spread": _rounded(spread_of(everything)), "memory_spread": _rounded(spread_of(all_memory))}
    frameworks["default"] = dict(old["frameworks"]["default"]) | overall
    for name in sorted({*errors, *memory}):
        fitted = values.get(("framework", name), {})
        row = frameworks["default"] | {key: _rounded(value) for key, value in fitted.items()}
        row["time_spread"] = _spread(errors.get(name, []), everything, _LEAST_TIME_SPREAD)
        row["memory_spread"] = _spread(memory.get(name, []), all_memory, _LEAST_MEMORY_SPREAD)
        row["runs"] = len(errors.get(name, []))
        row["memory_runs"] = len(memory.get(name, []))
        sources = sorted({run.case.source for run in sample if run.job.framework.name == name})
        row["source"] = "; ".join(sources) or "memory only"
        frameworks[name] = row
    return dict(old) | {"devices": devices, "frameworks": frameworks}


def _spread(own: list[Miss], everything: list[Miss], least: float) -> float:
    """The 80 % half width of a framework's own errors, moved towards everybody's where it has few."""
    pooled = math.log1p(spread_of(everything))
    if not own:
        return _rounded(math.expm1(pooled))
    trust = min(1.0, len(own) / _FEW_RUNS)
    mixed = trust * math.log1p(spread_of(own)) + (1.0 - trust) * pooled
    return _rounded(max(least, math.expm1(mixed)))


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def main() -> int:
    import yaml

    sample = runs()
    values = fit(sample)
    new = calibrated(document("../calibration.yaml"), values, sample, memory_misses())
    text = _HEADER + yaml.safe_dump(new, sort_keys=False, width=120, default_flow_style=None)
    partial = _FILE.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(_FILE)
    print(f"{len(sample)} runs; wrote {_FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
