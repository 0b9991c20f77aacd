"""Short follow-ups that name no field, read by what the plan holds, what changed last and what was set side by side."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import begun, turns
from scoring import talk

from estimator.plan.schema import merge
from pages.rendering import fold
from planner.partial import get

PLAN = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"global_batch": 128, "dataset_tokens": 2e9, "seq_len": 4096},
    "cluster": {"accelerator": "h100-sxm", "count": 32, "per_node": 8},
}
BOTH = {"alternatives": {"cluster.accelerator": ["h100-sxm", "h200-sxm"]}}


@pytest.mark.parametrize(
    ("text", "recent", "path", "value"),
    [
        ("hm, 4?", "layout.tp", "layout.tp", 4),
        ("no no, 3", "layout.zero_stage", "layout.zero_stage", 3),
        ("what about 16", "workload.group_size", "workload.group_size", 16),
        ("or selective", "layout.recompute", "layout.recompute", "selective"),
        ("none then", "layout.recompute", "layout.recompute", "none"),
        ("no, the other one", "cluster.accelerator", "cluster.accelerator", "h200-sxm"),
        ("one more node", None, "cluster.count", 40),
    ],
)
def test_a_value_without_a_field_is_of_what_changed_last(text: str, recent: str | None, path: str, value: Any) -> None:
    assert begun(text, PLAN, BOTH | {"recent": recent}).changes.get(path) == value


@pytest.mark.parametrize(
    ("text", "path", "factor"),
    [
        ("too much. half the batch?", "workload.global_batch", 0.5),
        ("and with a quarter of the data?", "workload.dataset_tokens", 0.25),
        ("double the sequence length", "workload.seq_len", 2.0),
        ("double pp", "layout.pp", 2.0),
        ("halve the tensor parallel size", "layout.tp", 0.5),
        ("what if two of the four nodes get taken away from us", "cluster.count", 0.5),
        ("we lost 1 of our 4 nodes", "cluster.count", 0.75),
    ],
)
def test_a_share_is_of_what_is_named(text: str, path: str, factor: float) -> None:
    plan = merge(PLAN, {"layout.pp": 4, "layout.tp": 4})
    assert begun(text, plan).changes == {path: get(plan, path) * factor}


@pytest.mark.parametrize("text", ["is that the other way round?", "4 is too many"])
def test_other_words_are_no_such_follow_up(text: str) -> None:
    assert begun(text, PLAN, BOTH | {"recent": "workload.precision"}).changes == {}


def test_without_what_was_set_side_by_side_the_other_is_the_one_before() -> None:
    turns = list(talk(["LoRA on Llama 3.1 8B with 2 H100, 100M tokens, how long?", "with 4?", "no, the other one"]))
    assert [turn.plan["cluster"]["count"] for turn in turns] == [2, 4, 2]


def test_how_many_finish_in_time_is_another_question_than_how_many_fit() -> None:
    words = "Full fine-tune of OLMo 2 7B over 8B tokens has to be finished in 36 h. How many H100s do I have to book?"
    first, second = talk([words, "and in 3 days?"])
    for turn, hours in ((first, 36.0), (second, 72.0)):
        (call,) = turn.calls
        assert (call.name, call.arguments["deadline_h"]) == ("recommend_cluster", hours)
        (option, *_) = turn.outcomes[0].response["options"]
        assert option["accelerator"] == "h100-sxm"
        assert option["hours"] <= hours


@pytest.mark.parametrize(
    ("turns", "path", "value"),
    [
        (["lora of llama-3.1-8b on 2 rtx 4090", "and on an l40s?", "back to the 4090s then"], "cluster.count", 2),
        (
            [
                "which gpu for a lora of llama-3.1-8b on 100M tokens within 24 hours?",
                "drop the deadline",
                "put the deadline back",
            ],
            "goal.deadline_h",
            24.0,
        ),
        (["lora of llama-3.1-8b on 8 h100, 16k", "drop it to 8k again"], "workload.seq_len", 8192),
        (["grpo of llama-3.1-8b on 8 h100", "colocate vllm, give it 40% of the memory"], "workload.engine_share", 0.4),
        (["llama-3.1-8b full on 8 h100, mbs 4", "and mbs 1?", "no, leave the batch at 4"], "workload.micro_batch", 4),
    ],
)
def test_what_there_was_before_comes_back(turns: list[str], path: str, value: Any) -> None:
    *_, last = talk(turns)
    assert get(last.plan, path) == value


def test_a_list_price_takes_the_place_of_the_own_one() -> None:
    turns = ["full llama-3.1-8b on 8 h100, 1B tokens, what does it cost if we pay $2.10 per gpu hour?", "and on spot?"]
    own, spot = (next(call.arguments for call in done.calls if call.name == "estimate_cost") for done in talk(turns))
    assert own["usd_per_device_hour"] == 2.1
    assert "usd_per_device_hour" not in spot
    assert spot["price"] == "spot"


def test_why_after_a_comparison_tells_the_reasons_and_not_the_table_again() -> None:
    compared = "compare h100 and b200 for full fine-tuning llama 3.1 8b on 1B tokens, 8 of each"
    told, why = turns(compared, "why is it faster?")
    lead = fold.folded(why["answer"]).lead
    assert "b200-sxm is" in lead
    assert "% faster than h100-sxm" in lead
    assert "most of it compute" in lead
    assert "| Scenario" not in lead
    assert "| Scenario" in fold.folded(told["answer"]).lead


def test_two_plans_of_a_conversation_go_by_what_is_other_in_them() -> None:
    *_, both = turns("serve llama 3.1 8b on 1 h100 with 64 users", "and on H200?", "compare both")
    assert "h200-sxm is the fastest" in both["answer"]
    assert "| h100-sxm |" in both["answer"]
