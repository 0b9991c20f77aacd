"""Step time: better hardware never slows a step, less work never takes longer, and the parts are the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from estimator_jobs import MODELS, estimate_of, make_job, open_job, with_accelerator, with_layout, with_network
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from estimator.plan.layouts import RECOMPUTE, SCHEDULES
from estimator.plan.schema import Plan
from estimator.plan.training.framework import Framework
from estimator.plan.training.job import Job
from estimator.plan.training.options import as_shipped
from estimator.search.layouts import candidates
from estimator.training.estimates import Estimates, estimate, warnings
from estimator.training.schedule import COMPONENTS, passes, step_time
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import accelerators

SHAPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("megatron-lm", {}),
    ("megatron-lm", {"model": "deepseek-ai/DeepSeek-V3"}),
    ("megatron-lm", {"workload_seq_len": 32768}),
    ("torchtitan", {"model": "mistralai/Mixtral-8x7B-v0.1"}),
    ("deepspeed", {"workload_method": "qlora"}),
    ("fsdp2", {"model": "Qwen/Qwen2.5-7B", "workload_stage": "dpo"}),
    ("maxtext", {"workload_seq_len": 32768, "cluster_accelerator": "tpu-v5p"}),
    ("pytorch", {"cluster_accelerator": "a100-pcie-80gb"}),
)
JOBS = [open_job(workload_framework=name, workload_global_batch=64, **more) for name, more in SHAPES]
LAYOUTS = [candidates(job) for job in JOBS]
ALLOWED = 1 + 1e-9


def seconds(which: int, job: Job) -> np.ndarray:
    return step_time(job, LAYOUTS[which]).seconds


@pytest.mark.parametrize("which", range(len(JOBS)))
def test_components_sum_to_the_step_and_are_finite(which: int) -> None:
    step = step_time(JOBS[which], LAYOUTS[which])
    assert set(step.components) == set(COMPONENTS)
    for name, values in step.components.items():
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
    np.testing.assert_allclose(sum(step.components.values()), step.seconds, rtol=1e-9)
    assert (step.seconds > 0).all()
    assert (step.hardware_flop >= step.model_flop).all()
    assert (step.model_flop > 0).all()


@pytest.mark.parametrize("which", range(len(JOBS)))
def test_nothing_runs_faster_than_the_peak(which: int) -> None:
    found = estimate(JOBS[which], LAYOUTS[which])
    assert (found.hfu < 1).all()
    assert (found.mfu <= found.hfu).all()


@given(st.integers(0, len(JOBS) - 1), st.floats(1.0, 16.0))
def test_a_faster_network_never_slows_a_step(which: int, times: float) -> None:
    job = JOBS[which]
    network = job.machine.network
    better = with_network(
        job, bandwidth_per_node=network.bandwidth_per_node * times, latency_s=network.latency_s / times
    )
    assert (seconds(which, better) <= seconds(which, job) * ALLOWED).all()


@given(st.integers(0, len(JOBS) - 1), st.floats(1.0, 16.0))
def test_a_faster_link_never_slows_a_step(which: int, times: float) -> None:
    job = JOBS[which]
    device = job.machine.accelerator
    better = with_accelerator(
        job, scaleup_bandwidth=device.scaleup_bandwidth * times, peer_bandwidth=device.peer_bandwidth * times
    )
    assert (seconds(which, better) <= seconds(which, job) * ALLOWED).all()


@given(st.integers(0, len(JOBS) - 1), st.floats(1.0, 16.0))
def test_more_memory_bandwidth_never_slows_a_step(which: int, times: float) -> None:
    job = JOBS[which]
    better = with_accelerator(job, memory_bandwidth=job.machine.accelerator.memory_bandwidth * times)
    assert (seconds(which, better) <= seconds(which, job) * ALLOWED).all()


@given(st.integers(0, len(JOBS) - 1), st.floats(1.0, 16.0))
def test_a_higher_peak_never_slows_a_step(which: int, times: float) -> None:
    job = JOBS[which]
    peaks = {kind: rate * times for kind, rate in job.machine.accelerator.peak_flops.items()}
    better = with_accelerator(job, peak_flops=peaks)
    assert (seconds(which, better) <= seconds(which, job) * ALLOWED).all()


@pytest.mark.parametrize("name", ["megatron-lm", "deepspeed"])
@pytest.mark.parametrize("model", MODELS)
def test_adapters_are_faster_than_full_training(model: str, name: str) -> None:
    """With weights on every device. Small models are left out where adapters are single operators: there, adapters were
    measured to cost more than the gradients they spare (Qwen README, 1.8B at 4096 tokens: 3.3 s against 2.8 s)."""
    layout = {"tp": 1, "pp": 1, "dp": 8, "ep": 1, "zero_stage": 0}
    setting = {"cluster.count": 8, "model": model, "workload.micro_batch": 4, "workload.global_batch": 64}
    full, lora = (
        estimate_of(setting | {"layout": layout, "workload": {"framework": name, "method": method}})
        for method in ("full", "lora")
    )
    assert lora.step.model_flop[0] < full.step.model_flop[0]
    if full.job.architecture.hidden >= 4096:
        assert lora.step.seconds[0] < full.step.seconds[0]


@pytest.mark.parametrize("name", ["megatron-lm", "torchtitan", "deepspeed"])
@pytest.mark.parametrize("model", MODELS)
def test_recomputing_costs_time(name: str, model: str) -> None:
    job = open_job(model=model, workload_framework=name, workload_global_batch=64)
    one = with_layout(candidates(job).take(np.array([0])), tp=1, pp=1, cp=1, recompute_layers=0)
    none, selective, full = (
        step_time(job, with_layout(one, recompute=RECOMPUTE.index(mode))) for mode in ("none", "selective", "full")
    )
    assert none.seconds[0] <= selective.seconds[0] < full.seconds[0]
    assert none.model_flop[0] == full.model_flop[0]
    assert full.hardware_flop[0] > none.hardware_flop[0]
    # Forward once more on top of forward and backward: a third, the head and the look-up aside.
    assert 1.2 < full.hardware_flop[0] / none.hardware_flop[0] < 1.34


def test_fewer_bits_are_faster_as_far_as_the_device_has_them() -> None:
    layout = {"tp": 1, "pp": 1, "dp": 16}
    kinds = ("fp32", "tf32", "bf16", "fp8")
    times = [float(estimate_of({"layout": layout, "workload.precision": kind}).step.seconds[0]) for kind in kinds]
    assert times[0] > times[1] > times[2] > times[3]


@pytest.mark.parametrize(
    ("kind", "read", "kept", "rate"),
    [
        ("fp32", 4, 4, "fp32"),
        ("tf32", 4, 4, "tf32"),
        ("bf16", 2, 2, "bf16"),
        ("fp8", 1, 2, "fp8"),
        ("mxfp8", 1, 2, "fp8"),
    ],
)
def test_a_precision_is_a_width_and_a_rate(kind: str, read: float, kept: int, rate: str) -> None:
    job = make_job({"workload.precision": kind})
    assert job.compute_bytes == read
    assert job.activation_bytes == kept
    assert job.peak_flops == job.machine.accelerator.peak_flops[rate]


def test_block_recompute_costs_in_proportion_to_its_layers() -> None:
    job = make_job({"layout.pp": 1, "layout.dp": 8})
    one = candidates(job)
    times = []
    for layers in (0, 8, 16, 32):
        mode = RECOMPUTE.index("block")
        times.append(step_time(job, with_layout(one, recompute=mode, recompute_layers=layers)).seconds[0])
    assert times == sorted(times)
    assert times[2] - times[0] == pytest.approx(2 * (times[1] - times[0]), rel=0.05)


@pytest.mark.parametrize("model", MODELS)
def test_model_flop_are_six_per_active_matmul_parameter_and_token(model: str) -> None:
    """PaLM, appendix B: 6 N per token and the attention's; N without embedding look-ups."""
    job = make_job({"model": model, "workload.seq_len": 128, "layout": {"tp": 1, "pp": 1, "dp": 16}})
    found = estimate(job, candidates(job))
    model_of = job.architecture
    head = model_of.vocab * model_of.hidden
    matmul = model_of.active_parameters - model_of.embedding_parameters - model_of.head_parameters
    expected = 6 * (matmul - model_of.position_parameters + head) * job.tokens_per_step
    assert found.step.model_flop[0] * 16 == pytest.approx(expected, rel=0.06)


