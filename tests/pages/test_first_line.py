"""The first sentence of an answer is what was asked for, and what is in doubt stands beside it once."""

from __future__ import annotations

import re
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from knowledge import figures
from pages.answers import facts, lead, serving
from pages.answers.asked import named_figures, with_named
from pages.answers.change import ShortAnswer, changed
from pages.answers.comparison import _behind, compared
from pages.answers.cost import cheaper_first, first_savings
from pages.answers.limit import answer
from pages.blocks import Headline, Prose
from pages.results.limits import doubt_words
from planner.results import HardwareDescription, TrainingEstimate
from tools.registry import find

RUN = {"model": "llama-3-8b", "accelerator": "h100-sxm", "count": 8, "dataset_tokens": "1B"}


@cache
def estimate() -> TrainingEstimate:
    found: Any = find("estimate_training").run(RUN)
    return found


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        (["throughput.mfu", "time"], r"\d+ % MFU: "),
        (["time.step_s"], r"[\d.]+ s \([\d.]+–[\d.]+\) per step: "),
        (["run"], r"[\d.]+ hours \([\d.]+–[\d.]+\): "),
        (["layout"], r"Best layout with \w+: "),
        (["faster", "why"], r"Bottleneck: \w+, \d+ % of a step: "),
        (["fit", "throughput.mfu"], "It fits"),
        ([], "It fits: "),
    ],
)
def test_what_was_asked_comes_first(asked: list[str], first: str) -> None:
    head, *rest = lead.training(estimate(), None, None, asked)
    assert isinstance(head, Headline)
    assert re.match(first, head.text)
    assert "fits" in head.text + head.more
    # Every figure is there once.
    mfu = f"{figures.percent(estimate().throughput.mfu)} MFU"
    texts = " ".join(block.markdown for block in rest if isinstance(block, Prose))
    assert (head.text + texts).count(mfu) == 1


def test_a_part_of_a_step_is_told_as_its_share() -> None:
    parts = estimate().time.components
    together = sum(seconds for name, seconds in parts.items() if name.endswith("_parallel") or name == "pipeline")
    for path, seconds in (("communication", together), ("time.components.forward", parts["forward"])):
        told = named_figures([estimate()], [path])
        assert f"**{figures.percent(seconds / estimate().time.step_s)} of a step**" in told
    head, *_ = with_named(lead.training(estimate(), None, None, [])[0], [estimate()], ["communication"])
    assert isinstance(head, Headline)
    assert head.text.startswith("Exposed communication: ")


def test_whoever_asks_for_a_cheaper_way_is_told_it_first() -> None:
    bill: Any = find("estimate_cost").run(RUN | {"cheaper": True})
    assert cheaper_first(bill).startswith("Cheaper: ")
    told = [block.markdown for block in first_savings(bill, told=True) if isinstance(block, Prose)]
    assert all(cheaper_first(bill).split(", ")[0].removeprefix("Cheaper: ") not in text for text in told)
    assert cheaper_first(bill.model_copy(update={"savings": []})).startswith("Nothing cheaper than $")


@pytest.mark.parametrize(
    ("hours", "low", "high", "told"),
    [
        (71.0, 53.0, 93.0, "71.0 hours (53.0–93.0)"),
        (80.0, 60.0, 95.0, "3.3 days (2.5–4.0)"),
        (0.9, 0.7, 1.2, "54 min (42.0–72.0)"),
    ],
)
def test_an_interval_has_the_unit_of_its_figure(hours: float, low: float, high: float, told: str) -> None:
    assert figures.held(SimpleNamespace(hours=hours, low_hours=low, high_hours=high), "hours") == told


def test_the_same_doubt_is_told_once() -> None:
    warnings = ["no Ada runs measured: timing is less certain", "no verl speeds measured: timing is less certain"]
    assert doubt_words(warnings) == "No Ada runs measured, no verl speeds measured: timing is less certain."


@pytest.mark.parametrize(("asked", "first"), [(["usd"], "from **$"), ([], "989 TFLOP/s")])
def test_a_device_begins_with_what_was_asked(asked: list[str], first: str) -> None:
    found = find("describe_hardware").run({"accelerator": "h100-sxm"})
    assert isinstance(found, HardwareDescription)
    head = facts.device(found, (), asked)[0]
    assert isinstance(head, Prose)
    assert head.markdown.startswith(f"**H100 SXM5 80GB** (`h100-sxm`): {first}")
    assert {"TFLOP/s", "GB/s", "an hour"} <= {word for word in ("TFLOP/s", "GB/s", "an hour") if word in head.markdown}


