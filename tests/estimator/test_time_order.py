"""What must hold of step times for every model of the catalogue, whatever the factors are."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from estimator_jobs import with_accelerator, with_layout, with_network
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.layouts import OFFLOAD, RECOMPUTE, Layouts
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates, valid_tp
from estimator.training.estimates import estimate
from estimator.training.schedule import Step, step_time
from knowledge.jobs.training import job_of
from knowledge.models.known import models

MODELS = [row.id for row in models()]
# Framework, accelerator and ZeRO stage; the first is the one for fine-tuning.
SETUPS = (
    ("deepspeed", "h100-sxm", 3),
    ("megatron-lm", "a100-sxm-80gb", 1),
    ("torchtitan", "b200", 3),
    ("primus", "mi300x", 1),
    ("maxtext", "tpu-v5p", 3),
)
ALLOWED = 1 + 1e-9
SCALES = (8, 16, 32, 128, 1024)


@cache
def small_job(model: str, setup: int = 0, method: str = "full") -> Job:
    framework, accelerator, _ = SETUPS[setup]
    return job_of(
        Plan.parse(
            {
                "model": model,
                "workload": {"framework": framework, "method": method, "seq_len": 2048, "global_batch": 4096},
                "cluster": {"accelerator": accelerator, "count": 8},
            }
        )
    )


def layout_of(setup: int = 0, **changes: int) -> Layouts:
    """Data parallelism over 8 devices, four micro-batches of one sequence."""
    one = np.ones(1, dtype=np.int64)
    plain = Layouts(**{field.name: one for field in fields(Layouts)})
    zeros = dict.fromkeys(("sequence_parallel", "schedule", "recompute", "recompute_layers", "offload"), 0)
    return with_layout(
        plain, **zeros | {"dp": 8, "shard_group": 8, "zero_stage": SETUPS[setup][2], "grad_accum": 4} | changes
    )


def with_count(job: Job, count: int) -> Job:
    return replace(job, machine=replace(job.machine, count=count))


def scaled(job: Job, setup: int) -> list[Step]:
    """The same work per device on more and more devices; of a torus, from where all of its dimensions are in use."""
    sizes = SCALES if job.machine.accelerator.topology != "torus" else [size for size in SCALES if size >= 64]
    return [step_time(with_count(job, size), layout_of(setup, dp=size, shard_group=size)) for size in sizes]


def seconds(job: Job, layouts: Layouts) -> float:
    return float(step_time(job, layouts).seconds[0])


@pytest.mark.parametrize("setup", range(len(SETUPS)))
def test_more_devices_never_do_more_each(setup: int) -> None:
    """With the same work per device; only the optimizer's step may shrink, as its states are dealt over more."""
    for model in [*MODELS[setup::5], *MODELS[(setup + 2) % 5 :: 5]]:
        steps = scaled(small_job(model, setup), setup)
        times = [float(step.seconds[0] - step.components["optimizer"][0]) for step in steps]
        for before, after in pairwise(times):
            assert after >= before / ALLOWED, (model, times)


def test_adapters_are_faster_and_four_bit_weights_slower() -> None:
    """Without sharding, as 4-bit weights are a quarter of the traffic where ZeRO-3 gathers them.

    What frozen weights save grows with the square of the width, what adapters read and write (with casts to fp32) with
    the width: narrow models, and those of narrow experts, need not be faster, though hardly slower (most where narrow
    layers have two mixers side by side, as in Falcon-H1-0.5B).
    """
    layouts = layout_of(zero_stage=0, micro_batch=8)
    for model in MODELS:
        full, lora, qlora = (seconds(small_job(model, method=method), layouts) for method in ("full", "lora", "qlora"))
        described = small_job(model).architecture
        experts = [block.expert_width for block in described.blocks if block.expert_width]
        wide = described.hidden >= 3072 and min(experts, default=1024) >= 1024
        assert lora < full * (1.0 if wide else 1.26), model
        assert qlora > lora, model


def test_recomputing_everything_is_slower_than_nothing() -> None:
    none, full = layout_of(), layout_of(recompute=RECOMPUTE.index("full"))
    for model in MODELS:
        assert seconds(small_job(model), none) < seconds(small_job(model), full), model


