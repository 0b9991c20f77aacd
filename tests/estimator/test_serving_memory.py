"""Memory of serving: hand-counted weights and caches, and what must hold of any deployment."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from deployment_jobs import LARGE, SMALL, clients, jobs, make, one
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.plan.serving.job import ServingJob
from estimator.serving.memory import COMPONENTS, ServingMemory, cache_bytes, serving_memory, weight_bytes
from estimator.serving.space import deployments

GIB = 2.0**30
V3, MIXTRAL, GEMMA, MAMBA = (
    "deepseek-ai/DeepSeek-V3", "mistralai/Mixtral-8x7B-v0.1", "google/gemma-2-9b", "state-spaces/mamba-2.8b-hf",
)  # fmt: skip

# Llama-3.1: hidden, layers, key heads of 128, inner width.
SIZES = {SMALL: (4096, 32, 8, 14336), LARGE: (8192, 80, 8, 28672)}
VOCAB = 128256


def counted(model: str) -> tuple[int, int, int]:
    """(Parameters of the blocks' matrices, of the embedding or the head, of all norms) of a Llama."""
    hidden, layers, keys, inner = SIZES[model]
    matrices = layers * (2 * hidden * hidden + 2 * hidden * keys * 128 + 3 * hidden * inner)
    return matrices, VOCAB * hidden, (2 * layers + 1) * hidden


def weights_of(model: str, **fields: Any) -> float:
    return float(weight_bytes(*one(model, **fields))[0])


def memory_of(*named: Any, **fields: Any) -> ServingMemory:
    return serving_memory(*one(*named, **fields))


@pytest.mark.parametrize("model", [SMALL, LARGE])
@pytest.mark.parametrize("tp", [1, 2, 8])
def test_weights_in_16_bits_are_two_bytes_each_and_norms_are_on_every_device(model: str, tp: int) -> None:
    matrices, table, norms = counted(model)
    found = weights_of(model, count=8, layout={"tp": tp})
    assert found == pytest.approx(2 * (matrices + 2 * table) / tp + 2 * norms)


@pytest.mark.parametrize("model", [SMALL, LARGE])
def test_eight_bits_halve_the_blocks_and_leave_embedding_and_head(model: str) -> None:
    matrices, table, norms = counted(model)
    for tp in (1, 4):
        found = weights_of(model, count=4, layout={"tp": tp}, weight_dtype="fp8")
        assert found == pytest.approx((matrices + 2 * 2 * table) / tp + 2 * norms)


def test_the_fullest_stage_of_a_pipeline_has_the_embedding_or_the_head_not_both() -> None:
    matrices, table, norms = counted(LARGE)
    last_norm = 2 * SIZES[LARGE][0]
    found = weights_of(LARGE, count=4, layout={"pp": 4})
    assert found == pytest.approx(2 * matrices / 4 + 2 * table + (2 * norms - last_norm) / 4 + last_norm)
    # Of 80 layers on 3 stages the fullest has 27.
    uneven = weights_of(LARGE, count=3, layout={"pp": 3})
    assert uneven == pytest.approx(2 * matrices * 27 / 80 + 2 * table, rel=1e-4)


# Sizes of published GGUF files (bartowski/Meta-Llama-3.1-*-Instruct-GGUF).
@pytest.mark.parametrize(
    ("model", "dtype", "file"),
    [(SMALL, "q4_k_m", 4.9207e9), (SMALL, "q8_0", 8.5408e9), (LARGE, "q4_k_m", 42.5204e9)],
)
def test_gguf_weights_are_the_file_less_the_embedding_on_the_host(model: str, dtype: str, file: float) -> None:
    table = counted(model)[1] * {"q4_k_m": 4.5, "q8_0": 8.5}[dtype] / 8
    found = weights_of(model, engine="llamacpp", weight_dtype=dtype, accelerator="h100-sxm", layout={})
    assert found == pytest.approx(file - table, rel=0.01)


def test_four_bits_with_scales() -> None:
    matrices, table, _ = counted(SMALL)
    found = weights_of(SMALL, weight_dtype="awq")
    assert found == pytest.approx(matrices * 4.15625 / 8 + 2 * 2 * table, rel=1e-3)
    given_bits = weights_of(SMALL, engine="exllamav2", weight_dtype="exl2", weight_bits=5.0)
    less = weights_of(SMALL, engine="exllamav2", weight_dtype="exl2", weight_bits=4.0)
    assert given_bits - less == pytest.approx(matrices / 8)


def test_a_tied_head_is_held_once() -> None:
    found = make(GEMMA)
    assert weight_bytes(found, deployments(found))[0] == pytest.approx(2 * found.architecture.parameters, rel=1e-3)


def test_experts_are_split_by_tensor_or_by_whole_experts_and_attention_is_whole_on_every_lane() -> None:
    layers, hidden = 32, 4096
    experts = layers * 8 * 3 * hidden * 14336
    attention = layers * (2 * hidden * hidden + 2 * hidden * 1024)
    router, table, norms = layers * 8 * hidden, 32000 * hidden, (2 * layers + 1) * hidden
    split = weights_of(MIXTRAL, count=8, layout={"tp": 8})
    assert split == pytest.approx(2 * ((experts + attention + 2 * table) / 8 + router + norms))
    lanes = weights_of(MIXTRAL, count=8, layout={"tp": 1, "dp": 8, "ep": 8})
    assert lanes == pytest.approx(2 * (experts / 8 + attention + 2 * table + router + norms))
    parts = weights_of(MIXTRAL, count=8, layout={"tp": 2, "dp": 4, "ep": 2})
    assert parts == pytest.approx(2 * (experts / 8 + (attention + 2 * table) / 2 + router + norms))


@pytest.mark.parametrize(
    ("model", "tp", "kv_dtype", "expected"),
    [
        (SMALL, 1, "bf16", 2 * 8 * 128 * 32 * 2),
        (SMALL, 4, "bf16", 2 * 2 * 128 * 32 * 2),
        (SMALL, 4, "fp8", 2 * 2 * 128 * 32),
        # SGLang prints 3.56 times the tokens of 16 bits.
        (SMALL, 1, "fp4", 2 * 8 * 128 * 32 * 2 / (32 / 9)),
        # Eight key heads on sixteen devices: each holds one, two hold the same.
        (SMALL, 16, "bf16", 2 * 1 * 128 * 32 * 2),
        (LARGE, 8, "bf16", 2 * 1 * 128 * 80 * 2),
        # The latent of 512 and the rotary key of 64 are whole on every device.
        (V3, 1, "bf16", (512 + 64) * 61 * 2),
        (V3, 16, "bf16", (512 + 64) * 61 * 2),
        # 16 heads of 64 in 24 layers.
        ("openai-community/gpt2-medium", 2, "fp16", 2 * 8 * 64 * 24 * 2),
    ],
)
def test_bytes_of_the_cache_per_token(model: str, tp: int, kv_dtype: str, expected: float) -> None:
    job, these = one(model, count=16, layout={"tp": tp}, kv_dtype=kv_dtype)
    per_token, state = cache_bytes(job, these)
    assert per_token[0] == pytest.approx(expected)
    assert state[0] == 0.0


def test_a_pipeline_stage_holds_the_cache_of_its_layers() -> None:
    whole, third = (memory_of(LARGE, count=3, layout={"pp": pp}).per_token_bytes[0] for pp in (1, 3))
    assert third == pytest.approx(whole * 27 / 80)


def test_windowed_layers_hold_no_more_than_their_window() -> None:
    one_layer = 2 * 8 * 256 * 2
    long, short = memory_of(GEMMA, input_len=7900, output_len=100), memory_of(GEMMA, input_len=900, output_len=100)
    assert long.per_token_bytes[0] == short.per_token_bytes[0] == 21 * one_layer
    assert long.state_bytes[0] == 21 * one_layer * 4096
    assert short.state_bytes[0] == 21 * one_layer * 1000
    old = memory_of(GEMMA, engine="llamacpp", software_version="b4000", weight_dtype="q8_0", input_len=7900)
    assert (old.per_token_bytes[0], old.state_bytes[0]) == (42 * one_layer, 0.0)


def test_recurrent_states_do_not_grow() -> None:
    found = memory_of(MAMBA)
    assert found.per_token_bytes[0] == 0.0
    assert found.state_bytes[0] == 4 * 5120 * 16 * 64
    assert np.isinf(found.room_tokens[0])
    assert np.isinf(found.longest[0])
    assert found.max_concurrency[0] == np.floor(found.room[0] / found.state_bytes[0])
    longer = memory_of(MAMBA, input_len=100_000)
    assert longer.components["kv_cache"][0] == found.components["kv_cache"][0]


def test_the_cache_is_given_out_in_whole_blocks() -> None:
    found = memory_of(input_len=1000, output_len=1)
    assert found.components["kv_cache"][0] == 63 * 16 * 131072
    assert found.max_concurrency[0] == np.floor(found.room[0] / (63 * 16 * 131072))


def test_the_longest_request_fills_the_room_alone() -> None:
    found = memory_of(memory_share=0.9)
    assert found.longest[0] == np.floor(found.room[0] / 131072)
    assert found.room_tokens[0] == pytest.approx(found.room[0] / 131072)
    longest = int(found.longest[0])
    fits, too_long = (memory_of(memory_share=0.9, max_context=longest + more).fits[0] for more in (-16, 16))
    assert (fits, too_long) == (True, False)


def test_a_longest_context_decides_what_fits_but_not_how_many_usual_requests_there_is_room_for() -> None:
    plain, long = memory_of(), memory_of(max_context=10_000_000)
    assert plain.fits[0]
    assert not long.fits[0]
    assert long.max_concurrency[0] == plain.max_concurrency[0]


def test_the_share_of_the_device_that_the_engine_claims() -> None:
    more, less = (memory_of(memory_share=share) for share in (0.9, 0.8))
    job = make()
    assert more.room[0] - less.room[0] == pytest.approx(0.1 * (job.usable_bytes - job.engine.driver_bytes))
    assert memory_of(overrides={"reserve_gib": 2.0}).room[0] == pytest.approx(
        memory_of().room[0] - 0.92 * 2 * GIB, rel=1e-6
    )
    assert memory_of(overrides={"usable_gib": 40.0}).capacity == 40 * GIB


def test_a_share_above_the_default_is_taken_only_where_it_is_needed_and_none_was_asked_for() -> None:
    said = []
    for usable in np.arange(18.0, 24.0, 0.25):
        given_up, chosen = (
            memory_of(input_len=2000, overrides={"usable_gib": usable}, memory_share=share) for share in (0.92, None)
        )
        assert np.isnan(given_up.share[0])
        assert chosen.fits[0] >= given_up.fits[0]
        raised = not np.isnan(chosen.share[0])
        assert raised == (chosen.fits[0] and not given_up.fits[0])
        said.append((bool(chosen.fits[0]), raised))
    assert {(False, False), (True, True), (True, False)} == set(said)
    assert said == sorted(said, key=lambda one: (one[0], not one[1]))


def test_running_requests_fill_the_cache_up_to_its_room() -> None:
    job, these = one()
    found = serving_memory(job, these)
    ten, endless = (found.running(job, these, np.array([count])) for count in (10.0, 1e9))
    # Half of 256 tokens generated, in blocks of 16.
    assert ten.components["kv_cache"][0] == 10 * 131072 * 1152
    assert endless.components["kv_cache"][0] == found.room[0]
    assert endless.total[0] <= endless.claimed[0] * (1 + 1e-12) <= endless.capacity
    assert ten.total[0] - found.total[0] == ten.components["kv_cache"][0] - found.components["kv_cache"][0]


def test_captured_graphs_and_collectives_are_counted_where_there_are_any() -> None:
    job, these = one(count=2, layout={"tp": 2})
    alone, two = memory_of(), serving_memory(job, these)
    assert two.components["framework_and_context"][0] - alone.components["framework_and_context"][0] == pytest.approx(
        job.engine.collective_bytes
    )
    eager = memory_of(cuda_graph=False)
    assert (alone.components["cuda_graphs"][0], eager.components["cuda_graphs"][0]) == (job.engine.graph_bytes, 0.0)
    assert eager.room[0] > alone.room[0]


@settings(max_examples=examples(30))
@given(jobs())
def test_sizes_are_finite_parts_of_a_whole_and_fit_where_one_request_has_room(fields: dict[str, Any]) -> None:
    job = make(**fields)
    these = deployments(job)
    found = serving_memory(job, these)
    assert set(found.components) == set(COMPONENTS)
    for name, values in (found.components | {"claimed": found.claimed, "room": found.room}).items():
        assert values.shape == (len(these),)
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
    assert (found.components["weights"] > 0).all()
    np.testing.assert_allclose(sum(found.components.values()), found.total, rtol=1e-12)
    assert (found.fits == (found.max_concurrency >= 1)).all()
    assert (found.max_concurrency % these.lanes == 0).all()
    if job.engine.share_of != "start":
        assert (found.total <= found.capacity * (1 + 1e-9))[found.fits].all()
        assert (found.claimed <= found.capacity * (1 + 1e-9))[found.fits].all()


def test_what_fits_is_no_more_than_the_device() -> None:
    found = memory_of(accelerator="rtx-4090", engine="sglang", max_batched_tokens=100_000)
    assert found.total[0] <= found.capacity or not found.fits[0]


@settings(max_examples=examples(25))
@given(jobs(kv_dtype=("bf16", "fp16")), st.sampled_from(["fp8", "int8", "fp4"]))
def test_a_cache_in_eight_bits_holds_no_fewer_requests(fields: dict[str, Any], smaller: str) -> None:
    wide, narrow = make(**fields), make(**fields | {"kv_dtype": smaller})
    these = deployments(wide)
    before, now = serving_memory(wide, these), serving_memory(narrow, these)
    # Where the wide cache needs a larger share of the device, it gets one.
    alike = np.isnan(now.share) == np.isnan(before.share)
    assert (now.max_concurrency >= before.max_concurrency)[alike].all()
    assert (now.longest >= before.longest)[alike].all()
    assert (now.fits >= before.fits).all()
    assert (now.components["kv_cache"] <= before.components["kv_cache"]).all()


@settings(max_examples=examples(25))
@given(jobs(weight_dtype=("fp16",), engine=("vllm", "sglang")), st.sampled_from(["fp8", "int8", "awq", "nvfp4"]))
def test_smaller_weights_leave_no_less_room(fields: dict[str, Any], smaller: str) -> None:
    wide, narrow = make(**fields | {"kv_dtype": "bf16"}), make(**fields | {"kv_dtype": "bf16", "weight_dtype": smaller})
    these = deployments(wide)
    before, now = serving_memory(wide, these), serving_memory(narrow, these)
    assert (now.components["weights"] < before.components["weights"]).all()
    assert (now.max_concurrency >= before.max_concurrency)[np.isnan(now.share) == np.isnan(before.share)].all()
    assert (now.fits >= before.fits).all()


def split(job: ServingJob, **sizes: int) -> ServingMemory:
    these = deployments(job).take(np.array([0]))
    return serving_memory(job, replace(these, **{name: np.array([size]) for name, size in sizes.items()}))


@settings(max_examples=examples(25))
@given(jobs(count=(8,), engine=("vllm", "sglang", "trtllm")), st.sampled_from(["tp", "pp"]))
def test_more_devices_to_a_replica_never_hold_more_each(fields: dict[str, Any], name: str) -> None:
    job = make(**fields)
    found = [split(job, **{"tp": 1, "pp": 1, "ep": 1, "dp": 1, "replicas": 1} | {name: size}) for size in (1, 2, 4, 8)]
    for before, now in pairwise(found):
        for part in ("weights", "kv_cache", "activations"):
            assert now.components[part][0] <= before.components[part][0] * (1 + 1e-12), part


def test_more_and_longer_requests_are_counted_alike_in_a_batch_of_loads() -> None:
    job, these = one()
    loads = clients(these, 1, 10, 100)
    found = serving_memory(job, replace(loads, input_len=np.array([10.0, 1000.0, 100_000.0])))
    assert (np.diff(found.components["kv_cache"]) > 0).all()
    assert (np.diff(found.max_concurrency) < 0).all()
    assert len(set(found.longest)) == 1
