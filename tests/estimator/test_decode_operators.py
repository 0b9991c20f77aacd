"""Operators of a decode step: what must hold whatever the fitted numbers are, and hand-made cases."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.machine.decode import (
    CachedHeads,
    DecodeKernel,
    ExpertKernel,
    decode_attention_seconds,
    expert_seconds,
    experts_reached,
    fullest_rank,
    routed,
)
from estimator.machine.matmul import OPERAND_BYTES, MatmulRates, MatmulSurface

KERNEL = DecodeKernel(memory=0.9, compute=0.5, tile_rows=64.0, launch_s=1e-5, ramp_s=6e-6, block_s=1e-8, key_s=2e-10)
SURFACE = MatmulSurface(height=0.7, memory=0.85, wave_outputs=2e5, half_k=100.0, unhidden=0.2, launch_s=3e-6)
EXPERTS = ExpertKernel(memory=0.9, height=0.8, launch_s=1.5e-5, passes=1.5)
BANDWIDTH, PEAK = 3.35e12, 989e12

batches = st.integers(1, 512)
contexts = st.integers(1, 200_000)


def attention(
    batch, context, kernel=KERNEL, bandwidth=BANDWIDTH, heads=32.0, kv_heads=8.0, kv_bytes=2.0, queries=1.0, **given_
):
    return decode_attention_seconds(
        kernel,
        bandwidth,
        PEAK,
        np.asarray(batch, dtype=np.float64),
        np.asarray(context, dtype=np.float64),
        CachedHeads(heads, kv_heads, 128.0, 128.0, kv_bytes, **given_),
        queries,
    )


def test_a_large_cache_takes_its_bytes_over_the_bandwidth():
    cache = 64 * 32768 * 8 * 256 * 2.0
    seconds = attention([64], [32768])[0]
    assert seconds == pytest.approx(cache / (BANDWIDTH * 0.9), rel=0.02)


def test_time_is_linear_in_context_when_long():
    short, middle, long = attention(16, [50_000, 100_000, 150_000])
    assert (long - middle) == pytest.approx(middle - short, rel=1e-3)


@given(batches, contexts, st.floats(1.01, 4.0))
def test_more_bandwidth_or_a_smaller_cache_is_never_slower(batch, context, factor):
    assert attention([batch], [context], bandwidth=BANDWIDTH * factor) <= attention([batch], [context])
    assert attention([batch], [context], kv_bytes=1.0) <= attention([batch], [context])


@given(batches, contexts, st.integers(1, 3))
def test_more_work_is_never_faster(batch, context, more):
    seconds = attention([batch, batch + more, batch], [context, context, context + more])
    assert seconds[1] >= seconds[0]
    assert seconds[2] >= seconds[0]
    assert attention([batch], [context], queries=1.0 + more)[0] >= seconds[0]


@given(st.lists(st.tuples(batches, contexts), min_size=2, max_size=5))
def test_an_entry_of_a_batch_equals_a_batch_of_one(cases):
    batch, context = np.array(cases, dtype=np.float64).T
    together = attention(batch, context)
    assert together.tolist() == [attention([b], [c])[0] for b, c in cases]
    folded = attention(batch[None, :], context[None, :])
    assert folded.tolist() == [together.tolist()]


def test_a_window_bounds_what_is_read():
    assert attention([8], [100_000], window=1024.0) == attention([8], [1024])
    assert attention([8], [500], window=1024.0) == attention([8], [500], window=None)


def test_drafts_that_fit_a_tile_cost_nothing_and_others_a_tile():
    group = 4
    assert attention([32], [8192], queries=64.0 / group) == attention([32], [8192])
    idle = replace(KERNEL, block_s=0.0, launch_s=0.0, ramp_s=1e-12, key_s=0.0)
    bound = [float(attention([32], [8192], idle, bandwidth=1e18, queries=q / group)[0]) for q in (64.0, 65.0, 129.0)]
    assert bound[1] / bound[0] == pytest.approx(2.0, rel=1e-4)
    assert bound[2] / bound[0] == pytest.approx(3.0, rel=1e-4)


def test_a_compressed_cache_is_read_once_and_computed_for_every_head():
    def latent(heads, kernel=KERNEL):
        one, keys = np.full(1, 64.0), np.full(1, 32768.0)
        return decode_attention_seconds(
            kernel, BANDWIDTH, PEAK, one, keys, CachedHeads(heads, 1.0, 576.0, 512.0, 2.0, latent=True)
        )[0]

    assert latent(16.0) == pytest.approx(64 * 32768 * 576 * 2 / (BANDWIDTH * 0.9), rel=0.02, abs=2e-5)
    scores = 64 * 32768 * 128
    assert latent(128.0) == pytest.approx(scores * 2 * 1088 / (PEAK * 0.5), rel=0.02, abs=2e-5)


def test_one_token_reaches_its_own_experts():
    one = np.ones(1)
    for spread in (1.0, 10.0):
        assert 256 * experts_reached(one, 256.0, 8.0, spread)[0] == pytest.approx(8.0, rel=0.02)


def test_uniform_routing_reaches_experts_as_coupons_are_collected():
    rng = np.random.default_rng(3)
    tokens, experts, top_k = 64, 64, 4
    drawn = [len({e for _ in range(tokens) for e in rng.choice(experts, top_k, replace=False)}) for _ in range(60)]
    assert experts * experts_reached(np.array([64.0]), 64.0, 4.0)[0] == pytest.approx(np.mean(drawn), rel=0.02)


def test_the_fullest_of_many_draws_is_what_is_taken():
    rng = np.random.default_rng(4)
    tokens, experts, top_k, ranks = 512, 64, 4, 8
    fullest = []
    for _ in range(40):
        chosen = np.argsort(rng.random((tokens, experts)), axis=1)[:, :top_k]
        fullest.append(np.bincount((chosen // (experts // ranks)).ravel(), minlength=ranks).max() / (tokens * 4 / 8))
    taken = fullest_rank(8.0, np.array([512.0]), 64.0, 4.0)[0]
    assert taken == pytest.approx(np.mean(fullest), rel=0.05)


@given(
    st.integers(1, 5000),
    st.sampled_from([(8, 2), (64, 6), (128, 4), (256, 8), (512, 10)]),
    st.sampled_from([1, 2, 4, 8]),
    st.floats(1.0, 500.0),
)
def test_routing_stays_within_what_can_be(tokens, model, ranks, spread):
    experts, top_k = model
    many = np.array([float(tokens), tokens + 1.0])
    rows, reached = routed(many, float(experts), float(top_k), float(ranks), spread)
    assert (rows >= many * top_k / ranks * (1 - 1e-9)).all()
    assert (rows <= many * min(top_k, experts / ranks) * (1 + 1e-9)).all()
    assert (reached >= 1.0).all()
    assert (reached <= experts / ranks * (1 + 1e-9)).all()
    assert rows[1] >= rows[0] * (1 - 1e-9)
    uniform = experts_reached(many, float(experts), float(top_k))
    assert (experts_reached(many, float(experts), float(top_k), spread) <= uniform + 1e-9).all()


def experts_of(tokens, ranks=1.0, bandwidth=BANDWIDTH):
    rows, reached = routed(np.asarray(tokens, dtype=np.float64), 128.0, 8.0, ranks)
    return expert_seconds(
        EXPERTS, MatmulRates(SURFACE, PEAK, bandwidth, OPERAND_BYTES["bf16"]), rows, reached, 4096.0, 1536.0
    )


def test_few_rows_read_the_experts_that_they_reach():
    _, reached = routed(np.array([16.0]), 128.0, 8.0)
    weights = reached[0] * 3 * 4096 * 1536 * 2 / (BANDWIDTH * 0.85 * 0.9)
    seconds = experts_of([16.0])[0]
    assert weights < seconds < 1.35 * weights + EXPERTS.launch_s + 2 * SURFACE.launch_s


@given(st.integers(1, 4096), st.floats(1.01, 4.0))
def test_experts_get_no_slower_with_bandwidth_or_ranks_and_no_faster_with_tokens(tokens, factor):
    now = experts_of([tokens])
    assert experts_of([tokens], bandwidth=BANDWIDTH * factor) <= now
    assert experts_of([tokens], ranks=4.0) <= now * (1 + 1e-9)
    assert experts_of([tokens + 8]) >= now
    assert experts_of([tokens, tokens + 1])[0] == pytest.approx(now[0], rel=1e-12)
