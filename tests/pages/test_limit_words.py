"""A budget and a deadline: kept or not, by how much, and what the upper end of the interval says; on every verdict."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace

import pytest

from estimator.plan.schema import Goal
from pages.answers.lead import verdict
from pages.blocks import Headline
from pages.results.limits import limit_words
from pages.results.money import cost
from planner import clock
from planner.money.cost import CostRequest, estimate_cost


@pytest.mark.parametrize(
    ("usd", "high", "kind", "words"),
    [
        (1199.0, 1406.0, "broken", "Over budget by $199: $1,199, budget $1,000."),
        (900.0, 1100.0, "doubtful", "Probably within budget by $100: $900 ($800–1,100), budget $1,000."),
        (600.0, 700.0, "kept", "Within budget by $400 (budget $1,000)."),
    ],
)
def test_how_far_a_cost_is_from_the_budget(usd: float, high: float, kind: str, words: str) -> None:
    row = SimpleNamespace(usd=usd, low_usd=800.0, high_usd=high, hours=None)
    found = limit_words(Goal.model_validate({"budget_usd": 1000.0, "deadline_h": 5.0}), None, row)
    assert [*found.broken, *found.doubtful, *found.kept] == [words]
    assert list(getattr(found, kind)) == [words]


@pytest.mark.parametrize(
    ("credits_usd", "kind", "words"),
    [
        (500, "broken", "Credits until 2027-06-30 cover $500 of "),
        (2500, "doubtful", "Credits until 2027-06-30 probably cover all of it; up to "),
        (9000, "kept", "Credits until 2027-06-30 cover all of it; "),
    ],
)
def test_what_credits_pay(credits_usd: float, kind: str, words: str) -> None:
    run = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "method": "full", "stage": "sft",
           "dataset_tokens": 2e10}  # fmt: skip
    with clock.on(date(2026, 11, 27)):
        request = CostRequest.model_validate(run | {"credits_usd": credits_usd, "credits_end": "2027-06-30"})
        bill = estimate_cost(request)
    told = getattr(limit_words(request.to_plan().goal, bill), kind)
    assert len(told) == 1
    assert told[0].startswith(words)


def test_without_limits_nothing_is_said() -> None:
    found = limit_words(Goal.model_validate({}), SimpleNamespace(usd=3.0, hours=2.0))
    assert not [*found.broken, *found.doubtful, *found.kept]


def test_a_verdict_with_a_warning_is_in_doubt_and_one_that_fails_is_bad() -> None:
    assert verdict("At most **96 users**.", True).tone == "good"
    doubtful = verdict("At most 96 users.", True, ["beyond what was measured"])
    assert doubtful.tone == "beware"
    assert doubtful.more == "Beyond what was measured."
    assert verdict("None fits.", False, ["beyond what was measured"]).tone == "bad"


def test_a_cost_with_machines_free_for_some_hours_says_when_the_run_is_done() -> None:
    asked = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "dataset_tokens": 30e9}
    bill = estimate_cost(CostRequest.model_validate(asked | {"hours_per_day": 8, "days_per_week": 5}))
    words = next(block for block in cost(bill) if isinstance(block, Headline)).text
    assert "after the start, with machines free 8 hours a day, 5 days a week" in words
    assert bill.elapsed_hours is not None
    assert bill.elapsed_hours > 3 * bill.hours
