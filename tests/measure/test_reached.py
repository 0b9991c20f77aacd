"""What measured runs reach: quartiles in order, counted as estimates count MFU, from runs that train all weights."""

from __future__ import annotations

import pytest

from estimator.plan.schema import Plan
from estimator.search.layouts import search
from knowledge.jobs.training import job_of
from measure.history import reached
from measure.history.reached import ALL, main_accelerators, reached_mfu
from measure.history.training import training_cases


def test_quartiles_are_in_order_and_below_the_peak() -> None:
    for family, precision in (("Hopper", "bf16"), ("Hopper", "fp8"), ("Ampere", "fp16"), ("Blackwell", "mxfp8")):
        found = reached_mfu(family, precision)
        assert found
        assert found.family == family
        assert 0 < found.lower <= found.median <= found.upper <= found.most < 1
        assert found.setups <= found.runs
        assert found.sources
        assert [found.rating(x) for x in (0.0, found.median, 1.0)] == ["poor", "average", "good"]


def test_widths_share_a_row_and_an_unmeasured_family_is_held_against_all() -> None:
    assert reached_mfu("Hopper", "fp16") == reached_mfu("Hopper", "bf16")
    assert reached_mfu("Hopper", "mxfp8") == reached_mfu("Hopper", "fp8")
    for family in ("CDNA3", "no such family"):
        found = reached_mfu(family, "bf16")
        assert found
        assert found.family == ALL


def test_mfu_of_a_run_is_counted_as_the_estimate_counts_it() -> None:
    """The estimate's own MFU, scaled by the measured over the estimated speed."""
    cases = [case for case in training_cases() if not case.reason_unscored and case.plan]
    chosen = [
        case
        for case in cases
        if case.plan and case.plan.training.method == "full" and case.plan.cluster.accelerator == "h100-sxm"
    ][::60]
    assert len(chosen) >= 3
    for case in chosen:
        assert case.plan
        estimates, order = search(job_of(case.plan))
        index, rate = int(order[0]), case.observed["tokens_per_s_per_device"]
        assert rate
        estimated = float(estimates.tokens_per_s[index]) / estimates.job.machine.count
        # Preference pairs are two sequences a sample; pretraining and fine-tuning are one.
        if estimates.job.sequences_per_sample > 1:
            continue
        run = reached._run(case)
        assert run
        assert run.mfu == pytest.approx(float(estimates.mfu[index]) * rate / estimated, rel=1e-6)


def test_adapters_and_doubtful_runs_do_not_count() -> None:
    for case in training_cases():
        run = (
            reached._run(case) if case.reason_unscored or (case.plan and case.plan.training.method != "full") else None
        )
        assert run is None


def test_the_main_accelerators_are_of_several_vendors_and_catalogued() -> None:
    found = main_accelerators()
    assert {"NVIDIA", "AMD", "Google"} <= {device.vendor for device in found}
    assert len({device.id for device in found}) == len(found)
    for device in found:
        plan = Plan.parse({"model": "gpt2", "cluster": {"accelerator": device.id}})
        assert job_of(plan).machine.accelerator.id == device.id
