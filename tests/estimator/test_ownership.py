"""Owning: the price spread over years and hours of use, power at the meter once, and parts that add up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.money.ownership import Ownership, break_even_hours

DEVICE = Ownership(
    capex_usd=30_000, host_capex_share=0.5, network_capex_share=0.1, resale_share=0.2, years=5, utilisation=0.8,
    kw=1.2, pue=1.25, usd_per_kwh=0.1, colocation_usd_per_kw_month=150, maintenance_share=0.05, staff_usd_per_year=500,
)  # fmt: skip
USED = 8760 * 0.8


def hour(device: Ownership) -> float:
    return sum(device.hourly_usd.values())


def test_every_part_by_hand() -> None:
    capex = 30_000 * 1.5 * 1.1
    assert DEVICE.capex_whole_usd == pytest.approx(capex)
    assert DEVICE.hourly_usd == pytest.approx({
        "hardware": (capex - 0.2 * 30_000) / 5 / USED, "colocation": 1.2 * 150 * 12 / USED,
        "maintenance": 0.05 * capex / USED, "staff": 500 / USED, "power": 1.2 * 1.25 * 0.1,
    })  # fmt: skip


@given(st.floats(1, 10), st.floats(1.01, 3))
def test_an_hour_is_cheaper_over_more_years(years: float, more: float) -> None:
    assert hour(replace(DEVICE, years=years * more)) < hour(replace(DEVICE, years=years))


@given(st.floats(0.1, 0.99), st.floats(0.1, 0.99))
def test_an_hour_is_cheaper_with_more_use_but_power_is_not(one: float, other: float) -> None:
    low, high = sorted((one, other))
    idle, busy = replace(DEVICE, utilisation=low), replace(DEVICE, utilisation=high)
    assert hour(busy) <= hour(idle)
    assert busy.hourly_usd["power"] == idle.hourly_usd["power"]


def test_free_power_and_room_leave_the_hardware() -> None:
    bare = replace(
        DEVICE, usd_per_kwh=0.0, colocation_usd_per_kw_month=0.0, maintenance_share=0.0, staff_usd_per_year=0.0
    )
    assert hour(bare) == pytest.approx((bare.capex_whole_usd - 6_000) / 5 / USED)


@given(st.floats(0.1, 10), st.floats(1, 1e5))
def test_at_the_break_even_both_ways_cost_the_same(more: float, yearly: float) -> None:
    """And where a year has too few hours, or an hour costs as much, there is none."""
    hours = break_even_hours(yearly, 0.5, 0.5 + more)
    assert break_even_hours(yearly, 0.5, 0.5) is None
    if hours is None:
        assert yearly > more * 8760
    else:
        assert yearly + 0.5 * hours == pytest.approx((0.5 + more) * hours)
