"""find_limit with goal accelerator: the card with the least memory that holds a plan."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.machines.catalogue import find_accelerator
from planner.asked.training import LimitRequest
from planner.limits import find_limit
from planner.limits.cards import cards
from planner.training.memory import memory_of
from planner.training.planned import plan_to_fit

TRAININGS: list[dict[str, Any]] = [
    {"model": "Llama-3.1-8B", "method": "qlora"},
    {"model": "Llama-3.2-1B", "method": "full", "seq_len": 2048},
    {"model": "gpt-oss-20b", "method": "lora", "count": 2},
]
SERVED: list[dict[str, Any]] = [
    {"model": "Qwen3-14B", "weight_dtype": "q4_k_m", "max_context": 16384},
    {"model": "Llama-3.1-70B", "weight_dtype": "fp8", "concurrency": 4},
]


def asking(**fields: Any) -> LimitRequest:
    return LimitRequest.model_validate({"goal": "accelerator", **fields})


@pytest.mark.parametrize("asked", TRAININGS + SERVED, ids=lambda asked: asked["model"])
def test_it_holds_the_plan_and_no_smaller_card_does(asked: dict[str, Any]) -> None:
    limit = find_limit(asking(**asked))
    memory = find_accelerator(str(limit.value)).value.memory_bytes
    assert limit.memory.fits
    assert {find_accelerator(id).value.memory_bytes for id in limit.alike} <= {memory}
    for probe in limit.probes:
        smaller = find_accelerator(str(probe.value)).value.memory_bytes < memory
        assert not (smaller and probe.fits), probe.value
    assert limit.next_value is None or find_accelerator(str(limit.next_value.value)).value.memory_bytes < memory


@pytest.mark.parametrize("asked", TRAININGS, ids=lambda asked: asked["model"])
def test_a_verdict_on_that_card_says_so_too(asked: dict[str, Any]) -> None:
    request = asking(**asked)
    named = {"cluster.accelerator": find_limit(request).value, "cluster.count": asked.get("count", 1)}
    planned = plan_to_fit(request.to_plan().patch({**named, "layout.offload": "none"}))
    assert memory_of(planned).fits


def test_more_memory_is_asked_of_a_larger_model_and_a_longer_context() -> None:
    def size(**asked: Any) -> float:
        value = find_limit(asking(weight_dtype="q4_k_m", **asked)).value
        return find_accelerator(str(value)).value.memory_bytes

    assert size(model="Qwen3-8B") <= size(model="Qwen3-14B") <= size(model="Qwen3-32B")
    assert size(model="Qwen3-14B", max_context=8192) <= size(model="Qwen3-14B", max_context=32768)


def test_what_no_card_holds_has_no_value() -> None:
    limit = find_limit(asking(model="Llama-3.1-405B", method="full"))
    assert limit.value is None
    assert limit.next_value is not None


def test_only_cards_are_tried_that_are_out() -> None:
    assert not [card.id for card in cards() if card.announced or card.form_factor in ("SoC", "socket")]
