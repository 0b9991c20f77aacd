"""Devices that nobody is known to rent out, and those that are announced and not sold yet."""

from __future__ import annotations

from typing import Any

import pytest

from planner.money.results import CostEstimate
from tools import call
from tools.registry import find


def _plan(accelerator: str) -> dict[str, Any]:
    workload = {"kind": "training", "method": "lora", "dataset_tokens": 1e9}
    cluster = {"accelerator": accelerator, "count": 8}
    return {"plan": {"model": "meta-llama/Llama-3.1-8B", "cluster": cluster, "workload": workload}}


def test_what_has_no_price_has_the_range_of_its_kin_for_the_whole_run() -> None:
    cost = find("estimate_cost").run(_plan("gaudi2"))
    assert isinstance(cost, CostEstimate)
    shown = call("describe_hardware", {"accelerator": "gaudi2"})
    assert cost.usd is None
    assert cost.kin_low_usd == pytest.approx(shown["kin_low_usd_per_hour"] * cost.device_hours)
    assert cost.kin_high_usd == pytest.approx(shown["kin_high_usd_per_hour"] * cost.device_hours)


def test_every_device_has_a_price_or_the_range_of_its_kin() -> None:
    catalogue = call("list_catalogue", {"kind": "hardware", "limit": 500})["hardware"]
    priced = ("prices", "bought", "kin_low_usd", "kin_low_usd_per_hour")
    devices = {row["id"]: call("describe_hardware", {"accelerator": row["id"]}) for row in catalogue}
    none = {id for id, facts in devices.items() if not any(facts[name] for name in priced)}
    # Nothing like it is rented out, or sold by itself.
    assert none <= {"sn40l"}


def test_what_is_rented_out_singly_costs_so_many_times_that() -> None:
    one, eight = (find("estimate_cost").run(_plan("rtx-3090") | {"count": count}) for count in (1, 8))
    assert isinstance(one, CostEstimate)
    assert isinstance(eight, CostEstimate)
    assert one.usd_per_device_hour
    assert eight.usd is None
    assert eight.kin_low_usd
    assert eight.kin_high_usd
    # Several rent it out so, one of them by the hour that one of them costs.
    times = one.usd_per_device_hour * eight.device_hours
    assert eight.kin_low_usd <= times * (1 + 1e-9)
    assert times <= eight.kin_high_usd * (1 + 1e-9)


def test_what_has_a_price_has_no_range() -> None:
    cost = call("estimate_cost", _plan("h100-sxm"))
    assert cost["usd"] > 0
    assert cost["kin_low_usd"] is None


def test_an_announced_device_is_said_to_be_one() -> None:
    for tool in ("estimate_training", "check_fit"):
        assert any("is announced" in text for text in call(tool, _plan("rubin"))["warnings"]), tool
