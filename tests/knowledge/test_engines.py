from __future__ import annotations

import csv
from dataclasses import fields, replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from estimator.plan.serving.engine import (
    Engine,
    Split,
    allowed,
    cache_room,
    largest_graph,
    most_tokens,
    profiled_bytes,
    shares,
)
from knowledge.engines import engine, engine_lineage, engines_known, runs_on
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.models.catalogue import find_architecture

GIB = 2**30
LOGS = Path(__file__).parents[2] / "knowledge" / "measurements" / "kv_capacity.csv"
WEIGHT_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.02, "int8": 1.0, "mxfp4": 0.53}
ONE = np.ones(1)


def on(accelerator: str, name: str, version: str | None = None) -> Engine:
    return engine(name, version, find_accelerator(accelerator).value)


@pytest.mark.parametrize("name", engines_known())
def test_every_engine_is_complete_on_every_accelerator(name: str) -> None:
    for accelerator in accelerators():
        found = engine(name, None, accelerator)
        assert 0 < found.memory_share <= 1
        assert found.share_of in ("total", "start", "rest", "asked")
        assert found.batches in ("continuous", "static", "single")
        assert min(found.max_batch, found.max_tokens, found.offline_max_tokens, found.block_tokens) >= 1
        assert found.sampled_most >= 1
        assert found.graphs == (found.graph_batch > 0)
        assert found.graph_batch <= found.wide_graph_batch
        assert 0 < found.layer_kernels <= found.expert_kernels
        assert bool(found.weight_formats) == bool(found.cache_formats) == runs_on(found, accelerator)
        assert len(found.source) > 30
        for field in fields(Engine):
            value = getattr(found, field.name)
            assert not isinstance(value, dict), field.name
            if isinstance(value, int | float) and not isinstance(value, bool):
                assert value >= 0, field.name


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PlanError, match=r"workload.engine: there is no serving engine 'vlm'; valid: .*vllm"):
        engine("vlm")


def test_vllm_before_its_second_engine_reads_prompts_first_and_whole() -> None:
    old, new = on("h100-sxm", "vllm", "0.7.3"), on("h100-sxm", "vllm", "0.8.5")
    assert (old.mixes, old.chunks, old.prefix_cache, old.max_batch) == (False, False, False, 256)
    assert (new.mixes, new.chunks, new.prefix_cache, new.max_batch) == (True, True, True, 1024)
    assert most_tokens(old, np.array([4096.0, 8192.0, 131072.0])).tolist() == [4096.0, 8192.0, 2048.0]
    assert most_tokens(on("h100-sxm", "vllm", "0.4.2"), 131072.0) == 131072.0
    assert most_tokens(new, 131072.0) == 8192.0
    assert most_tokens(new, 131072.0, offline=True) == 16384.0
    assert old.host_step_s > new.host_step_s


@pytest.mark.parametrize(
    ("accelerator", "version", "tokens", "sequences"),
    [
        ("h100-sxm", "0.10.2", 8192, 1024),
        ("mi300x", "0.10.2", 8192, 1024),
        ("l40s", "0.10.2", 2048, 256),
        ("a100-sxm-80gb", "0.8.5", 8192, 1024),
        ("a100-sxm-80gb", "0.9.2", 2048, 256),
        ("b200-sxm", "0.20.2", 8192, 1024),
        ("b200-sxm", "0.33.0", 16384, 1024),
        ("gb10-dgx-spark", "0.33.0", 2048, 256),
        ("cpu-xeon-8480plus", "0.33.0", 2048, 128),
    ],
)
def test_vllm_sizes_its_steps_by_memory(accelerator: str, version: str, tokens: int, sequences: int) -> None:
    found = on(accelerator, "vllm", version)
    assert (found.max_tokens, found.max_batch) == (tokens, sequences)


def test_vllm_versions() -> None:
    versions = ("0.13.0", "0.14.0", "0.19.1", "0.20.0")
    assert [on("h100-sxm", "vllm", v).overlaps for v in versions] == [False, True, True, True]
    assert [on("h100-sxm", "vllm", v).memory_share for v in versions] == [0.9, 0.9, 0.9, 0.92]
    assert [on("h100-sxm", "vllm", v).graphs_inside for v in versions] == [False, False, False, True]
    assert on("h100-sxm", "vllm", "nightly") == replace(on("h100-sxm", "vllm"), version="nightly")


