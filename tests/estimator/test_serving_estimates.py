"""Serving estimates as a whole: what must hold of any model, machine, engine, layout and load."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from deployment_jobs import LARGE, SMALL, estimate_of, faster, jobs, make, one
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.serving.estimates import ServingEstimates, estimate, most_running
from estimator.serving.memory import serving_memory
from estimator.serving.space import deployments

FIGURES = ("running", "tpot_s", "ttft_s", "ttft_p99_s", "tpot_p99_s", "e2e_s", "requests_per_s")
PLAIN: dict[str, Any] = {
    "model": SMALL, "accelerator": "h100-sxm", "count": 4, "engine": "vllm", "weight_dtype": "bf16", "kv_dtype": "auto",
    "input_len": 2000, "output_len": 200, "concurrency": 64,
}  # fmt: skip

# How requests come, each with what it does not have.
LOADS = (
    {}, {"request_rate": 2.0, "concurrency": None}, {"request_rate": 1e4, "concurrency": None},
    {"scenario": "offline", "concurrency": None}, {"scenario": "single-stream"}, {"scenario": "static-batch"},
    {"concurrency": None, "tpot_slo_ms": 30.0}, {"concurrency": None, "ttft_slo_ms": 1000.0},
    {"requests": 20_000}, {"output_spread": 0.5}, {"output_spread": 0.0}, {"chunked_prefill": False},
    {"chunked_prefill": True}, {"speculative_tokens": 3}, {"prefix_hit": 0.8}, {"max_batch": 8},
    {"max_batched_tokens": 256}, {"cuda_graph": False}, {"admission_steps": 8}, {"memory_share": 0.5},
)  # fmt: skip
loads = st.sampled_from(LOADS)


def everything(fields: dict[str, Any]) -> ServingEstimates:
    job = make(**fields)
    return estimate(job, deployments(job))


@settings(max_examples=examples(100))
@given(jobs(), loads)
@example(PLAIN, {})
@example(PLAIN | {"model": "deepseek-ai/DeepSeek-V3", "count": 8, "weight_dtype": "fp8"}, {})
def test_figures_are_finite_positive_and_agree(fields: dict[str, Any], load: dict[str, Any]) -> None:
    found = everything(fields | load)
    these, steady = found.deployments, found.steady
    for name in FIGURES:
        values = getattr(steady, name)
        assert values.shape == (len(these),), name
        assert np.isfinite(values).all(), name
        assert (values > 0).all(), name
    assert (steady.ttft_p99_s >= steady.ttft_s).all()
    assert (steady.tpot_p99_s >= steady.tpot_s).all()
    assert (steady.e2e_s >= steady.ttft_s).all()
    assert (steady.reading_share >= 0).all()
    answer = np.maximum(1.0, these.output_len - 1.0)
    np.testing.assert_allclose(steady.e2e_s, steady.ttft_s + answer * steady.tpot_s, rtol=1e-9)
    np.testing.assert_allclose(found.requests_per_s, steady.requests_per_s)
    np.testing.assert_allclose(found.output_tokens_per_s, found.requests_per_s * these.output_len)
    np.testing.assert_allclose(
        found.total_tokens_per_s - found.output_tokens_per_s, found.requests_per_s * these.input_len, rtol=1e-6
    )
    for part in (steady.generating, steady.reading):
        assert (part.total > 0).all()
    # A sequence waits for a step for each token at least.
    assert (steady.generating.total <= steady.tpot_s * make(**fields | load).tokens_per_step * 1.5).all()


@settings(max_examples=examples(60))
@given(jobs(), loads, st.integers(0, 10**6))
def test_an_estimate_is_the_same_alone_and_in_a_batch(fields: dict[str, Any], load: dict[str, Any], draw: int) -> None:
    job = make(**fields | load)
    these = deployments(job)
    batch, index = estimate(job, these), draw % len(these)
    alone = estimate(job, these.take(np.array([index])))
    for name in FIGURES:
        assert getattr(alone.steady, name)[0] == pytest.approx(getattr(batch.steady, name)[index], rel=1e-9), name
    for name, values in batch.memory.components.items():
        assert alone.memory.components[name][0] == pytest.approx(values[index], rel=1e-9), name
    assert alone.memory.fits[0] == batch.memory.fits[index]
    assert alone.memory.max_concurrency[0] == batch.memory.max_concurrency[index]


@settings(max_examples=examples(60))
@given(
    jobs(), loads.filter(lambda load: "request_rate" not in load), st.floats(1.05, 3.0),
    st.sampled_from([("memory_bandwidth",), ("peak_flops",), ("scaleup_bandwidth", "peer_bandwidth")]),
)  # fmt: skip
def test_a_faster_machine_never_serves_less_or_later(
    fields: dict[str, Any], load: dict[str, Any], factor: float, names: tuple[str, ...]
) -> None:
    job = make(**fields | load)
    these = deployments(job)
    rounding = np.where(np.isnan(these.request_rate), 0.03, 1e-9)
    before, now = estimate(job, these), estimate(faster(job, factor, *names), these)
    # A rate within limits of latency is one of some that are tried.
    assert (now.requests_per_s >= before.requests_per_s * (1 - rounding)).all()
    if not np.isnan(these.request_rate).any():
        assert (now.steady.tpot_s <= before.steady.tpot_s * 1.001).all()
        assert (now.steady.e2e_s <= before.steady.e2e_s * 1.001).all()


@settings(max_examples=examples(50))
@given(jobs(input_len=(16, 200, 2000), output_len=(200, 1000), count=(1, 2, 4)), st.sampled_from([2, 3]))
@example(PLAIN, 2)
def test_more_clients_never_bring_less_and_never_shorten_a_step(fields: dict[str, Any], times: int) -> None:
    job = make(**fields)
    these = deployments(job)
    more = replace(these, concurrency=times * these.concurrency, requests=times * these.requests)
    few, many = estimate(job, these).steady, estimate(job, more).steady
    # A tensor group changes the kernel of its sums with their size.
    least = np.where(these.tp > 1, 0.94, 0.98)
    assert (many.requests_per_s >= few.requests_per_s * least).all()
    assert (many.tpot_s >= few.tpot_s * least).all()


@settings(max_examples=examples(50))
@given(jobs(count=(1,)), loads.filter(lambda load: load.get("scenario") not in ("single-stream", "static-batch")))
def test_replicas_serve_as_many_times_the_load(fields: dict[str, Any], load: dict[str, Any]) -> None:
    job = make(**fields | load)
    alone = deployments(job)
    alone = replace(alone, requests=np.minimum(alone.requests, 1000.0))
    three = replace(
        alone,
        replicas=3 * alone.replicas,
        concurrency=3 * alone.concurrency,
        request_rate=3 * alone.request_rate,
        requests=3 * alone.requests,
    )
    one_found, found = estimate(job, alone), estimate(job, three)
    np.testing.assert_allclose(found.requests_per_s, 3 * one_found.requests_per_s, rtol=1e-9)
    for name in ("tpot_s", "ttft_s", "running"):
        np.testing.assert_allclose(getattr(found.steady, name), getattr(one_found.steady, name), rtol=1e-9)
    np.testing.assert_allclose(found.memory.max_concurrency, 3 * one_found.memory.max_concurrency)
    np.testing.assert_allclose(found.memory.total, one_found.memory.total)


@settings(max_examples=examples(40))
@given(jobs(weight_dtype=("bf16",), accelerator=("h100-sxm", "b200-sxm", "a100-sxm-80gb")), loads)
def test_fewer_clients_than_there_is_room_for_all_run(fields: dict[str, Any], load: dict[str, Any]) -> None:
    job = make(**fields | load)
    these = deployments(job)
    found = estimate(job, these)
    most = most_running(job, these, serving_memory(job, these))
    assert (most >= 1).all()
    assert (found.steady.running <= most * (1 + 1e-9)).all()
    # Lanes of a batch in step have whole requests.
    clients = np.minimum(these.concurrency, 1e12) + these.lanes * job.in_step
    assert (found.steady.running * these.lanes <= np.maximum(clients, these.lanes) * (1 + 1e-9)).all()
    held = found.memory.components["kv_cache"]
    least = serving_memory(job, these).components["kv_cache"]
    assert (held >= least * (1 - 1e-12)).all()
    assert (held <= np.maximum(found.memory.room, least) * (1 + 1e-12)).all()


def test_a_lane_runs_what_its_cache_holds_of_requests_half_done() -> None:
    job, these = one(input_len=1000, output_len=1000, max_batch=1024, concurrency=5000)
    found = serving_memory(job, these)
    assert most_running(job, these, found)[0] == np.floor(found.room[0] / (131072 * 1500))
    keeps, _ = one(engine="trtllm", input_len=1000, output_len=1000, concurrency=5000)
    whole = serving_memory(keeps, these)
    # An engine that never evicts keeps room for the whole answer.
    assert most_running(keeps, these, whole)[0] == np.floor(whole.room[0] / (131072 * 2000))
    bounded, few = one(max_batch=8)
    assert most_running(bounded, few, serving_memory(bounded, few))[0] == 8.0


def test_memory_not_speed_is_why_a_large_model_is_split() -> None:
    job = make(LARGE, count=8)
    found = estimate(job, deployments(job))
    fits = {
        found.deployments.row(index)["tp"] * found.deployments.row(index)["pp"]: ok
        for index, ok in enumerate(found.memory.fits)
    }
    assert fits == {1: False, 2: True, 4: True, 8: True}


def test_splitting_a_model_shortens_its_steps_and_lowers_its_rate_per_device() -> None:
    one_user = [
        estimate_of(LARGE, "h200-sxm", tp, layout={"tp": tp}, concurrency=1).steady.tpot_s[0] for tp in (1, 2, 4, 8)
    ]
    assert one_user == sorted(one_user, reverse=True)
    assert one_user[0] / one_user[3] > 3.0
    busy = [
        estimate_of(SMALL, "h100-sxm", 8, layout={"tp": tp}, concurrency=2048).output_tokens_per_s[0] for tp in (1, 8)
    ]
    assert busy[0] > 1.5 * busy[1]


def test_smaller_weights_generate_faster_for_one() -> None:
    by_format = [
        estimate_of(LARGE, "h200-sxm", weight_dtype=dtype, concurrency=1, input_len=100).steady.tpot_s[0]
        for dtype in ("bf16", "fp8", "awq")
    ]
    assert by_format == sorted(by_format, reverse=True)
    assert 1.5 < by_format[0] / by_format[1] < 2.1


# Published and well-known: tokens per second of one user, with 80 % of what is read and computed at best.
@pytest.mark.parametrize(
    ("fields", "low", "high"),
    [
        ({"model": SMALL}, 110, 190),
        ({"model": SMALL, "weight_dtype": "fp8"}, 150, 300),
        ({"model": LARGE, "count": 8, "layout": {"tp": 8}}, 70, 150),
        ({"model": SMALL, "accelerator": "rtx-4090", "engine": "llamacpp", "weight_dtype": "q4_k_m"}, 90, 160),
        ({"model": SMALL, "accelerator": "a100-sxm-80gb"}, 65, 115),
    ],
)
def test_one_user_s_tokens_per_second_are_in_the_range_of_what_is_known(
    fields: dict[str, Any], low: float, high: float
) -> None:
    found = estimate_of(concurrency=1, input_len=100, **fields)
    assert low < 1.0 / found.steady.tpot_s[0] < high


@pytest.mark.parametrize("engine", ["hf", "gpt-fast"])
def test_engines_that_set_nothing_aside_fit_a_small_model_on_a_large_device(engine: str) -> None:
    found = estimate_of(engine=engine, concurrency=1)
    assert found.memory.fits[0]


def test_a_prompt_alone_reaches_its_experts() -> None:
    """All of a prompt's tokens go through experts, whether or not other prompts are read beside them."""
    alone, beside = (
        estimate_of("Qwen/Qwen3-30B-A3B", input_len=4096, output_len=16, concurrency=clients).steady.reading.matmul[0]
        for clients in (1, 2)
    )
    assert alone > 0.8 * beside


@pytest.mark.parametrize("engine", ["llamacpp", "ollama", "mlx"])
def test_a_token_alone_takes_about_as_long_as_reading_the_weights(engine: str) -> None:
    """Small models on a laptop too: their kernels multiply a vector, and have no tiles to fill."""
    dtype = "int4" if engine == "mlx" else "q4_k_m"
    load = {"input_len": 64, "output_len": 64, "scenario": "single-stream"}
    found = estimate_of("meta-llama/Llama-3.2-3B", "apple-m4-pro", engine=engine, weight_dtype=dtype, **load)
    # 1.8 to 2.0 GB at 273 GB/s; 10.5 ms were measured of llama.cpp (llmfit's community).
    assert 6.5e-3 < found.steady.tpot_s[0] < 14e-3
