"""Parts of a week, times that are no deadlines, and queues that are told otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from scoring import talk

from agent.offline.catalogue import known
from agent.offline.language import read

PLAN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "cluster": {"accelerator": "h100-sxm", "count": 8},
    "workload": {"dataset_tokens": 1e9},
    "goal": {"days_per_week": 5},
}
QUEUE = "two jobs on 32 H100: first qwen3 8b full on 2B tokens, then qwen3 14b lora on 1B. when is each done?"


def _values(text: str, plan: dict[str, Any]) -> dict[str, Any]:
    return {edit.field: edit.value for edit in read(text, known(), plan, {}).edits if edit.op == "set"}


@pytest.mark.parametrize(
    ("words", "days", "hours"),
    [
        ("weekdays", 5, None), ("monday to friday", 5, None), ("no weekends", 5, None), ("not on weekends", 5, None),
        ("weekends not at all", 5, None), ("only on weekends", 2, None), ("nights, 10 hours a night", None, 10),
        ("12 hours a day", None, 12), ("nights, ten hours, and no weekends", 5, 10), ("business hours", 5, 8),
        ("5 days a week, 6 hours a day", 5, 6), ("nights and weekends", None, 14),
    ],
)  # fmt: skip
def test_a_part_of_every_week_is_read(words: str, days: int | None, hours: float | None) -> None:
    values = _values(f"llama 3.1 8b full on 8 H100, 50M tokens, the machines are free {words}", {})
    assert (values.get("days_per_week"), values.get("hours_per_day")) == (days, hours)
    assert "deadline_h" not in values


@pytest.mark.parametrize(("words", "days"), [("weekends too", 7), ("weekends got approved", 7), ("only weekends", 2),
                                             ("not weekends after all", 5)])  # fmt: skip
def test_weekends_come_to_what_there_was(words: str, days: int) -> None:
    assert _values(words, PLAN).get("days_per_week", 5) == days


@pytest.mark.parametrize("years", [1, 3])
@pytest.mark.parametrize("way", ["what does it cost with a {}-year reservation?", "reserved for {} years, the cost?"])
def test_a_reservation_is_no_deadline(way: str, years: int) -> None:
    reading = read(way.format(years), known(), PLAN, {})
    assert reading.values("deadline_h") == []
    assert reading.pricing["price"] == ("reserved" if years == 1 else "reserved_3y")


@pytest.mark.parametrize(("words", "hours"), [("slurm script, account nlp, 12h limit", 12), ("sbatch, max 48h", 48)])
def test_a_time_beside_a_scheduler_is_its_limit(words: str, hours: float) -> None:
    reading = read(words, known(), PLAN, {})
    assert (reading.own["time_limit_h"], reading.values("deadline_h")) == (hours, [])


@pytest.mark.parametrize("words", ["My ceiling is 1,200 dollars.", "A donor gave us $1,200.", "I've only $1,200 left."])
def test_money_that_somebody_has_is_the_budget(words: str) -> None:
    reading = read(f"{words} What should I rent for a lora of llama 3.1 8b on 50M tokens?", known(), {}, {})
    assert reading.values("budget_usd") == [1200]


def test_money_beside_hardware_is_its_price() -> None:
    reading = read("Got two 3090s for 1,400 bucks. Can I qlora llama 3.1 8b?", known(), {}, {})
    assert reading.values("budget_usd") == []


@pytest.mark.parametrize(("words", "times"), [("twice a day", 2), ("3 times in a day", 3), ("three times a day", 3)])
def test_how_often_machines_are_taken(words: str, times: float) -> None:
    reading = read(f"what does it cost on spot if they kill us {words}?", known(), PLAN, {})
    assert reading.pricing["interruptions_per_day"] == times


def _queue(words: str) -> list[dict[str, Any]]:
    *_, turn = talk([QUEUE, words])
    assert [call.name for call in turn.calls] == ["schedule_runs"]
    assert turn.calls[0].arguments["count"] == (16 if "16" in words else 32)
    return turn.calls[0].arguments["runs"]


@pytest.mark.parametrize("words", ["swap the order", "put the 14b first, it's urgent", "the lora one matters more"])
def test_another_run_goes_first(words: str) -> None:
    first, second = _queue(words)
    assert first["name"] == "Qwen3-14B"
    assert second["after"] == ["Qwen3-14B"]


def test_runs_go_side_by_side_on_their_own_devices() -> None:
    runs = _queue("side by side, 8 cards each")
    assert [run["devices"] for run in runs] == [8, 8]
    assert not any(run.get("after") for run in runs)
    assert [run["devices"] for run in _queue("the lora only needs 8, run them in parallel")] == [24, 8]


def test_a_queue_moves_to_fewer_devices() -> None:
    assert [run["name"] for run in _queue("and if only 16 cards")] == ["Qwen3-8B", "Qwen3-14B"]
