"""Cost: whole instances for the hours of the run, energy with its factors, and no number where no price is known."""

from __future__ import annotations

import math
import random

import pytest
from estimator_jobs import make_job, with_accelerator
from hypothesis import given
from hypothesis import strategies as st

from estimator.machine.hardware import Price
from estimator.money.cost import (
    bill,
    checkpoint_interval_h,
    energy_kwh,
    hourly_interruptions,
    interrupted_hours,
    storage_usd,
)


def price(count: int, hourly: float | None, spot: float | None = None) -> Price:
    return Price("P", "i", "h100-sxm", count, hourly, spot, "2026-01-01")


@given(st.integers(1, 4096), st.sampled_from([1, 2, 4, 8, 72]), st.floats(0.01, 1e4), st.floats(0.01, 500))
def test_whole_instances_are_paid_for(devices: int, count: int, hours: float, hourly: float) -> None:
    paid = bill(price(count, hourly, hourly / 2), devices, hours)
    assert (paid.instances - 1) * count < devices <= paid.instances * count
    assert paid.usd_per_hour == pytest.approx(paid.instances * hourly)
    assert paid.usd == pytest.approx(paid.instances * hourly * hours)
    assert paid.spot_usd == pytest.approx(paid.instances * hourly / 2 * hours)


def test_four_devices_on_nodes_of_eight_pay_for_eight() -> None:
    assert bill(price(8, 80.0), 4, 2.0).usd == 160.0
    assert bill(price(8, 80.0), 9, 2.0).usd == 320.0


def test_an_unknown_price_costs_an_unknown_amount() -> None:
    paid = bill(price(8, None, 3.0), 8, 10.0)
    assert paid.usd is None
    assert paid.usd_per_hour is None
    assert paid.spot_usd == 30.0
    assert bill(price(8, 5.0), 8, 10.0).spot_usd is None


def test_energy_is_power_times_time_with_hosts_and_building() -> None:
    machine = with_accelerator(make_job(), tdp_w=700.0).machine
    assert energy_kwh(machine, 10.0, 0.5, 1.2) == pytest.approx(16 * 0.7 * 1.5 * 1.2 * 10)
    assert energy_kwh(machine, 20.0, 0.0, 1.0) == pytest.approx(16 * 0.7 * 20)
    assert energy_kwh(with_accelerator(make_job(), tdp_w=None).machine, 1.0, 0.5, 1.2) is None


RUN = {"restart_h": 0.25, "save_h": 0.02, "interval_h": None}


@given(st.floats(0.01, 1e4))
def test_a_run_that_is_never_interrupted_takes_its_hours(run_h: float) -> None:
    assert interrupted_hours(run_h, 0.0, **RUN) == run_h
    assert interrupted_hours(run_h, 1e-12, **RUN) == pytest.approx(run_h, rel=1e-4)


@given(st.floats(0.1, 1e3), st.floats(1e-4, 0.5), st.floats(1.01, 4))
def test_more_interruptions_take_longer(run_h: float, rate: float, more: float) -> None:
    once, often = interrupted_hours(run_h, rate, **RUN), interrupted_hours(run_h, rate * more, **RUN)
    assert once is not None
    assert often is not None
    assert run_h < once < often


@given(st.floats(10, 1e3), st.floats(1e-3, 0.2), st.floats(0.2, 5))
def test_youngs_interval_is_about_the_best(run_h: float, rate: float, factor: float) -> None:
    best = interrupted_hours(run_h, rate, **RUN)
    interval = checkpoint_interval_h(0.02, 1.0 / rate, run_h)
    other = interrupted_hours(run_h, rate, 0.25, 0.02, interval * factor)
    assert best is not None
    assert other is not None
    assert best <= other * 1.01


def _simulated_h(rate: float, restart: float, save: float, interval: float, run_h: float) -> float:
    """The mean of many runs: intervals of work with a save at their end, failures at random, restarts that can fail as
    well."""
    draw = random.Random(1)

    def once() -> float:
        clock, done = 0.0, 0.0
        while done < run_h:
            left = draw.expovariate(rate)
            if left >= interval + save:
                clock, done = clock + interval + save, done + interval
                continue
            clock += left
            while (again := draw.expovariate(rate)) < restart:
                clock += again
            clock += restart
        return clock

    return sum(once() for _ in range(2000)) / 2000


def test_the_expected_hours_are_those_of_a_simulation() -> None:
    mean = _simulated_h(0.2, 0.25, 0.05, 1.0, 40.0)
    assert interrupted_hours(40.0, 0.2, 0.25, 0.05, 1.0) == pytest.approx(mean, rel=0.02)


@pytest.mark.parametrize(("rate", "save"), [(0.2, 0.02), (0.05, 0.1), (0.5, 0.005)])
def test_no_interval_is_better_than_youngs_in_a_simulation(rate: float, save: float) -> None:
    young = checkpoint_interval_h(save, 1.0 / rate, 40.0)
    factors = (0.25, 0.5, 1.0, 2.0, 4.0)
    took = {factor: _simulated_h(rate, 0.25, save, young * factor, 40.0) for factor in factors}
    # The mean of 2,000 runs is known to about a percent.
    assert took[1.0] <= min(took.values()) * 1.01
    assert took[1.0] < min(took[0.25], took[4.0])


def test_a_run_that_never_ends_has_no_hours() -> None:
    assert interrupted_hours(100.0, 1e4, 0.25, 0.02, None) is None
    assert interrupted_hours(0.0, 1.0, 0.25, 0.02, None) == 0.0
    free = interrupted_hours(10.0, 0.1, 0.5, 0.0, None)
    assert free == pytest.approx(10.0 * math.exp(0.05))


def test_a_monthly_share_is_a_rate() -> None:
    rate = hourly_interruptions(0.15)
    assert 1.0 - math.exp(-rate * 730.0) == pytest.approx(0.15)
    assert hourly_interruptions(0.0) == 0.0


def test_storage_is_sold_by_gigabyte_and_month() -> None:
    assert storage_usd(5e12, 0.02, 730.0) == pytest.approx(100.0)
    assert storage_usd(5e12, 0.02, 73.0) == pytest.approx(10.0)
