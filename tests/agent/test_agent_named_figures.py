"""A figure that a question names is in the first line of its answer, as a result has it."""

from __future__ import annotations

from typing import Any

import pytest

import shardwise
from agent.session import ask
from knowledge import figures
from pages.rendering.fold import folded

ASKED = [
    ("how big are the activations for full fine-tuning of llama 3.1 8b on 8 h100?", "memory.components.activations"),
    ("what do the optimizer states of llama 3.1 8b take, full fine-tuning on 8 h100?", "memory.components.optimizer"),
    ("how big is a checkpoint, full fine-tuning of llama 3.1 70b on 16 h100?", "memory.save.resumable_bytes"),
    ("how many steps, full fine-tuning of llama 3.1 8b on 8 h100, 1B tokens?", "run.steps"),
    ("how many samples per second does full fine-tuning of llama 3.1 8b do on 8 h100?", "throughput.samples_per_s"),
    ("how much host memory does qlora of llama 3.1 70b take on one a100?", "memory.host.per_node_bytes"),
    ("kv cache of llama 3.1 70b at 128k on 8 h100?", "memory.request_bytes"),
    ("how big is the kv cache of qwen3 32b at 32k?", "memory.request_model_bytes"),
]


def at(result: dict[str, Any], path: str) -> Any:
    value: Any = result
    for name in path.split("."):
        value = value[name]
    return value


@pytest.mark.parametrize(("question", "path"), ASKED)
def test_it_is_told_first(question: str, path: str) -> None:
    answer = ask(question, approve=False, model="offline")
    name, arguments = next((call["name"], call["arguments"]) for call in answer["tool_calls"])
    result = getattr(shardwise, name)(**arguments).model_dump(mode="json")
    first = "\n".join(folded(answer["answer"]).lead.split("\n\n")[:2])
    assert figures.shown(path, at(result, path)) in first


def test_what_a_model_keeps_for_a_token_is_a_fact_of_it() -> None:
    answer = ask("how much kv cache per token does deepseek v3 need?", approve=False, model="offline")
    assert [call["name"] for call in answer["tool_calls"]] == ["describe_model"]
    assert "KV cache per token" in folded(answer["answer"]).lead
