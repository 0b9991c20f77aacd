"""The fit of step times: few numbers, found again from runs that are made with them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from estimator.training.schedule import step_time
from measure.fit.hierarchy import DEFAULT, Factor
from measure.fit.training.held_out_times import MissedTime, device_spread, spreads
from measure.fit.training.time import (
    DEVICE_FACTORS,
    FRAMEWORK_FACTORS,
    HEIGHT,
    TimedRun,
    applied,
    factors_of,
    fit,
    fitted_numbers,
    residual,
    thinned,
    timed_runs,
    values_of,
)
from measure.history.training import training_cases

SOURCES = ("Korthikanti et al. 2022 Table 5", "MLPerf Training v5.0", "foundation-model-stack/fms-fsdp README")


@pytest.fixture(scope="module")
def some() -> list[TimedRun]:
    return timed_runs(case for case in training_cases() if case.source in SOURCES)


def test_there_are_far_fewer_fitted_numbers_than_runs(capsys: pytest.CaptureFixture[str]):
    runs = timed_runs(training_cases())
    kinds = {key for run in thinned(runs) for key in factors_of(run)}
    numbers = fitted_numbers(thinned(runs))
    with capsys.disabled():
        print(f"\n{numbers} fitted numbers for {len(kinds)} frameworks and families, {len(runs)} measured runs")
    # Every framework and family has the same factors; no number belongs to a run, a model or a source.
    most = max(len(FRAMEWORK_FACTORS), len(DEVICE_FACTORS) + 2)
    assert numbers <= most * (len(kinds) + 6)
    assert numbers * 5 < len(runs)


def test_a_factor_that_made_the_runs_is_found_again(some: list[TimedRun]):
    """Runs as they would be measured if matmuls of the device took 1.2 times as long: the fit says so of the device,
    and not of the framework that ran there."""
    start = fit(some).values
    made = []
    for run in some:
        parts = {kind: dict(values_of(start, kind, name)) for kind, name in factors_of(run)}
        parts["device"]["matmul"] /= 1.2
        job = replace(run.job, calibration=applied(run.job.calibration, **parts))
        made.append(replace(run, measured_s=float(step_time(job, run.layouts).seconds[0])))
    again = fit(made).values
    for kind, factor, least, most in (("device", "matmul", 1.05, 1.25), ("framework", "compute", 0.9, 1.05)):
        for name in {key[1] for run in some for key in factors_of(run) if key[0] == kind}:
            ratio = values_of(start, kind, name)[factor] / values_of(again, kind, name)[factor]
            assert least < ratio < most, (name, factor)
    assert np.median([abs(residual(run, again)) for run in made]) < 0.03


def test_the_fit_is_the_same_every_time_and_better_than_none(some: list[TimedRun]):
    first, second = fit(some), fit(some)
    assert first.values == second.values
    unfitted = {node: dict(row) for node, row in first.values.items()}
    for node in unfitted:
        for factor in FRAMEWORK_FACTORS:
            if factor.name in unfitted[node]:
                unfitted[node][factor.name] = factor.expected
        for factor in DEVICE_FACTORS:
            if factor.name in unfitted[node]:
                unfitted[node][factor.name] = factor.expected
    before, after = (np.mean([abs(residual(run, values)) for run in some]) for values in (unfitted, first.values))
    assert after < before


def test_a_framework_without_runs_gets_what_its_kin_got(some: list[TimedRun]):
    values = fit(some).values
    assert values_of(values, "framework", "nanotron") == values["framework", "megatron-lm"]
    assert values_of(values, "framework", "maxtext") == values["framework", DEFAULT]
    assert values_of(values, "device", "Volta") == values["device", DEFAULT]


def test_unseen_sources_widen_the_interval_of_what_was_not_measured(some: list[TimedRun]):
    sample = [MissedTime(run, rows=0.02, source=0.3) for run in some]
    found = spreads(sample)
    assert found["default"] == pytest.approx(math.expm1(0.3))
    assert all(0.02 < found[run.job.framework.name] < found["default"] for run in some)


def test_what_only_one_source_ran_says_how_far_a_strange_device_is_off(some: list[TimedRun]):
    """Only MLPerf ran Blackwell, while two sources ran Ampere: how far off MLPerf is says it."""
    usual = [MissedTime(run, rows=0.02, source=0.1) for run in some]
    assert device_spread(usual) == pytest.approx(math.expm1(0.1))
    far = [replace(one, source=0.5) if one.run.case.source == SOURCES[1] else one for one in usual]
    assert device_spread(far) == pytest.approx(math.expm1(0.5))
    known = [replace(one, source=0.5) if one.run.case.source == SOURCES[0] else one for one in usual]
    assert device_spread(known) == spreads(known)["default"]


def test_a_fit_at_a_bound_still_sees_where_the_runs_pull():
    """A step beyond the bound changes the time, so that the bound is held and not left and come back to."""
    factor = Factor("matmul", 0.3, 1.6, 1.0, 0.6)
    assert factor.nudged(1.6, 0.02) == pytest.approx(1.6 * math.exp(0.02))
    assert factor.nudged(0.3, -0.02) < 0.3
    share = Factor("data_overlap", 0.0, 1.0, 0.85, 1.0, logit=True)
    assert 0.9 < share.nudged(0.9, 0.02) < 1.0


def test_a_searched_device_is_held_to_its_best_rate():
    """What large matmuls reach on an MI300X was searched, so runs move it little; on a TPU v4 nobody looked."""
    seen: dict[str, Factor] = {}
    for run in timed_runs(case for case in training_cases() if case.source in ("tprimat", "maxtext")):
        matmul = next(f for f in factors_of(run)["device", run.job.calibration.device.family] if f.name == "matmul")
        seen[run.job.machine.accelerator.id] = matmul
    assert seen["mi300x"] == HEIGHT
    assert seen["tpu-v4"].sigma > 5 * HEIGHT.sigma
