"""The fit of serving factors: known ones are found again, and what is shared is moved before what is own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from measured_serving import LOADS, PLACES, made, measured, slower, truth

from estimator.serving.estimates import estimate
from knowledge.fitted.serving import ENGINE, SHARED
from measure.fit.serving.factors import (
    DEVICE_FACTORS,
    ENGINE_FACTORS,
    applied,
    best,
    estimates,
    fit,
    lineage,
    observations,
    runs_of,
)
from measure.history.serving import METRICS


def test_runs_that_differ_in_their_load_only_are_estimated_together() -> None:
    cases = made(truth())
    runs = runs_of(cases)
    assert len(runs) == len(PLACES)
    assert [len(run.these) for run in runs] == [len(LOADS)] * len(PLACES)
    seen = observations(runs)
    assert len(seen) == len(METRICS) * len(cases)
    for one in seen:
        assert runs[one.group].cases[one.entry] is one.case
        assert one.value == one.case.observed[one.metric]
        assert runs[one.group].these.input_len[one.entry] == one.case.plan.inference.input_len  # type: ignore[union-attr]


def test_a_run_that_names_no_layout_has_the_best_that_fits() -> None:
    (case, *_) = made(truth(), places=[("vllm", "h100-sxm", "Hopper")], tp=2)
    assert case.plan is not None
    free = case.plan.patch({"layout": {"tp": None, "pp": None}, "model": "meta-llama/Llama-3.1-70B"})
    (run,) = runs_of([replace(case, plan=free)])
    assert len(run.these) == 1
    # 70 billion parameters in 16 bits need both devices.
    assert run.these.tp[0] * run.these.pp[0] == 2
    assert best(estimate(run.job, run.these)) == 0


def test_what_cannot_be_estimated_is_left_out() -> None:
    (case, *_) = made(truth())
    assert case.plan is not None
    wrong = case.plan.patch({"layout.tp": 3})
    assert runs_of([replace(case, plan=wrong)]) == []


def test_estimates_with_known_factors_are_what_was_made_with_them() -> None:
    values = truth(decode=1.3, step_s=2e-3)
    runs = runs_of(made(values))
    for one in observations(runs):
        assert estimates(runs[one.group], values)[one.metric][one.entry] == pytest.approx(one.value, rel=1e-9)


def test_factors_of_engine_and_family_are_applied_as_they_are_used() -> None:
    (run, *_) = runs_of(made(truth()))
    engine = {factor.name: 2.0 + index for index, factor in enumerate(ENGINE_FACTORS)}
    device = {factor.name: 0.5 for factor in DEVICE_FACTORS}
    factors = applied(run.job, engine, device).factors
    assert {name: getattr(factors, name) for name in SHARED} == {name: 0.5 * engine[name] for name in SHARED}
    assert {name: getattr(factors, name) for name in ENGINE} == {name: engine[name] for name in ENGINE}
    assert {factor.name for factor in ENGINE_FACTORS} == {*SHARED, *ENGINE}
    assert {factor.name for factor in DEVICE_FACTORS} == set(SHARED)


def test_known_factors_are_found_again() -> None:
    values = truth(decode=1.35, prefill=0.9, step_s=1.5e-3)
    runs = runs_of(made(values))
    seen = observations(runs)
    found = fit(runs, seen)
    before, after = (
        [abs(math.log(estimates(runs[o.group], which)[o.metric][o.entry] / o.value)) for o in seen]
        for which in (truth(), found)
    )
    assert np.mean(after) < 0.03 < 0.25 * np.mean(before)
    for engine, _, family in PLACES:
        product = found["engine", engine]["decode"] * found["device", family]["decode"]
        assert product == pytest.approx(1.35, rel=0.08)


def test_values_stay_within_their_bounds_whatever_was_measured() -> None:
    runs = runs_of(slower(made(truth()), 30.0))
    found = fit(runs, observations(runs))
    limits = {("engine", f.name): f for f in ENGINE_FACTORS} | {("device", f.name): f for f in DEVICE_FACTORS}
    for (kind, _), values in found.items():
        for name, value in values.items():
            assert limits[kind, name].low <= value <= limits[kind, name].high
            assert math.isfinite(value)


def test_a_large_source_does_not_drown_a_small_one() -> None:
    place = PLACES[:1]
    fast, slow = made(truth(), "small", place)[:2], slower(made(truth(), "large", place), 1.5)
    many = [replace(case, id=f"{case.id}-{copy}") for case in slow for copy in range(12)]
    runs = runs_of([*fast, *many])
    seen = observations(runs)
    found = fit(runs, seen)
    ratios = {
        source: np.mean([math.log(estimates(runs[o.group], found)[o.metric][o.entry] / o.value) for o in seen
                         if o.case.source == source and o.metric == "tpot"])
        for source in ("small", "large")
    }  # fmt: skip
    # Of 24 to 1 runs a root counts: the small one is off by less than all of log 1.5.
    assert abs(ratios["large"]) < abs(ratios["small"]) < 0.9 * math.log(1.5)


def test_a_wild_run_moves_little() -> None:
    calm = made(truth(), "calm")
    (wild, *_) = slower(made(truth(), "calm", PLACES[:1], tp=2), 50.0)
    without, with_it = (runs_of(part) for part in (calm, [*calm, wild]))
    first, second = (fit(runs, observations(runs)) for runs in (without, with_it))
    for node in (("engine", "vllm"), ("device", "Hopper")):
        assert second[node]["decode"] == pytest.approx(first[node]["decode"], rel=0.15)


def test_what_all_engines_share_is_what_others_get() -> None:
    runs = runs_of(made(truth(decode=1.4)))
    found = fit(runs, observations(runs))
    shared = found["engine", "default"]["decode"] * found["device", "default"]["decode"]
    assert shared > 1.15
    assert lineage(("engine", "vllm"))[0] == ("engine", "vllm")
    assert lineage(("device", "Blackwell Ultra"))[:2] == [("device", "Blackwell Ultra"), ("device", "Blackwell")]


def test_a_fit_of_measured_runs_is_better_than_none() -> None:
    runs = runs_of(measured("gpt-fast", "exllamav2"))
    seen = observations(runs)
    found = fit(runs, seen)
    before, after = (
        np.mean([abs(math.log(estimates(runs[o.group], values)[o.metric][o.entry] / o.value)) for o in seen])
        for values in ({node: dict(truth()[node[0], "default"]) for node in found}, found)
    )
    assert after < 0.8 * before
    assert after < 0.3
