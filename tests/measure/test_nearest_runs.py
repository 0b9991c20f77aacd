"""The nearest measured runs: a run's own plan finds it first, with its true error; distances order as they say."""

from __future__ import annotations

import random

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.jobs.training import job_of
from measure.history.nearest import FILES, WEIGHTS, nearest_runs, rows_of_file
from measure.history.scores import estimated
from measure.history.serving import serving_cases
from measure.history.training import memory_cases, training_cases


def some(cases: list, count: int) -> list:  # type: ignore[type-arg]
    scored = [case for case in cases if case.reason_unscored is None]
    return random.Random(7).sample(scored, count)


@pytest.mark.parametrize("file", ["training", "memory"])
def test_the_plan_of_a_measured_run_finds_that_run(file: str) -> None:
    cases = training_cases() if file == "training" else memory_cases()
    for case in some(cases, 8):
        complete = job_of(case.plan).plan
        found = nearest_runs(case.plan, complete, file, 20)  # type: ignore[arg-type]
        # Repeats of one run are as near as it is.
        own = next((run for run in found if run.id == case.id), None)
        assert own is not None, case.id
        assert own.distance == pytest.approx(found[0].distance, abs=1e-3), case.id
        said = estimated(case)
        if file == "memory":
            measured, value = case.observed["peak_bytes"], said.peak_bytes(case.observed["peak_kind"])
        else:
            measured = case.observed["tokens_per_s_per_device"]
            value = float(said.all.tokens_per_s[said.best]) / said.all.job.machine.count
        assert own.figures[0].measured == measured
        assert own.figures[0].error == pytest.approx(value / measured - 1.0)


def test_the_plan_of_a_measured_deployment_finds_it() -> None:
    from knowledge.jobs.serving import serving_job

    for case in some(list(serving_cases()), 8):
        try:
            complete = serving_job(case.plan).plan
        except PlanError:
            continue
        found = nearest_runs(case.plan, complete, "serving", 20)
        own = next((run for run in found if run.id == case.id), None)
        assert own is not None, case.id
        assert own.distance == pytest.approx(found[0].distance, abs=1e-3), case.id
        assert {figure.measured for figure in own.figures} <= set(case.observed.values())


def plan(**changes: object) -> tuple[Plan, Plan]:
    data = {"model": "llama-3.1-8b", "cluster.accelerator": "h100-sxm", "cluster.count": 8} | changes
    asked = Plan.parse({"model": data.pop("model")}).patch(data)
    return asked, job_of(asked).plan


def test_runs_come_in_the_order_of_their_distance_which_is_the_sum_of_its_parts() -> None:
    for file in FILES[:2]:
        found = nearest_runs(*plan(), file, 10)
        assert len(found) == 10
        assert [run.distance for run in found] == sorted(run.distance for run in found)
        for run in found:
            assert run.distance == pytest.approx(sum(run.differs.values()), abs=1e-3)
            assert run.differs.keys() <= WEIGHTS.keys()
            assert run.source
            assert run.figures


def test_another_accelerator_finds_runs_on_that() -> None:
    assert (
        nearest_runs(*plan(**{"cluster.accelerator": "mi300x"}), "training", 3)[0].settings["accelerator"] == "mi300x"
    )
    assert nearest_runs(*plan(), "training", 3)[0].settings["accelerator"] == "h100-sxm"


def test_what_cannot_be_estimated_or_is_in_doubt_is_passed_over() -> None:
    for file in FILES[:2]:
        doubted = {row["id"] for row in rows_of_file(file) if row.get("doubt")}
        assert doubted
        assert not doubted & {run.id for run in nearest_runs(*plan(), file, 20)}


def test_none_are_wanted() -> None:
    assert nearest_runs(*plan(), "training", 0) == []
