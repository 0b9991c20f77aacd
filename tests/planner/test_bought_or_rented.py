"""From how much use on a node of one's own costs less than a rented one."""

from __future__ import annotations

import pytest

from agent.session import ask
from pages.rendering.fold import folded
from planner.facts import HardwareQuestion, describe_hardware
from planner.money.cost import CostRequest, estimate_cost


@pytest.mark.parametrize("device", ["h100-sxm", "b200-sxm", "mi300x"])
def test_a_device_alone_and_a_run_on_a_node_of_it_say_the_same(device: str) -> None:
    facts = describe_hardware(HardwareQuestion(accelerator=device))
    run = {"model": "meta-llama/Llama-3.1-8B", "accelerator": device, "count": facts.per_node, "dataset_tokens": 1e9}
    assert facts.break_even
    assert facts.break_even == estimate_cost(CostRequest.model_validate(run)).break_even


def test_renting_or_buying_is_answered_by_the_hours_of_use() -> None:
    answer = ask("rent or buy 8 b200?", approve=False, model="offline")
    assert [call["name"] for call in answer["tool_calls"]] == ["describe_hardware"]
    facts = describe_hardware(HardwareQuestion(accelerator="b200-sxm"))
    owned = next(row for row in facts.break_even if row.what == "owned")
    assert f"{owned.hours_per_year:,.0f} hours of use a year" in folded(answer["answer"]).lead
