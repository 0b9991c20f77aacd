"""Machines that nobody rents out, which are bought: what a run costs on them."""

from __future__ import annotations

import pytest

from estimator.machine.hardware import Accelerator
from knowledge.machines.catalogue import accelerators
from knowledge.prices.book import prices
from knowledge.prices.kin import kin_purchase
from planner.asked.money import CostRequest
from planner.money.cost import estimate_cost

_MACHINES = [device for device in accelerators() if device.form_factor in ("SoC", "module")]


@pytest.mark.parametrize("device", _MACHINES[::4], ids=lambda device: device.id)
def test_a_run_costs_what_owning_its_machine_does(device: Accelerator) -> None:
    """It was said to have no price, though the price of the machine is in the book."""
    id = device.id
    plan = {"model": "pythia-70m", "method": "lora", "accelerator": id, "count": 1, "dataset_tokens": 1e6}
    bill = estimate_cost(CostRequest.model_validate(plan))
    assert bill.price == "owned"
    assert bill.usd
    assert bill.owned
    sold = [price.capex_usd for price in prices(id, "owned") if price.capex_usd]
    assert bill.owned.by_kin == (not sold)
    told = any("an assumption, no offer" in text for text in bill.warnings)
    assert told == bill.owned.by_kin
    if bill.owned.by_kin:
        kin = kin_purchase(device)
        assert kin
        assert kin.low_usd <= bill.owned.capex_usd <= kin.high_usd


def test_a_kind_of_price_that_is_named_stands() -> None:
    plan = {"model": "pythia-70m", "accelerator": "gb10", "count": 1, "dataset_tokens": 1e6, "price": "on_demand"}
    assert estimate_cost(CostRequest.model_validate(plan)).usd is None
