"""Named strategies: each choice is the best by its own criterion, and a common layout is the same everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from samples import examples

from estimator.plan.schema import Plan
from estimator.plan.training.layout_checks import valid_tp
from estimator.search.layouts import search
from estimator.search.strategies import (
    COMMUNICATION,
    CRITERIA,
    KINDS,
    choose,
    communication_seconds,
    costs_of,
    identical,
)
from estimator.training.estimates import Estimates
from knowledge.jobs.training import job_of


def estimates(model: str, accelerator: str, count: int, **workload: Any) -> Estimates:
    plan = Plan.parse(
        {
            "model": model,
            "workload": {"stage": "pretrain", "seq_len": 2048} | workload,
            "cluster": {"accelerator": accelerator, "count": count},
        }
    )
    return search(job_of(plan))[0]


def pool(strategy: str, found: Estimates) -> NDArray[np.int64]:
    """What a strategy chooses among: of minimal communication TP 1 and PP 1 where that fits."""
    kind = KINDS.get("data" if strategy == "minimal_communication" else strategy)
    of_kind = found.fits & kind(found.layouts) if kind else found.fits
    return np.flatnonzero(of_kind if strategy in KINDS or of_kind.any() else found.fits)


@pytest.mark.parametrize("strategy", CRITERIA)
@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"])
def test_a_choice_fits_and_nothing_that_fits_is_better_by_its_criterion(strategy: str, model: str) -> None:
    found = estimates(model, "h100-sxm", 16)
    index = choose(strategy, found)
    assert index is not None
    assert found.fits[index]
    able = pool(strategy, found)
    values = CRITERIA[strategy](costs_of(found, able))
    assert values[able.tolist().index(index)] <= values.min() * (1 + 1e-6)
    assert int(found.layouts.tp[index]) in valid_tp(found.job.architecture)


@settings(max_examples=examples(10), deadline=None)
@given(
    st.sampled_from(["gpt2", "Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-7B"]),
    st.sampled_from(["h100-sxm", "mi300x", "a100-sxm-80gb"]),
    st.sampled_from([1, 2, 8, 12]),
)
def test_strategies_are_ordered_by_what_each_is_for(model: str, accelerator: str, count: int) -> None:
    found = estimates(model, accelerator, count)
    names = [name for name in CRITERIA if name not in KINDS]
    index = {name: choose(name, found) for name in names}
    at = {name: place for name, place in index.items() if place is not None}
    assert len(at) == (len(names) if found.fits.any() else 0)
    whole = set(pool("minimal_communication", found))
    waiting = communication_seconds(found)
    for other in at.values():
        assert found.step.seconds[at["maximum_performance"]] <= found.step.seconds[other] * (1 + 1e-8)
        assert found.memory.total[at["memory_optimized"]] <= found.memory.total[other] * (1 + 1e-8)
        if other in whole:
            assert waiting[at["minimal_communication"]] <= waiting[other] * (1 + 1e-8) + 1e-12
    if count == 1:
        assert not waiting.any()


def test_communication_is_the_same_where_components_were_dropped() -> None:
    found = estimates("Qwen/Qwen2.5-7B", "h100-sxm", 16)
    dropped = replace(found, step=replace(found.step, components={}))
    assert np.allclose(communication_seconds(dropped), communication_seconds(found), rtol=1e-12)
    assert set(COMMUNICATION) <= set(found.step.components)


def test_nothing_is_chosen_where_nothing_fits() -> None:
    found = estimates("meta-llama/Llama-3.1-70B", "a100-sxm-40gb", 1)
    assert not found.fits.any()
    assert all(choose(strategy, found) is None for strategy in CRITERIA)
    assert identical([found]) is None
    assert identical([found, estimates("meta-llama/Llama-3.1-70B", "h100-sxm", 64)]) is None


def test_a_common_layout_is_the_same_fits_and_is_the_fastest_of_those() -> None:
    platforms = [estimates("meta-llama/Llama-3.1-8B", name, 16) for name in ("h100-sxm", "mi300x", "a100-sxm-40gb")]
    found = identical(platforms)
    assert found
    assert found.whole
    rows = [one.layouts.row(index) for one, index in zip(platforms, found.index, strict=True)]
    assert rows[0] == rows[1] == rows[2]
    micro = [int(one.layouts.micro_batch[index]) for one, index in zip(platforms, found.index, strict=True)]
    assert len(set(micro)) == 1
    product = 1.0
    for one, index in zip(platforms, found.index, strict=True):
        assert one.fits[index]
        product *= float(one.step.seconds[index])
    # By hand: the layouts that all have and that fit on all, by the product of their step times.
    tables = []
    for one in platforms:
        layouts = one.layouts
        rows_of = {
            (str(layouts.row(int(i))), int(layouts.micro_batch[i])): float(one.step.seconds[i])
            for i in np.flatnonzero(one.fits)
        }
        tables.append(rows_of)
    common = set(tables[0]) & set(tables[1]) & set(tables[2])
    assert product == pytest.approx(min(np.prod([table[key] for table in tables]) for key in common))


def test_alone_a_platform_takes_its_fastest() -> None:
    found = estimates("Qwen/Qwen2.5-7B", "h100-sxm", 8)
    alone, fastest = identical([found]), choose("maximum_performance", found)
    assert alone
    assert fastest is not None
    assert found.step.seconds[alone.index[0]] == pytest.approx(found.step.seconds[fastest])


def test_where_frameworks_differ_the_split_is_the_same() -> None:
    """MaxText shards weights fully and Megatron never does: no layout is the same in every field."""
    platforms = [estimates("Qwen/Qwen2.5-7B", name, 16) for name in ("h100-sxm", "tpu-v5p")]
    found = identical(platforms)
    assert found
    assert not found.whole
    for name in found.fields:
        values = {int(getattr(one.layouts, name)[at]) for one, at in zip(platforms, found.index, strict=True)}
        assert len(values) == 1, name
    stages = {int(one.layouts.zero_stage[at]) for one, at in zip(platforms, found.index, strict=True)}
    assert len(stages) == 2
