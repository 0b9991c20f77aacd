"""Groups of runs that differ in their layout only, and how well estimates order them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy import order_as_json, order_as_text
from estimator.errors import PlanError
from estimator.plan.schema import Plan
from measure.history.order import (
    TIE,
    Order,
    by_source,
    found_in_top,
    groups,
    orders,
    rank_correlation,
    speed,
    summarise,
)
from measure.history.scores import estimated
from measure.history.training import Case, Observed, training_cases

SPEEDS = st.lists(st.integers(1, 10**6).map(float), min_size=2, max_size=20, unique=True)


def case(name: str, rate: float | None = 100.0, source: str = "a", reason: str | None = None, **changes: Any) -> Case:
    """A run on eight devices; `changes` are dotted names of a Plan with __ for the dot."""
    data: dict[str, Any] = {
        "name": name,
        "model": "m",
        "workload": {"framework": "megatron-lm", "seq_len": 4096, "global_batch": 64, "micro_batch": 1},
        "cluster": {"accelerator": "h100-sxm", "count": 8},
        "layout": {"tp": 1},
    }
    plan = Plan.parse(data).patch({key.replace("__", "."): value for key, value in changes.items()})
    seen = Observed(tokens_per_s_per_device=rate, step_s=None, peak_bytes=None, peak_kind=None, out_of_memory=False)
    return Case(name, source, plan, seen, reason, (), (), "2026", "ref")


def ids(found: list[list[list[Case]]]) -> list[list[list[str]]]:
    return [[[run.id for run in runs] for runs in group] for group in found]


def test_a_group_is_one_job_laid_out_in_several_ways():
    cases = [
        case("tp1"), case("tp2", layout__tp=2), case("batches of two", workload__micro_batch=2),
        case("ep", layout__ep=4), case("alone", model="n"),
        case("another model", model="o"), case("another model, tp 2", model="o", layout__tp=2),
    ]  # fmt: skip
    assert ids(groups(cases)) == [
        [["tp1"], ["tp2"], ["batches of two"], ["ep"]],
        [["another model"], ["another model, tp 2"]],
    ]
    assert ids(groups(cases, 3)) == [[["tp1"], ["tp2"], ["batches of two"], ["ep"]]]


@pytest.mark.parametrize(
    "change",
    [
        {"source": "b"},
        {"model": "n"},
        {"cluster__accelerator": "a100-sxm-80gb"},
        {"cluster__count": 16},
        {"workload__seq_len": 2048},
        {"workload__global_batch": 128},
        {"workload__precision": "fp8"},
        {"workload__framework": "nemo"},
        {"workload__software_version": "2"},
    ],
)
def test_runs_that_differ_in_more_than_their_layout_are_no_group(change: dict[str, Any]):
    assert groups([case("one"), case("other", layout__tp=2, **change)]) == []


def test_runs_of_one_layout_are_one_member_with_their_median():
    cases = [case("1", 90.0), case("2", 100.0), case("3", 130.0), case("other", 120.0, layout__tp=2)]
    assert ids(groups(cases)) == [[["1", "2", "3"], ["other"]]]
    assert groups(cases[:3]) == []
    (order,) = orders(cases, lambda _: 1.0)
    assert order.measured.tolist() == [100.0, 120.0]


def test_what_does_not_count_or_has_no_estimate_is_left_out():
    def known(run: Case) -> float:
        if run.id == "refused":
            raise PlanError("layout.tp", "tp=3 does not divide 32", [1, 2])
        return 100.0

    doubtful = case("doubtful", layout__tp=4, reason="printed twice")
    unmeasured = case("no speed", None, layout__tp=4)
    assert groups([case("one"), doubtful, unmeasured]) == []
    refused = case("refused", 50.0, layout__tp=3)
    assert orders([case("one"), refused], known) == []
    (order,) = orders([case("one"), refused, case("two", 70.0, layout__tp=2)], known)
    assert [run.id for run in order.cases] == ["one", "two"]


def test_a_group_that_was_measured_alike_has_no_order_to_find():
    assert orders([case("one", 100.0), case("two", 100.9, layout__tp=2)], lambda _: 1.0) == []
    assert len(orders([case("one", 100.0), case("two", 101.1, layout__tp=2)], lambda _: 1.0)) == 1


def test_rank_correlation_of_known_orders():
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1.0)
    assert rank_correlation([3, 2, 1], [10, 20, 30]) == pytest.approx(-1.0)
    # 1 - 6 sum d^2 / (n (n^2 - 1)) with d = 0, 1, -1, 0.
    assert rank_correlation([1, 3, 2, 4], [10, 20, 30, 40]) == pytest.approx(0.8)
    # Equal estimates share their rank: 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert rank_correlation([1, 2, 2, 4], [10, 20, 30, 40]) == pytest.approx(4.5 / np.sqrt(4.5 * 5.0))
    assert np.isnan(rank_correlation([1, 1], [10, 20]))


def test_measured_speeds_within_a_percent_are_tied():
    assert rank_correlation([2, 1, 3], [100.0, 100.9, 150.0]) == rank_correlation([1, 2, 3], [100.0, 100.9, 150.0])
    assert rank_correlation([2, 1, 3], [100.0, 101.1, 150.0]) < rank_correlation([1, 2, 3], [100.0, 101.1, 150.0])


@given(SPEEDS, st.randoms(use_true_random=False))
def test_rank_correlation_is_symmetric_bounded_and_blind_to_scale(speeds: list[float], random: Any):
    other = random.sample(speeds, len(speeds))
    found = rank_correlation(speeds, other, tie=0.0)
    assert -1.0 - 1e-9 <= found <= 1.0 + 1e-9
    assert rank_correlation(other, speeds, tie=0.0) == pytest.approx(found)
    assert rank_correlation([7.0 * value**2 for value in speeds], other, tie=0.0) == pytest.approx(found)
    assert rank_correlation(speeds, speeds, tie=0.0) == pytest.approx(1.0)


@given(SPEEDS, st.randoms(use_true_random=False))
def test_the_measured_best_is_found_in_some_top_and_in_every_larger_one(speeds: list[float], random: Any):
    measured = random.sample(speeds, len(speeds))
    hits = [found_in_top(speeds, measured, top) for top in range(1, len(speeds) + 1)]
    assert hits[-1]
    assert all(later or not earlier for earlier, later in pairwise(hits))


def test_the_best_is_found_where_a_tie_with_it_is():
    measured = [100.0, 99.5, 80.0, 70.0, 60.0]
    assert not found_in_top([1.0, 2.0, 5.0, 4.0, 3.0], measured)
    assert found_in_top([1.0, 6.0, 5.0, 4.0, 3.0], measured)
    assert not found_in_top([1.0, 6.0, 5.0, 4.0, 3.0], measured, tie=0.001)


def order(measured: list[float], estimates: list[float], source: str = "a") -> Order:
    runs = tuple(case(str(index), value, source) for index, value in enumerate(measured))
    return Order(runs, np.array(estimates), np.array(measured))


def test_a_summary_weighs_groups_by_their_pairs_to_a_first_run():
    large = order([100.0, 90.0, 80.0, 70.0], [4.0, 3.0, 2.0, 1.0])
    small = order([100.0, 50.0], [1.0, 2.0], "b")
    flat = order([100.0, 50.0], [1.0, 1.0], "b")
    summary = summarise([large, small, flat])
    assert summary.correlation == pytest.approx((3.0 * 1.0 + 1.0 * -1.0 + 1.0 * 0.0) / 5.0)
    assert (summary.groups, summary.layouts, summary.tops, summary.found) == (3, 8, 1, 1.0)
    parts = by_source([large, small, flat])
    assert list(parts) == ["b", "a"]
    assert parts["b"].correlation == pytest.approx(-0.5)
    assert parts["b"].found is None
    with pytest.raises(ValueError, match="nothing"):
        summarise([])


def test_text_and_json_say_the_same():
    found = [order([100.0, 90.0, 80.0, 70.0], [4.0, 3.0, 2.0, 1.0]), order([100.0, 50.0], [1.0, 1.0], "b")]
    text, table = order_as_text(found), order_as_text(found, markdown=True)
    assert "0.75" in text
    assert "100%" in text
    assert len({line.count("|") for line in table.splitlines() if line.startswith("|")}) == 1
    result = json.loads(order_as_json(found))
    assert result["overall"]["correlation"] == pytest.approx(0.75)
    assert result["by_source"]["b"]["found"] is None
    assert "differ in their layout" in order_as_text([])
    assert json.loads(order_as_json([]))["overall"] is None


def test_speed_is_what_the_planner_says_of_the_measured_layout():
    run = next(run for run in training_cases() if run.reason_unscored is None and run.plan)
    found = estimated(run)
    tokens = found.all.job.tokens_per_step / found.all.job.machine.count
    assert speed(run) == pytest.approx(float(tokens / found.all.step.seconds[found.best]))


def test_measured_groups_are_jobs_of_one_source_with_layouts_that_differ():
    for group in groups(training_cases()):
        plans = [run.plan for runs in group for run in runs if run.plan]
        assert len({run.source for runs in group for run in runs}) == 1
        assert len({(plan.training.seq_len, plan.training.global_batch, plan.cluster.count) for plan in plans}) == 1
        seen = {(repr(runs[0].plan.layout), runs[0].plan.training.micro_batch) for runs in group if runs[0].plan}
        assert len(seen) == len(group) >= 2
    assert 0 < TIE < 0.05
