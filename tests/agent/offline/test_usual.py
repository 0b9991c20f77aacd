"""Devices that are taken where none are named: more for what is larger, and enough to hold it."""

from __future__ import annotations

from typing import Any

import pytest

from agent.offline.usual import COUNT, DEVICE, card_of, usual
from knowledge.machines.catalogue import find_accelerator

MODELS = ("gpt2", "Llama-3.1-8B", "Llama-3.1-70B", "Llama-3.1-405B", "Kimi-K2")


def _held_bytes(devices: dict[str, Any]) -> float:
    return find_accelerator(devices[DEVICE]).value.memory_bytes * devices[COUNT]


KINDS = ({"method": "full"}, {"method": "lora"}, {"method": "qlora"}, {"kind": "inference"})


@pytest.mark.parametrize("workload", KINDS)
def test_what_is_usual_grows_with_the_model(workload: dict[str, str]) -> None:
    held = [_held_bytes(usual({"model": model, "workload": workload})) for model in MODELS]
    assert held == sorted(held)
    assert held[0] < held[-1]


def test_what_is_named_or_unknown_is_left_alone() -> None:
    assert usual({"model": "gpt2", "cluster": {"accelerator": "mi300x"}}) == {}
    assert usual({"model": "no-such-model"}) == {}
    assert usual({}) == {}
    assert COUNT not in usual({"model": "gpt2", "cluster": {"count": 4}})


@pytest.mark.parametrize("apple", [False, True])
def test_a_card_by_its_memory_has_that_memory(apple: bool) -> None:
    for memory_gb in range(4, 600):
        if device := card_of(memory_gb, apple):
            accelerator = find_accelerator(device).value
            assert accelerator.memory_bytes / 1e9 == pytest.approx(memory_gb, rel=0.13)
            assert (accelerator.vendor == "Apple") == apple
