"""What is trained and how frozen weights are held: adapters, their variants, quantisation, frozen layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_jobs import MODELS, make_job
from memory_jobs import (
    LLAMA_8B,
    LLAMA_8B_MATRICES,
    LLAMA_8B_TABLE,
    ONE_DEVICE,
    first_stage,
    kept,
    layouts_of,
    most,
    on_one_device,
)

from estimator.plan.training.job import FREEZE_LAYERS
from estimator.training.memory import stage_memory
from knowledge.fitted.training import framework
from knowledge.models.catalogue import architecture

LAYERS = 32
RANK = 8
ADAPTERS = LAYERS * sum(RANK * (rows + columns) for rows, columns in LLAMA_8B_MATRICES)
MAGNITUDES = LAYERS * sum(rows for rows, _ in LLAMA_8B_MATRICES)
IN_BLOCKS = LLAMA_8B - 2 * LLAMA_8B_TABLE - 4096  # without embedding, head and last norm
TOKENS = 4096
STATES = ("weights", "gradients", "optimizer")


def adapted(name: str = "hf-trainer", lora: dict[str, Any] | None = None, **workload: Any) -> Any:
    """Llama-3.1-8B with adapters of rank 8 on one device."""
    return on_one_device(framework=name, **({"method": "lora"} | workload), lora={"rank": RANK} | (lora or {}))


def test_rank_eight_on_all_linear_layers() -> None:
    assert ADAPTERS == 20_971_520  # what PEFT prints for r=8 on all linear layers of Llama-3.1-8B


# PEFT keeps adapters in fp32 (autocast_adapter_dtype); engines that cast the whole module have a master copy instead.
@pytest.mark.parametrize(
    ("name", "weight", "state"), [("hf-trainer", 4, 8), ("deepspeed", 2, 12), ("megatron-lm", 2, 12), ("litgpt", 2, 4)]
)
def test_adapters_have_states_in_their_own_dtype(name: str, weight: int, state: int) -> None:
    job = adapted(name)
    assert most(job, "weights") == 2 * LLAMA_8B + weight * ADAPTERS
    assert most(job, "gradients") == weight * ADAPTERS
    assert most(job, "optimizer") == state * ADAPTERS


@pytest.mark.parametrize("ranks", [(8, 16), (16, 64)])
def test_a_larger_adapter_takes_more(ranks: tuple[int, int]) -> None:
    small, large = (most(adapted(lora={"rank": rank}), "optimizer") for rank in ranks)
    assert large == ranks[1] / ranks[0] * small


def test_adapters_on_fewer_matrices_take_less() -> None:
    attention = LAYERS * sum(RANK * (rows + columns) for rows, columns in LLAMA_8B_MATRICES[:4])
    named = LAYERS * RANK * (2 * 4096 + 1024 + 4096)
    assert most(adapted(lora={"targets": "attention"}), "gradients") == 4 * attention
    assert most(adapted(lora={"targets": "q_proj, v_proj"}), "gradients") == 4 * named
    kept = [most(adapted(lora={"targets": to}), "activations") for to in ("all-linear", "attention", "q_proj,v_proj")]
    assert kept == sorted(kept, reverse=True)
    assert len(set(kept)) == 3


def test_frozen_weights_are_held_in_sixteen_bits_unless_said_otherwise() -> None:
    assert most(adapted(), "weights") - 4 * ADAPTERS == 2 * LLAMA_8B
    assert most(adapted(weights="fp32"), "weights") - 4 * ADAPTERS == 4 * LLAMA_8B


def test_pissa_takes_what_lora_takes_and_dora_a_magnitude_per_output_more() -> None:
    lora, pissa, dora = (
        first_stage(job, layouts_of(job)).component_peaks for job in map(with_method, ("lora", "pissa", "dora"))
    )
    for name, size in lora.items():
        assert pissa[name][0] == size[0], name
    assert dora["gradients"][0] == 4 * (ADAPTERS + MAGNITUDES)
    assert dora["optimizer"][0] == 8 * (ADAPTERS + MAGNITUDES)
    # Its norm needs each weight in full, and it keeps the frozen and the adapted output of each matrix.
    assert dora["activations"][0] - lora["activations"][0] > 2 * 2 * TOKENS * MAGNITUDES


def with_method(method: str) -> Any:
    return adapted(method=method)


def test_dropout_copies_the_input_of_every_adapted_matrix() -> None:
    inputs = LAYERS * sum(columns for _, columns in LLAMA_8B_MATRICES)
    # PEFT has cast copies already, to which the mask of one byte comes; DeepSpeed's adapters share the block's inputs,
    # of which those of q, k and v are one, those of gate and up another and that of the output projection a third.
    widest = 2 * 2 * 14336 * TOKENS  # dropped copies of the input at work and of its gradient
    plain, dropped = (most(adapted(lora={"dropout": rate}), "activations") for rate in (0.0, 0.1))
    assert dropped - plain == pytest.approx(inputs * TOKENS + widest, rel=1e-9)
    plain, dropped = (most(adapted("deepspeed", {"dropout": rate}), "activations") for rate in (0.0, 0.1))
    widest -= 2 * 14336 * TOKENS  # Without dropout the gradients of the MLP take more than its adapters' copies.
    shared = LAYERS * (4096 + 4096 + 14336)
    assert dropped - plain == pytest.approx((3 * inputs - 2 * shared) * TOKENS + widest, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        ("nf4", 4.127),  # Dettmers et al. 2023, section 3: double quantisation brings 0.5 bits a parameter to 0.127
        ("nf4-single", 4.5),
        ("gptq", 4.156),  # a 16-bit scale and a 4-bit zero per 128
    ],
)
def test_quantised_weights_take_their_bits_and_what_is_not_quantised_sixteen(kind: str, bits: float) -> None:
    weights = most(adapted(method="qlora", lora={"quantisation": kind}), "weights")
    packed = weights - 4 * ADAPTERS - 2 * (2 * LLAMA_8B_TABLE + 4096)
    assert packed * 8 / IN_BLOCKS == pytest.approx(bits, abs=5e-4)


def test_an_unpacked_matrix_is_at_work_in_sixteen_bits() -> None:
    lora, nf4, gptq = (
        most(adapted(method=method, lora={"quantisation": kind}), "activations", recompute=2)
        for method, kind in (("lora", "nf4"), ("qlora", "nf4"), ("qlora", "gptq"))
    )
    largest = 4096 * 14336
    assert nf4 - lora == pytest.approx(2 * largest)
    # What GPTQ unpacked is kept for the whole block, by way of 32-bit shifts.
    assert gptq - lora == pytest.approx(5 * largest + 2 * (IN_BLOCKS / LAYERS - 2 * 4096))


def test_an_old_four_bit_matmul_keeps_its_inputs_whatever_is_recomputed() -> None:
    old, new = (
        most(adapted("ms-swift", method="qlora", software_version=version), "activations", recompute=2)
        for version in ("2.3", "3.0")
    )
    # Distinct inputs of a layer: that of q, k and v, of the output projection, of gate and up, and of down.
    assert old - new == pytest.approx(2 * TOKENS * LAYERS * (4096 + 4096 + 4096 + 14336))


def test_trained_embeddings_are_copies_with_gradients_and_states() -> None:
    plain, trained = (adapted(lora={"train_embeddings": on}) for on in (False, True))
    tables = 2 * LLAMA_8B_TABLE + 4096
    for name, size in (("gradients", 4), ("optimizer", 8)):
        assert most(trained, name) - most(plain, name) == size * tables, name
    assert most(trained, "weights") - most(plain, "weights") >= 2 * tables


@pytest.mark.parametrize("pp", [1, 2, 4])
def test_freezing_trains_the_last_layers_of_the_last_stage(pp: int) -> None:
    job = make_job({"workload.method": "freeze", "layout": {"tp": 1, "pp": pp, "dp": 1}, "cluster.count": pp})
    layouts = layouts_of(job, zero_stage=0)
    stages = [stage_memory(job, layouts, np.array([stage])).component_peaks for stage in range(pp)]
    per_layer = IN_BLOCKS / LAYERS
    assert [stage["gradients"][0] for stage in stages] == [0] * (pp - 1) + [4 * FREEZE_LAYERS * per_layer]
    assert [stage["optimizer"][0] > 0 for stage in stages] == [False] * (pp - 1) + [True]


def test_frozen_layers_keep_no_activations() -> None:
    jobs = [on_one_device(method=method, weights="bf16") for method in ("freeze", "full")]
    frozen, full = (kept(job, layouts_of(job)) for job in jobs)
    assert frozen < 1.1 * (FREEZE_LAYERS / LAYERS) * full + 2 * 4096 * TOKENS


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["deepspeed", "hf-trainer", "unsloth"])
def test_training_less_takes_less_memory(model: str, name: str) -> None:
    held, totals = [], []
    for method in ("full", "freeze", "lora", "qlora"):
        layout = ONE_DEVICE["layout"] | {"zero_stage": framework(name).limits.zero_stages[0]}
        workload = {"framework": name, "method": method, "seq_len": 512}
        job = make_job(ONE_DEVICE | {"model": model, "workload": workload, "layout": layout})
        memory = first_stage(job, layouts_of(job))
        held.append(sum(float(memory.component_peaks[part][0]) for part in STATES))
        totals.append(float(memory.total[0]))
    assert held[0] > max(held[1:3])
    assert held[2] > held[3]
    # Adapters on each of many small experts can weigh more than two whole layers.
    assert held[1] > held[2] or architecture(model).is_moe
    # In all, freezing may undercut adapters: only the last layers keep activations.
    assert totals[0] > totals[1]
    assert totals[0] > totals[2] > totals[3]


def of_experts(name: str, **workload: Any) -> Any:
    """Qwen3-30B-A3B with adapters of rank 8 on one device; 29.0 of its 30.5 billion weights are routed experts'."""
    method = {"framework": name, "method": "qlora", "lora": {"rank": RANK}} | workload
    return make_job(ONE_DEVICE | {"model": "Qwen/Qwen3-30B-A3B", "workload": method})


# Since 5 transformers has a layer's experts in one parameter, which bitsandbytes does not pack (issue 1849) and PEFT's
# all-linear does not adapt; axolotl packs them as it loads them, Unsloth packs and adapts them.
@pytest.mark.parametrize(("name", "packs", "adapts"), [
    ("hf-trainer", False, False), ("deepspeed", False, False), ("ms-swift", False, False),
    ("axolotl", True, False), ("unsloth", True, True),
])  # fmt: skip
def test_experts_are_packed_and_adapted_where_the_framework_does(name: str, packs: bool, adapts: bool) -> None:
    experts = 48 * 128 * 3 * 2048 * 768
    weights = most(of_experts(name), "weights")
    assert (weights < experts) == packs
    assert (weights > 2 * experts) == (not packs)
    adapted_experts = 48 * 128 * 3 * RANK * (2048 + 768)
    assert (most(of_experts(name), "gradients") > 2 * adapted_experts) == adapts


def test_experts_were_linear_modules_before_transformers_5() -> None:
    now, before = (
        most(of_experts("hf-trainer", **when), "weights") for when in ({}, {"software_version": "transformers 4.57"})
    )
    assert before < now / 3
