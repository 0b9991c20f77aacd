"""The peak is the worst of five moments; and figures that the user gives replace what is estimated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from estimator_jobs import estimate_of, make_job, open_job
from hypothesis import given
from hypothesis import strategies as st
from memory_jobs import LLAMA_8B, LLAMA_8B_TABLE, ONE_DEVICE, first_stage, layouts_of, most, on_one_device

from estimator.errors import PlanError
from estimator.kernels.activations import gradient_elements
from estimator.plan.layouts import FEW, RECOMPUTE
from estimator.plan.schema import Overrides, Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates
from estimator.training.estimates import Estimates
from estimator.training.memory import (
    COMPONENTS,
    MOMENTS,
    Memory,
    device_memory,
    fits,
    fitting,
    fullest_stages,
    stage_memory,
)
from estimator.units import GIB

FULL = RECOMPUTE.index("full")
ALWAYS = ("weights", "optimizer", "framework_and_context")
GIVEN = [
    name.removesuffix("_gib")
    for name in Overrides.model_fields
    if name.endswith("_gib") and name not in ("usable_gib", "reserve_gib", "host_gib")
]


@pytest.mark.parametrize(
    ("moment", "workload"),
    [
        ("loss", {"seq_len": 8192}),
        ("backward_start", {"seq_len": 8192, "fused_loss": True, "method": "qlora"}),
        ("backward_end", {"seq_len": 128}),
        ("optimizer_step", {"seq_len": 128, "software_version": "4.57"}),
        ("generation", {"stage": "grpo", "method": "lora", "rollout": "trainer", "global_batch": 512}),
    ],
)
def test_each_moment_can_be_the_worst(moment: str, workload: dict[str, Any]) -> None:
    job = on_one_device(**workload)
    memory = first_stage(job, layouts_of(job, recompute=FULL if moment == "backward_end" else 0))
    assert MOMENTS[memory.moment[0]] == moment


@given(
    st.sampled_from(["deepspeed", "hf-trainer", "fsdp2", "torchtitan", "megatron-lm", "maxtext"]),
    st.sampled_from(["full", "freeze", "lora", "qlora"]),
    st.sampled_from(["sft", "dpo", "ppo", "grpo"]),
    st.sampled_from([512, 8192]),
)
def test_the_whole_lies_between_any_component_and_the_sum_of_the_worst(
    name: str, method: str, stage: str, seq_len: int
) -> None:
    job = open_job(workload_framework=name, workload_method=method, workload_stage=stage, workload_seq_len=seq_len)
    memory = first_stage(job, layouts_of(job))
    for part in COMPONENTS:
        most_of_it = memory.component_peaks[part] + memory.cached * (part == "allocator_slack")
        assert (memory.components[part] <= most_of_it * (1 + 1e-12)).all(), part
        assert (memory.component_peaks[part] + sum(memory.components[other] for other in ALWAYS if other != part)
                <= memory.total * (1 + 1e-12)).all(), part  # fmt: skip
    assert (memory.total <= (sum(memory.component_peaks.values()) + memory.cached) * (1 + 1e-12)).all()


def test_gradients_are_not_there_yet_while_the_loss_is_made() -> None:
    once, often = (layouts_of(on_one_device(seq_len=8192), grad_accum=count) for count in (1, 2))
    job = on_one_device(seq_len=8192)
    assert first_stage(job, once).components["gradients"][0] == 0
    assert first_stage(job, once).component_peaks["gradients"][0] == 4 * LLAMA_8B
    # Those of an earlier micro-batch are, and so are gradients in buffers that stay.
    assert first_stage(job, often).components["gradients"][0] == 4 * LLAMA_8B
    buffered = on_one_device(framework="deepspeed", seq_len=8192)
    assert MOMENTS[first_stage(buffered, layouts_of(buffered)).moment[0]] == "loss"
    assert first_stage(buffered, layouts_of(buffered)).components["gradients"][0] == 2 * LLAMA_8B


def test_the_logits_are_gone_when_the_last_block_is_recomputed() -> None:
    # Full recomputation peaks at what is kept and the larger of the loss and a block, never both.
    job = on_one_device(framework="deepspeed", method="lora", seq_len=8192)
    with_block = most(job, "activations", recompute=FULL)
    memory = first_stage(job, layouts_of(job, recompute=FULL))
    kept, logits = (float(memory.components[name][0]) for name in ("activations", "logits_and_loss"))
    assert MOMENTS[memory.moment[0]] == "loss"
    assert logits == memory.component_peaks["logits_and_loss"][0]
    assert with_block - kept < logits
    assert kept == pytest.approx(32 * 2 * 4096 * 8192, rel=0.05)  # one hidden state a layer
    assert with_block < most(job, "activations") / 3


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("grad_accum", [1, 4])
def test_zero_two_keeps_averaged_gradients_beside_those_in_the_making(stage: int, grad_accum: int) -> None:
    job = make_job({"workload.framework": "deepspeed", "cluster.count": 8, "layout": {"tp": 1, "pp": 1, "dp": 8}})
    layouts = layouts_of(job, zero_stage=stage, grad_accum=grad_accum)
    buffers = float(first_stage(job, layouts).component_peaks["communication_buffers"][0])
    second = 2 * LLAMA_8B / 8 if stage == 2 and grad_accum > 1 else 0
    live = 2 * 1e9 if stage == 3 else 0  # stage3_max_live_parameters in 16 bits
    assert buffers == pytest.approx(2 * 1e9 + live + second)  # two buckets of 5e8 elements


def test_fsdp_has_its_root_and_two_units_gathered() -> None:
    layout = {"tp": 1, "pp": 1, "dp": 8, "zero_stage": 3}
    job = make_job({"workload.framework": "fsdp2", "cluster.count": 8, "layout": layout})
    memory = first_stage(job, layouts_of(job))
    unit, root = (LLAMA_8B - 2 * LLAMA_8B_TABLE - 4096) / 32, 2 * LLAMA_8B_TABLE + 4096
    # Of the unit at work: gathered, the next one gathered and copied out, gradients, and two fp32 reduce inputs; of
    # the root what is gathered, its gradient, and one fp32 reduce input.
    expected = unit * (4 * 2 + 2 * 4) + root * (2 * 2 + 4)
    assert memory.component_peaks["communication_buffers"][0] == pytest.approx(expected)


def overridden(values: dict[str, float], **changes: Any) -> Estimates:
    return estimate_of(ONE_DEVICE | {"workload.framework": "deepspeed", "overrides": values} | changes)


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("gib", [0.0, 3.5, 500.0])
def test_a_given_component_replaces_the_estimate_and_the_total_follows(name: str, gib: float) -> None:
    plain, given = overridden({}), overridden({f"{name}_gib": gib})
    assert given.memory.component_peaks[name][0] == gib * GIB
    np.testing.assert_allclose(sum(given.memory.components.values()), given.memory.total, rtol=1e-12)
    assert given.memory.components[name][0] <= gib * GIB
    for other in COMPONENTS:
        # The allocator's slack follows what it is slack of.
        if other not in (name, "allocator_slack"):
            assert given.memory.component_peaks[other][0] == plain.memory.component_peaks[other][0], other
    assert given.memory.total[0] >= gib * GIB
    assert given.low_bytes[0] <= given.memory.total[0] <= given.high_bytes[0]


def test_every_component_can_be_given() -> None:
    assert set(GIVEN) == set(COMPONENTS)
    everything = {f"{name}_gib": 1.0 for name in GIVEN}
    assert overridden(everything).memory.total[0] <= len(GIVEN) * GIB


@pytest.mark.parametrize("name", ["weights", "optimizer", "framework_and_context"])
def test_what_always_stands_moves_the_total_by_the_difference(name: str) -> None:
    few, many = (overridden({f"{name}_gib": gib}).memory.total[0] for gib in (1.0, 11.0))
    assert many - few == pytest.approx(10 * GIB)


def test_usable_memory_and_what_is_to_stay_free_change_the_verdict() -> None:
    need = float(overridden({}).high_bytes[0]) / GIB
    assert not overridden({}).fits[0]  # 8B in full on one 80 GB device
    assert overridden({"usable_gib": need + 1}).fits[0]
    assert not overridden({"usable_gib": need - 1}).fits[0]
    assert not overridden({"usable_gib": need + 1, "reserve_gib": 2}).fits[0]
    assert overridden({"usable_gib": need + 3, "reserve_gib": 2}).fits[0]
    assert overridden({"usable_gib": need - 1}).memory.total[0] == overridden({}).memory.total[0]


@pytest.mark.parametrize(
    ("values", "field", "problem"),
    [
        ({"weights_gib": -1}, "overrides.weights_gib", "greater than or equal to 0"),
        ({"usable_gib": 0}, "overrides.usable_gib", "greater than 0"),
        ({"usable_gib": float("nan")}, "overrides.usable_gib", "finite"),
        ({"reserve_gib": "a lot"}, "overrides.reserve_gib", "got 'a lot'"),
        ({"optimizer_gib": True}, "overrides.optimizer_gib", "got true"),
        ({"weight_gib": 1}, "overrides.weight_gib", "valid: weights_gib"),
        ({"gradients_gib": 1e9}, "overrides.gradients_gib", "less than or equal to 1000000"),
    ],
)
def test_a_bad_figure_is_refused_by_name(values: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.parse({"model": "meta-llama/Llama-3.1-8B", "overrides": values})
    assert caught.value.field == field
    assert problem in str(caught.value)


def test_gradients_of_the_mlp_stand_beside_what_a_block_saved() -> None:
    # Of Llama-3.1-8B, 14336 wide: what comes from above, and of product, gate and up two more than the freed product.
    hidden, width = 4096, 14336
    full, frozen = on_one_device(), on_one_device(method="lora")
    assert gradient_elements(full, full.architecture.blocks[0]) == (hidden, 2 * width)
    assert gradient_elements(frozen, frozen.architecture.blocks[0]) == (hidden, 3 * width)
    # Liger's kernels, which come with its loss, write those of gate and up where these were (ops/swiglu.py).
    liger = on_one_device(fused_loss=True)
    assert gradient_elements(liger, liger.architecture.blocks[0]) == (hidden, width)


def test_cached_blocks_give_way_before_a_run_does_not_fit() -> None:
    def on(usable_gib: float) -> tuple[Job, Memory]:
        workload = {"framework": "deepspeed", "seq_len": 8192}
        job = make_job(ONE_DEVICE | {"workload": workload, "overrides.usable_gib": usable_gib})
        return job, first_stage(job, layouts_of(job))

    job, plenty = on(1000.0)
    needed = float((plenty.total - plenty.cached)[0]) * (1.0 + job.memory_above) / GIB
    for share, fits_there in ((0.999, False), (1.001, True)):
        tight, memory = on(share * needed)
        assert bool(fits(tight, memory.total)[0]) == fits_there
        assert memory.total[0] < plenty.total[0]


def test_published_peak_of_a_long_sequence_on_one_device() -> None:
    # ArcticTraining, sequence-parallelism/run-h200-sp1-llama-8b-liger-offload.yml: 650,000 tokens, 126.8 GiB.
    job = make_job(ONE_DEVICE | {
        "cluster.accelerator": "h200-sxm",
        "workload": {"framework": "deepspeed", "fused_loss": True, "seq_len": 650_000, "attention": "flash3"},
        "layout": {"tp": 1, "pp": 1, "dp": 1, "zero_stage": 3, "recompute": "full", "offload": "params+activations"},
    })  # fmt: skip
    assert first_stage(job, candidates(job)).total[0] / GIB == pytest.approx(126.8, rel=0.1)


@pytest.mark.parametrize("seq_len", [128, 65536])
def test_the_passes_of_a_first_step_have_no_moments_beside_them(seq_len: int) -> None:
    job = on_one_device(framework="megatron-lm", seq_len=seq_len)
    first, later = (first_stage(some, layouts_of(some)) for some in (replace(job, first_step=True), job))
    trained = float(LLAMA_8B)
    made = 8 * trained
    at_step = MOMENTS[first.moment[0]] == "optimizer_step"
    assert at_step == (seq_len == 128)
    # Blocks that activations left are enough for what the step makes, or are not.
    assert made * (0.0 if at_step else 0.99) <= later.total[0] - first.total[0] <= made
    assert sum(part[0] for part in first.components.values()) == pytest.approx(first.total[0])


def test_totals_of_many_layouts_are_those_of_their_fullest_stages() -> None:
    """Stages that most of them have twice are counted for the others alone."""
    job = open_job(model="deepseek-ai/DeepSeek-V3", workload_framework="megatron-lm", cluster_count=512)
    many = candidates(job)
    options = fullest_stages(job, many)
    new = np.logical_and.reduce([options[3] != other for other in options[:3]])
    assert len(many) > FEW
    assert 0 < new.sum() < len(new) / 2
    every = [stage_memory(job, many, stage, detail=False).total for stage in options]
    memory, _ = device_memory(job, many, detail=False)
    np.testing.assert_array_equal(memory.total, np.max(every, axis=0))
    index, total = fitting(job, many)
    np.testing.assert_array_equal(total, memory.total[index])
    np.testing.assert_array_equal(index, np.flatnonzero(fits(job, memory.total)))
