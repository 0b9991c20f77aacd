"""The fit of the memory's few factors, on peaks that are made up from known ones."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measure.fit.spreads import Miss, spread_of
from measure.fit.training.memory import FACTORS, MemorySpread, Peak, fit, interval, spreads
from measure.history.training import Case, Observed

GIB = 2.0**30
TRUE = {"slack": 0.06, "loss_slack": 0.2}


def case(name: str, source: str) -> Case:
    observed = Observed(
        tokens_per_s_per_device=None, step_s=None, peak_bytes=1.0, peak_kind="reserved", out_of_memory=False
    )
    return Case(name, source, None, observed, None, (), (), "2026", "ref")


def peak(
    index: int,
    *,
    source: str = "a",
    framework: str = "deepspeed",
    error: float = 0.0,
    usable: float = 80 * GIB,
    varying: bool = False,
    unmeasured: int = 0,
) -> Peak:
    """A run whose peak is what TRUE says, `error` more (a logarithm)."""
    slopes = {
        "slack": (2.0 + index % 5) * GIB,
        "loss_slack": (1.0 + index % 3) * GIB,
    }
    left = 2.0 * (1.0 + index % 4) * GIB * varying
    made = Peak(
        fixed_bytes=5 * GIB, more_bytes=0.5 * GIB, slopes=slopes, left_bytes=left, hidden_bytes=0.0,
        usable_bytes=usable, case=case(f"{source}-{index}", source), frameworks=(framework,), observed_bytes=1.0,
        unmeasured=unmeasured, family="Hopper",
    )  # fmt: skip
    return replace(made, observed_bytes=made.estimate(TRUE) * math.exp(error))


def test_known_factors_are_found_again():
    sample = [peak(index, source=f"s{index % 7}", varying=index % 2 == 0) for index in range(120)]
    found = fit(sample)
    assert set(found) == set(FACTORS)
    assert all(abs(one.error(found)) < 0.01 for one in sample)


def test_one_wild_source_moves_little():
    sample = [peak(index, source=f"s{index % 7}") for index in range(70)]
    wild = [peak(index, source="wild", error=1.0) for index in range(10)]
    assert fit([*sample, *wild])["slack"] == pytest.approx(fit(sample)["slack"], rel=0.6)


def test_cached_blocks_never_fill_more_than_the_device():
    for usable in (4.0, 5.7):
        tight = peak(3, varying=True, usable=usable * GIB)
        assert tight.estimate(TRUE) == pytest.approx(max(usable * GIB, 5.5 * GIB))
    assert peak(3, varying=True).estimate(TRUE) > 5.7 * GIB


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=40))
def test_a_spread_holds_at_least_its_share_of_one_source(errors: list[float]):
    half = spread_of(Miss(error, "a") for error in errors)
    inside = sum(abs(error) <= math.log1p(half) + 1e-9 for error in errors)
    assert inside >= 0.8 * len(errors)


def test_no_misses_have_no_spread():
    with pytest.raises(ValueError, match="nothing"):
        spread_of([])


def test_runs_that_ran_bound_only_the_upper_side():
    own = [peak(index, error=0.2 if index % 2 else -0.2) for index in range(20)]
    ran = [peak(index, framework="llm-foundry", usable=1.05 * peak(index).needed_bytes) for index in range(40)]
    others = [peak(index, source="b", usable=1.1 * peak(index).needed_bytes) for index in range(40)]
    found = spreads(own, TRUE, [*ran, *others])
    assert found["llm-foundry"].above == pytest.approx(0.05)
    assert found["llm-foundry"].below == pytest.approx(found["default"].below)
    assert found["deepspeed"].above == pytest.approx(0.1)
    assert found["deepspeed"].below == pytest.approx(math.expm1(0.2))


def test_few_runs_bound_nothing():
    own = [peak(index, error=0.2) for index in range(20)]
    ran = [peak(index, framework="nemo", usable=1.05 * peak(index).needed_bytes) for index in range(5)]
    assert spreads(own, TRUE, ran)["nemo"].above == spreads(own, TRUE, [])["default"].above


def test_what_was_never_measured_has_a_wider_interval():
    found = {"default": MemorySpread(0.2, 0.2, 0, 0), "deepspeed": MemorySpread(0.1, 0.1, 12, 0)}
    known, method = (interval(peak(1, unmeasured=count), TRUE, found) for count in (0, 1))
    other = interval(peak(1, framework="mlx"), TRUE, found)
    widths = [high / low for low, high, _ in (known, method, other)]
    assert widths == sorted(widths)
    assert len(set(widths)) == 3


def test_a_run_fits_when_the_upper_end_does():
    found = {"default": MemorySpread(0.2, 0.2, 0, 0), "deepspeed": MemorySpread(0.1, 0.1, 12, 0)}
    need = peak(1).needed_bytes
    verdicts = [interval(peak(1, usable=share * need), TRUE, found)[2] for share in (1.09, 1.11)]
    assert verdicts == [False, True]
