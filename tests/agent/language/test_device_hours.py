"""Devices times their hours are one quantity, whichever way they are said."""

from __future__ import annotations

import pytest

from agent.offline.catalogue import known
from agent.offline.language import read
from agent.offline.usual import usual

SAID = {
    "50k GPU hours": 50_000, "20,000 H100-hours": 20_000, "1000 gpu-hours": 1000, "300 A100 days": 7200,
    "10.000 horas de GPU": 10_000, "20.000 GPU-Stunden": 20_000, "5000 hours of H100": 5000,
}  # fmt: skip


@pytest.mark.parametrize(("text", "hours"), SAID.items())
def test_they_are_no_number_of_devices(text: str, hours: float) -> None:
    reading = read(f"we have {text}: can I pretrain a 3B on 300B tokens?", known())
    assert reading.values("budget_device_hours") == [hours]
    assert not reading.values("count")
    assert not reading.lost


@pytest.mark.parametrize("text", ["16 H100 for 20 hours", "16 GPUs, 20 hours", "16 GPUs in 20 hours"])
def test_devices_and_hours_apart_are_two_numbers(text: str) -> None:
    reading = read(f"{text}: can I pretrain a 3B on 300B tokens?", known())
    assert not reading.values("budget_device_hours")


@pytest.mark.parametrize(
    "words",
    ["how many tokens can I train {} on {}?", "what is the largest dataset for {} {}?", "{} {}: how much data?"],
)
@pytest.mark.parametrize("end", ["in 2 weeks", "with 4,000 gpu hours", "for $3000", "by friday"])
def test_what_ends_a_run_is_asked_for_its_data(words: str, end: str) -> None:
    reading = read(words.format("full fine-tuning of llama 3.1 8b on 8 h100", end), known())
    assert (reading.tool, reading.own.get("goal")) == ("find_limit", "tokens")


def test_without_an_end_no_data_are_searched() -> None:
    reading = read("how many tokens can I fit on one h100 with llama 3.1 8b, full fine-tuning?", known())
    assert reading.own.get("goal") != "tokens"


def test_devices_that_last_a_month_are_never_fewer_than_have_room() -> None:
    run = {"model": "meta-llama/Llama-3.1-405B", "cluster": {"accelerator": "h100-sxm"}}
    (fewest,) = usual(run).values()
    assert usual({**run, "goal": {"budget_device_hours": 6000}}) == usual(run)
    (more,) = usual({**run, "goal": {"budget_device_hours": 720 * 4 * fewest}}).values()
    assert more > fewest


@pytest.mark.parametrize(
    ("words", "count", "hours"),
    [
        ("my team gets 3200 H100 hours per month", 8, 3200 / 30 / 8),
        ("we have 500 GPU hours a week on 4 A100", 4, 500 / 7 / 4),
        ("wir haben 2000 H100-Stunden im Monat", 8, 2000 / 30 / 8),
    ],
)
def test_device_hours_of_every_month_are_hours_of_a_day(words: str, count: int, hours: float) -> None:
    edits = {edit.field: edit.value for edit in read(f"{words}, llama 8b full on 3B tokens", known()).edits}
    assert (edits["count"], edits["hours_per_day"]) == (count, pytest.approx(hours, abs=0.01))
    assert "budget_device_hours" not in edits