def test_twice_the_devices_take_half_the_flop_each() -> None:
    few = estimate_of({"cluster.count": 16, "layout.dp": 4})
    many = estimate_of({"cluster.count": 32, "layout.dp": 8})
    assert many.step.model_flop[0] == pytest.approx(few.step.model_flop[0] / 2)
    assert many.step.seconds[0] < few.step.seconds[0]


def test_more_micro_batches_shrink_the_share_of_the_bubble() -> None:
    shares = []
    for batch in (16, 32, 64, 128):
        step = estimate_of({"workload.global_batch": batch, "layout": {"tp": 1, "pp": 4, "dp": 4}}).step
        shares.append(step.components["bubble"][0] / step.seconds[0])
    assert shares == sorted(shares, reverse=True)
    assert estimate_of({"layout": {"tp": 2, "pp": 1, "dp": 8}}).step.components["bubble"][0] == 0


def test_the_bubble_of_1f1b_is_one_micro_batch_of_the_other_stages() -> None:
    def parts(batch: int) -> tuple[float, float]:
        step = estimate_of({"layout": {"tp": 1, "pp": 4, "dp": 4}, "workload.global_batch": batch}).step
        once = ("bubble", "data_parallel", "optimizer", "stragglers")
        return float(step.components["bubble"][0]), float(
            sum(v[0] for name, v in step.components.items() if name not in once)
        )

    (bubble, few), (same, many) = parts(64), parts(128)
    one_micro_batch = (many - few) / 16
    # The slowest stage, which has the head, waits for the three others.
    assert bubble == same
    assert 2 * one_micro_batch < bubble < 3 * one_micro_batch


