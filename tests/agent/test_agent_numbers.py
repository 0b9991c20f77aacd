"""Numbers and dates as people write them."""

from __future__ import annotations

import pytest
from conversations import begun
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from agent.session import ask
from knowledge.figures import length_in_tokens
from pages.rendering.clean import plain, plain_data

RUN = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h100-sxm", "count": 8}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5T", 1.5e12), ("300M", 3e8), ("2e9", 2e9), ("two billion", 2e9), ("half a trillion", 5e11),
        ("a quarter of a billion", 2.5e8), ("twenty million", 2e7), ("8 billion", 8e9), ("52_000_000", 52e6),
    ],
)  # fmt: skip
def test_amounts(text: str, value: float) -> None:
    assert begun(f"{text} tokens", RUN).changes == {"workload.dataset_tokens": value}


@pytest.mark.parametrize(
    ("digits", "scale", "tokens"),
    [(4, "k", 4096), (64, "k", 65536), (100, "k", 100_000), (12, "k", 12_000), (1, "m", 1_048_576), (4000, "", 4000),
     (1.5, "k", 1500), (0, "k", 0)],
)  # fmt: skip
def test_context_lengths_are_binary_where_they_look_it(digits: float, scale: str, tokens: float) -> None:
    assert length_in_tokens(digits, scale) == tokens


@given(st.integers(1, 10**9))
def test_counts_survive_thousands_separators(value: int) -> None:
    found = begun(f"{value:,} samples", RUN)
    assert found.changes.get("workload.dataset_samples") == value or found.reading["lost"]


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("by Friday", 60), ("before tomorrow noon", 24), ("by next Wednesday", 180), ("by 2026-11-20", 60),
        ("until tonight", 12), ("by 2026-11-20 18:00", 54), ("by Dec 1", 324), ("by the end of the month", 300),
        ("by Friday 5pm", 53), ("by 2020-01-01", None), ("friday", None), ("by the way", None),
    ],
)  # fmt: skip
def test_deadlines(text: str, hours: float | None) -> None:
    assert begun(f"done {text}", RUN).changes.get("goal.deadline_h") == hours


def test_control_characters_never_reach_the_screen() -> None:
    assert plain("a\x1b[31mred\x1b[0m\x07\x1b]0;title\x07b\u202e\x9b2Jc\td\ne") == "aredb2Jc\td\ne"
    assert plain_data({"k\x1b[2J": ["v\x00", 1, None]}) == {"k": ["v", 1, None]}


@given(st.text())
def test_plain_leaves_no_escape(text: str) -> None:
    assert not set(plain(text)) & {chr(code) for code in [*range(9), *range(11, 32), 127, *range(128, 160)]}


@settings(max_examples=examples(30))
@given(st.integers(1, 64), st.sampled_from(["-{}", "{}.5", "-{}.5"]), st.sampled_from(["h100", "h100s", "a100 80gb"]))
def test_a_number_that_no_devices_can_be_is_asked_about_and_stands_for_none(count: int, odd: str, device: str) -> None:
    number = odd.format(count)
    answer = ask(f"does gpt2 fit on {number} {device}", approve=False, model="offline")
    assert "count" not in answer["plan"].get("cluster", {})
    assert f"'{number}'" in answer["answer"] or f"'{number}'" in " ".join(map(str, answer["asked"]))
