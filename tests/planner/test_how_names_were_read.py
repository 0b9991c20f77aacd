"""What the facts of a model or a device say of how its name was read: as the resolver has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from knowledge.machines.counted import find_devices
from knowledge.models.catalogue import find_model
from tools import call


@pytest.mark.parametrize("name", ["half an NVL72", "2x A100 80", "p5.48xlarge", "h100-sxm", "v5p-256", "ND H200 v5"])
def test_a_device_is_described_as_its_name_was_read(name: str) -> None:
    named, found = find_devices(name), call("describe_hardware", {"accelerator": name})
    assert (found["id"], found["name_devices"]) == (named.match.value.id, named.count)
    assert found["name_score"] == pytest.approx(named.match.score, abs=0.005)
    assert found["name_runner_up"] == named.match.runner_up
    assert found["bill"] is None
    billed = call("describe_hardware", {"accelerator": name, "hours": 10})
    assert billed["bill"]["count"] == (named.count or 1)


@pytest.mark.parametrize("name", ["qwen3 next 80b", "Qwen/Qwen3-8B", "R1", "llama3.1:8b-instruct-q4_K_M"])
def test_a_model_is_described_as_its_name_was_read(name: str) -> None:
    match, found = find_model(name), call("describe_model", {"model": name})
    assert found["id"] == match.value.id
    assert found["name_score"] == pytest.approx(match.score, abs=0.005)
    assert found["name_runner_up"] == match.runner_up


@pytest.mark.parametrize(
    ("tool", "request_for"),
    [
        ("peak_throughput", lambda name: {"plan": {"model": "llama-3.1-8b"}, "accelerators": [name]}),
        ("project_mlperf", lambda name: {"benchmark": "llama3.1-8b", "accelerator": name}),
        ("describe_hardware", lambda name: {"accelerator": name}),
    ],
)
def test_every_tool_says_how_a_device_was_read(tool: str, request_for: Callable[[str], dict[str, Any]]) -> None:
    """An inexact name with the resolver's sentence, an exact one without."""
    match = find_devices("a100 80").match
    read = [
        item["why"] for item in call(tool, request_for("a100 80"))["assumptions"] if match.value.id == item["value"]
    ]
    assert read == [match.note]
    exact = call(tool, request_for(match.value.id))["assumptions"]
    assert not any(item["field"] == "accelerator" for item in exact)
