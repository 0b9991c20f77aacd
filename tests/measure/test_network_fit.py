"""The fit of collectives: what it writes is what it finds, and the estimates follow the timings."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import yaml

from estimator.network import all_reduce, connect
from knowledge.networks import factors_of
from measure.network_fit import ENGINES, FILE, START, Timings, errors, fit, timings, written


@cache
def fitted() -> dict[str, Any]:
    return fit()


def test_the_file_holds_what_the_fit_finds() -> None:
    kept, found = yaml.safe_load(FILE.read_text(encoding="utf-8")), yaml.safe_load(written(fitted()))
    assert {kind: set(row) for kind, row in kept["scaleup"].items()} == {
        kind: set(row) for kind, row in found["scaleup"].items()
    }
    rows = [(kept["scaleup"][kind], found["scaleup"][kind]) for kind in found["scaleup"]]
    for before, now in (*rows, (kept["scaleout"], found["scaleout"]), (kept["latency_s"], found["latency_s"])):
        # A platform whose square roots round otherwise may end a stride away.
        assert before == pytest.approx(now, rel=0.1)


# Mean absolute errors, with some room: a change that makes one of them worse should be seen.
@pytest.mark.parametrize(
    ("kind", "small", "middle", "large"),
    [
        ("NVLink 3", 0.09, 0.22, 0.08),
        ("NVLink 4", 0.08, 0.14, 0.05),
        ("NVLink 5", 0.08, 0.15, 0.08),
        ("PCIe", 0.08, 0.23, 0.18),
        ("efa-v1", 0.06, 0.11, 0.06),
        ("efa-v2", 0.13, 0.16, 0.18),
        ("slingshot", None, 0.05, 0.05),
    ],
)
def test_estimates_follow_the_timings(kind: str, small: float | None, middle: float, large: float) -> None:
    found = errors(fitted())
    limits = {"below 64 KiB": small, "64 KiB to 16 MiB": middle, "above 16 MiB": large}
    for region, limit in limits.items():
        if limit is not None:
            spread = found[kind, region]
            assert spread.mean_absolute < limit
            assert abs(spread.median) < 0.1


def test_every_timing_is_estimated() -> None:
    for part in timings():
        seconds = part.estimated(fitted())
        assert seconds.shape == part.measured_s.shape
        assert (seconds > 0).all()


def test_the_fit_is_better_than_its_start() -> None:
    start = {"scaleup": {"default": START}, "scaleout": {"out": 0.9, "out_chunk": 2.0}, "latency_s": {}}
    for part in timings():
        if part.link in ("NVLink 3", "NVLink 4", "NVLink 5", "PCIe") and len(part.measured_s) > 50 and not part.network:
            assert np.abs(part.error(fitted())).mean() < np.abs(part.error(start)).mean()


def test_only_keeps_the_rows_of_a_collective() -> None:
    part = next(part for part in timings() if dict(part.parts).keys() >= {"all_reduce", ENGINES})
    kept = part.only(lambda name: name == "all_reduce")
    assert isinstance(kept, Timings)
    rows = dict(part.parts)["all_reduce"]
    assert kept.measured_s.tolist() == part.measured_s[rows].tolist()
    factors = factors_of(part.machine.accelerator, fitted())
    members = connect(part.machine, factors, kept.devices, np.ones(1))
    assert kept.estimated(fitted()).tolist() == all_reduce(members, kept.size_bytes).tolist()
    assert part.only(lambda name: name == "broadcast") is None
