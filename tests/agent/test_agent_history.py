"""What is left of a long conversation, and of an answer whose figures cannot be trusted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.figures import headline
from agent.grounding.check import ungrounded
from agent.grounding.withheld import withhold
from agent.history import WHOLE_TURNS, shortened, turns_of
from agent.wire import Call, Content, Outcome, answered, calls_of, said, text_of, thought
from tools import call

_WHOLE = call("estimate_training", {"model": "gpt2", "accelerator": "h100-sxm", "count": 1})
RESULT: dict[str, Any] = _WHOLE | {
    "plan": {"model": "org/m", "cluster": {"accelerator": "h100-sxm", "count": 8}},
    "memory": _WHOLE["memory"] | {"fits": True, "per_device_bytes": 2.0**36, "capacity_bytes": 5 * 2.0**34},
    "time": _WHOLE["time"] | {"step_s": 2.0},
    "throughput": _WHOLE["throughput"] | {"tokens_per_s": 61032.4, "mfu": 0.371},
    "evidence": [],
}


def turn(number: int, calls: int = 1) -> list[Content]:
    made = [Call(f"{number}-{index}", "estimate_training", {}) for index in range(calls)]
    return [
        said(f"question {number}"),
        {**thought("gemini-x", calls=made), "parts": [{**part, "thoughtSignature": "AAEC"}
         for part in thought("gemini-x", calls=made)["parts"]]},
        answered(Outcome(call, RESULT) for call in made),
        thought("gemini-x", f"answer {number}"),
    ]  # fmt: skip


@given(st.lists(st.integers(1, 3), min_size=1, max_size=40))
def test_shortening_keeps_the_last_turns_whole_and_never_leaves_half_a_call(counts: list[int]) -> None:
    messages: list[Content] = []
    for number, calls in enumerate(counts):
        messages = [*shortened(messages), *turn(number, calls)]
    kept = turns_of(messages)
    whole = min(len(counts), WHOLE_TURNS)
    expected = [turn(number, counts[number]) for number in range(len(counts) - whole, len(counts))]
    assert kept[len(kept) - whole :] == expected
    made = [call.id for content in messages for call in calls_of(content)]
    given_back = [p["functionResponse"]["id"] for c in messages for p in c["parts"] if "functionResponse" in p]
    assert made == given_back
    assert len(str(messages)) < 80_000 * 3
    again = shortened(messages)
    assert shortened(again) == again


def test_what_is_older_keeps_its_words_and_figures() -> None:
    messages: list[Content] = []
    for number in range(30):
        messages = [*shortened(messages), *turn(number)]
    text = "\n".join(text_of(content) for content in messages)
    assert text.startswith("[Earlier in this conversation")
    assert "- user: question 2\n" in text
    assert "answer: answer 2\n" in text
    assert "estimate_training of org/m on 8 x h100-sxm: fits, memory per device 64.0 GiB" in text


def test_a_summary_stays_short_and_loses_its_oldest_lines() -> None:
    messages: list[Content] = []
    for number in range(200):
        messages = [*shortened(messages), said(f"question {number} " + "word " * 100), thought("m", "yes " * 200)]
    text = text_of(messages[0])
    assert len(text) < 13_000
    assert "question 0 " not in text
    assert "question 180 " in text


def test_a_headline_has_no_figure_that_the_result_has_not() -> None:
    line = headline(Outcome(Call("1", "estimate_training", {}), RESULT))
    assert line.endswith(
        "fits, memory per device 64.0 GiB, capacity 80.0 GiB, step time 2.00 s, training speed 61,032 tokens/s, "
        "MFU 37 %"
    )
    assert ungrounded(line, [RESULT], []) == []
    assert headline(Outcome(Call("1", "x", {}), {"error": "no"})) == "x: refused (no)"
    assert headline(Outcome(Call("1", "x", {}), {"odd": {"memory": 3}})) == ""


BAD = "333.3 GiB"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"It fits. It takes {BAD}. Good.", "It fits. *(left out: a figure that no tool gave)* Good."),
        (f"- one\n- takes {BAD}\n- two", "- one\n- *(left out: a figure that no tool gave)*\n- two"),
        (f"| a | {BAD} |\n| b | x |", "| a | — |\n| b | x |"),
        (f"{BAD} here. {BAD} there. End.", "*(left out: a figure that no tool gave)* End."),
    ],
)
def test_the_sentence_goes_and_the_rest_stays(text: str, expected: str) -> None:
    assert withhold(text, ungrounded(text, [], []), []) == expected


@given(
    st.lists(st.sampled_from(["It fits.", f"It takes {BAD}.", "\n", "- a point", "| x | 7777 |\n", "**Yes.**", " "]))
)
def test_no_figure_from_nowhere_is_left(parts: list[str]) -> None:
    text = " ".join(parts)
    kept = withhold(text, ungrounded(text, [RESULT], []), [Outcome(Call("1", "estimate_training", {}), RESULT)])
    assert ungrounded(kept, [RESULT], []) == []
