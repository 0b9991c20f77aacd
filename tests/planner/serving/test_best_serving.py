"""best_serving: the best is the best of all that was tried, meets its limits, and can be had again from its plan."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import within
from samples import examples
from serving_calls import LARGE, best

from estimator.errors import PlanError
from planner.serving.results import BestServing
from tools import call

KEYS = {
    "plan", "assumptions", "best", "alternatives", "pareto", "candidates", "feasible", "seconds", "rejected",
    "warnings", "evidence", "goal", "meets_slo", "pareto_cost", "by_accelerator",
}  # fmt: skip


def test_results_have_the_promised_keys_and_are_plain_json() -> None:
    found = best()
    assert found.keys() >= KEYS
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["candidates"] > found["feasible"] > 50


@pytest.mark.parametrize("changes", [
    {}, {"goal": "latency"}, {"goal": "cost"}, {"slo_statistic": "p99"}, {"concurrency": 64}, {"ttft_slo_ms": 150},
    {"ttft_slo_ms": None, "tpot_slo_ms": None}, {"concurrency": None, "request_rate": 4.0}, {"scenario": "offline"},
], ids=range(9))  # fmt: skip
def test_the_best_fits_meets_its_limits_and_is_had_again_from_its_plan(changes: dict[str, Any]) -> None:
    found = best(**changes)
    chosen = found["best"]
    again = call("estimate_inference", {"plan": found["plan"], "slo_statistic": changes.get("slo_statistic", "mean")})
    assert not again["layout_chosen"]
    assert again["latency"]["tpot_s"] == pytest.approx(chosen["tpot_s"])
    assert again["latency"]["ttft_s"] == pytest.approx(chosen["ttft_s"])
    assert again["throughput"]["output_tokens_per_s"] == pytest.approx(chosen["output_tokens_per_s"])
    assert again["meets_slo"] == chosen["meets_slo"]
    assert chosen["meets_slo"] is not False
    checked = call("check_fit", {"plan": found["plan"]})
    assert checked["fits"]
    assert checked["memory"]["per_device_bytes"] == pytest.approx(chosen["per_device_bytes"])
    assert found["plan"]["workload"]["engine"] == chosen["engine"]
    assert found["plan"]["layout"]["tp"] == chosen["layout"]["tp"]
    named = [item["field"] for item in found["assumptions"]]
    assert len(named) == len(set(named))


def test_each_goal_is_best_at_its_own() -> None:
    by_goal = {goal: best(goal=goal)["best"] for goal in ("throughput", "latency", "cost")}
    assert by_goal["throughput"]["output_tokens_per_s"] >= by_goal["latency"]["output_tokens_per_s"]
    assert by_goal["latency"]["e2e_s"] == min(choice["e2e_s"] for choice in by_goal.values())
    cheapest = min(choice["usd_per_million_output_tokens"] for choice in by_goal.values())
    assert by_goal["cost"]["usd_per_million_output_tokens"] <= cheapest * 1.01


def test_no_candidate_on_the_front_beats_another() -> None:
    front = best()["pareto"]
    assert len(front) > 3
    for one, other in pairwise(front):
        assert other["tpot_s"] > one["tpot_s"]
        assert other["output_tokens_per_s_per_device"] > one["output_tokens_per_s_per_device"]
    assert front[-1]["output_tokens_per_s_per_device"] >= best()["best"]["output_tokens_per_s_per_device"] * 0.999
    costs = [choice["usd_per_million_output_tokens"] for choice in best()["pareto_cost"]]
    assert costs == sorted(costs, reverse=True)


@settings(max_examples=examples(6), deadline=None)
@given(limit=st.floats(12.0, 80.0), looser=st.floats(1.05, 2.0))
def test_looser_limits_never_give_less(limit: float, looser: float) -> None:
    asked = {"engines": ("vllm",), "weight_dtypes": ("fp8",)}
    tight = best(tpot_slo_ms=round(limit, 2), **asked)
    loose = best(tpot_slo_ms=round(limit * looser, 2), **asked)
    if tight["meets_slo"]:
        assert loose["meets_slo"]
        more, less = (one["best"]["output_tokens_per_s_per_device"] for one in (loose, tight))
        assert more >= less * 0.989
    assert loose["feasible"] >= tight["feasible"]


def test_every_neighbour_that_lost_says_why() -> None:
    found = best()
    assert len(found["rejected"]) > 4
    for row in found["rejected"]:
        assert row["rule"]
        if row["choice"]["meets_slo"] is False:
            assert "limit" in row["rule"] or "does not fit" in row["rule"]
    fields = {(row["choice"]["engine"], row["choice"]["weight_dtype"]) for row in found["rejected"]}
    assert len(fields) > 2


def test_limits_that_nothing_meets_are_said() -> None:
    found = best(tpot_slo_ms=0.2)
    assert found["feasible"] == 0
    assert found["meets_slo"] is False
    assert any("deployments meets the limits" in text for text in found["why"])
    assert any("over the limit of 200 µs" in text for text in found["warnings"])


def test_accelerators_are_compared() -> None:
    found = best(accelerators=("h100-sxm", "mi300x", "b200-sxm"), goal="cost")
    costs = [choice["usd_per_million_output_tokens"] for choice in found["by_accelerator"]]
    assert {choice["accelerator"] for choice in found["by_accelerator"]} == {"h100-sxm", "mi300x", "b200-sxm"}
    assert costs[0] == pytest.approx(min(costs), rel=0.01)
    assert found["plan"]["cluster"]["accelerator"] == found["by_accelerator"][0]["accelerator"]
    # TensorRT-LLM is of NVIDIA alone.
    amd = best(accelerator="mi300x")
    assert "trtllm" not in {choice["engine"] for choice in [amd["best"], *amd["alternatives"]]}


def test_what_is_given_is_kept() -> None:
    found = best(engine="sglang", weight_dtype="bf16", tp=4, concurrency=32)
    for choice in (found["best"], *found["alternatives"]):
        assert (choice["engine"], choice["weight_dtype"], choice["layout"]["tp"]) == ("sglang", "bf16", 4)
        assert choice["concurrency"] == 32
    assert not {"engines", "weight_dtypes"} & {item["field"] for item in found["assumptions"]}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"accelerator": None}, "cluster.accelerator", "which accelerator"),
    ({"goal": "speed"}, "goal", "valid: throughput, latency, cost"),
    ({"engines": ["vlm"]}, "engines.0", "vllm"),
    ({"accelerators": ["h1000"]}, "cluster.accelerator", "h100"),
    ({"engines": ["trtllm"], "accelerator": "mi300x"}, "workload.engine", "does not run on"),
    ({"weight_dtypes": ["exl2"]}, "engines", "does not read exl2"),
    ({"tp": 3}, "layout.tp", "valid: 1 2 4 8"),
    ({"provider": "nobody"}, "goal.provider", "no price book"),
]


@pytest.mark.parametrize(("changes", "field", "says"), WRONG, ids=range(len(WRONG)))
def test_bad_arguments_name_the_field_and_what_is_valid(changes: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("best_serving", LARGE | changes)
    assert caught.value.field == field
    assert says in str(caught.value)


def test_a_search_over_everything_is_quick() -> None:
    asked = LARGE | {"engines": ["vllm", "sglang", "trtllm"], "weight_dtypes": ["bf16", "fp8", "awq"]}
    assert call("best_serving", asked)["candidates"] > 80
    with within(0.3):
        call("best_serving", asked)


def test_a_search_over_six_accelerators_in_any_number_is_quick() -> None:
    six = ["h100-sxm", "h200-sxm", "b200-sxm", "mi300x", "mi355x", "a100-sxm-80gb"]
    asked = {"model": "meta-llama/Llama-3.1-70B", "accelerators": six}
    assert call("best_serving", asked)["candidates"] > 400
    with within(0.5):
        call("best_serving", asked)


@settings(max_examples=examples(6), deadline=None)
@given(
    limit=st.floats(15.0, 90.0),
    model=st.sampled_from(["meta-llama/Llama-3.1-70B", "deepseek-ai/DeepSeek-R1", "openai/gpt-oss-120b"]),
    engine=st.sampled_from(["vllm", "sglang", "trtllm"]),
    goal=st.sampled_from(["throughput", "cost"]),
)
def test_one_request_more_than_the_best_load_misses_the_limits(
    limit: float, model: str, engine: str, goal: str
) -> None:
    asked = {"model": model, "accelerator": "h200-sxm", "count": 8, "engines": [engine], "goal": goal}
    found = BestServing.model_validate(call("best_serving", asked | {"tpot_slo_ms": limit, "input_len": 1024}))
    best, load = found.best, found.best.concurrency
    if not best.meets_slo:
        return
    assert load is not None
    more = max(1, load // 1000)
    plan = found.plan | {"workload": found.plan["workload"] | {"concurrency": load + more}}
    beyond = call("estimate_inference", {"plan": plan})
    assert beyond["meets_slo"] is False or load + more > best.max_concurrency


def test_the_best_is_as_good_as_any_load_and_layout_tried_one_by_one() -> None:
    asked = {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 8}
    found = BestServing.model_validate(call("best_serving", asked | {"engines": ["vllm"], "weight_dtypes": ["fp8"]}))
    served = {"engine": "vllm", "weight_dtype": "fp8", "tpot_slo_ms": 50, "ttft_slo_ms": 2000}
    for tp, pp in ((1, 1), (2, 1), (4, 1), (8, 1), (4, 2), (2, 2)):
        for load in range(32, 1400, 96):
            one = call("estimate_inference", asked | served | {"tp": tp, "pp": pp, "concurrency": load})
            if one["memory"]["fits"] and one["meets_slo"]:
                assert one["throughput"]["output_tokens_per_s"] <= found.best.output_tokens_per_s * 1.01, (tp, load)


def test_announced_devices_never_come_first_and_unmeasured_ones_say_so() -> None:
    asked = {"model": "meta-llama/Llama-3.1-70B", "count": 8}
    found = BestServing.model_validate(call("best_serving", asked | {"accelerators": ["rubin", "h100-sxm"]}))
    assert found.best.accelerator == "h100-sxm"
    alone = BestServing.model_validate(call("best_serving", asked | {"accelerators": ["gaudi3", "a10"]}))
    if not alone.best.measured:
        assert " measured; the best deployment with measured runs is " in alone.warnings[0]
    unmeasured = BestServing.model_validate(call("best_serving", asked | {"accelerators": ["gaudi3"]}))
    assert not unmeasured.best.measured
    assert any(text.startswith("no serving runs on Gaudi") for text in unmeasured.warnings), unmeasured.warnings
    missed = BestServing.model_validate(call("best_serving", asked | {"accelerators": ["gaudi3"], "tpot_slo_ms": 0.5}))
    assert any(text.startswith("no serving runs on Gaudi") for text in missed.warnings), missed.warnings


def test_where_no_number_is_said_each_device_gets_as_many_as_serve_best() -> None:
    """One device of some holds it, others need a box, and nodes that switches join are as much as one."""
    asked = {"model": "deepseek-ai/DeepSeek-R1", "accelerators": ["h200-sxm", "b200-sxm", "gb300"]}
    found = BestServing.model_validate(call("best_serving", asked))
    assert found.best.fits
    assert found.best.accelerator == "gb300"
    assert all(row.fits and row.devices == 8 for row in found.by_accelerator)
    small = BestServing.model_validate(call("best_serving", asked | {"model": "Qwen/Qwen3-8B"}))
    assert min(row.devices for row in small.by_accelerator) < 8
    assert BestServing.model_validate(call("best_serving", asked | {"count": 16})).best.devices == 16


def test_a_person_waits_no_longer_for_cheap_tokens() -> None:
    """Limits that nobody named hold for a load that was, too, and give way to those that were."""
    asked = {"model": "meta-llama/Llama-3.1-70B", "concurrency": 200, "accelerators": ["h100-sxm"], "goal": "cost"}
    found = BestServing.model_validate(call("best_serving", asked))
    assert found.best.tpot_s <= 0.05
    assert found.best.ttft_s is not None
    assert found.best.ttft_s <= 2
    slow = BestServing.model_validate(call("best_serving", asked | {"tpot_slo_ms": 1000.0}))
    assert slow.best.usd_per_million_output_tokens is not None
    assert found.best.usd_per_million_output_tokens is not None
    assert slow.best.usd_per_million_output_tokens <= found.best.usd_per_million_output_tokens


def test_formats_of_the_cache_are_tried_together_where_they_are_listed() -> None:
    """Eight bits of cache hold twice the requests: what is best with the list is no worse than with any of it."""
    asked = {"model": "deepseek-r1", "accelerator": "h200-sxm", "count": 8, "engines": ["sglang"]}
    asked |= {"input_len": 1024, "output_len": 1024, "tpot_slo_ms": 50}
    each = [call("best_serving", asked | {"kv_dtype": cache}) for cache in ("bf16", "fp8")]
    found = call("best_serving", asked | {"kv_dtypes": ["bf16", "fp8", "fp4"]})
    rates = [result["best"]["output_tokens_per_s"] for result in each]
    assert found["best"]["output_tokens_per_s"] == pytest.approx(max(rates))
    assert found["best"]["output_tokens_per_s"] >= 8300
    opened = call("best_serving", asked)
    assert opened["best"]["output_tokens_per_s"] == pytest.approx(max(rates))
    assert "The cache is in fp8" in opened["why"][0]
    assert found["plan"]["workload"]["kv_dtype"] == found["best"]["kv_dtype"] == "fp8"
    assert any("keeps no fp4 cache" in text for text in found["skipped"])
    again = call("estimate_inference", {"plan": found["plan"]})
    assert again["throughput"]["output_tokens_per_s"] == pytest.approx(found["best"]["output_tokens_per_s"])


@pytest.mark.parametrize(("device", "count", "said"), [("h100-sxm", 8, False), ("apple-m1-ultra", 8, True)])
def test_a_deployment_that_no_files_say_says_so_first(device: str, count: int, said: bool) -> None:
    asked = {"model": "Qwen/Qwen3-8B", "accelerator": device, "count": count, "input_len": 1000, "output_len": 200}
    warnings = call("best_serving", asked)["warnings"]
    assert bool(warnings and warnings[0].startswith("no launch files say this deployment")) == said