def test_interleaving_and_better_schedules_shrink_the_bubble() -> None:
    job = make_job({"layout": {"tp": 1, "pp": 4, "dp": 4}})
    one = candidates(job)

    def bubble(schedule: str, vpp: int = 1) -> float:
        layouts = with_layout(one, schedule=SCHEDULES.index(schedule), vpp=vpp)
        return float(step_time(job, layouts).components["bubble"][0])

    plain = bubble("1f1b")
    assert bubble("gpipe") == plain
    assert bubble("interleaved", 2) < plain
    assert bubble("zero-bubble") < plain
    assert bubble("dualpipe") < plain


def test_a_pair_of_answers_is_two_sequences() -> None:
    """DPO trains on a chosen and a rejected answer, and runs a frozen reference forward."""
    layout = {"tp": 1, "pp": 1, "dp": 16, "zero_stage": 3, "shard_group": 16}
    base = {"layout": layout, "workload.framework": "deepspeed"}
    sft, orpo, dpo = (estimate_of(base | {"workload.stage": stage}) for stage in ("sft", "orpo", "dpo"))
    assert orpo.job.tokens_per_step == 2 * sft.job.tokens_per_step
    assert sft.step.seconds[0] < orpo.step.seconds[0] < dpo.step.seconds[0]
    assert sft.step.components["extra_models"][0] == 0 < dpo.step.components["extra_models"][0]


def test_the_steps_of_a_run_cover_the_data() -> None:
    job = make_job({"workload.dataset_tokens": "1B", "workload.epochs": 2})
    assert job.steps is not None
    assert job.steps * job.tokens_per_step >= 2e9 > (job.steps - 1) * job.tokens_per_step
    assert make_job().steps is None


def told(found: Estimates) -> str:
    return "\n".join(warnings(found, 0))


def test_warnings_say_what_to_know_before_trusting() -> None:
    assert "does not fit safely" in told(estimate_of({"model": "meta-llama/Llama-3.1-70B"}))
    assert "beyond the model's context of 1,024" in told(estimate_of({"model": "gpt2", "workload.seq_len": 2048}))
    assert "crosses the fast domain of 8 devices" in told(estimate_of({"layout": {"tp": 16, "pp": 1, "dp": 1}}))
    a100 = {"cluster.accelerator": "a100-sxm-80gb", "workload.precision": "fp8"}
    assert "has no fp8 matmuls" in told(estimate_of(a100))
    grpo = {"workload.framework": "deepspeed", "workload.stage": "grpo", "layout": {"tp": 1, "pp": 1, "dp": 16}}
    assert "samples are taken as 2,048 tokens" in told(estimate_of(grpo))
    assert "no nanotron speeds measured" in told(estimate_of({"workload.framework": "nanotron"}))
    v100 = {"cluster.accelerator": "v100-sxm-32gb", "workload.precision": "fp16"}
    assert "no Volta runs measured" in told(estimate_of(v100))


