"""What devices cost by themselves: rent, purchase and electricity of so many for so long."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from knowledge.figures import usd
from knowledge.machines.catalogue import find_accelerator
from pages.blocks import Prose
from pages.results.facts import billed
from planner.facts import HardwareQuestion, describe_hardware
from planner.money.results import HardwareBill


def bill(device: str, **asked: float | str) -> HardwareBill:
    told = describe_hardware(HardwareQuestion.model_validate({"accelerator": device, **asked})).bill
    assert told is not None
    return told


@given(st.sampled_from(["h100-sxm", "mi300x", "l40s", "rtx-4090"]), st.integers(1, 64), st.floats(1, 9000))
@settings(max_examples=examples(40), deadline=None)
def test_a_bill_is_made_of_its_hours(device: str, count: int, hours: float) -> None:
    told = bill(device, count=count, hours=hours, usd_per_kwh=0.2)
    assert told.kw is not None
    assert told.kwh == pytest.approx(told.kw * hours)
    assert told.power_usd == pytest.approx(0.2 * told.kw * hours)
    for row in told.rented:
        assert row.usd == pytest.approx((row.usd_per_hour or 0.0) * hours)
    assert [row.usd for row in bill(device, count=count, hours=2 * hours).rented] == pytest.approx(
        [2.0 * (row.usd or 0.0) for row in told.rented]
    )
    if told.owned and (alone := bill(device, count=1).owned):
        # Several machines need a network, which one does not.
        joined = told.owned.capex_usd / (count * alone.capex_usd)
        assert joined == pytest.approx(1.0 if count <= find_accelerator(device).value.per_node else 1.125)


def test_a_machine_draws_what_its_maker_says() -> None:
    # NVIDIA DGX H200 user guide: 10.2 kW at most for eight of them; the Uptime Institute's building on top.
    told = bill("h200-sxm", count=8, hours=1.0)
    assert told.kw == pytest.approx(10.2 * next(item.value for item in told.assumptions if item.field == "pue"))


def test_without_a_number_or_a_time_there_is_no_bill() -> None:
    assert describe_hardware(HardwareQuestion.model_validate({"accelerator": "h100-sxm"})).bill is None
    with pytest.raises(PlanError, match="region"):
        bill("h100-sxm", count=8, region="Atlantis")


def test_owning_is_told_by_the_hour_of_use_and_by_part() -> None:
    told = describe_hardware(
        HardwareQuestion.model_validate({"accelerator": "h100", "count": 8, "hours_per_year": 4380})
    )
    assert told.bill is not None
    assert told.bill.owned is not None
    (text,) = [
        block.markdown for block in billed(told) if isinstance(block, Prose) and "an hour of use" in block.markdown
    ]
    # 285,000 USD over 5 years of 4,380 hours, of which 12 % come back; electricity: 10.2 kW x 1.2 x 0.161 USD.
    assert f"hardware {usd(285_000 * 0.88 / 5 / 4380)}" in text
    assert f"power {usd(10.2 * 1.2 * 0.161)}" in text
    assert usd(told.bill.owned.usd_per_hour) in text


@pytest.mark.parametrize(
    ("field", "value", "part", "grows"),
    [
        ("colocation_usd_per_kw_month", 900.0, "colocation", True),
        ("resale_share", 0.6, "hardware", False),
        ("years", 2.0, "hardware", True),
        ("pue", 2.0, "power", True),
        ("maintenance_share", 0.2, "maintenance", True),
        ("staff_usd_per_device_year", 9000.0, "staff", True),
        ("capex_usd_per_device", 90_000.0, "hardware", True),
        ("utilisation", 0.2, "hardware", True),
    ],
)
def test_the_terms_of_owning_count_for_hardware_alone(field: str, value: float, part: str, grows: bool) -> None:
    """Each moves its part of an hour of use, and is no assumption any more."""
    usual, asked = (bill("h100-sxm", count=8, **terms).owned for terms in ({}, {field: value}))
    assert usual
    assert asked
    assert (asked.parts[part] > usual.parts[part]) == grows
    assert field not in {assumed.field for assumed in asked.assumptions}


def test_a_use_that_is_said_twice_is_refused() -> None:
    assert bill("h100-sxm", utilisation=0.5).hours_per_year == pytest.approx(4380)
    with pytest.raises(PlanError, match="utilisation: says the same as hours_per_year"):
        bill("h100-sxm", utilisation=0.5, hours_per_year=4000)
