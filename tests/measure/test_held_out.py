"""Estimates of measured peaks by what was fitted without them."""

from __future__ import annotations

import pytest

from measure.fit.training.held_out_memory import HoldOut, predictions
from measure.fit.training.memory import countable, fit, interval, peaks, spreads
from measure.history.training import RAN_OUT, Case, memory_cases, training_cases

SOURCES = ("MooreThreads/SimuMax B200 release", "pytorch/torchtitan benchmarks", "MLPerf Training v5.0")


def some() -> tuple[list[Case], list[Case]]:
    cases = [case for case in memory_cases() if case.source in SOURCES and case.reason_unscored in (None, RAN_OUT)]
    ran = [case for case in training_cases() if case.source in SOURCES and case.reason_unscored is None]
    return cases, ran


@pytest.mark.parametrize("hold_out", ["rows", "source"])
def test_every_run_has_one_estimate_with_an_interval(hold_out: HoldOut):
    cases, ran = some()
    found, of_ran = predictions(peaks(cases), peaks(ran), hold_out)
    assert set(found) == {case.id for case in cases}
    assert set(of_ran) == {case.id for case in ran}
    assert all(0 < one.low < one.value < one.high for one in [*found.values(), *of_ran.values()])


def test_a_source_is_estimated_as_if_it_were_not_there():
    cases, ran = some()
    found, _ = predictions(peaks(cases), peaks(ran), "source")
    rest = [peak for peak in peaks(cases) if peak.case.source != SOURCES[1] and countable(peak.case)]
    others = peaks(case for case in ran if case.source != SOURCES[1])
    factors = fit(rest)
    spread = spreads(rest, factors, others)
    for peak in peaks(case for case in cases if case.source == SOURCES[1]):
        low, high, fits = interval(peak, factors, spread)
        one = found[peak.case.id]
        assert (one.low, one.value, one.high, one.fits) == (low, peak.estimate(factors), high, fits)


def test_leaving_a_source_out_changes_its_estimates():
    cases, ran = some()
    rows, source = (predictions(peaks(cases), peaks(ran), hold_out)[0] for hold_out in ("rows", "source"))
    titan = [case.id for case in cases if case.source == SOURCES[1]]
    assert any(rows[name].high != source[name].high for name in titan)
