"""Sizes, bounds and orders of clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.plan.schema import Plan
from estimator.rl.generation import least_generation_s
from estimator.search.bounds import (
    beyond_all,
    least_bytes,
    least_kernels_s,
    least_memory,
    least_seconds,
    least_training_s,
)
from estimator.search.fleet import Quick, Slower, balance, front, knee, quickest, sizes
from estimator.search.layouts import search
from estimator.search.space import USUAL, enumerated
from estimator.training.memory import fitting
from knowledge.jobs.training import job_of

MODELS = ("meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1")


@given(node=st.integers(1, 72), least=st.integers(1, 64), most=st.integers(1, 4096))
def test_sizes_are_parts_of_a_node_or_whole_nodes(node, least, most):
    found = sizes(node, least, most)
    assert found == sorted(set(found))
    for size in found:
        assert least <= size <= most
        assert size % node == 0 or size & (size - 1) == 0 or size == most < node
    if least <= most // node * node:
        assert most // node * node in found or most < node


def _holds_its_bounds(one) -> None:
    """Every layout is above all bounds, and the quickest is the first of the search."""
    estimates, order = search(one)
    every = enumerated(one, USUAL)
    count = one.machine.count
    assert (estimates.memory.total * count >= least_bytes(one)).all()
    if (estimates.fits & (estimates.layouts.offload == 0)).any():
        assert not beyond_all(one, host_bytes=0.0)
    least_s = least_kernels_s(one) + least_generation_s(one) * (1.0 - 1e-9)
    assert least_kernels_s(one) >= least_training_s(one)
    assert (estimates.step.seconds >= least_s).all()
    assert (estimates.memory.total >= least_memory(one, every)[every.rows["base"]]).all()
    assert (estimates.step.seconds >= least_seconds(one, every, every.rows)).all()
    index, total = fitting(one, estimates.layouts)
    assert np.array_equal(index, np.flatnonzero(estimates.fits))
    assert np.array_equal(total, estimates.memory.total[index])
    quick = quickest(one)
    if estimates.fits.any():
        best = int(order[0])
        assert isinstance(quick, Quick)
        assert quickest(one, quick.step_s * 1.001) == quick
        surely_slower = len(every) > 200 and one.plan.goal.objective != "memory"
        assert quickest(one, 1e-9) == (Slower() if surely_slower else quick)
        assert quick.step_s == float(estimates.step.seconds[best])
        assert quick.layout == estimates.layouts.row(best)
    else:
        assert quick is None
        assert quickest(one, 1e-9) is None


def _job(model, workload, accelerator, count, **sections):
    cluster = {"accelerator": accelerator, "count": count}
    return job_of(Plan.parse({"model": model, "workload": workload, "cluster": cluster, **sections}))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["full", "lora", "qlora", "freeze"])
@pytest.mark.parametrize(("accelerator", "count"), [("h100-sxm", 8), ("b200-sxm", 16), ("tpu-v5p", 16)])
def test_nothing_is_below_its_bounds(model, method, accelerator, count):
    _holds_its_bounds(_job(model, {"method": method}, accelerator, count))


@pytest.mark.parametrize(
    ("model", "workload", "accelerator", "count", "sections"),
    [
        ("deepseek-v3", {"stage": "pretrain", "precision": "fp8"}, "h200-sxm", 256, {}),
        ("deepseek-v3", {"stage": "pretrain"}, "l40s", 128, {}),
        ("mixtral-8x7b", {"stage": "pretrain", "framework": "torchtitan"}, "h100-sxm", 32, {}),
        ("llama-3.1-70b", {"stage": "dpo", "seq_len": 32768}, "h100-sxm", 64, {}),
        ("llama-3.1-8b", {"stage": "ppo"}, "mi300x", 16, {}),
        ("llama-3.1-8b", {"stage": "grpo", "method": "lora"}, "a100-sxm-80gb", 8, {}),
        ("mixtral-8x7b", {"stage": "grpo", "method": "qlora"}, "h100-sxm", 16, {}),
        ("deepseek-v3", {"stage": "grpo", "method": "lora"}, "mi300x", 64, {}),
        ("qwen3-30b-a3b", {"stage": "ppo", "rollout": "colocated"}, "h200-sxm", 32, {}),
        ("jamba-v0.1", {"seq_len": 16384}, "h100-sxm", 32, {}),
        ("llama-3.1-70b", {}, "h100-sxm", 32, {"goal": {"objective": "memory"}}),
        ("llama-3.1-70b", {}, "h100-sxm", 32, {"layout": {"offload": "optimizer"}}),
        ("llama-3.1-70b", {}, "h100-sxm", 32, {"layout": {"recompute": "block:4", "zero_stage": 1}}),
        ("llama-3.1-70b", {}, "h100-sxm", 32, {"layout": {"schedule": "dualpipe", "pp": 4}}),
        ("llama-3.1-70b", {}, "h100-sxm", 16, {"overrides": {"weights_gib": 1.0, "optimizer_gib": 2.0}}),
        ("llama-3.1-8b", {"optimizer": "adafactor", "framework": "deepspeed"}, "h100-sxm", 8, {}),
    ],
)  # fmt: skip
def test_nor_is_any_run_of_another_kind(model, workload, accelerator, count, sections):
    _holds_its_bounds(_job(model, workload, accelerator, count, **sections))


def test_the_head_runs_in_whichever_16_bits_a_device_has():
    one = _job("llama-3.2-1b", {"precision": "fp8", "method": "lora"}, "wormhole-n150", 1)
    assert "bf16" not in one.machine.accelerator.peak_flops
    assert one.head_peak_flops == one.machine.accelerator.peak_flops["fp16"]
    assert np.isfinite(search(one)[0].step.seconds).all()


_AMOUNTS = st.lists(
    st.tuples(st.floats(0.01, 1e6) | st.just(np.inf), st.floats(0.01, 1e6) | st.just(np.nan)), min_size=1, max_size=30
)


@given(_AMOUNTS)
def test_the_front_has_what_nothing_beats(rows):
    money, took = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    flags = front(money, took)
    for i in range(len(rows)):
        known = np.isfinite(money[i]) and np.isfinite(took[i])
        if not known:
            assert not flags[i]
            continue
        beaten = (money <= money[i]) & (took <= took[i]) & ((money < money[i]) | (took < took[i]))
        assert flags[i] <= (not beaten.any())
        if not flags[i]:
            assert ((money <= money[i]) & (took <= took[i]) & (np.arange(len(rows)) != i)).any()


@given(_AMOUNTS)
def test_the_balance_is_at_least_one(rows):
    money, took = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = balance(money, took)
    assert (found[np.isfinite(found)] >= 1.0 - 1e-12).all()


def test_the_knee_is_where_less_time_starts_to_cost_most() -> None:
    money, time = np.array([1.0, 1.1, 8.0, 2.0]), np.array([10.0, 2.0, 1.8, 9.0])
    assert knee(money, time) == 1
    assert knee(money[:2], time[:2]) is None
    assert knee(np.array([np.inf, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])) is None
