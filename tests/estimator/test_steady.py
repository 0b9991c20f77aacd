"""Continuous batching: laws of closed and open loads, and hand-made schedules."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from deployment_jobs import LARGE, SMALL, clients, make, one, under
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.cycle import Steady
from estimator.serving.estimates import estimate, loads_of
from estimator.serving.passes import pass_time
from estimator.serving.space import deployments
from estimator.serving.steady import steady

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
ROOMY = np.array([4096.0])


def seconds(job: ServingJob, these: Deployments, decoding: float, reading: float, context: float = 1.0) -> float:
    """One pass of the first deployment."""
    first = these.take(np.array([0]))
    return float(pass_time(job, first, np.array([[decoding]]), np.array([[reading]]), np.array([context])).total[0, 0])


def closed(*counts: float, **fields: Any) -> Steady:
    """The steady state of one replica under several numbers of clients, with room for all."""
    job, these = one(**fields)
    return steady(job, clients(these, *counts), np.full(len(counts), 4096.0))


def stays_of_one(prompt: int, answer: int) -> tuple[ServingJob, Deployments, Steady]:
    job, these = one(scenario="single-stream", input_len=prompt, output_len=answer)
    return job, these, steady(job, these, ROOMY)


def test_one_request_alone_reads_its_prompt_and_then_generates() -> None:
    job, these, found = stays_of_one(100, 201)
    assert found.ttft_s[0] == pytest.approx(seconds(job, these, 0, 100), rel=0.05)
    assert found.tpot_s[0] == pytest.approx(seconds(job, these, 1, 0, 200.5), rel=0.01)
    assert found.e2e_s[0] == pytest.approx(found.ttft_s[0] + 200 * found.tpot_s[0], rel=1e-9)
    assert found.requests_per_s[0] == pytest.approx(1.0 / found.e2e_s[0], rel=1e-6)
    assert 0.0 < found.running[0] <= 1.0


def test_no_prompt_holds_up_one_request_alone() -> None:
    job, these, found = stays_of_one(8000, 50)
    assert found.tpot_s[0] == pytest.approx(seconds(job, these, 1, 0, 8025), rel=0.03)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize(("prompt", "answer"), [(100, 1000), (1000, 1000), (2000, 200)])
def test_requests_in_flight_are_the_rate_times_their_stay(engine: str, prompt: int, answer: int) -> None:
    # Called as a library, so that clients do nothing between two answers.
    fields = {"engine": engine, "input_len": prompt, "output_len": answer, "scenario": "offline"}
    found = closed(*COUNTS, **fields)
    np.testing.assert_allclose(found.requests_per_s * found.e2e_s, COUNTS, rtol=0.04)
    # The same law for those that generate.
    decode = (answer - 1) * found.tpot_s
    np.testing.assert_allclose(found.requests_per_s * decode, found.running, rtol=0.05)
    np.testing.assert_allclose(found.e2e_s, found.ttft_s + decode, rtol=1e-12)


def test_requests_in_flight_are_the_rate_times_their_stay_through_a_server() -> None:
    found = closed(*COUNTS, engine="sglang", input_len=1000, output_len=50)
    np.testing.assert_allclose(found.requests_per_s * found.e2e_s, COUNTS, rtol=0.05)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "mlc"])
@pytest.mark.parametrize(("prompt", "answer"), [(100, 1000), (1000, 1000), (2000, 200)])
def test_closed_rates_are_below_both_bounds(engine: str, prompt: int, answer: int) -> None:
    job, these = one(engine=engine, input_len=prompt, output_len=answer, scenario="offline")
    found = steady(job, clients(these, *COUNTS), np.full(len(COUNTS), 4096.0))
    alone = found.e2e_s[0]
    assert (found.requests_per_s <= np.array(COUNTS) / alone * (1 + 1e-6)).all()
    # No more than full steps of prompts alone read, and no more than steps that generate alone give.
    budget = float(these.max_tokens[0])
    reads = budget / seconds(job, these, 0, budget) / prompt
    assert (found.requests_per_s <= reads * 1.02).all()
    for count, rate in zip(COUNTS, found.requests_per_s, strict=True):
        assert rate <= count / ((answer - 1) * seconds(job, these, count, 0, prompt)) * 1.02


def test_long_prompts_are_not_read_faster_than_full_steps_of_them() -> None:
    job, these = one(input_len=8000, output_len=16, scenario="offline")
    found = steady(job, clients(these, 16, 64, 1000), np.full(3, 55.0))
    budget = float(these.max_tokens[0])
    assert (found.requests_per_s <= budget / seconds(job, these, 0, budget) / 8000 * 1.02).all()


@settings(max_examples=examples(20))
@given(
    st.sampled_from(["vllm", "sglang", "trtllm", "exllamav2"]), st.sampled_from([100, 1000, 4000]),
    st.sampled_from([100, 1000]), st.sampled_from([None, 0.0, 0.5]),
)  # fmt: skip
def test_more_clients_never_have_less_and_each_waits_longer(
    engine: str, prompt: int, answer: int, spread: float | None
) -> None:
    fields = {"engine": engine, "input_len": prompt, "output_len": answer, "output_spread": spread}
    found = closed(*COUNTS, **fields)
    assert (found.requests_per_s[1:] >= 0.98 * found.requests_per_s[:-1]).all()
    assert (found.tpot_s[1:] >= found.tpot_s[:-1] * 0.999).all()
    assert (found.ttft_s[1:] >= found.ttft_s[:-1] * 0.999).all()
    assert (found.running[1:] >= found.running[:-1] * 0.999).all()


def test_requests_that_find_no_place_wait_for_one() -> None:
    job, these = one(input_len=100, output_len=500)
    loads = clients(these, 32, 64, 128)
    free, full = steady(job, loads, np.full(3, 4096.0)), steady(job, loads, np.full(3, 32.0))
    assert full.running[0] == free.running[0]
    assert (full.running <= 32.0).all()
    np.testing.assert_allclose(full.requests_per_s, full.requests_per_s[0], rtol=0.02)
    # Half of 64 clients, three quarters of 128 are outside: by the rate, that is how long they wait.
    outside = full.ttft_s - full.ttft_s[0]
    assert outside[1:] == pytest.approx(np.array([32.0, 96.0]) / full.requests_per_s[0], rel=0.05)


def test_a_burst_waits_in_proportion_to_its_size() -> None:
    job, these = one("meta-llama/Llama-3.1-8B", input_len=2000, output_len=100)
    sizes = np.array([32.0, 64.0, 128.0, 256.0])
    found = steady(job, under(these, concurrency=sizes, requests=sizes), np.full(4, 4096.0))
    growth = np.diff(found.ttft_s)
    assert growth[1:] / growth[:-1] == pytest.approx([2.0, 2.0], rel=0.1)
    # The last one of a burst has waited for all prompts, the mean for half of them.
    reads = seconds(job, these, 0, 8192) * 2000 / 8192
    assert found.ttft_s[-1] == pytest.approx(0.5 * 256 * reads, rel=0.25)
    assert found.ttft_p99_s[-1] == pytest.approx(2.0 * found.ttft_s[-1], rel=0.2)


def test_a_longer_run_hides_its_burst() -> None:
    job, these = one(input_len=2000, output_len=200)
    loads = under(these, concurrency=[64.0] * 4, requests=[64.0, 640.0, 6400.0, np.inf])
    found = steady(job, loads, np.full(4, 4096.0))
    assert (np.diff(found.ttft_s) < 0).all()
    assert found.ttft_s[2] == pytest.approx(found.ttft_s[3], rel=0.2)
    assert found.requests_per_s[3] >= found.requests_per_s[0]


def test_clients_beyond_the_requests_of_a_run_change_nothing() -> None:
    job, these = one()
    found = steady(job, under(these, concurrency=[10.0, 1000.0], requests=[10.0, 10.0]), np.full(2, 4096.0))
    assert found.ttft_s[1] == pytest.approx(found.ttft_s[0])


def test_one_request_on_many_replicas_takes_time() -> None:
    job, these = one(count=8, scenario="offline", requests=1)
    assert steady(job, these, ROOMY).ttft_s[0] > 0.0


@pytest.mark.parametrize("scenario", ["offline", "single-stream"])
def test_runs_without_an_end_are_computed_in_silence(scenario: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        job, these = one(scenario=scenario)
        steady(job, these, ROOMY)


def test_answers_of_varied_length_leave_lanes_empty_at_the_end() -> None:
    job, these = one(output_spread=0.5)
    even, _ = one()
    loads = under(these, concurrency=[64.0, 64.0], requests=[128.0, np.inf])
    short, long = (steady(one_job, loads, np.full(2, 4096.0)).requests_per_s for one_job in (job, even))
    assert short[0] < long[0]
    assert short[1] == pytest.approx(long[1], rel=0.1)


def test_all_at_once_runs_as_many_as_there_is_room_for() -> None:
    job, these = one(scenario="offline", input_len=500, output_len=500)
    found = steady(job, under(these, requests=[np.inf, np.inf]), np.array([32.0, 256.0]))
    assert found.running == pytest.approx([32.0, 256.0], rel=0.05)
    assert found.requests_per_s[1] > 2.0 * found.requests_per_s[0]
    assert not found.saturated.any()


def test_a_static_batch_is_read_at_once_and_generates_in_step() -> None:
    job, these = one(scenario="static-batch", concurrency=16, input_len=500, output_len=101)
    found = steady(job, these, np.array([16.0]))
    prompts, token = seconds(job, these, 0, 16 * 500), seconds(job, these, 16, 0, 550.5)
    assert found.ttft_s[0] == pytest.approx(prompts, rel=0.02)
    assert found.tpot_s[0] == pytest.approx(token, rel=1e-6)
    assert found.requests_per_s[0] == pytest.approx(16 / (found.ttft_s[0] + 100 * token), rel=1e-6)
    assert found.running[0] == 16.0
    assert found.reading_share[0] == 0.0


def test_one_client_of_static_batches_is_served_by_one_replica() -> None:
    alone, eight = (one(count=count, scenario="static-batch", concurrency=1) for count in (1, 8))
    rates = [steady(job, these, np.array([1.0])).requests_per_s[0] for job, these in (alone, eight)]
    assert rates[1] == pytest.approx(rates[0])


def test_a_draft_that_is_never_kept_gives_one_token_a_step_and_all_kept_one_more_than_drafted() -> None:
    for kept, tokens in ((0.0, 1.0), (0.7, (1 - 0.7**4) / 0.3), (1.0, 4.0)):
        assert make(speculative_tokens=3, acceptance=kept).tokens_per_step == pytest.approx(tokens)
    assert make().tokens_per_step == 1.0
    plain, none, most = (
        closed(4, scenario="offline", output_len=1000, **drafts)
        for drafts in ({}, {"speculative_tokens": 3, "acceptance": 0.0}, {"speculative_tokens": 3, "acceptance": 1.0})
    )
    assert plain.tpot_s[0] < none.tpot_s[0] < 1.3 * plain.tpot_s[0]
    assert most.tpot_s[0] == pytest.approx(none.tpot_s[0] / 4, rel=0.05)
    assert most.requests_per_s[0] > 3.0 * none.requests_per_s[0]


def test_prompts_in_steps_of_their_own_stop_generation() -> None:
    fields = {"input_len": 2000, "output_len": 200, "output_spread": 0.5, "scenario": "offline"}
    (mixing, these), (apart, _) = one(chunked_prefill=True, **fields), one(chunked_prefill=False, **fields)
    assert mixing.mixes
    assert not apart.mixes
    loads = clients(these, 64)
    together, stopped = (steady(job, loads, ROOMY) for job in (mixing, apart))
    # Generation is done beside prompts for less than by itself.
    assert together.requests_per_s[0] > stopped.requests_per_s[0]
    assert together.requests_per_s[0] == pytest.approx(stopped.requests_per_s[0], rel=0.35)
    assert 0.0 < together.reading_share[0] <= 1.0
    # A step of prompts alone is what it reads and nothing more.
    assert stopped.reading.total[0] == pytest.approx(seconds(apart, loads, 0, 2000), rel=1e-6)
    assert together.reading.total[0] > seconds(mixing, loads, 0, 2000)


def test_more_tokens_in_a_step_read_prompts_in_fewer_steps() -> None:
    small, large = (
        closed(8, input_len=4000, output_len=400, max_batched_tokens=tokens, scenario="offline")
        for tokens in (512, 8192)
    )
    assert large.requests_per_s[0] == pytest.approx(small.requests_per_s[0], rel=0.2)
    assert large.reading_share[0] < 0.2 * small.reading_share[0]
    assert large.reading.total[0] > 3.0 * small.reading.total[0]


def test_cached_prompts_are_read_sooner() -> None:
    cold, warm = (closed(64, input_len=4000, output_len=100, prefix_hit=hit) for hit in (0.0, 0.9))
    assert warm.ttft_s[0] < 0.5 * cold.ttft_s[0]
    assert warm.requests_per_s[0] > 2.0 * cold.requests_per_s[0]


def test_looking_at_new_requests_less_often_makes_them_wait() -> None:
    often, seldom = (closed(64, output_len=500, admission_steps=steps, requests=100_000) for steps in (1, 10))
    assert seldom.ttft_s[0] - often.ttft_s[0] == pytest.approx(4.5 * often.tpot_s[0], rel=0.5)


def test_the_more_answers_differ_the_less_they_wait_for_each_other() -> None:
    waits = []
    for spread in (0.0, 0.02, 0.1, 0.5):
        job, these = one(output_spread=spread, chunked_prefill=False)
        endless = under(these, concurrency=[64.0], requests=[np.inf])
        waits.append(float(steady(job, endless, ROOMY).ttft_s[0]))
    assert waits == sorted(waits, reverse=True)


def test_lanes_that_share_experts_wait_for_each_others_prompts() -> None:
    job = make("deepseek-ai/DeepSeek-R1", "h200-sxm", 8, layout={"dp": 8, "ep": 8}, engine="vllm", output_len=500)
    these = under(deployments(job), concurrency=[256.0], requests=[np.inf])
    synchronous = replace(job, engine=replace(job.engine, balance_steps=1e-9))
    apart, at_once = (steady(one_job, these, ROOMY) for one_job in (job, synchronous))
    assert at_once.tpot_s[0] < apart.tpot_s[0] < 1.6 * at_once.tpot_s[0]


def test_requests_that_end_together_start_together() -> None:
    lock_step, mixed = one(output_spread=0.0, chunked_prefill=False), one(output_spread=0.5, chunked_prefill=False)
    endless = under(lock_step[1], concurrency=[64.0], requests=[np.inf])
    assert steady(lock_step[0], endless, ROOMY).ttft_s[0] > 2.0 * steady(mixed[0], endless, ROOMY).ttft_s[0]


def test_a_pipeline_is_no_faster_for_one_and_faster_for_many() -> None:
    (job, staged), (_, single) = one(LARGE, "h200-sxm", 4, layout={"pp": 4}), one(LARGE, "h200-sxm", 4)
    single = replace(single, replicas=np.array([1]))
    staged, single = clients(staged, 1, 256), clients(single, 1, 256)
    with_stages, without = (steady(job, these, np.full(2, 256.0)) for these in (staged, single))
    # Each stage waits between its steps, as the one of the other does.
    waits = 3.0 * float(job.factors.step_s)
    assert with_stages.tpot_s[0] - waits == pytest.approx(without.tpot_s[0], rel=0.02)
    assert with_stages.tpot_s[0] >= without.tpot_s[0]
    assert 2.0 < with_stages.requests_per_s[1] / without.requests_per_s[1] <= 4.0


def at_rates(job: ServingJob, these: Deployments, rates: Any, requests: float = np.inf) -> Steady:
    loads = under(these, request_rate=rates, concurrency=[np.inf] * len(rates), requests=[requests] * len(rates))
    return steady(job, loads, np.full(len(rates), 256.0))


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize(("prompt", "answer"), [(200, 1000), (2000, 200)])
def test_arrivals_at_random_wait_longer_the_more_there_are(engine: str, prompt: int, answer: int) -> None:
    job, these = one(engine=engine, input_len=prompt, output_len=answer, request_rate=1.0)
    most = at_rates(job, these, [1e6]).requests_per_s[0]
    shares = np.linspace(0.02, 0.98, 25)
    found = at_rates(job, these, shares * most)
    assert found.requests_per_s == pytest.approx(shares * most)
    assert not found.saturated.any()
    assert (np.diff(found.ttft_s) >= -1e-9).all()
    assert (np.diff(found.tpot_s) >= -1e-9).all()
    assert (np.diff(found.running) > 0).all()
    assert (found.ttft_p99_s >= found.ttft_s).all()
    # Little's law for those that generate.
    assert found.running == pytest.approx(found.requests_per_s * (answer - 1) * found.tpot_s, rel=0.03)


def test_arrivals_at_a_pipeline_wait_longer_the_more_there_are() -> None:
    job, these = one(count=8, layout={"pp": 8}, input_len=2000, output_len=20, request_rate=1.0)
    most = at_rates(job, these, [1e6]).requests_per_s[0]
    found = at_rates(job, these, np.linspace(0.02, 0.9, 40) * most)
    # As long as stages are idle, more requests find more of them.
    assert (found.ttft_s >= 0.95 * np.maximum.accumulate(found.ttft_s)).all()
    assert (found.tpot_s >= np.maximum.accumulate(found.tpot_s) * (1 - 1e-9)).all()
    assert found.ttft_s[-1] > 1.2 * found.ttft_s[0]


def test_a_rate_beyond_what_can_be_served_is_said_and_its_queue_grows() -> None:
    job, these = one(request_rate=1.0)
    most = at_rates(job, these, [1e6]).requests_per_s[0]
    within = 1.0 + job.factors.throughput_spread
    found = at_rates(job, these, np.array([0.9, 0.99, within * 1.01, within * 2.0]) * most, requests=1000)
    assert found.saturated.tolist() == [False, False, True, True]
    assert found.requests_per_s[2:] == pytest.approx([most, most])
    assert found.ttft_s[3] > found.ttft_s[2] > 5.0 * found.ttft_s[0]
    # Each begins when it came, or when the one that is as many before it as run at once has ended.
    places, lasts = round(float(found.running[3])), float(found.e2e_s[3] - found.ttft_s[3] + found.ttft["reading"][3])
    begun: list[float] = []
    for number in range(1000):
        came = number / (within * 2.0 * most)
        begun.append(max(came, begun[number - places] + lasts) if number >= places else came)
    waits = [start - number / (within * 2.0 * most) for number, start in enumerate(begun)]
    assert found.ttft["backlog"][3] == pytest.approx(sum(waits) / 1000, rel=0.1)
    assert found.ttft_p99_s[3] == pytest.approx(sorted(waits)[990], rel=0.15)


def test_few_arrivals_are_each_alone() -> None:
    job, these = one(request_rate=1e-4, input_len=1000, output_len=201)
    found, alone = steady(job, these, ROOMY), one(scenario="single-stream", input_len=1000, output_len=201)
    by_itself = steady(*alone, ROOMY)
    assert found.tpot_s[0] == pytest.approx(by_itself.tpot_s[0], rel=0.02)
    way = float(job.request_s(np.zeros(1))[0])
    assert found.ttft_s[0] - way == pytest.approx(by_itself.ttft_s[0], rel=0.06)
    assert found.running[0] == pytest.approx(1e-4 * 200 * found.tpot_s[0], rel=0.02)


def test_clients_and_arrivals_at_the_same_rate_find_the_same_steps() -> None:
    job, these = one(input_len=500, output_len=500, output_spread=0.3)
    waiting = steady(job, under(these, concurrency=[64.0], requests=[np.inf]), np.array([256.0]))
    arriving = at_rates(job, these, waiting.requests_per_s)
    assert arriving.tpot_s[0] == pytest.approx(waiting.tpot_s[0], rel=0.05)
    assert arriving.running[0] == pytest.approx(waiting.running[0], rel=0.05)


def most_within(**limits: Any) -> float:
    job, these = one(input_len=500, output_len=500, **limits)
    assert np.isnan(these.request_rate).all()
    found = steady(job, these, np.array([256.0]))
    assert found.requests_per_s[0] > 0.0
    return float(found.requests_per_s[0])


def test_the_highest_rate_within_limits_meets_them_and_falls_with_them() -> None:
    by_token = [most_within(tpot_slo_ms=limit) for limit in (10, 15, 20, 30, 60, 1000)]
    assert by_token == sorted(by_token)
    assert by_token[0] < 0.5 * by_token[-1]
    by_first = [most_within(ttft_slo_ms=limit) for limit in (150, 250, 400, 1000, 60_000)]
    assert by_first == sorted(by_first)
    assert most_within(ttft_slo_ms=400, tpot_slo_ms=20) <= min(by_first[2], by_token[2])
    job, these = one(input_len=500, output_len=500, ttft_slo_ms=1000, tpot_slo_ms=20)
    found = steady(job, these, np.array([256.0]))
    assert found.tpot_p99_s[0] <= 20e-3 * 1.01  # loads are tried at points
    assert found.ttft_p99_s[0] <= 1.0
    assert not found.saturated[0]


def test_a_rate_a_tenth_above_the_highest_within_limits_misses_them() -> None:
    for limit in (12.0, 15.0, 20.0):
        job, these = one(input_len=500, output_len=500, tpot_slo_ms=limit)
        found = steady(job, these, np.array([256.0]))
        above = at_rates(job, these, 1.1 * found.requests_per_s)
        assert above.tpot_p99_s[0] > limit / 1e3


def test_a_limit_that_nothing_meets_leaves_one_request_at_a_time() -> None:
    job, these = one(input_len=500, output_len=500, tpot_slo_ms=0.1)
    found = steady(job, these, np.array([256.0]))
    assert found.running[0] == pytest.approx(1.0, rel=0.05)
    assert found.tpot_s[0] > 1e-4


def alone_and_among(model: str, loads: list[tuple[float, float]], at_random: bool) -> None:
    """Fails where a load (clients or rate, prompt) has another answer by itself than in a batch."""
    job = make(model, count=4)
    counts, prompts = (np.array(values) for values in zip(*loads, strict=True))
    rates = np.where(np.isfinite(counts), counts, 1000.0) if at_random else np.zeros(len(loads))
    asked = np.full(len(loads), np.inf) if at_random else counts
    every = under(deployments(job), concurrency=asked, input_len=prompts, request_rate=rates)
    together = steady(job, every, np.full(len(loads), 200.0))
    for index in range(len(loads)):
        alone = steady(job, every.take(np.array([index])), np.array([200.0]))
        for name in ("running", "tpot_s", "ttft_s", "ttft_p99_s", "e2e_s", "requests_per_s", "reading_share"):
            assert getattr(alone, name)[0] == pytest.approx(getattr(together, name)[index], rel=1e-9), name


@settings(max_examples=examples(12))
@given(
    st.sampled_from([SMALL, "mistralai/Mixtral-8x7B-v0.1", "deepseek-ai/DeepSeek-V2-Lite"]),
    st.lists(
        st.tuples(st.sampled_from([1.0, 8.0, 300.0, np.inf]), st.sampled_from([10.0, 1000.0, 20000.0])),
        min_size=2,
        max_size=4,
    ),
    st.booleans(),
)  # fmt: skip
def test_a_load_is_the_same_alone_and_among_others(
    model: str, loads: list[tuple[float, float]], at_random: bool
) -> None:
    alone_and_among(model, loads, at_random)


def test_a_load_of_a_model_with_windows_is_the_same_alone_and_among_others() -> None:
    alone_and_among("google/gemma-2-9b", [(8.0, 500.0), (8.0, 20000.0)], at_random=False)


def test_engines_without_a_batch_run_one_and_those_in_step_all_of_it() -> None:
    job, these = one(engine="gpt-fast", concurrency=16)
    single = estimate(job, these).steady
    assert single.running[0] <= 1.0
    assert single.ttft_s[0] > 14 * 255 * single.tpot_s[0]
    job, these = one(engine="hf", concurrency=16)
    assert steady(job, these, np.array([16.0])).running[0] == 16.0


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
def test_loads_at_hand_change_no_figure_at_any_rate_or_number_of_replicas(engine: str) -> None:
    job, these = one(engine=engine, input_len=1000, output_len=200)
    single = replace(these, concurrency=np.full(len(these), np.inf), requests=np.full(len(these), np.inf))
    known = loads_of(job, replace(single, request_rate=np.ones(len(these))))
    for rate, replicas in [(0.01, 1), (3.0, 1), (1e6, 1), (5.0, 4), (np.nan, 2)]:
        load = replace(
            single, request_rate=np.full(len(these), rate), replicas=np.full(len(these), replicas, dtype=np.int64)
        )
        plain, again = estimate(job, load), estimate(job, load, known)
        for name in ("requests_per_s", "ttft_s", "tpot_s", "ttft_p99_s", "e2e_s", "running"):
            assert np.array_equal(getattr(plain.steady, name), getattr(again.steady, name))


def test_a_batch_in_step_reads_no_prompts_while_it_generates() -> None:
    """Long prompts and short answers: a step is no shorter for what the next batch will bring."""
    job, these = one(engine="llamacpp", scenario="static-batch", max_batch=32, input_len=8192, output_len=32)
    few, each = one(engine="llamacpp", scenario="static-batch", max_batch=32, input_len=8192, output_len=2048)
    short, long = estimate(job, these).steady.tpot_s[0], estimate(few, each).steady.tpot_s[0]
    assert short == pytest.approx(long, rel=0.15)


@pytest.mark.parametrize("model", [SMALL, "mistralai/Mixtral-8x7B-v0.1"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_no_rate_is_served_that_an_offline_run_does_not_reach(model: str, engine: str) -> None:
    """As fast as a lane is without an end of requests, whatever limits of latency allow."""
    for prompt, answer in ((222, 293), (2000, 500), (100, 2000)):
        job, these = one(model, engine=engine, input_len=prompt, output_len=answer, tpot_slo_ms=1e6, ttft_slo_ms=1e9)
        ever = np.full(1, np.inf)
        offline = replace(these, request_rate=np.zeros(1), concurrency=ever, requests=ever)
        assert (estimate(job, these).requests_per_s <= estimate(job, offline).requests_per_s * (1.0 + 1e-9)).all()
