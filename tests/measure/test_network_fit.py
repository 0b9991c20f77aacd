"""The fit of collectives: what it writes is what it finds, and the estimates follow the timings."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import yaml

from estimator.kernels.collectives import all_reduce, connect, one_shot_all_reduce
from knowledge.machines.catalogue import machine
from knowledge.machines.networks import factors_of
from measure.fit.network import FILE, START, START_KERNELS, errors, fit, timings, written


@cache
def fitted() -> dict[str, Any]:
    return fit()


def test_the_file_holds_what_the_fit_finds() -> None:
    kept, found = yaml.safe_load(FILE.read_text(encoding="utf-8")), yaml.safe_load(written(fitted()))
    assert {kind: set(row) for kind, row in kept["scaleup"].items()} == {
        kind: set(row) for kind, row in found["scaleup"].items()
    }
    rows = [(kept["scaleup"][kind], found["scaleup"][kind]) for kind in found["scaleup"]]
    assert {engine: set(links) for engine, links in kept["kernels"].items()} == {
        engine: set(links) for engine, links in found["kernels"].items()
    }
    rows += [
        (kept["kernels"][name][kind], row) for name, links in found["kernels"].items() for kind, row in links.items()
    ]
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
        ("Xe Link", None, 0.05, 0.1),
        ("slingshot oneCCL", None, 0.25, 0.1),
        ("NVLink 3 vllm", 0.05, 0.08, None),
        ("NVLink 4 vllm", 0.04, 0.05, 0.05),
        ("NVLink 5 vllm", 0.11, 0.13, 0.05),
        ("NVLink 4 sglang", 0.05, 0.07, None),
        ("NVLink 5 sglang", 0.1, 0.06, None),
        ("NVLink 3 trtllm", 0.15, 0.17, None),
        ("NVLink 4 trtllm", 0.05, 0.07, None),
        ("NVLink 5 trtllm", 0.07, 0.05, None),
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


def test_a_library_of_its_own_says_nothing_of_others() -> None:
    aurora, polaris = machine("gpu-max-1550-tile", 24, 12)[0], machine("a100-sxm-80gb", 8, 4, "slingshot-200x4")[0]
    own, usual = (factors_of(each.accelerator, fitted()) for each in (aurora, polaris))
    assert own.out < 0.5 * usual.out == 0.5 * fitted()["scaleout"]["out"]
    assert (own.overlaps, usual.overlaps) == (False, True)
    assert factors_of(machine("mi300x", 8)[0].accelerator, fitted()).out == usual.out


def test_every_timing_is_estimated() -> None:
    for part in timings():
        seconds = part.estimated(fitted())
        assert seconds.shape == part.measured_s.shape
        assert (seconds > 0).all()


def test_the_fit_is_better_than_its_start() -> None:
    start = {
        "scaleup": {"default": START | START_KERNELS},
        "kernels": {},
        "scaleout": {"out": 0.9, "out_chunk": 2.0},
        "latency_s": {},
    }
    for part in timings():
        if part.link.startswith("NVLink") and len(part.measured_s) > 20 and not part.network:
            assert np.abs(part.error(fitted())).mean() < np.abs(part.error(start)).mean()


def test_an_engine_s_own_kernels_change_nothing_else() -> None:
    accelerator = machine("h100-sxm", 8)[0].accelerator
    usual, own = factors_of(accelerator, fitted()), factors_of(accelerator, fitted(), "trtllm")
    different = {name for name in START | START_KERNELS if getattr(usual, name) != getattr(own, name)}
    assert different == {"direct", "direct_s", "direct_peer_s", "direct_sync_s"}
    assert factors_of(accelerator, fitted(), "vllm") == factors_of(accelerator, fitted(), "mlc-llm") == usual
    gaudi = machine("gaudi3", 8)[0].accelerator
    assert factors_of(gaudi, fitted(), "trtllm") == factors_of(gaudi, fitted())


def test_kernels_are_fitted_to_their_own_rows_alone() -> None:
    for part in timings():
        assert part.kernel in ("", "vllm", "sglang", "trtllm")
        assert {"all_reduce", "all_gather"}.isdisjoint(dict(part.parts)) == bool(part.kernel)
    # In one phase it is the same kernel as whatever the engine takes, where that is the fastest.
    part = next(part for part in timings() if part.kernel == "vllm" and "one_shot_all_reduce" in dict(part.parts))
    rows = dict(part.parts)["one_shot_all_reduce"]
    members = connect(part.machine, factors_of(part.machine.accelerator, fitted()), part.devices[rows], np.ones(1))
    sizes = part.size_bytes[rows]
    free = np.minimum(members.one_shot.seconds(sizes), members.two_shot.seconds(sizes))
    found = one_shot_all_reduce(members, sizes)
    assert found.tolist() == np.minimum(free, all_reduce(members, sizes)).tolist()
