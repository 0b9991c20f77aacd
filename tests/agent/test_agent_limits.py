"""Questions for a limit, offline: how they are read, which calls they make, and what a follow-up asks again."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import begun, turns, verdict

PLAN = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h100-sxm", "count": 8}}


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("what's the longest context I can fine-tune Llama-3.1-8B with on 8 H100?", "seq_len"),
        ("Llama-3.1-8B on 8 H100: maximum sequence length?", "seq_len"),
        ("how long can the context be for finetuning qwen2.5-7b on 4 L40S", "seq_len"),
        ("up to which sequence length can I go with Mixtral 8x7B lora on 8 H100", "seq_len"),
        ("hasta dónde puedo subir el contexto con mixtral 8x7b en lora en 8 h100?", "seq_len"),
        ("jusqu'à quelle longueur de séquence monte mixtral 8x7b en lora sur 8 h100 ?", "seq_len"),
        ("how much context can I train gemma-2-9b with on 8 H200", "seq_len"),
        ("biggest batch size for Llama-3.1-8B on one H100", "micro_batch"),
        ("what is the largest micro-batch of qwen2.5-7b on 4 L40S", "micro_batch"),
        ("how large a batch fits with llama-3.1-8b lora on a 4090", "micro_batch"),
        ("how many H100s do I need for Llama-3.1-70B?", "devices"),
        ("minimum number of gpus to pretrain Llama-3.1-70B on H100", "devices"),
        ("fewest MI300X for Llama-3.1-405B", "devices"),
    ],
)
def test_questions_for_a_limit_are_read(text: str, goal: str) -> None:
    found = begun(text)
    limit = found.arguments("find_limit")
    assert limit is not None
    assert limit["goal"] == goal
    assert limit["model"]
    assert not found.asked


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("what's the largest model I can train on 8 H100?", "any"),
        ("how big a model can I fine-tune with qlora on one 4090", "any"),
        ("the biggest llama model that fits on 8 H100 with LoRA", "llama"),
        ("largest Qwen 2.5 I can pretrain on 64 H100", "Qwen 2.5"),
    ],
)
def test_the_largest_model_needs_no_model(text: str, family: str) -> None:
    found = begun(text)
    limit = found.arguments("find_limit")
    assert limit is not None
    assert (limit["goal"], limit["family"]) == ("model", family)
    assert "model" not in limit
    assert not found.asked


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Llama-3.1-8B on 8 H100 with max context 8k", None),
        ("llama-3.1-8b on 8 h100, max_seq_len 4096", None),
        ("8k max context for llama-3.1-8b on 8 H100", None),
        ("llama-3.1-8b on 8 H100, max batch size of 32", None),
        ("what is the longest context of Llama-3.1-8B?", None),
        ("how many parameters does Mixtral 8x7B have?", None),
        ("fine-tune llama-3.1-8b on 8 H100, is the context long enough?", None),
        ("how much GPU memory does it need?", PLAN),
    ],
)
def test_values_and_facts_are_no_questions_for_a_limit(text: str, plan: dict[str, Any] | None) -> None:
    assert begun(text, plan).arguments("find_limit") is None


def test_the_longest_context_is_answered_and_asked_again_by_a_follow_up() -> None:
    first, second, third, last = turns(
        "what's the longest context I can fine-tune Llama-3.1-8B with on 8 H100?",
        "and on 16?",
        "with LoRA",
        "with 8k context, does it fit?",
    )
    for done in (first, second, third):
        assert [call["name"] for call in done["tool_calls"]] == ["find_limit"]
        assert done["tool_calls"][0]["arguments"]["goal"] == "seq_len"
        assert "tokens is the longest context that fits" in done["answer"]
        assert "Bottleneck: " in done["answer"]
        assert done["ungrounded"] == []
        assert "seq_len" not in done["plan"].get("workload", {})
    assert second["tool_calls"][0]["arguments"]["count"] == 16
    assert third["tool_calls"][0]["arguments"]["method"] == "lora"
    assert last["tool_calls"][0]["name"] == "estimate_training"
    assert last["tool_calls"][0]["arguments"]["seq_len"] == 8192


def test_the_largest_batch_is_answered_with_its_cost() -> None:
    done = turns("biggest batch for qwen2.5-7b qlora on one 4090 with 10M tokens, what does it cost?")[0]
    names = [call["name"] for call in done["tool_calls"]]
    assert names == ["find_limit", "estimate_training", "estimate_cost"]
    limit, *later = done["tool_calls"]
    assert "micro_batch" not in limit["arguments"]
    assert len({call["arguments"]["micro_batch"] for call in later}) == 1
    assert f"{later[0]['arguments']['micro_batch']} sequences is the largest micro-batch" in done["answer"]
    assert "**Cost**" in done["answer"]
    assert done["ungrounded"] == []


def test_the_largest_model_asks_for_hardware_alone_and_leaves_the_plan() -> None:
    asked, done = turns("what's the largest llama I can train with lora?", "8 H100")
    assert [question.partition(":")[0] for question in asked["asked"]] == ["cluster.accelerator"]
    assert done["tool_calls"][0]["arguments"] == {
        "goal": "model", "family": "llama", "method": "lora", "accelerator": "h100-sxm", "count": 8,
    }  # fmt: skip
    assert "is the largest model that fits" in done["answer"]
    assert "model" not in done["plan"]
    assert done["ungrounded"] == []


def test_what_cannot_fit_at_all_is_said() -> None:
    done = turns("longest context to fully fine-tune Llama-3.1-70B on 1 H100")[0]
    assert verdict(done["answer"]).startswith("**None: ")
    assert "Bottleneck: " in done["answer"]
    assert done["ungrounded"] == []


def test_an_error_of_find_limit_is_the_answer() -> None:
    done = turns("longest context for llama-3.1-8b with tp 5 on 8 H100")[0]
    assert "valid" in done["answer"].lower()
    assert done["asked"]
