"""Unsloth's own table of the longest context, QLoRA of rank 32 on an 80 GB card (docs.unsloth.ai, Unsloth benchmarks):
it keeps checkpoints in host memory unless told otherwise. The table is older than its MLP in tiles, which is tried
where a plan leaves that open; and it is a straight line over cards of 8 to 80 GB, up to the last byte."""

from __future__ import annotations

from typing import Any

import pytest

from tools import call

ASKED: dict[str, Any] = {
    "accelerator": "h100-sxm", "count": 1, "framework": "unsloth", "method": "qlora", "lora_rank": 32,
    "optimizer": "adamw_8bit", "global_batch": 1, "micro_batch": 1,
}  # fmt: skip


@pytest.mark.parametrize(("model", "tokens"), [("llama-3.1-8b", 342_733), ("llama-3.3-70b", 89_389)])
def test_the_longest_context_that_unsloth_prints_is_about_what_fits(model: str, tokens: int) -> None:
    asked = ASKED | {"model": model, "tiled_mlp": False}
    found = call("find_limit", asked | {"goal": "seq_len"})
    assert 0.8 * tokens < found["value"] < 1.1 * tokens
    layout = found["plan"]["layout"]
    assert (layout["offload"], layout["recompute"]) == ("activations", "full")
    assert call("check_fit", asked | {"seq_len": found["value"]})["fits"]
    assert not call("check_fit", asked | {"seq_len": found["next_value"]["value"]})["fits"]
    by_default = call("check_fit", ASKED | {"model": model, "seq_len": tokens})
    assert by_default["fits"]
    assert any(item["field"] == "workload.tiled_mlp" for item in by_default["assumptions"])


def test_what_is_offloaded_by_default_is_checkpoints_alone() -> None:
    found = call("best_parallelism", ASKED | {"model": "llama-3.1-8b", "seq_len": 131_072, "top": 10})
    layouts = [found["best"]["layout"], *(row["layout"] for row in found["alternatives"])]
    assert all(row["recompute"] == "full" for row in layouts if row["offload"] == "activations")


@pytest.mark.parametrize("offload", ["none", "activations"])
def test_a_plan_that_says_what_is_offloaded_keeps_it(offload: str) -> None:
    found = call("check_fit", ASKED | {"model": "llama-3.1-8b", "seq_len": 32_768, "offload": offload})
    assert found["plan"]["layout"]["offload"] == offload
