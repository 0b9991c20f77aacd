"""What is announced is never what a search recommends while something that is sold can do it."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.machines.catalogue import accelerators
from tools import call

ANNOUNCED = sorted(device.id for device in accelerators() if device.announced)
SOLD = ["h100-sxm", "mi300x", "b200-sxm"]
SERVED = {"model": "llama-3.1-8b", "input_len": 1024, "output_len": 256, "count": 8}
TRAINED = {"model": "llama-3.1-8b", "dataset_tokens": 1_000_000_000}


def first_of(tool: str, arguments: dict[str, Any]) -> str:
    found = call(tool, arguments)
    match tool:
        case "best_serving" | "size_serving":
            return found["best"]["accelerator"]
        case "recommend_cluster":
            return found["options"][0]["accelerator"]
        case _:
            return found["rows"][0]["accelerator"]


@pytest.mark.parametrize("sold", SOLD)
@pytest.mark.parametrize("announced", ANNOUNCED)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("best_serving", SERVED | {"goal": "throughput"}),
        ("best_serving", SERVED | {"goal": "latency"}),
        ("best_serving", SERVED | {"goal": "cost"}),
        ("size_serving", SERVED | {"request_rate": 20.0}),
        ("recommend_cluster", TRAINED),
        (
            "recommend_cluster",
            {"model": "llama-3.1-8b", "plan": {"workload": {"kind": "inference", "request_rate": 20}}},
        ),
        ("peak_throughput", {"model": "llama-3.1-8b"}),
    ],
)
def test_announced_devices_come_behind_those_that_are_sold(
    tool: str, arguments: dict[str, Any], announced: str, sold: str
) -> None:
    arguments = {key: value for key, value in arguments.items() if tool != "size_serving" or key != "count"}
    assert first_of(tool, arguments | {"accelerators": [announced, sold]}) == sold
