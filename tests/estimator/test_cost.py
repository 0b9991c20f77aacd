"""Cost: whole instances for the hours of the run, energy with its factors, and no number where no price is known."""

from __future__ import annotations

import pytest
from estimator_jobs import make_job, with_accelerator
from hypothesis import given
from hypothesis import strategies as st

from estimator.cost import bill, energy_kwh
from estimator.hardware import Price


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