@st.composite
def cases(draw: st.DrawFn) -> tuple[Job, Layouts]:
    """Any model in any setup, with a layout that the model and 64 devices allow."""
    setup = draw(st.integers(0, len(SETUPS) - 1))
    job = with_count(small_job(draw(st.sampled_from(MODELS)), setup), 64)
    tp = draw(st.sampled_from([size for size in valid_tp(job.architecture) if 64 % size == 0]))
    pp = draw(
        st.sampled_from([size for size in (1, 2, 4, 8) if 64 % (tp * size) == 0 and size <= job.architecture.layers])
    )
    dp = 64 // (tp * pp)
    changes: dict[str, Any] = {
        "tp": tp,
        "sequence_parallel": draw(st.integers(0, 1)) if tp > 1 else 0,
        "pp": pp,
        "dp": dp,
        "shard_group": dp,
        "etp": tp if job.architecture.experts else 1,
        "zero_stage": draw(st.sampled_from([0, 1, 2, 3])),
        "recompute": draw(st.sampled_from([0, 2])),
        "offload": draw(st.sampled_from([0, OFFLOAD.index("optimizer")])),
        "micro_batch": draw(st.sampled_from([1, 2, 8])),
        "grad_accum": 8,
    }
    return job, layout_of(setup, **changes)


@settings(max_examples=examples(80))
@given(cases(), st.floats(1.0, 16.0))
def test_better_hardware_never_slows_a_step(case: tuple[Job, Layouts], times: float) -> None:
    job, layouts = case
    device, network = job.machine.accelerator, job.machine.network
    better = {
        "network": with_network(job, bandwidth_per_node=network.bandwidth_per_node * times),
        "latency": with_network(job, latency_s=network.latency_s / times),
        "link": with_accelerator(
            job, scaleup_bandwidth=device.scaleup_bandwidth * times, peer_bandwidth=device.peer_bandwidth * times
        ),
        "memory": with_accelerator(job, memory_bandwidth=device.memory_bandwidth * times),
        "peak": with_accelerator(
            job,
            peak_flops={kind: rate * times for kind, rate in device.peak_flops.items()},
            vector_flops=device.vector_flops * times,
        ),
        "host link": with_accelerator(job, host_bandwidth=device.host_bandwidth * times),
    }
    now = seconds(job, layouts)
    for name, other in better.items():
        assert seconds(other, layouts) <= now * ALLOWED, name


def ideal(job: Job) -> Job:
    """The same job where nothing but work costs time: no latency, launches, host or stragglers, and endless links."""

    def without(part: Any) -> Any:
        free = {f.name: 0.0 for f in fields(part) if f.name.endswith("_s") or f.name == "straggler"}
        inner = {f.name: without(value) for f in fields(part) if is_dataclass(value := getattr(part, f.name))}
        return replace(part, **free | inner)

    job = replace(job, calibration=without(job.calibration), framework=without(job.framework))
    job = with_accelerator(job, scaleup_bandwidth=1e30, peer_bandwidth=1e30)
    return with_network(job, bandwidth_per_node=1e30, latency_s=0.0)


@pytest.mark.parametrize("setup", [0, 2, 4])
def test_without_overheads_n_devices_take_the_nth_part_of_the_time(setup: int) -> None:
    for model in MODELS[setup::3]:
        job = ideal(small_job(model, setup))
        times = [
            size * seconds(with_count(job, size), layout_of(setup, dp=size, shard_group=size, grad_accum=1024 // size))
            for size in SCALES
        ]
        # Collectives still take a moment to start.
        np.testing.assert_allclose(times, times[0], rtol=2e-3, err_msg=model)


@pytest.mark.parametrize("framework", ["megatron-lm", "deepspeed"])
def test_an_entry_of_a_batch_is_its_own_estimate(framework: str) -> None:
    for model in MODELS[::5]:
        plan = {"model": model, "workload": {"framework": framework, "seq_len": 2048, "global_batch": 32}}
        job = job_of(Plan.parse(plan | {"cluster": {"accelerator": "h100-sxm", "count": 8}}))
        try:
            layouts = candidates(job)
        except PlanError:
            continue
        many = estimate(job, layouts)
        for index in {0, len(layouts) // 2, len(layouts) - 1}:
            one = estimate(job, layouts.take(np.array([index])))
            assert one.step.seconds[0] == many.step.seconds[index], (model, layouts.summary(index))
            assert one.memory.total[0] == many.memory.total[index]
            for name, values in one.step.components.items():
                assert values[0] == many.step.components[name][index], (model, name)