def _reducing(framework: Framework, overlapped: bool) -> Framework:
    return replace(framework, overlap=replace(framework.overlap, dp_overlap=overlapped))


def test_gradients_are_hidden_only_where_they_are_overlapped() -> None:
    """Megatron-LM reduces after the last backward pass unless it is told otherwise; NeMo's recipes tell it."""
    layout = {"layout.tp": 1, "layout.pp": 1, "layout.dp": 16, "workload.global_batch": 16}
    found = make_job(layout)
    assert not as_shipped(found).training.dp_overlap
    assert as_shipped(make_job(layout | {"workload.framework": "nemo"})).training.dp_overlap
    one = candidates(found)
    longer, shorter, left_open = (
        step_time(make_job(layout | {"workload.dp_overlap": choice}), one).components["data_parallel"][0]
        for choice in (False, True, "auto")
    )
    assert left_open == shorter
    overlap = found.calibration.framework.data_overlap
    assert shorter < longer
    assert shorter >= longer * (1.0 - overlap) * (1.0 - 1e-9)
    # Gradients alone: the distributed optimizer's weights are waited for, whole replicas have none to gather.
    for stage in (0, 1):
        jobs = [
            make_job(layout | {"layout.zero_stage": stage, "workload.dp_overlap": it}) for it in ("gradients", True)
        ]
        alone, both = (step_time(job, candidates(job)).components["data_parallel"][0] for job in jobs)
        assert alone == pytest.approx(both) if stage == 0 else both < alone < longer
    # ZeRO-3 gathers ahead in either case.
    sharded = layout | {"workload.framework": "megatron-deepspeed", "layout.zero_stage": 3}
    found = make_job(sharded)
    three = [
        step_time(replace(found, framework=_reducing(found.framework, said)), candidates(found)).seconds
        for said in (False, True)
    ]
    assert np.array_equal(three[0], three[1])


