"""Tools for training and serving alike, asked about serving: check_fit, find_limit, sweep and estimate_cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pace import within
from serving_calls import LARGE, SERVE, estimate

from estimator.errors import PlanError
from estimator.plan.schema import Cluster, Inference
from planner.requests import FLAT_PATHS, SERVING_PATHS
from tools import call
from tools.registry import find


def test_every_field_of_serving_has_one_flat_name() -> None:
    fields = {f"workload.{name}" for name in Inference.model_fields if name != "kind"}
    fields |= {f"cluster.{name}" for name in Cluster.model_fields} | {
        f"layout.{name}" for name in ("tp", "pp", "ep", "dp")
    }
    whole = {"model", "name", "overrides", "goal.provider"}
    whole |= {f"overrides.{name}_gib" for name in ("usable", "reserve", "host")}
    assert set(SERVING_PATHS.values()) == fields | whole
    assert all(FLAT_PATHS[name] == path for name, path in SERVING_PATHS.items() if name in FLAT_PATHS)
    for tool in ("estimate_inference", "best_serving", "size_serving"):
        schema = find(tool).request.model_json_schema()["properties"]
        assert schema.keys() >= SERVING_PATHS.keys()
        assert not schema.keys() & {"seq_len", "micro_batch", "zero_stage", "lora_rank"}


SMALL = {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 1, "concurrency": 8}


@pytest.mark.parametrize("arguments", [
    {"plan": {"workload": {"kind": "inference"}}}, {"concurrency": 8}, {"plan": {"workload": {"engine": "vllm"}}},
], ids=range(3))  # fmt: skip
def test_what_only_serving_has_makes_the_plan_one_for_serving(arguments: dict[str, Any]) -> None:
    found = call("check_fit", {"model": "gpt2", "accelerator": "h100-sxm"} | arguments)
    assert found["plan"]["workload"]["kind"] == "inference"
    assert found["max_concurrency"] > 1
    trained = call("check_fit", {"model": "gpt2", "accelerator": "h100-sxm"})
    assert trained["plan"]["workload"]["kind"] == "training"
    assert trained["max_concurrency"] is None
    assert trained.keys() == found.keys()


def test_check_fit_says_what_there_is_room_for() -> None:
    found, memory = call("check_fit", SERVE), estimate()["memory"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["fits"]
    assert found["memory"] == memory
    assert found["max_concurrency"] == memory["max_concurrency"]
    assert found["largest_seq_len"] == memory["longest_request"]
    assert found["headroom_bytes"] > 0


def test_remedies_make_it_fit() -> None:
    found = call("check_fit", SMALL)
    assert not found["fits"]
    assert found["headroom_bytes"] < -(50 * 2**30)
    fixes = [remedy for remedy in found["remedies"] if remedy["fits"]]
    assert any("cluster.count" in remedy["patch"] for remedy in fixes)
    assert any("workload.weight_dtype" in remedy["patch"] for remedy in fixes)
    for remedy in fixes:
        plan = found["plan"] | {name: value for name, value in remedy["patch"].items() if value is not None}
        for name, value in remedy["patch"].items():
            if value is None:
                section, field = name.split(".")
                plan[section] = {key: inner for key, inner in plan[section].items() if key != field}
        again = call("check_fit", {"plan": plan})
        assert again["fits"], remedy["what"]
        assert again["memory"]["per_device_bytes"] == pytest.approx(remedy["per_device_bytes"])
        assert remedy["saves_bytes"] > 0


def test_relaxations_are_faster_and_fit() -> None:
    for row in call("check_fit", SERVE | {"tp": 4, "concurrency": 512})["relaxations"]:
        assert row["fits"]
        assert row["slowdown"] < 1


def limit(goal: str, **changes: Any) -> dict[str, Any]:
    return call("find_limit", SERVE | {"goal": goal} | changes)


def fits(**changes: Any) -> bool:
    return call("estimate_inference", SERVE | changes)["memory"]["fits"]


def test_the_longest_prompt_fits_and_the_next_does_not() -> None:
    room = {"accelerator": "rtx-4090", "count": 1, "weight_dtype": "bf16"}
    found = limit("input_len", **room, concurrency=1)
    value = found["value"]
    assert found["limited_by"] == "kv_cache"
    assert fits(**room, concurrency=1, input_len=value)
    assert not fits(**room, concurrency=1, input_len=value + 64)
    whole = limit("context", **room, concurrency=1)
    assert whole["value"] == pytest.approx(value + 256, abs=1)
    assert found["memory"]["fits"]
    assert "workload.input_len" not in {item["field"] for item in found["assumptions"]}
    several = limit("input_len", **room, concurrency=4)
    assert several["value"] == pytest.approx(value / 4, rel=0.2)
    assert several["memory"]["max_concurrency"] >= 4


def test_the_model_reads_no_more_than_it_was_trained_for() -> None:
    found = limit("context", concurrency=1)
    assert found["value"] == 131072
    assert found["limited_by"] == "model context"


def test_the_most_clients_have_room_at_once() -> None:
    found = limit("concurrency", count=1)
    assert found["value"] >= 1
    assert found["memory"]["max_concurrency"] >= found["value"]
    assert found["limited_by"] in ("kv_cache", "max_batch")
    limited = limit("concurrency", count=1, tpot_slo_ms=15)
    assert limited["value"] < found["value"]
    assert limited["limited_by"] == "tpot_slo_ms"
    assert limited["chosen"]["meets_slo"]
    assert call("estimate_inference", {"plan": limited["plan"]})["meets_slo"]
    loose = limit("concurrency", count=1, tpot_slo_ms=30)
    assert limited["value"] <= loose["value"] <= found["value"]


def test_the_fewest_devices_and_the_largest_model() -> None:
    found = limit("devices", model="meta-llama/Llama-3.1-70B", weight_dtype="bf16", concurrency=1)
    assert found["value"] == 2
    assert found["memory"]["fits"]
    assert found["next_value"]["value"] == 1
    assert "GiB" in found["why"]
    several = limit("devices", model="meta-llama/Llama-3.1-70B", weight_dtype="bf16", concurrency=32)
    assert several["memory"]["max_concurrency"] >= 32, "whoever is counted has room"
    assert several["value"] > found["value"]
    assert "32 requests at once" in several["why"]
    memory = several["memory"]
    rest = sum(memory["components"].values()) - memory["components"]["kv_cache"]
    assert memory["clients_bytes"] == pytest.approx(rest + memory["clients_cache_bytes"])
    model = limit("model", count=1, accelerator="l4", family="qwen2.5", weight_dtype="bf16", concurrency=1)
    assert model["value"] == "Qwen/Qwen2.5-7B"
    assert model["next_value"]["value"] == "Qwen/Qwen2.5-14B"


@pytest.mark.parametrize("load", [{"request_rate": 5000.0}, {"concurrency": 10_000}], ids=str)
@pytest.mark.parametrize("first_ms", [1.0, 3000.0])
def test_the_fewest_devices_for_a_latency_are_the_first_of_their_row(load: dict[str, Any], first_ms: float) -> None:
    """Asked of each number of devices by itself; and soon, although a number has thousands of deployments."""
    asked: dict[str, Any] = {"model": "deepseek-v3", "accelerator": "l4", "ttft_slo_ms": first_ms, **load}
    call("estimate_inference", asked | {"count": 64})
    with within(1.6):
        found = call("find_limit", asked | {"goal": "devices"})
    most = found["value"] or 65_536
    counts = [1, 64, most // 2, most]
    kept = []
    for count in counts:
        alone = call("estimate_inference", asked | {"count": count})
        kept.append(alone["memory"]["fits"] and alone["meets_slo"])
    assert kept == [count == found["value"] for count in counts]
    assert found["limited_by"] == "latency"


def test_a_limit_that_cannot_be_says_why() -> None:
    found = call("find_limit", SMALL | {"goal": "context"})
    assert found["value"] is None
    assert not found["memory"]["fits"]
    with pytest.raises(PlanError, match="goal: micro_batch is of training"):
        limit("micro_batch")


def test_a_sweep_has_the_figures_of_each_plan() -> None:
    found = call("sweep", SERVE | {"field": "concurrency", "values": "1..256 x4"})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for point in found["points"]:
        clients = point["values"]["workload.concurrency"]
        alone = estimate(concurrency=clients)
        assert point["output_tokens_per_s"] == pytest.approx(alone["throughput"]["output_tokens_per_s"])
        assert point["ttft_s"] == pytest.approx(alone["latency"]["ttft_s"])
        assert point["usd_per_million_tokens"] == pytest.approx(alone["cost"]["usd_per_million_tokens"])
    speeds = found["columns"]["output_tokens_per_s"]
    assert speeds == sorted(speeds)
    assert found["best"]["values"]["workload.concurrency"] == 256
    assert found["points"][0]["speedup"] == 1


def test_a_sweep_over_rates_formats_and_what_cannot_be() -> None:
    found = call("sweep", LARGE | {"field": "request_rate", "values": [1, 4], "second_field": "tp",
                                   "second_values": [4, 8, 3]})  # fmt: skip
    assert found["points"][0]["requests_per_s"] == pytest.approx(1)
    assert "does not divide 64 attention heads" in found["points"][2]["why"]
    assert found["points"][4]["scaling_efficiency"] is not None
    by_device = call("sweep", SERVE | {"field": "accelerator", "values": ["h100-sxm", "h200-sxm"]})
    assert by_device["best"]["values"]["cluster.accelerator"] == "h200-sxm"
    scaled = call("sweep", SERVE | {"field": "count", "values": [1, 2, 4], "concurrency": 512, "tp": 1, "pp": 1})
    assert scaled["scaling"] == "strong"
    assert [point["replicas"] for point in scaled["points"]] == [1, 2, 4]


def test_serving_costs_by_the_hour_and_the_token() -> None:
    found, speed = call("estimate_cost", SERVE), estimate()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["hours"] == 730
    assert found["usd"] == pytest.approx(found["usd_per_hour"] * 730) == pytest.approx(found["usd_per_month"])
    assert found["usd_per_million_tokens"] == pytest.approx(speed["cost"]["usd_per_million_tokens"])
    assert found["usd_per_million_output_tokens"] == pytest.approx(speed["cost"]["usd_per_million_output_tokens"])
    known = [row for row in found["by_provider"] if row["usd"] and row["seller"] in ("hyperscaler", "cloud")]
    assert found["usd"] == min(row["usd"] for row in known)
    run = call("estimate_cost", SERVE | {"requests": 36_000_000, "usd_per_device_hour": 2.0})
    assert run["hours"] == pytest.approx(10_000 / speed["throughput"]["requests_per_s"], rel=0.1)
    assert run["usd"] == pytest.approx(2.0 * 4 * run["hours"])
    assert run["low_usd"] < run["usd"] < run["high_usd"]


def test_figures_name_what_they_rest_on() -> None:
    rows = estimate()["evidence"]
    parts = {row["part"]: row for row in rows}
    assert {"engine", "device", "matmul", "cache", "attention", "scaleup", "cache_room"} <= parts.keys()
    assert all(row["basis"] and row["figure"] in ("time", "memory") for row in rows)
    assert parts["cache"]["points"] > 0
    assert parts["matmul"]["points"] > 0
    assert "network" not in parts
    alone = {row["part"] for row in estimate(count=1)["evidence"]}
    assert "scaleup" not in alone
    several = call("estimate_inference", SERVE | {"count": 16, "tp": 16})
    assert "network" in {row["part"] for row in several["evidence"]}
    assert any("spans several nodes" in text for text in several["warnings"])
