"""What limits a step: the parts are the whole, and each limit is named where it rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_jobs import MODELS, estimate_of, make_job, with_accelerator, with_network

from estimator.plan.training.job import Job
from estimator.search.layouts import candidates
from estimator.training.bottleneck import Diagnosis, device_work, diagnosis, limits
from estimator.training.estimates import estimate

ALONE: dict[str, Any] = {"layout": {"tp": 1, "pp": 1, "dp": 16}}


def diagnosed(job: Job) -> Diagnosis:
    found = estimate(job, candidates(job))
    return diagnosis(job, found.layouts, found.step, 0)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("layout", [{"tp": 1, "pp": 1, "dp": 16}, {"tp": 1, "pp": 4, "dp": 4, "recompute": "full"}])
def test_limits_sum_to_the_step_and_come_in_order(model: str, layout: dict[str, Any]) -> None:
    found = estimate_of({"model": model, "layout": layout | {"ep": 1, "etp": 1}})
    seen = diagnosis(found.job, found.layouts, found.step, 0)
    values = list(seen.limits.values())
    assert sum(values) == pytest.approx(float(found.step.seconds[0]))
    assert values == sorted(values, reverse=True)
    assert all(value >= 0 for value in values)
    assert seen.bottleneck == next(iter(seen.limits))


def test_limits_of_many_are_those_of_each() -> None:
    job = make_job({"layout": {"tp": None, "pp": None, "dp": None, "vpp": None}})
    layouts = candidates(job)
    step = estimate(job, layouts).step
    many = limits(step.components, device_work(job, layouts))
    np.testing.assert_allclose(sum(many.values()), step.seconds)
    for index in (0, len(layouts) // 2, len(layouts) - 1):
        one = diagnosis(job, layouts, step, index)
        for name, seconds in one.limits.items():
            assert seconds == pytest.approx(float(many[name][index]), rel=1e-9, abs=1e-12)


def test_each_limit_is_named_where_it_rules() -> None:
    job = make_job(ALONE)
    device = job.machine.accelerator
    assert diagnosed(job).bottleneck == "compute"
    starved = with_accelerator(job, memory_bandwidth=device.memory_bandwidth / 50)
    assert diagnosed(starved).bottleneck == "memory bandwidth"
    assert diagnosed(with_network(job, bandwidth_per_node=1e8)).bottleneck == "data-parallel communication"
    piped = {"layout": {"tp": 1, "pp": 8, "dp": 2}, "workload.global_batch": 4}
    assert diagnosed(make_job(piped)).bottleneck == "pipeline bubble"
    tiny = {
        "model": "gpt2",
        "workload": {"seq_len": 16, "framework": "deepspeed"},
        "layout": {"tp": 1, "pp": 1, "dp": 16},
    }
    assert diagnosed(make_job(tiny)).bottleneck == "host"


def test_recompute_is_told_apart_as_a_choice() -> None:
    none, full = (diagnosed(make_job({"layout": ALONE["layout"] | {"recompute": mode}})) for mode in ("none", "full"))
    assert none.limits["recompute"] == 0 < full.limits["recompute"] < full.limits["compute"]


def test_the_roofline_is_its_definition() -> None:
    job = make_job(ALONE)
    found = estimate(job, candidates(job))
    seen = diagnosis(job, found.layouts, found.step, 0)
    roof, device = seen.roofline, job.machine.accelerator
    assert roof.ridge_flop_per_byte == pytest.approx(device.peak_flops["bf16"] / device.memory_bandwidth)
    flop = float(found.step.hardware_flop[0])
    assert roof.arithmetic_intensity_flop_per_byte == pytest.approx(flop / roof.traffic_bytes)
    assert roof.attainable_flops == min(
        job.peak_flops, roof.arithmetic_intensity_flop_per_byte * device.memory_bandwidth
    )
    assert roof.achieved_flops == pytest.approx(float(found.hfu[0]) * job.peak_flops)
    assert roof.achieved_flops < roof.attainable_flops
    assert roof.bound == "compute"


def test_traffic_is_of_the_work_alone_and_intensity_grows_with_the_micro_batch() -> None:
    job = make_job(ALONE)
    layouts = candidates(job)
    traffic = device_work(job, layouts).traffic_bytes
    faster = with_accelerator(job, memory_bandwidth=job.machine.accelerator.memory_bandwidth * 3)
    np.testing.assert_allclose(device_work(faster, layouts).traffic_bytes, traffic, rtol=1e-6)
    # Weights are read at least once in forward and once in backward.
    assert traffic[0] > 2 * 2 * job.architecture.parameters
    few, many = (
        diagnosed(make_job(ALONE | {"workload": {"seq_len": 128, "micro_batch": size}})).roofline for size in (1, 4)
    )
    assert many.arithmetic_intensity_flop_per_byte > few.arithmetic_intensity_flop_per_byte
    assert few.bound == "memory bandwidth"
