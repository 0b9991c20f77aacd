"""One forward pass of a serving engine: hand-computed on a machine without losses, and what must hold on any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from deployment_jobs import LARGE, SMALL, faster, jobs, make, one
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.machine.decode import DecodeKernel, ExpertKernel
from estimator.machine.matmul import MatmulSurface
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import estimate
from estimator.serving.passes import PassTime, pass_time
from estimator.serving.space import deployments
from knowledge.fitted.serving import SHARED

PARTS = ("matmul", "attention", "memory", "collective", "host")
MIXTRAL, GEMMA, V2_LITE = "mistralai/Mixtral-8x7B-v0.1", "google/gemma-2-9b", "deepseek-ai/DeepSeek-V2-Lite"

# Llama-3.1: parameters of the blocks' matrices, and of the head.
BLOCKS = {
    SMALL: 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336),
    LARGE: 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672),
}
HEAD = {SMALL: 128256 * 4096, LARGE: 128256 * 8192}

LOSSLESS = MatmulSurface(height=1.0, memory=1.0, wave_outputs=0.0, half_k=0.0, unhidden=0.0, launch_s=0.0)
READS = DecodeKernel(memory=1.0, compute=1e3, tile_rows=1.0, launch_s=0.0, ramp_s=1e-15, block_s=0.0, key_s=0.0)
ROUTES = ExpertKernel(memory=1.0, height=1.0, launch_s=0.0, passes=0.0)


def lossless(job: ServingJob) -> ServingJob:
    """The same job where kernels reach all of the bandwidth or of the peak, start at once and have no host."""
    plain = dict.fromkeys([*SHARED, "launch"], 1.0) | {"layer_s": 0.0, "host": 0.0, "step_s": 0.0}
    factors = replace(job.factors, **plain)
    device = replace(job.device, memory=1.0, launch_s=0.0, surfaces=dict.fromkeys(job.device.surfaces, LOSSLESS))
    return replace(job, factors=factors, device=device, decode_kernels=(READS, READS), expert_kernel=ROUTES)


def a_pass(job: ServingJob, these: Deployments, decoding: float, reading: float, context: float = 1.0) -> PassTime:
    """One pass of every deployment; its arrays have shape (1, n)."""
    one_row = np.ones((1, len(these)))
    return pass_time(job, these, decoding * one_row, reading * one_row, np.full(len(these), float(context)))


def of(time: PassTime, name: str = "total") -> float:
    return float(getattr(time, name)[0, 0])


@pytest.mark.parametrize("model", [SMALL, LARGE])
@pytest.mark.parametrize(("dtype", "size"), [("bf16", 2.0), ("fp8", 1.0), ("awq", 4.15625 / 8)])
@pytest.mark.parametrize("tp", [1, 4])
def test_one_sequence_takes_its_weights_over_the_bandwidth(model: str, dtype: str, size: float, tp: int) -> None:
    job, these = one(model, count=tp, layout={"tp": tp}, weight_dtype=dtype)
    ideal = lossless(job)
    weights = (BLOCKS[model] * size + HEAD[model] * 2.0) / tp
    assert of(a_pass(ideal, these, 1, 0), "matmul") == pytest.approx(
        weights / ideal.machine.accelerator.memory_bandwidth, rel=0.01
    )


@pytest.mark.parametrize("accelerator", ["h100-sxm", "h200-sxm", "a100-sxm-80gb", "b200-sxm"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_large_models_come_near_to_that_with_what_is_fitted(accelerator: str, engine: str) -> None:
    job, these = one(LARGE, accelerator, engine=engine)
    least = 2.0 * (BLOCKS[LARGE] + HEAD[LARGE]) / job.machine.accelerator.memory_bandwidth
    assert least < of(a_pass(job, these, 1, 0)) < 1.75 * least


def test_key_heads_that_are_fewer_than_devices_are_held_twice() -> None:
    job, these = one(count=16, layout={"tp": 16})
    ideal = lossless(job)
    # Each of 16 devices holds one of 8 key heads and one of 8 value heads.
    weights = 2.0 * ((BLOCKS[SMALL] - 32 * 2 * 4096 * 1024 + HEAD[SMALL]) / 16 + 32 * 2 * 4096 * 128)
    assert of(a_pass(ideal, these, 1, 0), "matmul") == pytest.approx(
        weights / ideal.machine.accelerator.memory_bandwidth, rel=0.01
    )


def test_a_long_prompt_takes_its_flop_over_the_peak() -> None:
    job, these = one(input_len=16384, output_len=1)
    ideal, tokens = lossless(job), 16384
    found, peak = a_pass(ideal, these, 0, tokens), ideal.peak_flops
    # Of all its tokens the last alone needs logits.
    assert of(found, "matmul") == pytest.approx(2.0 * BLOCKS[SMALL] * tokens / peak, rel=0.01)
    scores = 32 * 32 * tokens * tokens / 2
    assert 1.0 / 0.85 <= of(found, "attention") / (2.0 * 2 * 128 * scores / peak) < 3.0
    real = of(a_pass(job, these, 0, tokens))
    assert 1.2 < real / (2.0 * BLOCKS[SMALL] * tokens / peak) < 3.0


def test_a_prompt_whose_beginning_is_cached_has_its_keys_but_not_its_work() -> None:
    job, whole = one(input_len=32768)
    cached = replace(whole, prefix_hit=np.array([0.75]))
    assert cached.read_len[0] == 8192
    first, second = a_pass(job, whole, 0, 8192), a_pass(job, cached, 0, 8192)
    assert of(second, "matmul") == pytest.approx(of(first, "matmul"), rel=1e-3)
    # Keys of a token: 16384 on average of a whole prompt, 24576 and a half of 8192 where the rest is there.
    assert of(second, "attention") / of(first, "attention") == pytest.approx(28672 / 16384, rel=0.02)


@pytest.mark.parametrize(
    ("model", "dtype", "per_token"),
    [(SMALL, "bf16", 131072), (SMALL, "fp8", 65536), (V2_LITE, "bf16", 27 * 576 * 2)],
)
def test_generation_reads_the_cache(model: str, dtype: str, per_token: int) -> None:
    job, these = one(model, kv_dtype=dtype)
    found = of(a_pass(lossless(job), these, 64, 0, 4096), "attention")
    assert found == pytest.approx(64 * 4096 * per_token / job.machine.accelerator.memory_bandwidth, rel=0.01)


def test_windows_bound_what_generation_reads_and_prompts_see() -> None:
    job, these = one(GEMMA, input_len=32768, output_len=1)
    ideal, bandwidth = lossless(job), job.machine.accelerator.memory_bandwidth
    keys = 21 * (32768 + 4096) * 2 * 8 * 256 * 2
    assert of(a_pass(ideal, these, 8, 0, 32768), "attention") == pytest.approx(8 * keys / bandwidth, rel=0.01)
    unbounded = replace(ideal, engine=replace(ideal.engine, bounds_windows=False))
    ratio = of(a_pass(ideal, these, 0, 8192), "attention") / of(a_pass(unbounded, these, 0, 8192), "attention")
    assert 0.5 < ratio < 0.7


def test_one_token_reads_the_experts_that_it_goes_to_and_many_all() -> None:
    job, these = one(MIXTRAL, "h200-sxm", 2, layout={"tp": 2})
    ideal, bandwidth = lossless(job), job.machine.accelerator.memory_bandwidth
    attention = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024) + 32000 * 4096
    expert, router = 32 * 3 * 4096 * 14336, 32 * 8 * 4096
    alone, crowd = (of(a_pass(ideal, these, count, 0), "matmul") for count in (1, 64))
    assert alone == pytest.approx(2 * ((attention + 2 * expert) / 2 + router) / bandwidth, rel=0.02)
    assert crowd == pytest.approx(2 * ((attention + 8 * expert) / 2 + router) / bandwidth, rel=0.05)


# Of one step, by running shared experts in a stream of their own: vLLM pulls 26440 (TPOT 23.35 to 22.09 ms) and 38990
# (36.8 to 41.8 tokens/s), SGLang pull 12660 (193.98 to 205.84 tokens/s).
SIDE_BY_SIDE = [
    ("deepseek-ai/DeepSeek-R1", "b200-sxm", 8, "vllm", "fp8", 32, 0.057),
    ("zai-org/GLM-5", "rtx-pro-6000-blackwell-server", 8, "vllm", "nvfp4", 1, 0.136),
    ("moonshotai/Kimi-Linear-48B-A3B-Instruct", "h100-sxm", 2, "sglang", "bf16", 1, 0.061),
]


@pytest.mark.parametrize(("model", "accelerator", "count", "engine", "dtype", "load", "gain"), SIDE_BY_SIDE)
def test_shared_experts_beside_the_routed_ones_save_about_what_was_published(
    model: str, accelerator: str, count: int, engine: str, dtype: str, load: int, gain: float
) -> None:
    layout = {"tp": count, "pp": 1, "ep": 1, "dp": 1}
    job, these = one(model, accelerator, count, layout=layout, engine=engine, weight_dtype=dtype)
    apart = replace(job, engine=replace(job.engine, shared_beside=0))
    saved = of(a_pass(apart, these, load, 0, 500)) / of(a_pass(job, these, load, 0, 500)) - 1.0
    assert 0.4 * gain < saved < 1.6 * gain


def test_shared_experts_of_many_tokens_wait_their_turn() -> None:
    job, these = one("deepseek-ai/DeepSeek-R1", "b200-sxm", 8, layout={"tp": 8}, weight_dtype="fp8")
    apart = replace(job, engine=replace(job.engine, shared_beside=0))
    few, many = (of(a_pass(apart, these, n, 0)) - of(a_pass(job, these, n, 0)) for n in (256, 257))
    assert few > 0.0
    assert many == 0.0


def test_linear_attention_splits_all_its_projections() -> None:
    """It keeps a state and no keys, of which each device would have to hold a head."""
    model = "moonshotai/Kimi-Linear-48B-A3B-Instruct"
    whole, part = (one(model, "h200-sxm", count, layout={"tp": count}) for count in (1, 4))
    alone, split = (of(a_pass(lossless(job), these, 1, 0), "matmul") for job, these in (whole, part))
    assert split < 0.3 * alone


def test_whole_experts_on_every_device_read_as_much_as_parts_of_all() -> None:
    job = make(MIXTRAL, "h200-sxm", 4, layout={"tp": 4, "pp": 1, "dp": 1}, engine="sglang")
    these = deployments(job)
    assert these.ep.tolist() == [1, 2, 4]
    crowd = a_pass(lossless(replace(job, expert_spread=1.0)), these, 128, 0).matmul[0]
    np.testing.assert_allclose(crowd, crowd[0], rtol=0.02)


def test_lanes_send_their_tokens_to_experts_of_all_devices() -> None:
    job = make(MIXTRAL, "h200-sxm", 4, layout={"pp": 1, "ep": 4})
    these = deployments(job)
    assert these.tp.tolist() == [1, 2, 4]
    assert these.dp.tolist() == [4, 2, 1]
    found = a_pass(job, these, 32, 0)
    assert (found.collective[0] > 0).all()
    # What is not an expert is read whole by each lane.
    assert (np.diff(found.matmul[0]) < 0).all()


def test_sums_over_a_tensor_group_cost_time_and_one_device_has_none() -> None:
    job = make(count=8, layout={"pp": 1})
    these = deployments(job)
    found = a_pass(job, these, 32, 0).collective[0]
    assert these.tp.tolist() == [1, 2, 4, 8]
    assert found[0] == 0.0
    assert (found[1:] > 0).all()
    tensor = a_pass(job, these, 2000, 0).collective[0]
    assert (tensor[1:] > found[1:]).all()


def test_a_pipeline_is_as_long_as_all_its_stages_and_the_sends_between_them() -> None:
    job = make(count=4, layout={"tp": 1})
    these = deployments(job)
    found = a_pass(job, these, 16, 0, 1000)
    assert these.pp.tolist() == [1, 2, 4]
    for name in ("matmul", "attention", "memory"):
        assert len(set(getattr(found, name)[0])) == 1, name
    sends = found.collective[0]
    assert sends[0] == 0.0
    assert sends[2] == pytest.approx(3.0 * sends[1])


def test_drafted_tokens_are_read_with_their_sequence() -> None:
    plain, drafting = one(), one(speculative_tokens=3)
    assert drafting[0].checked_tokens == 4.0
    few, many = (of(a_pass(*drafting, count, 0), "matmul") for count in (1, 512))
    # Four rows read the same weights as one; two thousand are bound by arithmetic.
    assert few == pytest.approx(of(a_pass(*plain, 1, 0), "matmul"), rel=0.02)
    assert many == pytest.approx(of(a_pass(*plain, 2048, 0), "matmul"), rel=1e-9)


def test_what_is_launched_kernel_by_kernel_takes_no_less_than_its_launches() -> None:
    job, these = one("Qwen/Qwen2.5-0.5B")
    job = replace(job, engine=replace(job.engine, launch_s=5e-5))
    alone, _ = one("Qwen/Qwen2.5-0.5B", cuda_graph=False)
    alone = replace(alone, engine=job.engine)
    graph, eager = a_pass(job, these, 1, 0), a_pass(alone, these, 1, 0)
    launches = 24 * job.engine.layer_kernels * job.engine.launch_s * float(job.factors.host)
    assert of(graph) < launches <= of(eager) < launches * 1.2
    assert of(eager, "matmul") == of(graph, "matmul")
    # Long passes hide them, and no graph is replayed there.
    long, long_alone = a_pass(job, these, 1, 50_000), a_pass(alone, these, 1, 50_000)
    assert of(long_alone, "host") == of(long, "host") == pytest.approx(float(job.factors.step_s))


def test_host_work_is_hidden_where_it_overlaps() -> None:
    job, these = one()
    job = replace(job, engine=replace(job.engine, host_step_s=1e-3, host_sequence_s=1e-5))
    step = job.factors.step_s
    hidden = a_pass(job, these, 100, 0)
    assert of(hidden, "host") == pytest.approx(step)
    stepwise = a_pass(replace(job, engine=replace(job.engine, overlaps=False)), these, 100, 0)
    assert of(stepwise, "host") == pytest.approx(step + job.factors.host * 2e-3)
    long = replace(job, engine=replace(job.engine, host_step_s=1.0))
    assert of(a_pass(long, these, 100, 0)) == pytest.approx(step + job.factors.host * (1.0 + 1e-3))


@settings(max_examples=examples(30))
@given(jobs(), st.sampled_from([0, 1, 8, 500]), st.sampled_from([0, 1, 300, 8000]), st.sampled_from([1, 500, 60_000]))
def test_parts_are_finite_and_make_the_whole(fields: dict[str, Any], decoding: int, reading: int, context: int) -> None:
    job = make(**fields)
    these = deployments(job)
    found = a_pass(job, these, decoding, reading, context)
    parts = [getattr(found, name) for name in PARTS]
    for name, values in zip(PARTS, parts, strict=True):
        assert values.shape == (1, len(these)), name
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
    np.testing.assert_allclose(sum(parts), found.total, rtol=1e-12)
    assert (found.total > 0).all()
    if decoding + reading:
        assert (found.matmul > 0).all()


def never_slower(job: ServingJob, decoding: int, reading: int, factor: float, names: tuple[str, ...]) -> None:
    """Fails where a machine whose named rates are `factor` times as high takes longer for a part of a pass."""
    these = deployments(job)
    before, now = (a_pass(each, these, decoding, reading, 2000) for each in (job, faster(job, factor, *names)))
    for name in ("matmul", "attention", "memory", "collective", "total"):
        assert (getattr(now, name) <= getattr(before, name) * (1 + 1e-12)).all(), name


@settings(max_examples=examples(50))
@given(
    jobs(), st.sampled_from([(1, 0), (8, 0), (500, 0), (0, 300), (0, 8000)]), st.floats(1.01, 4.0),
    st.sampled_from([("memory_bandwidth",), ("peak_flops",), ("scaleup_bandwidth", "peer_bandwidth")]),
)  # fmt: skip
def test_a_faster_machine_is_never_slower(
    fields: dict[str, Any], load: tuple[int, int], factor: float, names: tuple[str, ...]
) -> None:
    never_slower(make(**fields), *load, factor, names)


def test_more_bandwidth_is_never_slower_where_prompts_are_fitted_much_slower() -> None:
    never_slower(make(engine="llamacpp"), 1, 300, 2.0, ("memory_bandwidth",))


@settings(max_examples=examples(25))
@given(jobs(), st.sampled_from([1, 8, 100]), st.sampled_from([1, 7, 400]))
def test_more_sequences_or_longer_ones_are_never_faster(fields: dict[str, Any], decoding: int, more: int) -> None:
    job = make(**fields)
    these = deployments(job)
    now, fuller, longer, read, read_more = (
        a_pass(job, these, *load).total
        for load in (
            (decoding, 0, 1000), (decoding + more, 0, 1000), (decoding, 0, 1000 + more), (0, 100, 1), (0, 100 + more, 1)
        )
    )  # fmt: skip
    assert (longer >= now * (1 - 1e-9)).all()
    # A sum over devices may change to a kernel that is faster than the one that the engine takes for less.
    alone = these.tp * these.dp == 1
    for before, after in ((now, fuller), (read, read_more)):
        assert (after >= before * (1 - 1e-9))[:, alone].all()
        assert (after >= before * 0.9).all()


def shortest_mixed(accelerator: str, engine: str, model: str) -> float:
    """A step with prompt tokens over the same without, the least of several."""
    job, these = one(model, accelerator, engine=engine)
    return min(
        of(a_pass(job, these, decoding, reading, 1000)) / of(a_pass(job, these, decoding, 0, 1000))
        for decoding in (1, 16, 128)
        for reading in (1, 64, 1024)
    )


@pytest.mark.parametrize("accelerator", ["h100-sxm", "a100-sxm-80gb", "b200-sxm", "l40s"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_prompts_beside_generation_make_a_step_longer(accelerator: str, engine: str) -> None:
    assert shortest_mixed(accelerator, engine, SMALL) > 0.95


def test_prompts_beside_generation_make_a_step_longer_where_prompts_are_fitted_much_faster() -> None:
    assert shortest_mixed("mi300x", "sglang", SMALL) > 0.95


@settings(max_examples=examples(20))
@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 9000)), min_size=2, max_size=5))
def test_a_pass_is_the_same_alone_and_among_others(loads: list[tuple[int, int]]) -> None:
    job = make(MIXTRAL, count=4)
    these = deployments(job)
    decoding, reading = (
        np.array(values, dtype=np.float64)[:, None] + np.zeros(len(these)) for values in zip(*loads, strict=True)
    )
    together = pass_time(job, these, decoding, reading, np.full(len(these), 500.0))
    for row, (few, many) in enumerate(loads):
        alone = a_pass(job, these, few, many, 500)
        for name in PARTS:
            np.testing.assert_allclose(getattr(together, name)[row], getattr(alone, name)[0], rtol=1e-12, atol=1e-18)
        assert together.part(row).total.tolist() == together.total[row].tolist()


def test_experts_of_one_token_take_less_the_faster_memory_is() -> None:
    rates = []
    for accelerator in ("rtx-3060-12gb", "rtx-3090", "rtx-4090", "rtx-5090", "h100-sxm", "b200-sxm"):
        fields = {"engine": "llamacpp", "weight_dtype": "q4_k_m", "scenario": "single-stream"}
        job = make("Qwen/Qwen3-30B-A3B", accelerator, **fields)
        rates.append(1.0 / float(estimate(job, deployments(job)).steady.tpot_s[0]))
    assert rates == sorted(rates)