@pytest.mark.parametrize(
    ("accelerator", "version", "tp", "share"),
    [
        ("h100-sxm", "0.4.1", 1, 0.88),
        ("h100-sxm", "0.4.1", 8, 0.81),
        ("h100-sxm", "0.3.5", 8, 0.82),
        ("h100-sxm", "0.4.8", 8, 0.834),
        ("h100-sxm", "0.5.3", 1, 0.829),
        ("h100-sxm", "0.5.3", 8, 0.821),
        ("h200-sxm", "0.5.3", 8, 0.898),
        ("a10g", "0.5.3", 1, 0.836),
        ("gb300", "0.5.10", 1, 0.905),
    ],
)
def test_sglang_leaves_room_by_its_own_rule(accelerator: str, version: str, tp: int, share: float) -> None:
    total = find_accelerator(accelerator).value.usable_bytes
    found = shares(on(accelerator, "sglang", version), total, np.array([float(tp)]), ONE)
    assert found[0] == pytest.approx(share, abs=0.012)


def test_sglang_cuts_prompts_by_memory_and_captures_more_with_more_devices() -> None:
    sizes = [on(name, "sglang", "0.5.6").max_tokens for name in ("a10g", "l40s", "h100-sxm", "b200-sxm")]
    assert sizes == [2048, 4096, 8192, 16384]
    assert largest_graph(on("h100-sxm", "sglang", "0.5.6"), np.array([1.0, 2.0, 4.0])).tolist() == [256.0, 256.0, 512.0]
    assert not on("h100-sxm", "sglang").mixes


def test_tensorrt_llm_takes_a_share_of_what_is_left_and_keeps_room_for_outputs() -> None:
    found = on("h100-sxm", "trtllm")
    assert found.share_of_free
    assert found.reserves_output
    assert (found.max_batch, found.max_tokens, found.block_tokens) == (2048, 8192, 32)
    assert found.graphs
    assert not on("h100-sxm", "trtllm", "0.17").graphs
    assert on("h100-sxm", "trtllm", "0.17").block_tokens == 64


def test_own_all_reduce_by_family_and_devices() -> None:
    hopper, ada = on("h100-sxm", "vllm"), on("l40s", "vllm")
    assert [allowed(hopper.direct_limits, n) for n in (2, 4, 8, 3)] == [2.0**23, 2.0**23, 2.0**18, 0.0]
    assert allowed(hopper.switch_limits, 8) == 2.0**26
    assert allowed(ada.direct_limits, 8) == 2.0**23
    assert not ada.switch_limits
    assert hopper.collective_bytes > ada.collective_bytes
    assert on("rtx-3090", "vllm").collective_bytes == ada.collective_bytes


def test_engines_run_where_they_have_kernels() -> None:
    runs = {name: runs_on(engine(name), find_accelerator("mi300x").value) for name in engines_known()}
    assert runs["vllm"]
    assert runs["sglang"]
    assert not runs["trtllm"]
    assert runs_on(engine("llamacpp"), find_accelerator("apple-m4-max").value)
    assert runs_on(engine("vllm"), find_accelerator("cpu-xeon-8480plus").value)
    assert not runs_on(engine("exllamav2"), find_accelerator("cpu-xeon-8480plus").value)


