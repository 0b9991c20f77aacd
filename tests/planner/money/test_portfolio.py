"""Several runs on one cluster: each takes what its own estimate says."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from pages.results.portfolio import as_csv, gantt
from planner.asked.portfolio import PortfolioRequest
from planner.money.portfolio import schedule_runs
from planner.plots import stacked
from planner.training.planned import plan_training
from planner.training.run import run_of
from tools import call

PLAN = {"model": "qwen2.5-7b", "workload": {"kind": "training", "dataset_tokens": 1e8}}


def _asked(**more: Any) -> PortfolioRequest:
    runs = [
        {"name": "first", "plan": PLAN, "devices": 8, "priority": 1},
        {"name": "beside", "plan": PLAN, "devices": 8},
        {"name": "after", "plan": PLAN, "devices": 16, "after": ["first"]},
    ]
    return PortfolioRequest.model_validate({"accelerator": "h100", "count": 16, "runs": runs} | more)


def test_each_run_takes_what_its_estimate_says() -> None:
    result = schedule_runs(_asked(start="2026-12-01T09:00"))
    rows = {row.name: row for row in result.placed}
    alone = run_of(plan_training(Plan.parse(PLAN).patch({"cluster.accelerator": "h100-sxm", "cluster.count": 8})))
    assert alone is not None
    assert rows["first"].takes_h == rows["beside"].takes_h == pytest.approx(alone.hours)
    assert rows["first"].begins_h == rows["beside"].begins_h == 0.0
    assert rows["after"].begins_h == rows["first"].ends_h
    assert rows["first"].begins == "2026-12-01 09:00"
    assert result.ends_h == rows["after"].ends_h
    assert result.usd_per_hour is not None
    assert result.ends_h is not None
    assert result.usd == pytest.approx(result.usd_per_hour * result.ends_h)
    assert all(row.latest_h >= row.ends_h for row in result.placed if row.latest_h and row.ends_h)
    assert gantt(result).count("█") > 3
    assert len(list(csv.DictReader(io.StringIO(as_csv(result))))) == 3


def test_names_of_the_device_and_of_models_say_how_they_were_read() -> None:
    run = {"name": "one", "plan": PLAN | {"model": "llama 8b"}}
    read = {item.field: item.why for item in schedule_runs(_asked(accelerator="a100 80", runs=[run])).assumptions}
    assert "'a100 80' read as" in read["accelerator"]
    assert "'llama 8b' read as" in read["runs.one.model"]


def test_late_runs_say_what_is_enough() -> None:
    hours = schedule_runs(_asked()).placed[0].takes_h
    assert hours is not None
    runs = [{"name": str(place), "plan": PLAN, "devices": 8, "deadline_h": hours * 1.01} for place in range(4)]
    result = schedule_runs(_asked(runs=runs, usd_per_device_hour=2.0))
    assert result.in_time is False
    assert result.enough is not None
    assert result.enough.count == 32
    assert result.enough.usd_per_hour == 64.0


@pytest.mark.parametrize(
    "runs",
    [
        [{"name": "a", "plan": PLAN}, {"name": "a", "plan": PLAN}],
        [{"name": "a", "plan": PLAN, "after": ["b"]}],
        [{"name": "a", "plan": {"model": "qwen2.5-7b"}}],
        [{"name": "a", "plan": {"model": "no-such-model"} | {"workload": PLAN["workload"]}}],
        [{"name": "a", "plan": {"model": "qwen2.5-7b", "workload": {"kind": "inference"}}}],
    ],
)
def test_what_cannot_be_queued_is_refused(runs: list[dict[str, Any]]) -> None:
    with pytest.raises(PlanError):
        schedule_runs(_asked(runs=runs))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"plan": None}, r"^runs\.0\.plan: is required"),
        ({"prio": 3}, r"^runs\.0\.prio: there is no such field; valid: priority"),
        ({"ready_h": "soon"}, r"^runs\.0\.ready_h: got 'soon'"),
    ],
)
def test_what_is_wrong_with_a_run_is_named_with_its_field(changes: dict[str, Any], says: str) -> None:
    run = {"name": "a", "plan": {"model": "llama-3.1-8b", "workload": {"steps": 10}}} | changes
    run = {name: value for name, value in run.items() if value is not None}
    with pytest.raises(PlanError, match=says):
        call("schedule_runs", {"accelerator": "h100-sxm", "count": 8, "runs": [run]})


def test_the_picture_has_the_wait_of_a_run_before_the_run() -> None:
    parts = [{"waits": 0.0, "runs": 4.0}, {"waits": 4.0, "runs": 2.0}]
    (plot,) = stacked("Timeline", "", "hours", ["first", "second"], parts)
    assert [series.name for series in plot.series] == ["waits", "runs"]
    assert [series.y for series in plot.series] == [[0.0, 4.0], [4.0, 2.0]]


def test_a_run_is_written_flat_or_by_a_scenarios_name_too() -> None:
    flat = {"model": "qwen2.5-7b", "dataset_tokens": "100M"}
    rows = {
        "nested": {"plan": PLAN},
        "flat": flat,
        "within": {"plan": flat},
        "both": {"plan": {"model": "qwen2.5-7b"}, "dataset_tokens": 1e8, "count": 8},
        "named": {"plan": "llama-3.1-8b-dp8", "steps": 100},
    }
    runs = [{"name": name, "devices": 8} | row for name, row in rows.items()]
    result = call("schedule_runs", {"accelerator": "16xh100", "runs": runs})
    assert result["count"] == 16
    takes = {row["name"]: row["takes_h"] for row in result["placed"]}
    assert takes["nested"] == takes["flat"] == takes["within"] == takes["both"]
    assert takes["named"] > 0.0


@pytest.mark.parametrize(
    ("run", "field"),
    [
        ({"dataset_tokens": "lots", "model": "qwen2.5-7b"}, "runs.one.dataset_tokens"),
        ({"plan": "nobodys"}, "runs.0.plan"),
        ({"modle": "qwen2.5-7b"}, "runs.0.modle"),
        ({"plan": {"model": "qwen2.5-7b", "input_len": 5}}, "runs.one.input_len"),
    ],
)
def test_a_run_that_cannot_be_is_named(run: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("schedule_runs", {"accelerator": "h100", "count": 8, "runs": [{"name": "one", **run}]})
    assert caught.value.field == field
