"""Writes what was fitted to serving runs to knowledge/serving_factors.yaml: a part of `shardwise measure fit`."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import knowledge
from knowledge.engines import engines_known
from measure.fit.hierarchy import DEFAULT, Node, Values, nearest
from measure.fit.serving.factors import (
    DEVICE_FACTORS,
    ENGINE_FACTORS,
    Observation,
    ServedRun,
    device_of,
    everything,
    fitted_numbers,
    lineage,
)
from measure.fit.serving.held_out import missed, spreads

_FILE = Path(knowledge.__file__).parent / "serving_factors.yaml"
_HEADER = """\
# Fitted factors of serving engines, written by `shardwise measure fit`. Meanings: estimator/plan/serving/factors.py.
# `decode`, `prefill` and `collective` of an engine and of an accelerator family are multiplied. `figures` counts the
# measured times and rates behind an entry, `runs` the runs; where they are 0 the kin's factors stand in, or those that
# all share. `*_spread` are half widths of 80 % intervals, from sources that were left out of the fit whole; those of
# `unmeasured` are the widest.
"""


def calibrated(
    values: Values, runs: Sequence[ServedRun], seen: Sequence[Observation], spread: Mapping[tuple[str, Any], float]
) -> dict[str, Any]:
    """The new contents of the file."""
    behind: dict[Node, list[Observation]] = defaultdict(list)
    for observation in seen:
        job = runs[observation.group].job
        behind["engine", job.engine.name].append(observation)
        behind["device", device_of(job)].append(observation)
    families = sorted(name for kind, name in behind if kind == "device")
    unmeasured = {f"{metric}_spread": _rounded(spread[DEFAULT, metric]) for metric in _METRICS}
    engines = {}
    for name in [DEFAULT, *engines_known()]:
        spreads_of_engine = {
            f"{metric}_spread": _rounded(spread.get((name, metric), spread[DEFAULT, metric])) for metric in _METRICS
        }
        engines[name] = _row(values, ("engine", name), [f.name for f in ENGINE_FACTORS], behind) | spreads_of_engine
    devices = {
        name: _row(values, ("device", name), [f.name for f in DEVICE_FACTORS], behind) for name in [DEFAULT, *families]
    }
    return {"engines": engines, "devices": devices, "unmeasured": unmeasured}


_METRICS = ("tpot", "ttft", "throughput")


def _row(
    values: Values, node: Node, names: Sequence[str], behind: Mapping[Node, Sequence[Observation]]
) -> dict[str, Any]:
    fitted = nearest(values, [node] if node[1] == DEFAULT else [*lineage(node), (node[0], DEFAULT)])
    mine = behind.get(node, ())
    return {name: _rounded(fitted[name]) for name in names} | {
        "figures": len(mine),
        "runs": len({observation.case.id for observation in mine}),
        "source": "; ".join(sorted({observation.case.source for observation in mine})),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def main() -> int:
    import yaml

    runs, seen, values = everything()
    calibration = calibrated(values, runs, seen, spreads(missed()))
    text = _HEADER + yaml.safe_dump(calibration, sort_keys=False, width=120, default_flow_style=None)
    partial = _FILE.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(_FILE)
    counted = len({observation.case.id for observation in seen}), len({observation.case.source for observation in seen})
    print(f"{fitted_numbers(runs)} numbers fitted to {len(seen)} figures of {counted[0]} runs of {counted[1]} sources")
    print(f"wrote {_FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