def test_a_unit_is_said_once_for_before_and_now() -> None:
    before = ShortAnswer({"ttft_s": "TTFT 596 ms", "usd": "$119", "hours": "50 min"}, {"weights": "bf16"})
    now = ShortAnswer({"ttft_s": "TTFT 452 ms", "usd": "$95.98", "hours": "1.2 hours"}, {"weights": "fp8"})
    (block,) = changed(before, now)
    assert isinstance(block, Prose)
    assert block.markdown == (
        "Before → now: TTFT 596 → 452 ms; $119 → $95.98; 50 min → 1.2 hours. Changed: weights bf16 → fp8."
    )


def test_a_label_is_said_once_where_units_differ() -> None:
    before, now = (
        ShortAnswer({"ttft_s": "TTFT 1.37 s"}, {"load": "a"}),
        ShortAnswer({"ttft_s": "TTFT 872 ms"}, {"load": "b"}),
    )
    (block,) = changed(before, now)
    assert isinstance(block, Prose)
    assert block.markdown.startswith("Before → now: TTFT 1.37 s → 872 ms. ")


def test_the_price_of_a_device_has_its_day_and_one_without_any_what_devices_like_it_cost() -> None:
    texts = []
    for name in ("h100-sxm", "rtx-5090-d"):
        found: Any = find("describe_hardware").run({"accelerator": name})
        head = facts.device(found, ())[0]
        assert isinstance(head, Prose)
        texts.append(head.markdown)
    assert re.search(r"an hour\*\* at .*, price of 20\d\d-\d\d", texts[0])
    assert re.search(r"similar devices cost \$[\d.]+ to \$[\d.]+ an hour \(an assumption\)", texts[1])


def test_what_costs_as_much_when_rounded_is_told_apart_by_its_share() -> None:
    rows: list[Any] = [SimpleNamespace(name="b", usd=120.0), SimpleNamespace(name="a", usd=120.4)]
    assert _behind(rows[1], rows[0], "usd") == "a at 0.3 % more"
    assert _behind(SimpleNamespace(name="a", usd=150.0), rows[0], "usd") == "a at $150"


def test_where_nothing_holds_back_nothing_is_called_a_bottleneck() -> None:
    found: Any = find("find_limit").run({"model": "gpt2", "accelerator": "h100-sxm", "goal": "devices"})
    head, *rest = answer(found)
    told = " ".join(block.markdown for block in rest if isinstance(block, Prose))
    assert found.limited_by == "range"
    assert isinstance(head, Headline)
    assert "fits on a single device" in head.text
    assert "Bottleneck" not in told


@pytest.mark.parametrize(
    ("asked", "first"),
    [(["latency.ttft_s"], "TTFT "), (["throughput.tokens_per_s", "time"], r"[\d,]+ output tokens/s: "),
     (["fit"], r"It fits: [\d.]+ GiB of "), (["time"], r"It fits\.")],
)  # fmt: skip
def test_what_was_asked_of_a_deployment_comes_first_and_once(asked: list[str], first: str) -> None:
    found: Any = find("estimate_inference").run({"model": "llama-3.1-8b", "accelerator": "h100", "count": 1})
    head = serving.verdict(found, None, asked)
    assert re.match(first, head.text)
    told = f"{head.text} {head.more}"
    assert all(told.count(word) == 1 for word in ("It fits", "TTFT", "TPOT", "output tokens/s"))


def test_one_client_s_speed_is_that_of_its_answer() -> None:
    """As llama-bench and Ollama tell it; an answer of 16 tokens to a long prompt is mostly a wait for the first."""
    asked = {"model": "llama-3.1-8b", "accelerator": "apple-m4-max", "count": 1, "input_len": 2048, "output_len": 16}
    found: Any = find("estimate_inference").run(asked)
    told = serving.verdict(found, None).more
    written, whole = (
        figures.rate(value) for value in (1.0 / found.latency.tpot_s, found.throughput.output_tokens_per_s)
    )
    assert f"**{written} output tokens/s** ({whole} over the whole request)" in told


def test_the_cheapest_per_token_is_a_price() -> None:
    over = {"accelerator": ["h100", "b200"]}
    found: Any = find("compare").run(
        {"model": "llama-3.1-8b", "plan": {"workload": {"kind": "inference"}}, "over": over}
    )
    head = compared(found, ["cost", "latency.tpot_s"])[0]
    assert isinstance(head, Headline)
    assert "costs the least: $" in head.text
