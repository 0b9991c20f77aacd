"""A follow-up says what it changed: figures before and now, and every setting that is another one."""

from __future__ import annotations

import re
from dataclasses import replace

from conversations import turns
from hypothesis import given
from hypothesis import strategies as st

from pages.answers.change import ShortAnswer, changed
from pages.blocks import Prose
from pages.rendering.fold import folded

START = (
    "full fine-tune Llama-3.1-8B on 8 H100s with deepspeed, 1B tokens. How long does it take, and what does it cost?"
)
_PARTS = st.lists(st.sampled_from(["DP 8", "TP 2", "ZeRO-1", "ZeRO-3", "full recompute"]), min_size=1, unique=True)
_SETTINGS = st.fixed_dictionaries({"layout": _PARTS.map(", ".join), "framework": st.sampled_from(["fsdp2", "nemo"])})
_FIGURES = st.dictionaries(st.sampled_from(["mfu", "hours", "usd"]), st.sampled_from(["1 x", "2 x", "3 x"]))
_ANSWERS = st.builds(ShortAnswer, _FIGURES, _SETTINGS)


def words(before: ShortAnswer, now: ShortAnswer) -> str:
    return "".join(block.markdown for block in changed(before, now) if isinstance(block, Prose))


@given(_ANSWERS, _ANSWERS)
def test_every_setting_that_changed_is_named_and_no_other(before: ShortAnswer, now: ShortAnswer) -> None:
    text = words(before, now)
    for name, value in now.settings.items():
        assert (f"{name} " in text) == (value != before.settings[name])
    if text:
        for key, value in now.figures.items():
            moved = key in before.figures and before.figures[key] != value
            # Their unit is said once.
            assert not moved or f"{before.figures[key].removesuffix(' x')} → {value}" in text


@given(_ANSWERS)
def test_what_stays_is_not_told(answer: ShortAnswer) -> None:
    assert words(answer, answer) == words(answer, replace(answer, settings={})) == ""


def test_a_follow_up_shows_before_and_now() -> None:
    first, same, other, spot, serving = turns(
        START, "and the mfu?", "on 16 H200", "what does it cost on spot?", "serve it on one H100 with vllm"
    )
    assert "Before → now" not in folded(first["answer"]).lead + folded(same["answer"]).lead
    lead = folded(other["answer"]).lead
    assert "Before → now: " in lead
    assert "hardware 8 x h100-sxm → 16 x h200-sxm" in lead
    # The same run at another price: what it cost before, and nothing of the run itself once more.
    assert "Before → now: $" in (priced := folded(spot["answer"]).lead)
    assert "price on demand at" in priced
    assert "Bottleneck" not in priced
    assert "Before → now" not in serving["answer"]
    assert not any(turn["ungrounded"] for turn in (first, same, other, spot, serving))


def test_whatever_is_set_otherwise_is_told() -> None:
    _, drafted = turns("Llama-3.1-405B in fp8 on 8 H100s, batch 1, which latency?", "with speculative decoding")
    assert "Before → now: TTFT" in (lead := folded(drafted["answer"]).lead)
    assert "speculative tokens none → " in lead


def test_limits_are_told_beside_those_before() -> None:
    _, twice, same = turns(
        "What is the longest context for LoRA of Qwen3-8B on one RTX 4090?", "with 2 4090s?", "with 2 4090s?"
    )
    lead = folded(twice["answer"]).lead
    assert "Before → now: " in lead
    assert "hardware 1 → 2 x rtx-4090" in lead
    assert "No change" in folded(same["answer"]).lead


def test_what_a_search_found_is_what_is_asked_about_next() -> None:
    found, cost, users = turns(
        "What is the best way to serve Llama-3.1-8B on one H100, for throughput?",
        "what does it cost?",
        "how many users can it serve?",
    )
    (loads,) = re.findall(r"([\d,]+) in flight", folded(found["answer"]).lead.split("\n")[0])
    plan = cost["plan"]["workload"]
    assert f"{loads} clients at once" in folded(cost["answer"]).lead
    assert f"({plan['weight_dtype']}, {plan['engine']})" in folded(users["answer"]).lead
    assert f"{plan['weight_dtype']}, {plan['engine']}" in found["answer"]
    assert not any(turn["ungrounded"] for turn in (found, cost, users))
