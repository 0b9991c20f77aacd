"""Optimizer states of Llama-3.1-8B by hand, from the real sizes of its matrices."""

from __future__ import annotations

from typing import Any

import pytest
from estimator_jobs import make_job
from memory_jobs import (
    LLAMA_8B,
    LLAMA_8B_MATRICES,
    LLAMA_8B_TABLE,
    ONE_DEVICE,
    first_stage,
    layouts_of,
    most,
    on_one_device,
)

from estimator.plan.training.stages import block_parameters, stage_shape
from estimator.training.states import model_states
from tools import call

LAYERS = 32
IN_MATRICES = LAYERS * sum(rows * columns for rows, columns in LLAMA_8B_MATRICES)
OUTSIDE = LLAMA_8B - IN_MATRICES  # embedding, head and norms
SIDES = LAYERS * sum(rows + columns for rows, columns in LLAMA_8B_MATRICES)
RANK = 16
# Two moments of (rank, longer side), and a projection of (shorter side, rank).
LOW_RANK = LAYERS * sum(RANK * (2 * max(shape) + min(shape)) for shape in LLAMA_8B_MATRICES)


def test_the_matrices_are_those_of_the_model() -> None:
    assert OUTSIDE == 2 * LLAMA_8B_TABLE + (2 * LAYERS + 1) * 4096


@pytest.mark.parametrize(
    ("optimizer", "elements"),
    [
        ("adamw", 2 * LLAMA_8B),
        ("sgd", 0),
        ("galore", LOW_RANK + 2 * OUTSIDE),
        ("apollo", LOW_RANK + 2 * OUTSIDE),
        ("adam_mini", LLAMA_8B + SIDES),
        ("muon", IN_MATRICES + 2 * OUTSIDE),
        # Both factors and both eigenbases of each matrix.
        ("soap", 2 * LLAMA_8B + LAYERS * sum(2 * (rows**2 + columns**2) for rows, columns in LLAMA_8B_MATRICES)),
        ("lion", LLAMA_8B),
        ("lomo", 0),
    ],
)
def test_fp32_states(optimizer: str, elements: int) -> None:
    # Trainer holds trained weights in fp32, and each optimizer its states in the dtype of the weights.
    assert most(on_one_device(optimizer=optimizer), "optimizer") == pytest.approx(4 * elements, rel=1e-12)


@pytest.mark.parametrize(("optimizer", "elements"), [("adamw", 2 * LLAMA_8B), ("galore", LOW_RANK + 2 * OUTSIDE)])
def test_states_follow_weights_in_sixteen_bits(optimizer: str, elements: int) -> None:
    job = on_one_device(optimizer=optimizer, weights="bf16")
    assert most(job, "optimizer") == pytest.approx(2 * elements, rel=1e-12)


def test_adafactor_keeps_a_row_and_a_column_of_each_matrix() -> None:
    held = most(on_one_device(optimizer="adafactor"), "optimizer")
    assert held == pytest.approx(4 * SIDES, rel=1e-12)
    # Left out: the same of embedding and head, and the norms' own second moments.
    left_out = 4 * (2 * (128_256 + 4096) + (2 * LAYERS + 1) * 4096)
    assert left_out < 2**22


def test_pages_hold_what_states_that_stay_do() -> None:
    for paged, stays in (("paged_adamw", "adamw"), ("paged_adamw_8bit", "adamw_8bit")):
        sizes = [model_states(job, layouts := layouts_of(job), stage_shape(job.architecture, layouts, layouts.pp - 1))
                 for job in (on_one_device(optimizer=paged), on_one_device(optimizer=stays))]  # fmt: skip
        assert sizes[0].optimizer[0] == sizes[1].optimizer[0]


def test_eight_bit_moments_have_an_fp32_maximum_per_block_of_256() -> None:
    expected = 2 * (1 + 4 / 256) * LLAMA_8B
    for weights in ("auto", "bf16"):
        assert most(on_one_device(optimizer="adamw_8bit", weights=weights), "optimizer") == pytest.approx(expected)


def test_lomo_holds_no_gradients_and_others_hold_all() -> None:
    assert most(on_one_device(optimizer="lomo"), "gradients") == 0
    assert most(on_one_device(optimizer="adamw"), "gradients") == 4 * LLAMA_8B


LAYER = IN_MATRICES // LAYERS + 2 * 4096


@pytest.mark.parametrize("weights", ["auto", "bf16"])
def test_badam_holds_sixteen_bytes_for_each_parameter_of_one_layer(weights: str) -> None:
    # Luo et al. 2024: 2M + 16M/D bytes, and what is in no layer is never trained.
    job = on_one_device(optimizer="badam", weights=weights)
    held = most(job, "weights") + most(job, "gradients") + most(job, "optimizer")
    assert held == 2 * LLAMA_8B + 16 * LAYER
    assert most(job, "communication_buffers") == 0