def test_collectives_of_tensor_parallelism_cost_the_host_launches() -> None:
    """Of a tiny model, whose host decides: the same kernels, and the launches of two collectives a pass besides."""
    small = {"model": "gpt2", "workload.seq_len": 128, "workload.global_batch": 16, "layout.pp": 1, "cluster.count": 2}
    alone, split = (
        make_job(small | {"layout.tp": tp, "layout.dp": 2 // tp, "workload.global_batch": 2 // tp}) for tp in (1, 2)
    )
    host = [step_time(job, candidates(job)).components["host"][0] for job in (alone, split)]
    launches = 12 * 2 * 2 * 3.0 * split.calibration.framework.kernel_host_s
    assert host[1] - host[0] > 0.3 * launches


def test_layers_that_take_turns_are_reached_by_half_of_a_backward_pass() -> None:
    # BAdam (Luo et al. 2024, section 2.2): the pass ends at the layer that is trained, and only that has weight
    # gradients.
    turns, frozen, full = (
        estimate_of(
            {
                "workload": {"framework": "hf-trainer", "global_batch": 1, **workload},
                "cluster.count": 1,
                "layout": {"tp": 1, "pp": 1, "dp": 1, "zero_stage": 0, "recompute": "full"},
            }
        ).step
        for workload in ({"optimizer": "badam"}, {"method": "lora"}, {})
    )
    for name, other in (("backward", frozen), ("recompute", full)):
        assert 0.4 < turns.components[name][0] / other.components[name][0] < 0.56
    assert turns.components["optimizer"][0] < full.components["optimizer"][0] / 30
    assert turns.model_flop[0] < 0.6 * full.model_flop[0]


_FOUR_BITS = [
    *[(name, "nvfp4") for name in ("b200-sxm", "gb300", "rtx-pro-4500-blackwell", "gb10-dgx-spark")],
    ("mi355x", "mxfp4"),
]


@given(
    st.sampled_from(_FOUR_BITS),
    st.sampled_from(["gpt2", "Qwen/Qwen2.5-7B", "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-30B-A3B"]),
    st.sampled_from(["full", "lora"]),
    st.sampled_from(["none", "full"]),
    st.sampled_from([512, 4096, 16384]),
    st.sampled_from([1, 8]),
)
def test_four_bits_are_never_slower_than_eight_on_one_plan(
    kinds: tuple[str, str], model: str, method: str, recompute: str, seq_len: int, accumulated: int
) -> None:
    """Of small matrices and few tokens casts cost more than products save: recipes leave those in 8 bits."""
    device, four = kinds
    framework = "primus" if device.startswith("mi") else "megatron-bridge"
    batch = {"seq_len": seq_len, "global_batch": 8 * accumulated}
    plan = {
        "model": model,
        "workload": {"framework": framework, "stage": "sft", "method": method, **batch},
        "cluster": {"accelerator": device, "count": 8},
        "layout": {"tp": 1, "pp": 1, "dp": 8, "ep": 1, "recompute": recompute},
    }
    times = [
        float(estimate_of({**plan, "workload.precision": precision}).step.seconds[0])
        for precision in (four, "mxfp8", "fp8")
    ]
    assert times[0] <= min(times[1:]) * (1 + 1e-9)


@given(st.sampled_from(["nvfp4", "mxfp4"]), st.floats(0.01, 0.99))
def test_a_run_that_ends_in_eight_bits_takes_the_mean_and_the_room_of_both(precision: str, share: float) -> None:
    """MLPerf's LoRA of Llama-2-70B is in 4 bits for 340 to 350 steps (HEALING_ITER), then in 8."""
    framework, device = ("primus", "mi355x") if precision == "mxfp4" else ("megatron-bridge", "gb300")
    plan = {
        "model": "meta-llama/Llama-2-70b-hf",
        "workload": {"framework": framework, "stage": "sft", "method": "lora", "seq_len": 8192, "global_batch": 8},
        "cluster": {"accelerator": device, "count": 8},
        "layout": {"tp": 1, "pp": 1, "dp": 8, "recompute": "none"},
    }
    narrow, wide, healed = (
        estimate_of({**plan, "workload.precision": bits, "workload.fp8_healing": part})
        for bits, part in ((precision, 0), ("fp8", 0), (precision, share))
    )
    took = [float(each.step.seconds[0]) for each in (narrow, wide, healed)]
    assert took[2] == pytest.approx((1.0 - share) * took[0] + share * took[1])
    assert took[2] == pytest.approx(sum(float(part[0]) for part in healed.step.components.values()))
    needed = [float((each.memory.total - each.memory.cached)[0]) for each in (narrow, wide, healed)]
    assert needed[2] == pytest.approx(max(needed[:2]))


@given(
    st.sampled_from([each.id for each in accelerators()]),
    st.sampled_from(["gpt2", "Qwen/Qwen2.5-7B", "Qwen/Qwen3-30B-A3B"]),
    st.sampled_from(["full", "lora", "qlora"]),
    st.sampled_from([1024, 8192, 131072]),
    st.sampled_from([1, 8]),
)
def test_no_interval_of_a_rate_is_beyond_the_peak(
    accelerator: str, model: str, method: str, seq_len: int, count: int
) -> None:
    workload = {"method": method, "seq_len": seq_len, "global_batch": 8}
    plan = {"model": model, "workload": workload, "cluster": {"accelerator": accelerator, "count": count}}
    try:
        job = job_of(Plan.parse(plan))
        layouts = candidates(job)
    except PlanError:
        # No framework trains so there.
        return
    found = estimate(job, layouts.take(np.arange(min(64, len(layouts)))))
    fastest = found.step.model_flop / found.low_s / job.peak_flops
    assert (fastest <= 1.0 + 1e-9).all()
    assert (found.low_s <= found.step.seconds).all()


def test_frozen_weights_held_in_eight_bits_are_not_cast_again() -> None:
    """Megatron-Bridge holds frozen weights in 8 bits (fp8_param_gather), Megatron-LM casts them in every step."""
    plan = {"cluster.accelerator": "b200-sxm", "workload.method": "lora", "workload.precision": "fp8"}
    job = make_job({**plan, "workload.framework": "megatron-bridge"})
    casting = replace(
        job, framework=replace(job.framework, weights=replace(job.framework.weights, low_precision=False))
    )
    layouts = candidates(job)
    assert (step_time(job, layouts).seconds < step_time(casting, layouts).seconds).all()


# Korthikanti et al. 2022, table 4: milliseconds of a layer of the 22B model at tp 8 on A100, micro-batches of 4 x 2048.
PROFILED_MS = [
    (False, "none", 7.7, 11.9, 0.0),
    (True, "none", 7.2, 11.8, 0.0),
    (False, "full", 7.7, 11.9, 7.6),
    (False, "selective", 7.7, 11.9, 1.3),
]


@pytest.mark.parametrize(("sequence_parallel", "recompute", "forward", "backward", "again"), PROFILED_MS)
def test_a_layer_takes_what_was_profiled(
    sequence_parallel: bool, recompute: str, forward: float, backward: float, again: float
) -> None:
    sizes = {"n_embd": 6144, "n_layer": 48, "n_head": 64, "n_positions": 2048, "vocab_size": 51200}
    job = make_job(
        {
            "model": {"model_type": "gpt2"} | sizes,
            "workload": {"seq_len": 2048, "micro_batch": 4, "global_batch": 4, "attention": "eager"},
            "cluster": {"accelerator": "a100-sxm-80gb", "count": 8},
            "layout": {"tp": 8, "pp": 1, "dp": 1, "sequence_parallel": sequence_parallel, "recompute": recompute},
        }
    )
    step = passes(job, candidates(job))
    block, compute = step.blocks[0], job.calibration.framework.compute
    each_way = float(step.traffic[0]["tensor"].seconds[0]) / 2.0
    whole = each_way if recompute == "full" else 0.0
    assert float(block.forward[0]) * compute + each_way == pytest.approx(forward / 1e3, rel=0.12)
    assert float(block.backward[0]) * compute + each_way == pytest.approx(backward / 1e3, rel=0.12)
    assert float(np.broadcast_to(block.recompute, 1)[0]) * compute + whole == pytest.approx(again / 1e3, rel=0.15)


# "LLaMA3-70B MFSDP vs Automodel FSDP2", an Nsight profile of 2026-04-14 (public report): kernels of one step in
# milliseconds, 64 H100, ZeRO-3, all recomputed, two micro-batches of 4096. Of memory-bound ones: norms, copies of FSDP
# and what is left of the total.
PROFILED_KERNELS_MS = [
    ("nemo-automodel", 6503.0, 190.0 + 269.0, 83.0 + 878.0 + 526.0),
    ("megatron-lm", 7226.0, 199.0 + 283.0, 73.0 + 9.0 + 483.0),
]


@pytest.mark.parametrize(("framework", "matmul", "attention", "memory"), PROFILED_KERNELS_MS)
def test_a_sharded_step_spends_its_kernels_where_a_profile_did(
    framework: str, matmul: float, attention: float, memory: float
) -> None:
    """Megatron-FSDP's weights are views of what it gathers; FSDP2 copies them out, once for the forward pass and once
    for the backward one with what it recomputes."""
    asked = {
        "model": "meta-llama/Llama-3.1-70B",
        "workload": {
            "framework": framework,
            "stage": "pretrain",
            "seq_len": 4096,
            "micro_batch": 1,
            "global_batch": 128,
        },
        "cluster": {"accelerator": "h100-sxm", "count": 64},
        "layout": {"tp": 1, "pp": 1, "cp": 1, "dp": 64, "zero_stage": 3, "shard_group": 64, "recompute": "full"},
    }
    job = job_of(Plan.parse(asked))
    block = passes(job, candidates(job)).blocks[0]
    times = 80 * 2 * job.calibration.framework.compute * 1e3

    def spent(kind: str) -> float:
        forward, backward = (
            float(np.broadcast_to(getattr(block, f"{kind}_{way}"), 1)[0]) for way in ("forward", "backward")
        )
        return times * (2.0 * forward + backward)

    again = float(np.broadcast_to(block.recompute, 1)[0]) * times
    twice = times * float(np.broadcast_to(block.matmul_forward + block.attention_forward, 1)[0])
    moved = times * float(np.broadcast_to(block.memory_forward + block.memory_backward, 1)[0]) + again - twice
    assert spent("matmul") == pytest.approx(matmul, rel=0.12)
    assert spent("attention") == pytest.approx(attention, rel=0.12)
    assert moved == pytest.approx(memory, rel=0.25)
