"""Credits are money of their own, and the day on which they end is no deadline."""

from __future__ import annotations

from datetime import datetime

import pytest

from agent.offline.catalogue import known
from agent.offline.language import read

NOW = datetime(2026, 11, 27, 12)
RUN = "full fine-tune llama-3.1-8b on 8 h100 with 20B tokens"


@pytest.mark.parametrize(
    ("text", "usd", "end"),
    [
        ("we have $8,000 in credits that end on 31 December; can we {} before?", 8000, "2026-12-31"),
        ("{}; we have $2,000 of AWS credits that expire on 30 November. What is left to pay?", 2000, "2026-11-30"),
        ("we have $8,000 credits until 31 December, {}, cost?", 8000, "2026-12-31"),
        ("{} with 5k dollars of credits expiring 2027-01-15", 5000, "2027-01-15"),
        ("{} with $5000 of AWS credits until 15 January 2028", 5000, "2028-01-15"),
        ("we have $5k in credits that expire on December 31, 2027: {}", 5000, "2027-12-31"),
        ("{}: we have $3000 of credits", 3000, None),
    ],
)
def test_an_amount_and_its_day(text: str, usd: float, end: str | None) -> None:
    reading = read(text.format(RUN), known(), now=NOW)
    assert reading.values("credits_usd") == [usd]
    assert reading.values("credits_end") == ([end] if end else [])
    assert not reading.values("budget_usd")
    assert not reading.values("deadline_h")
    assert not reading.lost


def test_a_deadline_beside_credits_stays_one() -> None:
    reading = read(f"we have $5k in credits, {RUN}, must be done by 1 december. enough?", known(), now=NOW)
    assert reading.values("credits_usd") == [5000]
    assert reading.values("deadline_h")
    assert not reading.values("credits_end")
    assert read(f"{RUN} for at most $5000 by 1 december", known(), now=NOW).values("budget_usd") == [5000]
