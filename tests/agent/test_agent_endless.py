"""Input without end: twice as much takes about twice as long, and nothing of it is a figure."""

from __future__ import annotations

from datetime import datetime

import pytest
from pace import within

from agent.grounding.check import ungrounded
from agent.grounding.figures import figures_in
from agent.session import ask, open_session
from estimator.errors import PlanError

LONGEST = 20_000
ENDLESS = {
    "digits": "1" * LONGEST, "between": "between 1 and 2 and 3 and " * 3000, "dots": "1." * LONGEST,
    "commas": "1,2" * LONGEST, "powers": "1e" * LONGEST, "dashes": "-" * LONGEST, "names": "llama-3.1-" * 5000,
    "times": "8x" * LONGEST, "thousands": "4k " * LONGEST, "brackets": "(" * LONGEST, "paths": "a/b/" * LONGEST,
    "joined": "8-" * LONGEST, "words": "half a third of two " * 3000, "scores": "_" * LONGEST,
    "money": "$" + "9" * LONGEST, "strange": "two and" * 3000,
}  # fmt: skip


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS.keys())
def test_endless_words_are_answered_soon(text: str) -> None:
    with within(4):
        answer = ask(f"fine-tune llama-3.1-8b on 8 h100 {text}"[:100_000], approve=False, model="offline")["answer"]
    assert 0 < len(answer) < 6000


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS.keys())
def test_figures_of_endless_words_are_found_soon(text: str) -> None:
    with within(4):
        for figure in figures_in(text):
            assert abs(figure.value) < float("inf")
        ungrounded(text, [{"a": 1.0}], [text])


@pytest.mark.parametrize("text", ["0 GiB", "does gpt2 fit on 0 GB", "-1 GiB", "0GB mac"])
def test_no_memory_is_no_card(text: str) -> None:
    assert ask(text, approve=False, model="offline")["answer"]


@pytest.mark.parametrize("year", [1, 1970, 2200, 9999])
def test_a_clock_that_no_plan_can_have_is_refused(year: int) -> None:
    with pytest.raises(PlanError, match="no year to plan in"):
        open_session(model="offline", now=datetime(year, 12, 31))
