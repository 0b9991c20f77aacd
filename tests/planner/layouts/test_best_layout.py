"""best_parallelism over the whole space: what it counts, what it offers beside the best, and why others lost."""

from __future__ import annotations

from typing import Any

import pytest

from tools import call

DENSE = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 16, "framework": "megatron-lm",
         "seq_len": 8192, "global_batch": 64}  # fmt: skip
EXPERTS = DENSE | {"model": "mistralai/Mixtral-8x7B-v0.1", "seq_len": 4096, "count": 32}
SHARDED = DENSE | {"framework": "torchtitan", "model": "meta-llama/Llama-3.1-70B", "count": 64}
FOUND = {name: call("best_parallelism", plan) for name, plan in
         (("dense", DENSE), ("experts", EXPERTS), ("sharded", SHARDED))}  # fmt: skip


@pytest.fixture(params=sorted(FOUND))
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    return FOUND[request.param]


def test_what_was_estimated_is_counted_apart_from_what_is_valid(found: dict[str, Any]) -> None:
    assert 1 < found["feasible"] <= found["estimated"] <= found["candidates"]
    assert f"{found['candidates']:,}" in found["why"][0]
    assert f"{found['estimated']:,}" in found["why"][0]


def test_everything_offered_passes_check_fit(found: dict[str, Any]) -> None:
    for row in (found["best"], *found["alternatives"], *found["pareto"][:4]):
        plan = {**found["plan"], "layout": row["layout"]}
        plan["workload"] = plan["workload"] | {"micro_batch": row["micro_batch"]}
        fit = call("check_fit", {"plan": plan})
        assert fit["fits"], row["summary"]
        assert fit["memory"]["per_device_bytes"] == row["per_device_bytes"]


def test_alternatives_split_or_shard_the_run_in_other_ways(found: dict[str, Any]) -> None:
    def kind(row: dict[str, Any]) -> tuple[Any, ...]:
        layout = row["layout"]
        return (*(layout[name] for name in ("tp", "pp", "cp", "ep", "offload")), layout["zero_stage"] >= 3)

    rows = [found["best"], *found["alternatives"]]
    assert len({kind(row) for row in rows}) == len(rows) == 6


def test_every_rejection_says_what_it_would_need_or_what_grew(found: dict[str, Any]) -> None:
    fields: set[str] = set()
    for row in found["rejected"]:
        fields |= {name for name, value in row["layout"].items() if value != found["best"]["layout"][name]}
        rule = row["rule"]
        assert rule.startswith(("does not fit: up to", "fits, but", "equal"))
        if "fit" in rule:
            assert "instead of" in rule or "alone" in rule, rule
        assert len(rule) < 250
    assert {"tp", "pp", "zero_stage", "recompute"} <= fields


def test_offloading_is_offered_where_nothing_fits_without() -> None:
    tight = DENSE | {"model": "meta-llama/Llama-3.1-70B", "count": 8, "framework": "deepspeed", "seq_len": 4096}
    found = call("best_parallelism", tight)
    assert found["best"]["layout"]["offload"] in ("optimizer", "params", "activations")
    assert call("check_fit", {"plan": found["plan"]})["fits"]
    assert call("check_fit", tight)["fits"]
    assert call("best_parallelism", DENSE)["best"]["layout"]["offload"] == "none"


def test_a_given_field_is_kept_and_the_rest_searched_whole() -> None:
    free, bound = FOUND["dense"], call("best_parallelism", DENSE | {"tp": 4, "zero_stage": 1})
    assert (bound["best"]["layout"]["tp"], bound["best"]["layout"]["zero_stage"]) == (4, 1)
    assert bound["candidates"] < free["candidates"]
    assert bound["best"]["step_s"] >= free["best"]["step_s"]
    usual = call("estimate_training", DENSE | {"tp": 4, "zero_stage": 1})
    assert bound["best"]["step_s"] <= usual["time"]["step_s"]


@pytest.mark.parametrize(
    ("model", "device", "count", "said"), [("llama-3.1-8b", "h100-sxm", 8, False), ("skt/A.X-K1", "l40", 32, True)]
)
def test_a_layout_or_framework_that_no_files_say_says_so_first(model: str, device: str, count: int, said: bool) -> None:
    asked = {"model": model, "accelerator": device, "count": count, "stage": "pretrain"}
    warnings = call("best_parallelism", asked)["warnings"]
    assert bool(warnings and warnings[0].startswith("no launch files")) == said
