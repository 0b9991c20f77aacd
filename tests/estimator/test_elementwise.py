"""Memory-bound operators: bytes counted by hand, orders between implementations, kernels, batches."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from estimator_jobs import MODELS, make_job, open_job, with_layout
from hypothesis import given
from hypothesis import strategies as st

from estimator.kernels.elementwise import (
    Operators,
    Style,
    adapter_operators,
    block_operators,
    cast_operators,
    dequantise_operators,
    embedding_operators,
    head_operators,
    loss_kind,
    matmul_kernels,
    weight_operators,
)
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import micro_batch_tokens
from estimator.search.layouts import candidates

STYLES: tuple[Style, ...] = get_args(Style)
ONE_DEVICE: dict[str, Any] = {
    "workload": {"framework": "hf-trainer", "seq_len": 4096, "micro_batch": 1, "global_batch": 16},
    "layout": {"tp": 1, "pp": 1, "dp": 16, "zero_stage": 0},
}


def both(job: Job) -> tuple[Layouts, np.ndarray]:
    layouts = candidates(job).take(np.array([0]))
    return layouts, micro_batch_tokens(job, layouts)


def operators(job: Job, style: Style = "fused") -> Operators:
    layouts, tokens = both(job)
    return block_operators(job, job.architecture.blocks[-1], layouts, tokens, style)


def one(values: np.ndarray) -> float:
    assert values.shape == (1,)
    return float(values[0])


def test_a_fused_llama_block_by_hand() -> None:
    # Per token in elements: two norms (2) and two sums (3) of 4096 over tp 2 with sequence parallelism, rotary q of
    # 4096 and k of 1024 (2), gated activation of 14336 (3), over tp 2; 16 bits each.
    found = operators(make_job())
    elements = (2 * 2 + 2 * 3) * 4096 / 2 + (2 * (4096 + 1024) + 3 * 14336) / 2
    assert one(found.forward_bytes) == pytest.approx(4096 * 2 * elements)
    assert (found.forward_kernels, found.backward_kernels) == (7.0, 2 * 2 + 2 * 1 + 2 * 1 + 1)


def test_hugging_face_launches_what_its_modules_say() -> None:
    # Two norms of 8, rotary of 5 for q and k, two sums, silu and product.
    assert (
        operators(make_job(ONE_DEVICE | {"workload.weights": "bf16"}), "eager").forward_kernels == 2 * 8 + 2 * 5 + 2 + 2
    )


@pytest.mark.parametrize("model", MODELS)
def test_fusing_never_costs_more(model: str) -> None:
    job = make_job({"model": model} | {"layout.tp": 1, "layout.dp": 8})
    found = {style: operators(job, style) for style in STYLES}
    for worse, better in (("eager", "native"), ("native", "compiled"), ("native", "fused")):
        assert one(found[worse].forward_bytes) >= one(found[better].forward_bytes)
        assert one(found[worse].backward_bytes) >= one(found[better].backward_bytes)
        assert found[worse].forward_kernels >= found[better].forward_kernels
    assert all(
        one(what.forward_bytes) > 0 and one(what.backward_bytes) > one(what.forward_bytes) for what in found.values()
    )


@given(st.integers(0, len(STYLES) - 1), st.integers(1, 7))
def test_bytes_grow_with_tokens_and_shrink_with_tensor_parallelism(style: int, times: int) -> None:
    job = make_job()
    layouts, tokens = both(job)
    block = job.architecture.blocks[0]
    base = block_operators(job, block, layouts, tokens, STYLES[style])
    more = block_operators(job, block, layouts, tokens * times, STYLES[style])
    assert one(more.forward_bytes) == pytest.approx(times * one(base.forward_bytes))
    split = block_operators(job, block, with_layout(layouts, tp=4), tokens, STYLES[style])
    assert one(split.backward_bytes) == pytest.approx(one(base.backward_bytes) / 2)


def test_experts_on_several_devices_are_sorted_again() -> None:
    job = make_job({"model": "mistralai/Mixtral-8x7B-v0.1", "workload.moe_dispatcher": "alltoall"})
    layouts, tokens = both(job)
    block = job.architecture.blocks[0]
    together = block_operators(job, block, with_layout(layouts, ep=1), tokens, "fused")
    apart = block_operators(job, block, with_layout(layouts, ep=4), tokens, "fused")
    assert one(apart.forward_bytes - together.forward_bytes) == pytest.approx(4096 * 2 * 4.0 * 2 * 4096 / 2)


def _routed(dispatcher: str, model: str = "Qwen/Qwen3-30B-A3B", **workload: str) -> float:
    changes = {"model": model, "layout.ep": 8, "layout.tp": 1, "workload.moe_dispatcher": dispatcher}
    changes |= {"workload.framework": "megatron-lm", "cluster.count": 16, "layout.pp": 1, "layout.dp": 16}
    return one(
        operators(make_job(changes | {f"workload.{name}": value for name, value in workload.items()})).forward_bytes
    )


def test_kernels_that_dispatch_spare_the_sorting_of_tokens() -> None:
    """Of eight copies of 2048 elements: they sort what arrives, all-to-all what is sent too."""
    copy_bytes = 4096 * 8 * 2048 * 2
    assert _routed("alltoall") - _routed("deepep") == pytest.approx(4 * copy_bytes)
    assert _routed("hybridep") == _routed("deepep")


def test_biases_of_experts_and_activations_without_gates_are_kernels_of_their_own_in_megatron() -> None:
    job = make_job({"model": "openai/gpt-oss-20b", "workload.framework": "megatron-lm"})
    block = job.architecture.blocks[-1]
    bare = replace(block, matrices=tuple(replace(matrix, bias=False) for matrix in block.matrices))
    layouts, tokens = both(job)
    more = block_operators(job, block, layouts, tokens, "fused") + block_operators(job, bare, layouts, -tokens, "fused")
    # t + b p of four experts a token in fp32, joined and cast back.
    assert one(more.forward_bytes) * float(layouts.outside_split[0]) == pytest.approx(
        float(tokens[0]) * 2 * 4 * 2880 * 14
    )


def test_autocast_moves_the_residual_stream_in_fp32() -> None:
    wide, narrow = make_job(ONE_DEVICE), make_job(ONE_DEVICE | {"workload.weights": "bf16"})
    assert wide.stream_elements > narrow.stream_elements
    assert one(operators(wide, "eager").forward_bytes) > one(operators(narrow, "eager").forward_bytes)


def test_casts_cost_nothing_in_16_bits_and_more_where_both_copies_are_needed() -> None:
    plain = make_job()
    layouts, tokens = both(plain)
    block = plain.architecture.blocks[0]
    none = cast_operators(plain, block, layouts, tokens, "fused")
    assert one(none.forward_bytes) == one(none.backward_bytes) == none.forward_kernels == 0
    hopper = make_job({"workload.precision": "fp8"})
    blackwell = make_job({"workload.precision": "fp8", "cluster.accelerator": "b200-sxm"})
    found = [cast_operators(job, block, *both(job), "fused") for job in (blackwell, hopper)]
    assert one(found[0].backward_bytes) < one(found[1].backward_bytes)
    scanned = cast_operators(hopper, block, *both(hopper), "compiled")
    assert one(scanned.forward_bytes) > one(found[1].forward_bytes)
    # Gradients by hand: q, k, v, gate, up over tp 2; o and down over 2 too (sequence parallel); 2 bytes in, 2 x 1 out.
    widths = (4096 + 2 * 1024 + 2 * 14336 + 2 * 4096) / 2
    assert one(found[1].backward_bytes) == pytest.approx(4096 * widths * 4.0)


def test_adapters_in_fp32_cost_more_than_fused_ones() -> None:
    job = make_job(ONE_DEVICE | {"workload.method": "lora"})
    layouts, tokens = both(job)
    block = job.architecture.blocks[0]
    wide, fused = (adapter_operators(job, block, layouts, tokens, style) for style in ("eager", "fused"))
    assert one(wide.forward_bytes) > 3 * one(fused.forward_bytes) > 0
    assert wide.forward_kernels == 7 * 6
    dora = make_job(ONE_DEVICE | {"workload.method": "dora"})
    assert one(adapter_operators(dora, block, layouts, tokens, "eager").forward_bytes) > one(wide.forward_bytes)
    full = adapter_operators(make_job(ONE_DEVICE), block, layouts, tokens, "eager")
    assert one(full.forward_bytes) == full.forward_kernels == 0


@pytest.mark.parametrize(("kind", "size", "again"), [("nf4", 2.6, 1.0), ("gptq", 31.0, 0.0)])
def test_quantised_weights_are_unpacked_each_way_unless_autograd_keeps_them(
    kind: str, size: float, again: float
) -> None:
    job = make_job(ONE_DEVICE | {"workload.method": "qlora", "workload.lora.quantisation": kind})
    layouts, _ = both(job)
    block = job.architecture.blocks[0]
    found = dequantise_operators(job, block, layouts)
    assert one(found.backward_bytes) == again * one(found.forward_bytes)
    assert one(found.forward_bytes) == pytest.approx(size * sum(matrix.parameters for matrix in block.matrices))


def test_weights_are_cast_copied_or_summed_as_the_framework_does() -> None:
    autocast = make_job(ONE_DEVICE)
    layouts, _ = both(autocast)
    block = autocast.architecture.blocks[0]
    assert one(weight_operators(autocast, block, layouts, "eager").forward_bytes) == pytest.approx(
        6.0 * block.parameters
    )
    megatron = make_job()
    layouts, _ = both(megatron)
    summed = weight_operators(megatron, block, layouts, "fused")
    matrices = sum(matrix.parameters for matrix in block.matrices) / 2 + block.vector_parameters
    assert one(summed.forward_bytes) == 0
    assert one(summed.backward_bytes) == pytest.approx(matrices * (2 * megatron.framework.gradients.held_bytes - 2))
    sharded = make_job({"workload.framework": "fsdp2", "layout": {"tp": 1, "pp": 1, "dp": 16, "zero_stage": 3}})
    copied = weight_operators(sharded, block, both(sharded)[0], "native")
    assert one(copied.forward_bytes) == pytest.approx(4.0 * block.parameters)


def test_a_loss_costs_what_it_writes() -> None:
    unfused = make_job(ONE_DEVICE)
    fused = make_job(ONE_DEVICE | {"workload.fused_loss": True})
    assert (loss_kind(unfused, "eager"), loss_kind(fused, "eager")) == ("torch", "chunked")
    assert loss_kind(make_job(), "fused") == "split"
    layouts, tokens = both(unfused)
    slow, quick = head_operators(unfused, layouts, tokens, "eager"), head_operators(fused, layouts, tokens, "eager")
    difference = one(slow.forward_bytes + slow.backward_bytes - quick.forward_bytes - quick.backward_bytes)
    assert difference == pytest.approx(4096 * 128256 * (36 - 8))


def test_a_large_vocabulary_costs_its_gradient() -> None:
    job = make_job(ONE_DEVICE)
    layouts, tokens = both(job)
    found = embedding_operators(job, layouts, tokens)
    assert one(found.backward_bytes) == pytest.approx(4096 * 4096 * 2 * 3 + 128256 * 4096 * 2)
    adapted = make_job(ONE_DEVICE | {"workload.method": "lora"})
    assert one(embedding_operators(adapted, layouts, tokens).backward_bytes) == 0


def test_experts_are_launched_one_by_one_only_in_a_loop() -> None:
    """transformers has grouped matmuls of all experts since 5.0 (pull 42697), which bitsandbytes does not pack."""
    mixtral = ONE_DEVICE | {"model": "mistralai/Mixtral-8x7B-v0.1"}
    older = {"workload.software_version": "transformers 4.57"}
    for changes in ({}, older, {"workload.method": "qlora"}):
        job = make_job(mixtral | changes)
        layouts, _ = both(job)
        block = job.architecture.blocks[0]
        eager, grouped = (matmul_kernels(job, block, layouts, style) for style in ("eager", "fused"))
        assert one(grouped[0]) == len(block.matrices)
        assert (one(eager[0]) > one(grouped[0])) == (changes is older)
        assert one(grouped[1]) == one(grouped[0]) * (1 if job.uses_adapters else 2)


@pytest.mark.parametrize(
    "changes", [{}, {"workload_precision": "fp8"}, {"workload_method": "lora", "workload_framework": "fsdp2"}]
)
def test_a_batch_entry_equals_its_single(changes: dict[str, str]) -> None:
    job = open_job(**changes)
    layouts = candidates(job)
    block = job.architecture.blocks[0]
    index = np.linspace(0, len(layouts) - 1, 12).astype(np.int64)

    def everything(chosen: Layouts) -> Operators:
        tokens = micro_batch_tokens(job, chosen)
        parts = [
            block_operators(job, block, chosen, tokens, "fused"),
            cast_operators(job, block, chosen, tokens, "fused"),
            adapter_operators(job, block, chosen, tokens, "fused"),
            weight_operators(job, block, chosen, "fused"),
            head_operators(job, chosen, tokens, "fused"),
            embedding_operators(job, chosen, tokens),
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    together = everything(layouts.take(index))
    for position, candidate in enumerate(index):
        alone = everything(layouts.take(np.array([candidate])))
        assert one(alone.forward_bytes) == together.forward_bytes[position]
        assert one(alone.backward_bytes) == together.backward_bytes[position]


def test_gemma_runs_four_norms() -> None:
    job = make_job({"model": "google/gemma-2-9b"})
    block = job.architecture.blocks[0]
    layouts, tokens = both(job)
    bytes_by_norms = [
        one(block_operators(job, replace(block, norms=norms), layouts, tokens, "fused").forward_bytes)
        for norms in (2, 3, 4)
    ]
    steps = [after - before for before, after in pairwise(bytes_by_norms)]
    assert steps[0] == pytest.approx(steps[1]) == pytest.approx(4096 * 2 * 2.0 * job.architecture.hidden / 2)


def test_gradients_of_what_several_matmuls_read_are_summed_where_nobody_fused_them() -> None:
    job = make_job(ONE_DEVICE)
    layouts, tokens = both(job)
    block = job.architecture.blocks[0]
    eager, compiled, fused = (
        block_operators(job, block, layouts, tokens, style) for style in ("eager", "compiled", "fused")
    )
    frozen = make_job(ONE_DEVICE | {"workload.method": "lora"})
    spared = block_operators(frozen, block, layouts, tokens, "eager")
    assert one(eager.backward_bytes) > one(spared.backward_bytes)
    assert one(eager.backward_bytes) > one(compiled.backward_bytes) > one(fused.backward_bytes)


def test_copies_for_sliced_experts_are_cast_by_every_rank_that_has_a_slice() -> None:
    """With an expert in four slices each tensor rank has four times the copies of its own part of the sequence."""
    job = make_job(
        {"model": "mistralai/Mixtral-8x7B-v0.1", "workload.precision": "fp8", "workload.moe_dispatcher": "deepep"}
    )
    layouts, tokens = both(job)
    block = job.architecture.blocks[0]

    def by_the_token(slices: int) -> float:
        some = with_layout(layouts, tp=4, sequence_parallel=1, ep=2, etp=slices)
        more, once = (cast_operators(job, block, some, tokens * times, "fused") for times in (2, 1))
        return one(more.forward_bytes - once.forward_bytes)

    # A copy is read in 16 bits and written row-wise and column-wise in 8.
    copies = one(tokens) * block.top_k * job.architecture.hidden * (2 + 2)
    assert by_the_token(4) - by_the_token(1) == pytest.approx(copies * 3 / 4)


def test_experts_in_eight_bits_have_their_rows_padded_in_copies() -> None:
    changes = {"model": "mistralai/Mixtral-8x7B-v0.1", "workload.precision": "fp8", "layout.ep": 2}
    plain, kernels = (make_job(changes | {"workload.moe_dispatcher": name}) for name in ("alltoall", "deepep"))
    layouts, tokens = both(plain)
    block = plain.architecture.blocks[0]
    padded, sorted_in = (cast_operators(job, block, layouts, tokens, "fused") for job in (plain, kernels))
    copies = one(tokens) * block.top_k * plain.architecture.hidden * 2 / one(layouts.outside_split)
    for before, behind in (
        (padded.forward_bytes, sorted_in.forward_bytes),
        (padded.backward_bytes, sorted_in.backward_bytes),
    ):
        assert one(before) - one(behind) == pytest.approx(4 * copies)
