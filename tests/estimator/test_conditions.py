"""Conditions over facts: what holds, what does not, and that what is not known passes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.advice.conditions import filled, holds, holes_in, names_in, problems

FACTS: dict[str, Any] = {
    "tp": 8, "share": 0.5, "fits": True, "stage": "dpo", "crosses": ["tp", "dp"], "rate": None, "one": 1,
    "none": "none",
}  # fmt: skip


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({}, True),
        ({"tp": 8}, True),
        ({"tp": [1, 8]}, True),
        ({"tp": {"above": 8}}, False),
        ({"tp": {"at_least": 8, "below": 9}}, True),
        ({"tp": {"at_most": 7}}, False),
        ({"stage": ["dpo", "ppo"], "share": {"below": 0.6}}, True),
        ({"stage": {"is_not": "dpo"}}, False),
        ({"stage": {"is_not": ["ppo", "grpo"]}}, True),
        ({"crosses": "tp"}, True),
        ({"crosses": ["ep", "dp"]}, True),
        ({"crosses": {"is_not": "ep"}}, True),
        ({"crosses": {"is_not": "dp"}}, False),
        ({"fits": True}, True),
        ({"fits": 1}, False),
        ({"one": True}, False),
        ({"fits": {"above": 0}}, False),
        ({"rate": None}, True),
        ({"rate": {"above": 0}}, False),
        ({"rate": {"is_not": 3}}, False),
        ({"stage": {"above": 1}}, False),
        ({"any_of": [{"tp": 1}, {"fits": True}]}, True),
        ({"any_of": [{"tp": 1}, {"fits": False}]}, False),
        ({"tp": 8, "any_of": [{"fits": False}, {"any_of": [{"stage": "dpo"}]}]}, True),
        ({"none": "none"}, True),
    ],
)
def test_what_holds(when: dict[str, Any], expected: bool) -> None:
    assert problems(when) == []
    assert holds(when, FACTS) is expected


def test_a_fact_that_is_not_named_is_an_error() -> None:
    with pytest.raises(KeyError):
        holds({"nothing": 1}, FACTS)


@pytest.mark.parametrize(
    "when",
    [[], "tp", {"tp": {}}, {"tp": {"over": 1}}, {"tp": {"above": "1"}}, {"tp": {"above": True}}, {"any_of": []},
     {"any_of": {"tp": 1}}, {"any_of": [{"tp": {"above": None}}]}],
)  # fmt: skip
def test_bad_forms_are_told(when: Any) -> None:
    assert problems(when)


def test_names_and_texts() -> None:
    when = {"a.b": 1, "any_of": [{"c": 2}, {"any_of": [{"d": {"above": 1}}]}]}
    assert list(names_in(when)) == ["a.b", "c", "d"]
    text = "at {tp} with {share} and {use: 1} {Not}"
    assert holes_in(text) == ["tp", "share"]
    assert filled(text, FACTS, lambda name, value: f"{name}={value}") == "at tp=8 with share=0.5 and {use: 1} {Not}"


@given(st.floats(allow_nan=True), st.floats(allow_nan=False, allow_infinity=False))
def test_bounds_exclude_each_other(fact: float, bound: float) -> None:
    facts = {"x": fact}
    above, most = holds({"x": {"above": bound}}, facts), holds({"x": {"at_most": bound}}, facts)
    assert above != most or fact != fact
    assert holds({"x": {"at_least": bound}}, facts) >= above
    assert not (above and holds({"x": {"below": bound}}, facts))
