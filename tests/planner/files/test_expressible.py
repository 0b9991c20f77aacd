"""What the search chose gives way to what launch files can say; what the user gave never does."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import PlanError
from tools.registry import find

BASE: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8}


def rendered(**changes: Any) -> dict[str, Any]:
    return find("render_configs")(BASE | changes)


def changes_said(found: dict[str, Any]) -> dict[str, Any]:
    return {
        row["field"]: row["value"] for row in found["assumptions"] if row["why"].startswith("what the files can say")
    }


def test_a_target_brings_its_framework() -> None:
    found = rendered(targets=["torchtitan"])
    assert found["plan"]["workload"]["framework"] == "torchtitan"
    assert changes_said(found)["workload.framework"] == "torchtitan"


def test_usual_files_change_nothing() -> None:
    assert changes_said(rendered()) == {}
    assert changes_said(rendered(engine="vllm", concurrency=8, count=1)) == {}


def test_a_chosen_recompute_gives_way() -> None:
    estimated = find("estimate_training")(BASE | {"framework": "fsdp2", "seq_len": 8192})
    found = rendered(framework="fsdp2", seq_len=8192)
    said = changes_said(found)
    chosen = estimated["plan"]["layout"]["recompute"]
    assert ("layout.recompute" in said) == (chosen not in ("none", "full"))
    assert found["plan"]["layout"]["recompute"] in ("none", "full")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"framework": "deepspeed", "targets": ["torchtitan"]}, "workload.framework"),
        ({"framework": "fsdp2", "recompute": "block:3"}, "layout.recompute"),
        ({"method": "lora", "targets": ["megatron-lm"]}, "workload.method"),
        ({"pp": 2, "targets": ["llamafactory"]}, "layout.pp"),
    ],
)
def test_what_was_given_is_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        rendered(**given)
    assert caught.value.field == field
