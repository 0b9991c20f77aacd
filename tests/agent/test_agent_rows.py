"""Rows of one's own in plain words: read by their parts, shown before they are written, said over several turns."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from scoring import Said, talk

PRICES = [
    (
        "record a price please: provider Hetzberg (local hoster), machine hb-l40s-4, four L40S, $4.10/h, spot $2.35/h",
        {"provider": "Hetzberg", "instance": "hb-l40s-4", "accelerator": "l40s", "count": 4, "usd_per_hour": 4.1,
         "spot_usd_per_hour": 2.35},
    ),
    (
        "show me what you'd write in the price book, don't save it: northrack lets us have machine 'nr-h200-8', "
        "8 H200, for 19 dollar 20 per hour",
        {"instance": "nr-h200-8", "accelerator": "h200-sxm", "count": 8, "usd_per_hour": 19.2},
    ),
    (
        "add to my prices: {provider: Tern, instance: t-8, accelerator: mi300x, count: 8, usd_per_hour: 13.9}",
        {"provider": "Tern", "instance": "t-8", "accelerator": "mi300x", "count": 8, "usd_per_hour": 13.9},
    ),
]  # fmt: skip


def names(turn: Said) -> list[str]:
    return [call.name for call in turn.calls]


def arguments(turn: Said, tool: str) -> list[dict[str, Any]]:
    return [call.arguments for call in turn.calls if call.name == tool]


def of_kind(turn: Said, kind: str) -> dict[str, Any]:
    (asked,) = [*arguments(turn, f"add_{kind}"), *arguments(turn, f"preview_{kind}")]
    return asked


@pytest.mark.parametrize(("words", "row"), PRICES)
def test_a_price_is_read_by_its_parts(words: str, row: dict[str, Any]) -> None:
    (turn,) = talk([words])
    asked = of_kind(turn, "price")
    assert {name: asked.get(name) for name in row} == row


def test_an_accelerator_is_read_by_its_units() -> None:
    (turn,) = talk(["preview a card of our own, call it atlas-x: 192 GB, 6400 GB/s, 1800 tflops bf16, fp8 3600 tflops, "
                    "900 watt, like an H100, vendor Fathom"])  # fmt: skip
    asked = of_kind(turn, "hardware")
    assert asked == {"id": "atlas-x", "like": "h100-sxm", "memory_gib": 192, "memory_bandwidth_gb_per_s": 6400,
                     "bf16_tflops": 1800, "fp8_tflops": 3600, "tdp_w": 900, "vendor": "Fathom"}  # fmt: skip


def test_what_was_shown_is_written_when_one_agrees() -> None:
    shown, dearer, written = talk(
        ["what would you note in the price list: 8 H200 from Nebius, 22 dollars an hour, name nb-h200-8? don't save",
         "make it 23.10 an hour", "yes, add it"])  # fmt: skip
    assert names(shown) == names(dearer) == ["preview_price"]
    assert names(written) == ["add_price"]
    assert of_kind(written, "price") == of_kind(shown, "price") | {"usd_per_hour": 23.1}


def test_what_a_row_lacks_is_asked_for_by_its_field() -> None:
    asked, given = talk(["add our own price for 8 H100 at NordCloud to the price book", "it is 18.40 dollars an hour"])
    assert any(question.startswith("usd_per_hour") for question in asked.asked)
    assert of_kind(given, "price")["usd_per_hour"] == 18.4


def test_runs_of_ones_own_are_listed_by_date_and_tag() -> None:
    turns = talk(["show me all my measured runs", "only since october", "and of those the ones tagged garage"])
    assert [arguments(turn, "list_runs") for turn in turns] == [
        [{}], [{"since": date(2026, 10, 1).isoformat()}], [{"since": "2026-10-01", "tag": "garage"}]]  # fmt: skip


def test_how_a_plan_is_timed_is_no_part_of_the_plan() -> None:
    first, more = talk(["a benchmark script that times full finetuning of llama 3.2 1b on a 4090, 20 timed steps",
                        "5 warmup steps, only 8 layers, and a trace for perfetto"])  # fmt: skip
    (asked,) = arguments(first, "render_benchmark")
    assert asked["measured_steps"] == 20
    assert "steps" not in asked
    (again,) = arguments(more, "render_benchmark")
    assert again == asked | {"warmup_steps": 5, "layers": 8, "profile": True}