def test_badam_has_the_largest_layer_of_several_kinds() -> None:
    # DeepSeek-V3's layers with experts are larger than its first three.
    job = on_one_device(optimizer="badam")
    mixed = make_job({"model": "deepseek-ai/DeepSeek-V2-Lite", **ONE_DEVICE, "workload.optimizer": "badam",
                      "workload.framework": "hf-trainer"})  # fmt: skip
    blocks = [block_parameters(block, layouts_of(mixed)) for block in mixed.architecture.blocks]
    largest = max(float(dense[0] + experts[0]) for dense, experts in blocks)
    assert most(mixed, "optimizer") == 12 * largest
    assert most(job, "optimizer") == 12 * LAYER


def test_badam_under_zero_three_shards_its_layer() -> None:
    job = make_job({"workload": {"framework": "deepspeed", "optimizer": "badam"}, "cluster.count": 8,
                    "layout": {"tp": 1, "pp": 1, "dp": 8, "zero_stage": 3}})  # fmt: skip
    memory = first_stage(job, layouts_of(job))
    assert float(memory.component_peaks["weights"][0]) == 2 * LLAMA_8B / 8
    assert float(memory.component_peaks["optimizer"][0]) == 12 * LAYER / 8


def test_badam_fine_tunes_8b_within_the_24_gb_that_its_authors_used() -> None:
    # Their README: 23.5 GB for Llama-3-8B on an RTX 3090. The length of their samples is not stated there.
    found = call(
        "estimate_training",
        {
            "model": "meta-llama/Meta-Llama-3-8B", "accelerator": "rtx-3090", "count": 1, "framework": "hf-trainer",
            "optimizer": "badam", "seq_len": 728, "micro_batch": 2, "global_batch": 2, "recompute": "full",
        },
    )  # fmt: skip
    assert found["memory"]["fits"]
    assert found["memory"]["low_bytes"] < 23.5e9 < found["memory"]["high_bytes"]


def test_a_master_copy_stands_beside_the_states_and_has_their_dtype() -> None:
    assert most(on_one_device(framework="deepspeed"), "optimizer") == 12 * LLAMA_8B
    assert most(on_one_device(framework="deepspeed", optimizer="sgd"), "optimizer") == 4 * LLAMA_8B
    assert most(on_one_device(framework="deepspeed", optimizer="muon"), "optimizer") == 4 * (
        LLAMA_8B + IN_MATRICES + 2 * OUTSIDE
    )


def megatron(optimizer: str, **layout: Any) -> float:
    plan = {"workload.optimizer": optimizer, "cluster.count": 8}
    job = make_job(plan | {"layout": {"tp": 4, "pp": 1, "dp": 2, "zero_stage": 0}})
    return float(first_stage(job, layouts_of(job, **layout)).component_peaks["optimizer"][0])


def test_low_rank_states_follow_the_shapes_that_tensor_parallelism_leaves() -> None:
    cut = [(1024, 4096), (256, 4096), (256, 4096), (4096, 1024), (3584, 4096), (3584, 4096), (4096, 3584)]
    low_rank = LAYERS * sum(RANK * (2 * max(shape) + min(shape)) for shape in cut)
    outside = 2 * LLAMA_8B_TABLE / 4 + (2 * LAYERS + 1) * 4096
    trained = IN_MATRICES / 4 + outside
    assert megatron("galore") == pytest.approx(4 * (trained + low_rank + 2 * outside), rel=1e-12)


@pytest.mark.parametrize("optimizer", ["adamw", "galore", "adafactor", "adam_mini", "muon", "lion", "adamw_8bit"])
def test_zero_one_shards_all_of_an_optimizer(optimizer: str) -> None:
    assert megatron(optimizer, zero_stage=1) == pytest.approx(megatron(optimizer) / 2, rel=1e-12)


def test_an_optimizers_step_needs_what_its_code_allocates() -> None:
    # torch's foreach AdamW has one temporary of every element (older Trainer), the fused one none.
    assert most(on_one_device(software_version="4.57"), "step_temporaries") == 4 * LLAMA_8B
    assert most(on_one_device(), "step_temporaries") == 0
    # Adafactor's update and its square for the largest tensor, which is the embedding; in fp32 whatever the weights are
    # in, and then with fp32 copies of weight and gradient.
    assert most(on_one_device(optimizer="adafactor"), "step_temporaries") == 4 * 2 * LLAMA_8B_TABLE
    in_half = on_one_device(optimizer="adafactor", weights="bf16")
    assert most(in_half, "step_temporaries") == 4 * 4 * LLAMA_8B_TABLE


def test_freezing_leaves_states_of_the_last_layers_only() -> None:
    per_layer = IN_MATRICES // LAYERS + 2 * 4096
    assert most(on_one_device(method="freeze"), "optimizer") == 4 * 2 * 2 * per_layer
    muon = most(on_one_device(method="freeze", optimizer="muon"), "optimizer")
    assert muon == 4 * (2 * IN_MATRICES // LAYERS + 2 * 2 * 2 * 4096)
