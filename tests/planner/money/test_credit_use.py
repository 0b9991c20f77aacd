"""Credits pay first, until they are used up or their day comes."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from estimator.errors import PlanError
from estimator.money.cost import paid_by_credits
from pages.blocks import Headline
from pages.results.of_results import VIEWS
from planner import clock
from tools import call
from tools.registry import find

RUN: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "method": "full", "stage": "sft",
                       "dataset_tokens": 2e10}  # fmt: skip


def cost(**more: Any) -> dict[str, Any]:
    with clock.on(date(2026, 11, 27)):
        return call("estimate_cost", RUN | more)


def test_what_the_days_left_pay_is_told_with_when_it_begins_and_what_else_is_paid() -> None:
    """The first line has one total and the bill another, which leaves storage out."""
    stored = {"checkpoints_kept": 9, "usd_per_gb_month": 1.0}
    for end, kept, begun in (("2026-11-29", {}, True), ("2027-11-27", stored, False)):
        asked = RUN | {"credits_usd": 500, "credits_end": end} | kept
        with clock.on(date(2026, 11, 27)):
            bill: Any = find("estimate_cost").run(asked)
        head = next(block for block in VIEWS["CostEstimate"](bill) if isinstance(block, Headline))
        assert ("begun tomorrow" in head.text) == begun
        assert (bill.usd_total > bill.usd) == bool(kept)
        assert ("storage included" in head.text) == bool(kept)


def test_they_pay_no_more_than_there_is_and_nothing_after_their_end() -> None:
    assert paid_by_credits(100.0, 10.0, 1000.0, None) == 100.0
    assert paid_by_credits(100.0, 10.0, 30.0, None) == 30.0
    assert paid_by_credits(100.0, 10.0, 1000.0, 4.0) == 40.0
    assert paid_by_credits(100.0, 10.0, 1000.0, 0.0) == 0.0


def test_a_bill_is_split_to_the_cent() -> None:
    whole = cost()
    assert whole["credits"] is None
    for more in ({"credits_usd": 500}, {"credits_usd": 9000, "credits_end": "2026-11-30"}):
        split = cost(**more)
        assert split["usd"] == whole["usd"]
        used = split["credits"]
        assert used["paid_usd"] + used["left_usd"] == pytest.approx(split["usd_total"], abs=1e-9)
        assert used["paid_usd"] + used["lost_usd"] == pytest.approx(more["credits_usd"])
        assert used["left_usd"] > 0.0
    assert cost(credits_usd=9000, credits_end="2027-11-30")["credits"]["left_usd"] == 0.0


def test_those_that_have_ended_pay_nothing() -> None:
    used = cost(credits_usd=9000, credits_end="2026-11-27")["credits"]
    assert (used["paid_usd"], used["hours_left"]) == (0.0, 0.0)


def test_a_day_that_is_none_is_refused() -> None:
    with pytest.raises(PlanError, match="2026-12-31"):
        cost(credits_usd=9000, credits_end="soon")


def test_what_ends_on_a_day_pays_for_the_hours_until_then_in_which_machines_are_free() -> None:
    """From Friday the 27th: hours of the days between tomorrow and the end that are working days, or weekends."""
    for days, end, hours in ((5, "2026-11-30", 0.0), (5, "2026-12-02", 16.0), (2, "2026-12-02", 16.0),
                             (2, "2026-11-29", 8.0), (7, "2026-12-02", 32.0), (5, "2026-12-30", 22 * 8.0)):  # fmt: skip
        bill = cost(credits_usd=1e6, credits_end=end, hours_per_day=8, days_per_week=days)
        assert bill["credits"]["hours_left"] == hours
        assert bill["credits"]["paid_usd"] == pytest.approx(min(1.0, hours / bill["hours"]) * bill["usd_total"])
