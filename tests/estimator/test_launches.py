"""What hosts, libraries and optimizers add to a step: each by its own cause, and never in the other direction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimator_jobs import make_job, with_accelerator, with_layout

from estimator.plan.training.job import Job
from estimator.search.layouts import candidates
from estimator.training.schedule import step_time

SMALL = {"model": "gpt2", "layout.tp": 1, "layout.pp": 1, "layout.dp": 8, "cluster.count": 8, "workload.seq_len": 512}
EXPERTS = {"model": "Qwen/Qwen3-30B-A3B", "workload.framework": "megatron-bridge", "layout.ep": 4}


def host(job: Job) -> np.ndarray:
    """Seconds of a step that the device waits for launches."""
    return step_time(job, candidates(job)).components["host"] - job.calibration.framework.step_host_s


def with_operators(job: Job, **changes: object) -> Job:
    return replace(job, framework=replace(job.framework, operators=replace(job.framework.operators, **changes)))


def with_gradients(job: Job, **changes: object) -> Job:
    return replace(job, framework=replace(job.framework, gradients=replace(job.framework.gradients, **changes)))


def test_a_slow_host_only_lengthens_the_wait() -> None:
    job = make_job(SMALL)
    usual, slow = (step_time(with_accelerator(job, host_slowness=times), candidates(job)) for times in (1.0, 2.6))
    for name, seconds in usual.components.items():
        if name == "host":
            assert (slow.components[name] > seconds).all()
        elif name != "stragglers":
            np.testing.assert_array_equal(slow.components[name], seconds)


def test_graphs_of_whole_iterations_leave_nothing_to_launch() -> None:
    for plan in (SMALL, EXPERTS):
        job = make_job({**plan, "workload.cuda_graph": "full", "workload.moe_capacity": True})
        np.testing.assert_allclose(host(job), 0.0, atol=1e-12)


def test_modules_and_single_experts_cost_the_host() -> None:
    small = make_job(SMALL)
    assert (host(small) > host(with_operators(small, module_host_s=0.0))).all()
    eight = make_job({**SMALL, "workload.precision": "fp8"})
    plain = [host(job) - host(with_operators(job, module_host_s=0.0)) for job in (eight, small)]
    assert (plain[0] > plain[1]).all()
    experts = make_job(EXPERTS)
    assert (host(experts) >= host(with_operators(experts, launches_each_expert=False))).all()


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_an_all_reduce_moves_twice_what_a_device_needs(stage: int) -> None:
    """Below stage 3, where gradients are scattered as they are summed whatever the framework."""
    job = make_job({**SMALL, "workload.framework": "deepspeed", "layout.zero_stage": stage})
    layouts = candidates(job)
    moved = [
        step_time(with_gradients(job, all_reduced=whole), layouts).components["data_parallel"]
        for whole in (True, False)
    ]
    assert (moved[0] > moved[1]).all() if stage < 3 else (moved[0] == moved[1]).all()


def test_a_library_that_waits_hides_nothing() -> None:
    """oneCCL on Aurora: what is moved is what the step waits for, however much there is to compute."""
    plan = {
        "workload.framework": "megatron-deepspeed", "cluster.accelerator": "gpu-max-1550-tile", "cluster.count": 24,
        "layout.tp": 1, "layout.pp": 1, "layout.dp": 24, "layout.zero_stage": 3, "workload.global_batch": 24,
        "workload.micro_batch": 1,
    }  # fmt: skip
    job = make_job(plan)
    assert not job.calibration.device.network.overlaps
    layouts = candidates(job)
    network = replace(job.calibration.device.network, overlaps=True)
    hiding = replace(job, calibration=replace(job.calibration, device=replace(job.calibration.device, network=network)))
    fast = with_accelerator(
        job, peak_flops={kind: 9 * rate for kind, rate in job.machine.accelerator.peak_flops.items()}
    )
    waits, hides, faster = (step_time(each, layouts).components["data_parallel"] for each in (job, hiding, fast))
    assert (waits > hides).all()
    np.testing.assert_allclose(waits, faster)


def test_a_step_over_lists_of_tensors_moves_more_than_one_kernel() -> None:
    job = make_job({**SMALL, "workload.framework": "fsdp2", "layout.zero_stage": 3})
    layouts = candidates(job)
    loose, fused = (
        step_time(
            replace(job, framework=replace(job.framework, optimizer=replace(job.framework.optimizer, fused=fused))),
            layouts,
        ).components["optimizer"]
        for fused in (False, True)
    )
    assert (loose > fused).all()
    assert (loose < 20.5 / 7.0 * fused + 1e-9).all()


def test_values_are_gathered_in_the_precision_that_they_are_multiplied_in() -> None:
    """With sequence parallelism, which gathers and scatters; without it sums of 16 bits go round."""
    times = {}
    for precision in ("bf16", "fp8"):
        job = make_job({"workload.precision": precision, "workload.framework": "megatron-bridge"})
        for split in (0, 1):
            layouts = with_layout(candidates(job), sequence_parallel=split)
            times[precision, split] = step_time(job, layouts).components["tensor_parallel"]
    np.testing.assert_allclose(times["fp8", 0], times["bf16", 0])
    np.testing.assert_allclose(times["fp8", 1], 0.75 * times["bf16", 1])


def test_frameworks_over_the_same_kernels_are_as_fast() -> None:
    """Megatron-core under each of its names, with the same switches on: what is left is what fits say of each."""
    switches = {"dp_overlap": True, "tp_overlap": True, "cuda_graph": "none", "gradients": "bf16", "fused_loss": True}
    plan = {"model": "meta-llama/Llama-3.1-70B", "layout.tp": 8, "cluster.count": 64}
    plan |= {f"workload.{name}": value for name, value in switches.items()}
    names = ("megatron-lm", "nemo", "megatron-bridge", "mlperf-nemo")
    times = [float(step_time(job, candidates(job)).seconds[0]) for job in made(names, plan)]
    assert max(times) < 1.1 * min(times), dict(zip(names, times, strict=True))


def made(names: tuple[str, ...], plan: dict[str, object]) -> list[Job]:
    return [make_job({**plan, "workload.framework": name}) for name in names]
