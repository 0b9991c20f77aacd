"""Speeds that are wished for, times of a day and months, machines by their name, and ways to spread a model."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.offline.catalogue import known
from agent.offline.language.reading import read

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def edits(text: str) -> dict[str, Any]:
    return {edit.field: edit.value for edit in read(text, known(), {}, {}, NOW).edits}


@pytest.mark.parametrize(
    "wish", ["I need 30 tokens/s", "cheapest way to get 30 tok/s", "can I hit 30 tok/s", "get 30 tokens per second"]
)
def test_a_speed_at_which_somebody_reads_is_a_deployments(wish: str) -> None:
    reading = read(f"{wish} from gpt-oss-120b", known(), {}, {}, NOW)
    assert reading.serving
    assert edits(f"{wish} from gpt-oss-120b")["tpot_slo_ms"] == pytest.approx(1000 / 30)


def test_a_measured_speed_is_no_wish() -> None:
    reading = read("I only get 15 tok/s with llama 70b q4 on 2x 3090, why", known(), {}, {}, NOW)
    assert "tpot_slo_ms" not in {edit.field for edit in reading.edits}
    assert (reading.tool, reading.own) == ("rate_run", {"tokens_per_s": 15.0})
    told = read("I only get 15 tok/s with llama 70b q4 on 2x 3090, what would 3 cards give", known(), {}, {}, NOW)
    assert told.lost == ["15 tok/s"]


def test_a_large_speed_is_that_of_all() -> None:
    assert edits("serve llama 8b at 20000 tokens/s")["token_rate"] == (20000.0, "total")
    assert edits("llama 8b on a 4090 for 100 tok/s in total")["token_rate"] == (100.0, "total")


@pytest.mark.parametrize("verb", ["get", "see", "have", "expect"])
def test_requests_that_come_are_a_load(verb: str) -> None:
    assert edits(f"we {verb} 864,000 requests per day, qwen2.5-72b")["request_rate"] == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("words", "milliseconds"), [("sub-second", 1000), ("sub second", 1000), ("sub-300ms", 300), ("half a second", 500)]
)
def test_a_time_behind_sub_or_half_is_read(words: str, milliseconds: float) -> None:
    assert edits(f"serve llama 8b with {words} ttft on 2 h100")["ttft_slo_ms"] == milliseconds


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("before March", datetime(2027, 2, 28, tzinfo=UTC)),
        ("by the end of January", datetime(2027, 1, 31, tzinfo=UTC)),
        ("until May 2028", datetime(2028, 4, 30, tzinfo=UTC)),
        ("by 3 March 2028", datetime(2028, 3, 3, tzinfo=UTC)),
        ("by March 3rd, 2028", datetime(2028, 3, 3, tzinfo=UTC)),
    ],
)
def test_a_month_is_a_deadline(words: str, day: datetime) -> None:
    """A day is until it has passed."""
    hours = edits(f"llama 8b on 8 h100, 1B tokens, {words}")["deadline_h"]
    assert hours == pytest.approx((day - NOW).total_seconds() / 3600 + 24)


def test_a_verb_that_is_called_like_a_month_is_none() -> None:
    assert "deadline_h" not in edits("may I train llama 8b on 8 h100 with 1B tokens?")


@pytest.mark.parametrize(("times", "hours"), [("8pm and 6am", 10), ("9am and 5pm", 8), ("22:30 and 6:00", 7.5)])
def test_two_times_of_a_day_are_as_long_as_lies_between(times: str, hours: float) -> None:
    assert edits(f"lora of llama 8b on one h100, 300M tokens between {times}")["deadline_h"] == hours


def test_times_of_every_night_are_when_machines_are_free() -> None:
    told = edits("llama 8b on 8 h100, 1B tokens, from 8pm to 6am every night, in 3 days")
    assert (told["deadline_h"], told["hours_per_day"], "days_per_week" in told) == (72.0, 10.0, False)


@pytest.mark.parametrize("words", ["our H100 node", "a single h100 node", "one h100 node"])
def test_a_node_is_a_node(words: str) -> None:
    assert edits(f"lora of llama 8b on {words}")["nodes"] == 1


def test_a_box_of_a_small_card_is_no_node() -> None:
    assert "nodes" not in edits("lora of llama 8b on a 4090 box")


def test_ways_to_spread_a_model_are_set_side_by_side() -> None:
    reading = read("tensor or pipeline parallel on 2 nodes of 8 h100 to serve deepseek v3?", known(), {}, {}, NOW)
    assert reading.tool == "compare"
    options = [{edit.field: edit.value for edit in option} for option in reading.options]
    assert options == [{"tp": 16, "pp": 1}, {"tp": 8, "pp": 2}]


@pytest.mark.parametrize("words", ["3 gpus for tensor parallel", "tensor parallel over 3 gpus"])
def test_devices_for_one_way_are_its_size(words: str) -> None:
    assert edits(f"can I use {words} with llama 8b in vllm?")["tp"] == 3


@pytest.mark.parametrize(("text", "serving"), [("vram for qwen 32b", True), ("vram to train qwen 32b", False)])
def test_what_a_model_needs_is_what_it_needs_to_run(text: str, serving: bool) -> None:
    assert read(text, known(), {}, {}, NOW).serving is serving


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("with torch.compile or without for {}?", "compile", True),
        ("{}, sequence packing or not?", "packing", True),
        ("{} with or without flash attention", "attention", "flash"),
    ],
)
def test_what_is_set_against_itself_is_compared(words: str, field: str, value: Any) -> None:
    reading = read(words.format("llama 8b on 8 h100"), known(), {}, {}, NOW)
    assert reading.tool == "compare"
    assert [[(edit.field, edit.op, edit.value) for edit in option] for option in reading.options] == [
        [(field, "set", value)]
    ]
    assert {edit.field for edit in reading.edits} == {"model", "accelerator", "count"}


@pytest.mark.parametrize(
    ("words", "usd"),
    [
        ("we pay $7,300 a month for the 8xH100 node", 1.25),
        ("our 8xH100 box costs $16 per hour", 2.0),
        ("we pay $29,200 a month for 16 H100", 2.5),
        ("8 H100 at $2 an hour each", 2.0),
        ("8 H100 at $7 per gpu hour", 7.0),
    ],
)
def test_a_price_of_all_is_shared_by_all(words: str, usd: float) -> None:
    reading = read(f"{words}: llama 8b on 1B tokens, what does it cost?", known(), {}, {}, NOW)
    each = reading.pricing.get("usd_per_device_hour") or reading.pricing["usd_per_node_hour"] / 8
    assert each == pytest.approx(usd, rel=0.02)


def test_a_student_is_what_is_trained() -> None:
    reading = read("distill llama 70b into llama 8b on 16 h100, 5B tokens", known(), {}, {}, NOW)
    assert reading.values("model") == ["meta-llama/Llama-3.1-8B"]
    assert any("Llama-3.1-70B" in note and "not modelled" in note for note in reading.assumed)
    assert edits("r1 distill llama 8b lora on a 4090")["model"].endswith("R1-Distill-Llama-8B")


def test_round_the_clock_counts_nothing() -> None:
    assert read("serve llama 8b 24/7 on an L4, monthly cost?", known(), {}, {}, NOW).lost == []


def test_one_reads_at_home_unless_a_load_is_said() -> None:
    assert edits("what do I need to run qwen 32b at home")["concurrency"] == 1
    assert edits("serve qwen 32b at home to 5 people")["concurrency"] == 5
    assert "concurrency" not in edits("fine-tune llama 8b at home on a 3090")
