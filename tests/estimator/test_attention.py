"""The attention core and the scans: FLOP, efficiencies, context parallelism, eager attention, batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from estimator_jobs import make_job, open_job, with_accelerator, with_layout
from hypothesis import given
from hypothesis import strategies as st

from estimator.kernels.attention import (
    MOST,
    AttentionKernel,
    CoreTime,
    ScanKernel,
    attention_time,
    core_flop,
    flash_share,
    keys_seen,
    no_core,
    scan_time,
)
from estimator.model.architecture import Block
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import micro_batch_tokens
from estimator.search.layouts import candidates

KERNEL = AttentionKernel(
    name="flash", family="Hopper", forward=0.9, backward=0.8, half_dim=48.0, half_dim_backward=50.0, half_keys=270.0,
    half_keys_backward=340.0, half_window=450.0, half_rows=12000.0, points=1, error=0.0, borrowed=False, source="test",
)  # fmt: skip
EAGER: dict[str, Any] = {
    "workload.framework": "hf-trainer",
    "workload.attention": "eager",
    "layout": {"tp": 1, "pp": 1, "dp": 16, "zero_stage": 0},
}
SCAN = ScanKernel("scan", 26.0, 0.0625, 2.8, 9.0, 16.0, 1, 0.0, False, "made up")


def core(job: Job, layouts: Layouts | None = None, kernel: AttentionKernel = KERNEL) -> CoreTime:
    layouts = candidates(job) if layouts is None else layouts
    return attention_time(job, block_of(job), layouts, micro_batch_tokens(job, layouts), kernel)


def block_of(job: Job) -> Block:
    return job.architecture.blocks[0]


def one(values: np.ndarray) -> float:
    assert values.shape == (1,)
    return float(values[0])


def test_flop_are_those_of_the_causal_half() -> None:
    # Llama-3.1-8B, 4096 tokens, 32 heads of 128 on tp 2: 2 matmuls x 2 FLOP x 4096^2 / 2 x 16 x 128.
    assert one(core(make_job()).flop) == pytest.approx(2 * 2 * 4096**2 / 2 * 16 * 128)


def test_backward_runs_five_matmuls() -> None:
    block = block_of(make_job())
    forward, backward = core_flop(block, np.ones(1))
    assert one(backward / forward) == pytest.approx(2.5)
    # DeepSeek-V3: queries and keys of 192, values of 128.
    latent = replace(block, head_dim=192, v_head_dim=128)
    forward, backward = core_flop(latent, np.ones(1))
    assert (one(forward), one(backward)) == (2.0 * 320, 2.0 * (3 * 192 + 2 * 128))


@given(st.integers(1, 100_000), st.integers(2, 100_000))
def test_a_window_never_shows_more_keys(window: int, seq: int) -> None:
    block = block_of(make_job())
    windowed = replace(block, window=window)
    seen = keys_seen(windowed, float(seq))
    assert 0.0 < seen <= keys_seen(block, float(seq)) == seq / 2.0
    # By counting: token t sees min(t, window) tokens, up to the discrete half token.
    exact = sum(min(token + 0.5, window) for token in range(seq)) / seq if seq < 300 else None
    assert exact is None or seen == pytest.approx(exact, rel=0.02, abs=0.6)


@given(
    width=st.sampled_from((32, 64, 80, 128, 192, 256, 512)),
    keys=st.floats(1.0, 1e6),
    rows=st.floats(1.0, 1e9),
    more=st.floats(1.0, 100.0),
)
def test_efficiency_rises_with_keys_rows_and_width_and_stays_a_fraction(
    width: int, keys: float, rows: float, more: float
) -> None:
    block = replace(block_of(make_job()), head_dim=width, v_head_dim=width)
    wider = replace(block, head_dim=2 * width, v_head_dim=2 * width)
    row, key = np.array([rows]), np.array([keys])
    for first, second in (
        (flash_share(KERNEL, block, key, row, False), flash_share(KERNEL, block, key * more, row, False)),
        (flash_share(KERNEL, block, key, row, False), flash_share(KERNEL, block, key, row * more, False)),
        (flash_share(KERNEL, block, key, row, False), flash_share(KERNEL, wider, key, row, False)),
        (flash_share(KERNEL, block, key, row, True), flash_share(KERNEL, block, key, row, False)),
    ):
        for less, better in zip(first, second, strict=True):
            assert 0.0 < one(less) <= one(better) * (1 + 1e-12) <= MOST


def test_short_sequences_cost_more_per_flop() -> None:
    def seconds_per_flop(seq: int) -> float:
        found = core(make_job({"workload.seq_len": seq}))
        return one((found.forward + found.backward) / found.flop)

    assert seconds_per_flop(512) > 1.5 * seconds_per_flop(4096) > 1.5 * seconds_per_flop(32768)


def test_context_parallelism_splits_the_work_and_shortens_the_calls() -> None:
    whole = core(make_job({"workload.seq_len": 32768}))
    split = core(make_job({"workload.seq_len": 32768, "layout.cp": 4, "layout.dp": 1}))
    assert one(split.flop) == pytest.approx(one(whole.flop) / 4)
    assert one(whole.forward) / 4 < one(split.forward) < one(whole.forward) / 2
    assert one(split.kernels_forward) == 4 * one(whole.kernels_forward)


def test_eager_attention_pays_for_the_square_in_memory() -> None:
    flash = core(make_job())
    job = make_job(EAGER)
    eager = core(job)
    scores = 4096.0**2 * 32
    bandwidth = job.machine.accelerator.memory_bandwidth * job.calibration.device.memory
    assert one(eager.forward) > 24.0 * scores / bandwidth
    assert one(eager.forward) > 4 * 2 * one(flash.forward)  # Twice the heads, and more than four times as slow.
    assert one(eager.flop) == pytest.approx(2 * one(flash.flop))


def test_a_faster_matrix_unit_is_never_slower() -> None:
    job = make_job()
    peaks = {name: 2.0 * rate for name, rate in job.machine.accelerator.peak_flops.items()}
    faster = with_accelerator(job, peak_flops=peaks)
    assert one(core(faster).forward) == pytest.approx(one(core(job).forward) / 2)


def test_frozen_layers_have_no_backward() -> None:
    trained, frozen = make_job(), make_job({"workload.method": "freeze"})
    assert one(core(frozen).backward) == pytest.approx(one(core(trained).backward) * 2 / 32)


def test_a_batch_entry_equals_its_single() -> None:
    job = open_job()
    layouts = candidates(job)
    index = np.linspace(0, len(layouts) - 1, 25).astype(np.int64)
    together = core(job, layouts.take(index))
    for position, candidate in enumerate(index):
        alone = core(job, layouts.take(np.array([candidate])))
        assert one(alone.forward) == together.forward[position]
        assert one(alone.backward) == together.backward[position]


def test_factors_may_be_arrays() -> None:
    job = make_job(EAGER)
    device = job.calibration.device
    memory = np.array([0.4, 0.8])
    varied = replace(job, calibration=replace(job.calibration, device=replace(device, memory=memory)))  # type: ignore[arg-type]
    layouts = candidates(job).take(np.array([0, 0]))
    found = core(varied, layouts)
    assert found.forward.shape == (2,)
    assert found.forward[0] > found.forward[1]


def test_a_scan_is_linear_in_tokens_and_grows_with_its_state() -> None:
    job = make_job()
    block = replace(block_of(job), mixer="mamba2", heads=0, ssm_inner=5120, state_size=128)
    layouts = candidates(job)
    tokens = micro_batch_tokens(job, layouts)
    base = scan_time(job, block, layouts, tokens, SCAN)
    assert one(scan_time(job, block, layouts, 2 * tokens, SCAN).forward) == pytest.approx(2 * one(base.forward))
    assert one(scan_time(job, replace(block, state_size=256), layouts, tokens, SCAN).forward) > one(base.forward)
    assert one(base.backward) == pytest.approx(2.8 * one(base.forward))
    split = with_layout(layouts, tp=1)
    assert one(scan_time(job, block, split, tokens, SCAN).forward) == pytest.approx(2 * one(base.forward))


def test_no_mixer_takes_no_time() -> None:
    nothing = no_core(candidates(open_job()))
    assert not nothing.forward.any()
    assert not nothing.flop.any()
