"""Whether to rent or to buy, by the hours of use that were said: the verdict is that of those hours."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.session import ask
from estimator.money.ownership import HOURS_PER_YEAR
from pages.results.facts import billed
from planner.facts import HardwareQuestion, describe_hardware


def _verdict(question: HardwareQuestion) -> tuple[str, bool]:
    """(What is said, whether owning costs less than the offer that is named, at these hours of a year, for so long)."""
    facts = describe_hardware(question)
    assert facts.bill
    assert facts.bill.owned
    bill, owned, offer = facts.bill, facts.bill.owned, facts.bill.rented[0]
    years = 1.0 if bill.kept_hours is None else bill.kept_hours / HOURS_PER_YEAR
    hours = bill.hours_per_year * years
    own = owned.fixed_usd_per_year * years + owned.power_usd_per_hour * hours
    return str(billed(facts, asked=["break_even"])[0]), own < (offer.usd_per_hour or 0.0) * hours


@settings(deadline=None, max_examples=60)
@given(
    device=st.sampled_from(["h100-sxm", "h200-sxm", "b200-sxm", "rtx-4090"]),
    count=st.sampled_from([1, 4, 8, 16]),
    per_year=st.floats(20.0, HOURS_PER_YEAR),
    years=st.floats(0.1, 5.0),
)
def test_to_buy_is_said_where_owning_costs_less_at_these_hours(
    device: str, count: int, per_year: float, years: float
) -> None:
    text, owning_is_cheaper = _verdict(
        HardwareQuestion(accelerator=device, count=count, hours=per_year * years, hours_per_year=per_year)
    )
    assert ("**Buy " in text) == owning_is_cheaper
    assert ("**Rent " in text) == (not owning_is_cheaper)


def test_a_term_is_paid_whether_the_machines_work_or_not() -> None:
    bills = [
        describe_hardware(HardwareQuestion(accelerator="h100-sxm", count=8, hours_per_year=hours)).bill
        for hours in (1000.0, 4000.0)
    ]
    reserved = [{row.provider: row.reserved_usd for row in bill.rented} for bill in bills if bill]
    assert reserved[0] == reserved[1]
    assert any(reserved[0].values())


@pytest.mark.parametrize("words", ["used 4000 hours a year", "at 60 % utilisation"])
def test_by_the_hours_of_use_a_term_pays_or_not(words: str) -> None:
    said = f"reserved or on demand for 8 h100 {words}, full fine-tune llama-3.1-8b on 20B tokens?"
    answer = ask(said, approve=False, model="offline")["answer"]
    assert "paying by the hour is cheaper" in answer
    assert "could not place" not in answer


@settings(deadline=None, max_examples=30)
@given(per_year=st.floats(20.0, HOURS_PER_YEAR), years=st.floats(1.0, 5.0))
def test_what_pays_for_a_year_pays_for_longer_too(per_year: float, years: float) -> None:
    def bought(hours: float) -> bool:
        question = HardwareQuestion(accelerator="h100-sxm", count=8, hours=hours, hours_per_year=per_year)
        return "**Buy " in _verdict(question)[0]

    assert bought(per_year) <= bought(per_year * years)


@settings(deadline=None, max_examples=30)
@given(device=st.sampled_from(["h100-sxm", "h200-sxm", "b200-sxm", "rtx-4090"]), days=st.floats(1.0, 90.0))
def test_nobody_buys_for_a_quarter(device: str, days: float) -> None:
    """Constant use for some weeks was taken as such use in every year that machines last."""
    text, _ = _verdict(HardwareQuestion(accelerator=device, count=8, hours=24.0 * days))
    assert "**Rent " in text


@given(hours=st.floats(2.0, 5.0 * HOURS_PER_YEAR))
@settings(deadline=None, max_examples=30)
def test_hours_alone_are_hours_on_end(hours: float) -> None:
    alone = HardwareQuestion(accelerator="h100-sxm", count=8, hours=hours)
    on_end = alone.model_copy(update={"hours_per_year": HOURS_PER_YEAR})
    assert describe_hardware(alone).bill == describe_hardware(on_end).bill


@pytest.mark.parametrize("span", ["", " for a year", " for 2 years", " for 3 months"])
@pytest.mark.parametrize(
    ("said", "per_year"), [("40 hours a week", 2086), ("10 hours a day", 3650), ("20 hours a day", 7300)]
)
def test_the_hours_that_are_assumed_are_those_that_decide(said: str, per_year: int, span: str) -> None:
    answer = ask(f"buy or rent 8 H100 to serve llama-3.1-8b, used {said}{span}?", approve=False, model="offline")
    (told,) = (tool["arguments"] for tool in answer["tool_calls"])
    years = {"": 0.0, " for a year": 1.0, " for 2 years": 2.0, " for 3 months": 0.25}[span]
    assert told["hours_per_year"] == pytest.approx(per_year, abs=1)
    assert told.get("hours", 0.0) == pytest.approx(per_year * years, rel=0.01)
    _, buys = _verdict(HardwareQuestion.model_validate(told))
    assert ("**Buy " in answer["answer"]) == buys
    assert f"{per_year:,} hours of a year" in answer["answer"]


@pytest.mark.parametrize("plan", ["serve llama-3.1-8b on 8 H100", "LoRA of llama-3.1-8b on 8 H100, 100M tokens"])
@pytest.mark.parametrize(("said", "verdict"), [("40 hours a week", "Renting"), ("20 hours a day", "Owning")])
def test_hours_of_use_decide_of_a_plan_too(plan: str, said: str, verdict: str) -> None:
    before = ask(plan, approve=False, model="offline")
    answer = ask(f"buy or rent, {said} for a year?", approve=False, model="offline", session_id=before["session"])
    assert f"**{verdict} is cheaper" in answer["answer"]
    # No machine is paid by one short run.
    assert ("renting for this run alone" in answer["answer"]) == (verdict == "Owning" and plan.startswith("LoRA"))


@pytest.mark.parametrize("words", ["8 h100 at nebius", "4 h100", "16 h200"])
def test_the_hours_from_which_it_pays_are_those_of_the_tool(words: str) -> None:
    answer = ask(f"buy or rent {words}, 10 hours a day", approve=False, model="offline")
    assert "hours of use a year" in answer["answer"]
    assert "unverified" not in answer["answer"]


def test_no_year_has_as_many_hours() -> None:
    with pytest.raises(ValidationError, match="hours_per_year"):
        HardwareQuestion(accelerator="h100-sxm", hours_per_year=HOURS_PER_YEAR + 1)
