"""Rows of measured serving runs as plans with what was observed of them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from estimator.serving.estimates import estimate
from estimator.serving.space import deployments
from knowledge.jobs.serving import serving_job
from measure.fit.serving.factors import runs_of
from measure.history.serving import METRICS, OUT_OF_MEMORY, ServingCase, plan_data, serving_cases

ROW = {
    "id": "a", "source": "s", "source_ref": "r", "engine": "vllm", "software_version": "0.8.5",
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "devices": "2", "per_node": "8", "tp": "2",
    "weight_dtype": "fp8", "kv_dtype": "bf16", "scenario": "server", "input_len": "921.5", "output_len": "100",
    "concurrency": "64", "requests": "640", "tags": "one; two", "output_tokens_per_s": "1000", "tpot_ms": "20",
    "ttft_ms": "300",
}  # fmt: skip


def row(**changes: str | None) -> dict[str, str]:
    return {name: value for name, value in (ROW | changes).items() if value}


Read = Callable[..., ServingCase]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Reads a file of one row."""

    def read(**changes: str | None) -> ServingCase:
        path = tmp_path / "serving.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, sorted({*ROW, *changes}))
            writer.writeheader()
            writer.writerow(row(**changes))
        monkeypatch.setattr("measure.history.serving._FILE", path)
        (found,) = serving_cases.__wrapped__()
        return found

    return read


def test_a_row_is_a_plan_and_figures_in_seconds(case: Read) -> None:
    found = case()
    assert found.plan is not None
    assert found.plan.given() == {
        "model": "meta-llama/Llama-3.1-8B",
        "cluster": {"accelerator": "h100-sxm", "count": 2, "per_node": 8},
        "layout": {"tp": 2},
        "workload": {
            "kind": "inference", "engine": "vllm", "software_version": "0.8.5", "weight_dtype": "fp8",
            "kv_dtype": "bf16", "scenario": "server", "input_len": 921.5, "output_len": 100.0, "concurrency": 64,
            "requests": 640,
        },
    }  # fmt: skip
    assert found.observed == {"throughput": 1000.0, "tpot": 0.02, "ttft": 0.3}
    assert (found.reason_unscored, found.ran, found.harness, found.tags) == (None, True, "server", ("one", "two"))


@pytest.mark.parametrize(
    ("changes", "observed"),
    [
        # Where requests come at a given rate, it is that rate which is served.
        ({"request_rate": "5", "concurrency": None}, {"tpot": 0.02, "ttft": 0.3}),
        ({"statistic": "p99"}, {"throughput": 1000.0}),
        ({"tpot_ms": None, "ttft_ms": None}, {"throughput": 1000.0}),
        # A prompt alone, a generation alone.
        ({"scenario": "prefill", "input_tokens_per_s": "9215", "ttft_ms": None, "tpot_ms": None}, {"ttft": 0.1}),
        ({"scenario": "decode", "max_batch": "8", "ttft_ms": None}, {"tpot": 0.008}),
        ({"scenario": "decode", "max_batch": None, "concurrency": None, "ttft_ms": None}, {"tpot": 0.001}),
        # A doubt about one figure leaves the others.
        ({"doubt": "ttft: measured elsewhere"}, {"throughput": 1000.0, "tpot": 0.02}),
    ],
)
def test_what_a_run_says(case: Read, changes: dict[str, str | None], observed: dict[str, float]) -> None:
    found = case(**changes)
    assert found.observed == pytest.approx(observed)
    assert found.reason_unscored is None


@pytest.mark.parametrize(
    ("changes", "reason", "has_plan"),
    [
        ({"doubt": "duplicate: printed twice"}, "duplicate", True),
        ({"model": None}, "model, accelerator or engine are not known", False),
        ({"engine": None}, "model, accelerator or engine are not known", False),
        ({"disaggregated": "yes"}, "prompts are read on other devices", False),
        ({"fits": "no", "output_tokens_per_s": None, "tpot_ms": None, "ttft_ms": None}, OUT_OF_MEMORY, True),
        ({"output_tokens_per_s": None, "tpot_ms": None, "ttft_ms": None}, "nothing that is estimated", True),
    ],
)
def test_what_does_not_count_says_why(case: Read, changes: dict[str, str | None], reason: str, has_plan: bool) -> None:
    found = case(**changes)
    assert found.reason_unscored is not None
    assert found.reason_unscored.startswith(reason)
    assert (found.plan is not None) == has_plan
    assert found.ran == (changes.get("fits") != "no")


@pytest.mark.parametrize(
    ("changes", "workload"),
    [
        ({"scenario": "prefill", "output_len": None}, {"scenario": "single-stream", "output_len": 1.0}),
        ({"scenario": "decode", "max_batch": "8"}, {"scenario": "static-batch", "max_batch": 8}),
        ({"scenario": "decode", "input_len": None}, {"scenario": "single-stream", "input_len": 1.0}),
        ({"speculative": "mtp:3"}, {"speculative_tokens": 3}),
        ({"speculative": "eagle"}, {"speculative_tokens": None}),
        ({"ttft_slo_ms": "450", "tpot_slo_ms": "40"}, {"ttft_slo_ms": 450.0, "tpot_slo_ms": 40.0}),
        ({"weight_bits": "4.25", "prefix_hit": "0.5"}, {"weight_bits": 4.25, "prefix_hit": 0.5}),
        ({"output_spread": "0.06", "admission_steps": "8"}, {"output_spread": 0.06, "admission_steps": 8}),
    ],
)
def test_columns_are_fields_of_the_workload(changes: dict[str, str | None], workload: dict[str, Any]) -> None:
    found = plan_data(row(**changes))["workload"]
    assert {name: found.get(name) for name in workload} == workload


def test_every_row_of_the_file_is_read() -> None:
    cases = serving_cases()
    assert len(cases) > 3000
    assert len({one.id for one in cases}) == len(cases)
    counted = [one for one in cases if one.reason_unscored is None]
    assert len(counted) > 2500
    for one in counted:
        assert one.plan is not None
        assert one.ran
        assert one.observed
        assert set(one.observed) <= set(METRICS)
        assert all(value > 0 for value in one.observed.values()), one.id
    assert all(one.reference for one in cases)
    assert len({one.source for one in counted}) >= 15


def test_nearly_every_run_that_counts_has_an_estimate() -> None:
    counted = [one for one in serving_cases() if one.reason_unscored is None][::15]
    found = {one.id for run in runs_of(counted) for one in run.cases}
    assert len(found) >= 0.97 * len(counted)


def test_runs_that_ran_out_of_memory_are_told_from_those_that_ran() -> None:
    telling = {one.source for one in serving_cases() if one.reason_unscored == OUT_OF_MEMORY}
    verdicts: Counter[tuple[bool, bool]] = Counter()
    for one in serving_cases():
        if one.source in telling and one.plan is not None and one.reason_unscored in (None, OUT_OF_MEMORY):
            job = serving_job(one.plan)
            verdicts[one.ran, bool(estimate(job, deployments(job)).memory.fits.any())] += 1
    out, ran = (verdicts[did, True] + verdicts[did, False] for did in (False, True))
    assert out >= 20
    assert ran >= 100
    assert verdicts[False, False] >= 0.95 * out
    assert verdicts[True, True] >= 0.95 * ran
