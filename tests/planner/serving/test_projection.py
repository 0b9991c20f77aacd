"""project_mlperf: the scenarios of a benchmark agree with each other, and its rules hold."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
import serving_calls  # noqa: F401 (its tools are called by name)

from estimator.errors import PlanError
from knowledge.mlperf import benchmark
from tools import call


@cache
def project(**changes: Any) -> dict[str, Any]:
    asked = {"benchmark": "llama2-70b", "accelerator": "h100-sxm"} | changes
    return call("project_mlperf", {name: value for name, value in asked.items() if value is not None})


@pytest.mark.parametrize("name", ["llama2-70b", "llama3.1-8b", "llama3.1-405b", "mixtral-8x7b", "deepseek-r1",
                                  "gpt-oss-120b"])  # fmt: skip
def test_every_benchmark_has_an_offline_projection(name: str) -> None:
    found = project(benchmark=name, accelerator="b200-sxm")
    facts = benchmark(name)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["samples"] == facts.samples
    assert found["tokens_per_s"] == pytest.approx(found["samples_per_s"] * facts.output.mean)
    assert found["samples_low_per_s"] < found["samples_per_s"] < found["samples_high_per_s"]
    assert found["run_s"] >= 550
    assert found["dataset_s"] >= facts.samples / found["samples_per_s"] * 0.8
    assert found["choice"]["fits"]
    assert found["devices"] == 8


def test_what_submissions_choose_is_assumed() -> None:
    found = project()
    named = {item["field"]: item["value"] for item in found["assumptions"]}
    assert len(named) == len(found["assumptions"])
    assert named["workload.weight_dtype"] == found["plan"]["workload"]["weight_dtype"] == "fp8"
    assert named["workload.engine"] == found["plan"]["workload"]["engine"] == "trtllm"
    assert named["nodes"] == 1
    given = {item["field"] for item in project(engine="vllm", weight_dtype="bf16", nodes=1)["assumptions"]}
    assert not given & {"workload.engine", "workload.weight_dtype", "nodes"}


def test_tighter_scenarios_give_less() -> None:
    offline, server, interactive = (project(scenario=name) for name in ("offline", "server", "interactive"))
    assert interactive["samples_per_s"] < server["samples_per_s"]
    assert server["samples_per_s"] <= offline["samples_per_s"]
    for found in (server, interactive):
        assert found["ttft_p99_s"] * 1e3 <= found["limits_ms"]["ttft"]
        assert found["tpot_p99_s"] * 1e3 <= found["limits_ms"]["tpot"]
        assert 0 < found["share_of_offline"] <= 1
    assert interactive["limits_ms"] == {"ttft": 450, "tpot": 40}


@pytest.mark.parametrize("scenario", ["offline", "server"])
def test_nodes_scale_but_wait_for_the_last_answer(scenario: str) -> None:
    rows = project(scenario=scenario, nodes=12)["by_nodes"]
    assert [row["nodes"] for row in rows] == [1, 2, 4, 8, 12]
    assert rows[0]["scaling_efficiency"] == 1
    for row in rows:
        assert 0.8 < row["scaling_efficiency"] < 1.02
        assert row["devices"] == 8 * row["nodes"]
    times = [row["dataset_s"] for row in rows]
    assert times == sorted(times, reverse=True)
    single = project(scenario=scenario)
    assert rows[0]["samples_per_s"] == pytest.approx(single["samples_per_s"], rel=0.01)


def test_a_server_of_the_projected_rate_meets_the_limits() -> None:
    found = project(scenario="server")
    again = call("estimate_inference", {"plan": found["plan"], "slo_statistic": "p99"})
    assert again["meets_slo"]
    assert again["throughput"]["requests_per_s"] == pytest.approx(found["samples_per_s"], rel=0.02)


def test_what_fits_nowhere_has_no_score() -> None:
    """640 GB of weights in 8 bits on eight devices of 80."""
    found = project(benchmark="deepseek-r1", accelerator="h100-sxm", count=8)
    assert not found["choice"]["fits"]
    assert found["choice"]["per_device_bytes"] < 110 * 2**30, "the nearest to fitting"


def test_published_results_are_near() -> None:
    """MLPerf Inference v4.1 (H100, H200) and v5.1, closed division, tokens/s of 8 devices (knowledge/measurements)."""
    for accelerator, scenario, published in (
        ("h100-sxm", "offline", 24_323), ("h200-sxm", "offline", 34_864), ("b200-sxm", "offline", 101_253),
        ("mi355x", "offline", 93_046),
    ):  # fmt: skip
        found = project(accelerator=accelerator, scenario=scenario)
        assert found["tokens_per_s"] == pytest.approx(published, rel=0.35), (accelerator, found["tokens_per_s"])


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"benchmark": "llama4"}, "benchmark", "llama3.1-8b"),
    ({"benchmark": "mixtral-8x7b", "scenario": "interactive"}, "scenario", "no scenario 'interactive'"),
    ({"benchmark": "gpt-j"}, "benchmark", "beams"),
    ({"accelerator": "h1000"}, "cluster.accelerator", "h100"),
    ({"nodes": 2, "count": 8}, "nodes", "8 devices are no 2 nodes"),
    ({"tp": 3}, "layout.tp", "valid: 1 2 4 8"),
    ({"scenario": "batch"}, "scenario", "offline"),
]


@pytest.mark.parametrize(("changes", "field", "says"), WRONG, ids=range(len(WRONG)))
def test_bad_arguments_name_the_field_and_what_is_valid(changes: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        project(**changes)
    assert caught.value.field == field
    assert says in str(caught.value)


@pytest.mark.parametrize("benchmark", ["deepseek-r1", "llama2-70b", "llama3.1-8b", "gpt-oss-120b"])
def test_all_at_once_is_never_slower_than_at_a_rate_and_tells_no_time_of_a_request(benchmark: str) -> None:
    asked = {"benchmark": benchmark, "accelerator": "b200-sxm", "count": 8}
    offline, server = (call("project_mlperf", asked | {"scenario": name}) for name in ("offline", "server"))
    assert offline["tokens_per_s"] >= server["tokens_per_s"]
    assert offline["offline_tokens_per_s"] == server["offline_tokens_per_s"] == offline["tokens_per_s"]
    assert offline["choice"]["ttft_s"] is None
    assert server["choice"]["ttft_s"] < 60.0


def test_a_rack_is_no_heap_of_trays() -> None:
    """72 GB200 with DeepSeek-R1 offline: 486,141 tokens/s (MLPerf Inference v6.0); replicas take two trays of four."""
    found = project(benchmark="deepseek-r1", accelerator="gb200", count=72)
    assert found["tokens_per_s"] == pytest.approx(486_141, rel=0.2)
    assert found["plan"]["layout"]["dp"] > 4


@pytest.mark.parametrize(
    ("accelerator", "engine"), [("t4", "vllm"), ("apple-m4-max", "llamacpp"), ("h100-sxm", "trtllm")]
)
def test_the_engine_that_is_assumed_runs_there(accelerator: str, engine: str) -> None:
    assert project(benchmark="llama3.1-8b", accelerator=accelerator)["choice"]["engine"] == engine


def test_an_unknown_benchmark_is_answered_with_all_there_are() -> None:
    with pytest.raises(PlanError) as caught:
        project(benchmark="foo")
    assert {"deepseek-r1", "gpt-oss-120b", "llama2-70b"} <= set(caught.value.valid)
