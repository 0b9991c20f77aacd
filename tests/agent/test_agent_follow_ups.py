"""Short follow-ups that name no field, read by what the plan holds, what changed last and what was set side by side."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from scoring import talk

from agent.offline.catalogue import known
from agent.offline.reading import read
from agent.offline.slots import Relative, Slot

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
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
        ("what if I add a second H100", None, "cluster.count", 2),
        ("one more node", None, "cluster.count", 40),
    ],
)
def test_a_value_without_a_field_is_of_what_changed_last(text: str, recent: str | None, path: str, value: Any) -> None:
    found = read(text, known(), PLAN, recent, NOW, BOTH)
    assert [(slot.path, slot.value) for slot in found.slots if isinstance(slot, Slot) and slot.path == path] == [
        (path, value)
    ]


@pytest.mark.parametrize(
    ("text", "path", "factor"),
    [
        ("too much. half the batch?", "workload.global_batch", 0.5),
        ("and with a quarter of the data?", "workload.dataset_tokens", 0.25),
        ("double the sequence length", "workload.seq_len", 2.0),
        ("what if two of the four nodes get taken away from us", "cluster.count", 0.5),
        ("we lost 1 of our 4 nodes", "cluster.count", 0.75),
    ],
)
def test_a_share_is_of_what_is_named(text: str, path: str, factor: float) -> None:
    found = read(text, known(), PLAN, None, NOW, {})
    assert [slot for slot in found.slots if isinstance(slot, Relative)] == [
        Relative(path, factor, next(slot.words for slot in found.slots if slot.path == path))
    ]


@pytest.mark.parametrize("text", ["double the answers to 1024 tokens", "is that the other way round?", "4 is too many"])
def test_other_words_are_no_such_follow_up(text: str) -> None:
    found = read(text, known(), PLAN, "workload.precision", NOW, BOTH)
    assert not any(isinstance(slot, Relative) or slot.path == "cluster.accelerator" for slot in found.slots)


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
