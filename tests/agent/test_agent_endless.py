"""A question is answered at once; input without end soon, and nothing of it is a figure."""

from __future__ import annotations

import time
from datetime import datetime

import pytest
from pace import slower, within
from scoring import NOON

from agent.grounding.check import ungrounded
from agent.grounding.figures import figures_in
from agent.models import Turn
from agent.offline.catalogue import known
from agent.offline.planner import step
from agent.session import ask, open_session
from agent.wire import Outcome, answered, calls_of, said
from estimator.errors import PlanError
from tools.registry import registry

LONGEST = 20_000
ENDLESS = {
    "digits": "1" * LONGEST, "between": "between 1 and 2 and 3 and " * 3000, "dots": "1." * LONGEST,
    "commas": "1,2" * LONGEST, "powers": "1e" * LONGEST, "dashes": "-" * LONGEST, "names": "llama-3.1-" * 5000,
    "times": "8x" * LONGEST, "thousands": "4k " * LONGEST, "brackets": "(" * LONGEST, "paths": "a/b/" * LONGEST,
    "joined": "8-" * LONGEST, "words": "half a third of two " * 3000, "scores": "_" * LONGEST,
    "money": "$" + "9" * LONGEST, "strange": "two and" * 3000, "asks": "?" * 50_000, "whys": "why? " * 10_000,
    "objects": '\n{"a":' * LONGEST, "lists": '\n{"a":' + "[" * 50_000,
}  # fmt: skip


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS.keys())
def test_endless_words_are_answered_soon(text: str) -> None:
    with within(6):
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


def test_a_question_whether_it_fits_is_answered_at_once() -> None:
    tools, messages = registry(), [said("can I fully fine-tune llama-3.1-8b on 8 H100 with 4k context?")]

    def answer() -> float:
        """Seconds of CPU from the question to the answer, the tools' own time in it."""
        began, content = time.process_time(), list(messages)
        plan, topic = {}, {}
        for _ in range(4):
            thought = step(Turn(content, plan, topic, tools, NOON), known())
            plan, topic = thought.plan or plan, thought.topic or topic
            content.append(thought.content)
            if not (calls := calls_of(thought.content)):
                break
            content.append(answered(Outcome(call, tools[call.name](call.arguments)) for call in calls))
        return time.process_time() - began

    answer()
    assert min(answer() for _ in range(5)) < 0.3 * slower()