def weights(architecture: Architecture, dtype: str, tp: int) -> float:
    """Bytes on one device: matrices in their format, embedding, head and vectors in 16 bits."""
    blocks = [architecture.blocks[kind] for kind in architecture.pattern]
    total = 2.0 * (architecture.embedding_parameters + architecture.head_parameters) / tp
    for block in blocks:
        total += 2.0 * block.vector_parameters
        for matrix in block.matrices:
            wide = dtype == "mxfp4" and matrix.role != "expert"
            each = 2.0 if wide else WEIGHT_BYTES[dtype]
            if dtype == "mxfp4" and not wide:
                # vLLM rounds the width up to whole multiples of 256 (layers/quantization/mxfp4.py).
                each *= -(-architecture.hidden // 256) * 256 / architecture.hidden
            total += matrix.parameters * each / (1 if matrix.split == "none" and matrix.role != "expert" else tp)
    return total


def cache_bytes_per_token(architecture: Architecture, tp: int, each: float) -> float:
    blocks = [architecture.blocks[kind] for kind in architecture.pattern]
    return each * sum(
        block.kv_elements_per_token / (min(tp, block.kv_heads) if block.mixer == "attention" else 1) for block in blocks
    )


def capacity_errors() -> dict[str, float]:
    """Relative error of the cache's size for every log that is to be scored."""
    found: dict[str, float] = {}
    with LOGS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for row in rows:
        if row["doubt"]:
            continue
        architecture, _ = find_architecture(row["model"])
        accelerator = find_accelerator(row["accelerator"]).value
        runs, tp = engine(row["engine"], row["version"], accelerator), int(row["tp"])
        usual = most_tokens(runs, float(row["max_model_len"] or 4096), row["offline"] == "yes")
        tokens, sequences = row["max_num_batched_tokens"] or usual, row["max_num_seqs"] or runs.max_batch
        group = np.array([float(tp)])
        step = profiled_bytes(runs, architecture, float(tokens), float(sequences), group) * runs.profiles
        share = float(row["memory_share"]) if row["memory_share"] else None
        held = np.array([weights(architecture, row["weight_dtype"], tp)])
        eager = row["eager"] == "yes"
        room = cache_room(runs, accelerator.usable_bytes, held, step, Split(group, ONE), share, graphs=not eager)[0]
        each = 1.0 if row["kv_dtype"] == "fp8" else 2.0
        tokens_said = float(row["tokens"] or 0.0) * cache_bytes_per_token(architecture, tp, each)
        found[row["id"]] = room / (tokens_said or float(row["kv_gib"]) * GIB) - 1.0
    return found


def test_the_cache_is_as_large_as_engines_print() -> None:
    errors = {id: abs(error) for id, error in capacity_errors().items()}
    assert len(errors) >= 15
    assert median(errors.values()) < 0.02
    assert max(errors.values()) < 0.10, errors


@settings(max_examples=examples(30), deadline=None)
@given(
    name=st.sampled_from(engines_known()),
    accelerator=st.sampled_from(["h100-sxm", "a10g", "mi300x", "gb300", "apple-m4-max"]),
    weights_gib=st.floats(0.1, 300),
    step_gib=st.floats(0, 50),
    tp=st.sampled_from([1, 2, 4, 8]),
    more=st.floats(0, 50),
)
def test_more_weights_never_leave_more_room(
    name: str, accelerator: str, weights_gib: float, step_gib: float, tp: int, more: float
) -> None:
    runs, total = on(accelerator, name), find_accelerator(accelerator).value.usable_bytes
    group = np.full(2, float(tp))
    held = np.array([weights_gib, weights_gib + more]) * GIB
    room = cache_room(runs, total, held, np.full(2, step_gib * GIB), Split(group, np.ones(2)))
    assert room[1] <= room[0]
    assert (room >= 0).all()
    assert (room + held <= total)[room > 0].all()


@settings(max_examples=examples(25), deadline=None)
@given(tokens=st.integers(1, 32768), sequences=st.integers(1, 4096), tp=st.sampled_from([1, 2, 4, 8]))
def test_larger_steps_take_more(tokens: int, sequences: int, tp: int) -> None:
    architecture, _ = find_architecture("Qwen/Qwen3-235B-A22B")
    runs, group = on("h100-sxm", "vllm"), np.full(3, float(tp))
    found = profiled_bytes(
        runs,
        architecture,
        np.array([tokens, tokens + 1, tokens]),
        np.array([sequences, sequences, sequences + 1]),
        group,
    )
    assert found[1] > found[0]
    assert found[2] >= found[0]
    alone = profiled_bytes(runs, architecture, float(tokens), float(sequences), np.array([float(tp)]))
    assert alone[0] == found[0]


def test_ollama_is_llama_cpp_with_room_by_the_size_of_the_device() -> None:
    ollama, kin = on("rtx-4090", "ollama"), on("rtx-4090", "llamacpp")
    assert (ollama.layer_kernels, ollama.lends_from) == (kin.layer_kernels, kin.lends_from)
    assert (ollama.max_batch, kin.max_batch) == (1, 4)
    assert engine_lineage("ollama") == ["ollama", "llamacpp"]
    sizes = [on(name, "ollama").context for name in ("rtx-3060-12gb", "rtx-4090", "rtx-6000-ada", "h100-sxm")]
    assert sizes == [4096, 32768, 262144, 262144]


def test_mlx_runs_on_apple_silicon_alone() -> None:
    able = {row.vendor for row in accelerators() if runs_on(engine("mlx"), row)}
    assert able == {"Apple"}
