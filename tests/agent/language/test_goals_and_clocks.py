"""Limits that are said by the last answer's figures, times of the day, and numbers with a half over them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.offline.catalogue import known
from agent.offline.language import read

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
PLAN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"kind": "training", "method": "full", "dataset_tokens": 1e9, "global_batch": 64},
    "cluster": {"accelerator": "h100-sxm", "count": 8},
}
TOLD = {"figures": {"usd": "$120", "hours": "4.0 hours"}, "settings": {}, "hours": 4.0, "usd": 120.0}


def edits(words: str, plan: dict[str, Any] | None = None, **topic: Any) -> dict[str, tuple[str, Any]]:
    reading = read(words, known(), PLAN if plan is None else plan, {"followed": True, **topic}, NOON)
    return {edit.field: (edit.op, edit.value) for edit in reading.edits} | {"lost": ("", reading.lost)}


SHARES = ("cut {} by {}", "get {} down by {}", "reduce {} by {}")


@given(part=st.integers(10, 90), way=st.sampled_from(SHARES), what=st.sampled_from(["the cost", "the bill"]))
def test_a_part_less_than_what_was_told_is_a_budget(part: int, way: str, what: str) -> None:
    changes = edits(way.format(what, f"{part} %"), told=TOLD, recent="workload.global_batch")
    assert changes["budget_usd"] == ("set", pytest.approx(120 * (1 - part / 100)))
    assert "global_batch" not in changes


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("halve the cost", "budget_usd", 60),
        ("cut the cost in half", "budget_usd", 60),
        ("what would halve the cost?", "budget_usd", 60),
        ("twice as fast", "deadline_h", 2),
        ("I need it three times as fast", "deadline_h", 4 / 3),
        ("can it be done in half the time?", "deadline_h", 2),
    ],
)
def test_a_factor_of_what_was_told_is_a_limit(words: str, field: str, value: float) -> None:
    changes = edits(words, told=TOLD, recent="workload.global_batch")
    assert changes[field] == ("set", pytest.approx(value, rel=1e-4))
    assert "global_batch" not in changes


@pytest.mark.parametrize("words", ["halve the cost", "twice as fast"])
def test_a_factor_of_nothing_is_said(words: str) -> None:
    changes = edits(words, recent="workload.global_batch")
    assert "global_batch" not in changes
    assert changes["lost"][1]


def test_a_limit_that_is_named_is_changed_itself() -> None:
    plan = PLAN | {"goal": {"budget_usd": 500.0}}
    assert edits("halve the budget", plan, told=TOLD)["budget_usd"] == ("times", 0.5)
    assert edits("halve the cost", plan, told=TOLD)["budget_usd"] == ("set", 60)
    assert edits("what if we had only half that money", plan)["budget_usd"] == ("times", 0.5)


CLOCKS = (
    "only free nights, 10pm to 6am", "only free nights, 10 to 6am", "only at night from 22 to 6",
    "nur nachts frei, von 22 bis 6 Uhr", "nur von 22 bis 6 Uhr frei", "solo de noche, de 22 a 6",
    "seulement la nuit, de 22h à 6h", "only free from 9 to 5pm",
)  # fmt: skip


@pytest.mark.parametrize("words", CLOCKS)
def test_hours_between_two_clocks_are_those_of_a_day(words: str) -> None:
    changes = edits(f"llama-3.1-8b lora on 16 l40s, 150M tokens, {words}", {})
    assert changes["hours_per_day"] == ("set", 8)
    assert changes["lost"][1] == []


@pytest.mark.parametrize(
    ("words", "hours"),
    [
        ("done by 6pm", 6), ("by 6pm today", 6), ("by 8am", 20), ("by 8am tomorrow", 20), ("by tomorrow 8am", 20),
        ("finish before 18:00", 6), ("needed by 9 Uhr", 21),
    ],
)  # fmt: skip
def test_a_clock_alone_is_its_next_time(words: str, hours: float) -> None:
    assert edits(f"llama-3.1-8b lora on 16 l40s, 150M tokens, {words}", {})["deadline_h"] == ("set", hours)


def test_devices_are_no_clocks() -> None:
    changes = edits("we went from 8 to 16 h100 on llama 8b", {})
    assert "deadline_h" not in changes


HALVES = {
    "two and a half days": 60, "2 and a half days": 60, "2 1/2 days": 60, "a day and a half": 36,
    "dos días y medio": 60, "une journée et demie": 36, "un jour et demi": 36, "eineinhalb Tage": 36, "2 Tage": 48,
}  # fmt: skip


@pytest.mark.parametrize(("words", "hours"), HALVES.items())
def test_halves_over_a_number_count(words: str, hours: float) -> None:
    changes = edits(f"llama-3.1-8b lora on 16 l40s, 150M tokens, deadline {words}", {})
    assert changes["deadline_h"] == ("set", hours)


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ("maverick on 8 h200", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
        ("serve scout on 8 h200", "meta-llama/Llama-4-Scout-17B-16E-Instruct"),
        ("serve super 120b on 8 h200", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16"),
    ],
)
def test_what_tells_siblings_apart_names_one(words: str, model: str) -> None:
    assert edits(words, {})["model"] == ("set", model)


@pytest.mark.parametrize("words", ["what next, 80B tokens of data", "make it super fast", "lightning, please"])
def test_ordinary_words_name_no_model(words: str) -> None:
    assert "model" not in edits(words)
