"""Conversations about serving, offline: what is called, what the answer says, and that each figure has an origin."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from conversations import NOON, Scripted, turns, verdict

from agent.graph import Surroundings, build
from agent.grounding.origins import Origin, origins
from agent.offline.planner import OfflinePlanner
from agent.prompt import SYSTEM
from agent.session import ask
from pages.answers import choice, cost, limit, serving, sweep
from pages.rendering.fold import folded
from pages.rendering.markdown import render
from planner.compare.sweep import Sweep
from planner.results import Limit
from planner.serving.results import ServingEstimate, SizedServing
from tools.registry import registry


def names(done: dict[str, Any]) -> list[str]:
    return [call["name"] for call in done["tool_calls"]]


def arguments(done: dict[str, Any], place: int = 0) -> dict[str, Any]:
    return done["tool_calls"][place]["arguments"]


def test_a_deployment_is_estimated_and_follow_ups_patch_it() -> None:
    texts = (
        "Serve Llama-3.1-8B on one H100 with vLLM, 64 users, 2k in / 500 out", "now in fp8", "with 128 users",
        "on MI300X", "undo that", "what about 8 GPUs?",
    )  # fmt: skip
    first, fp8, users, amd, undone, eight = turns(*texts)
    for done in (first, fp8, users, amd, undone, eight):
        assert names(done) == ["estimate_inference"]
        assert done["ungrounded"] == []
        assert done["plan"]["workload"]["kind"] == "inference"
    assert arguments(fp8) == arguments(first) | {"weight_dtype": "fp8"}
    assert arguments(users) == arguments(fp8) | {"concurrency": 128}
    assert arguments(amd) == arguments(users) | {"accelerator": "mi300x"}
    assert arguments(undone) == arguments(users)
    assert arguments(eight) == arguments(users) | {"count": 8}
    for said in ("first token", "output tokens/s", "whole requests have room at once", "Bottleneck",
                 "per million output tokens", "How sure", "KV cache", "Assumed"):  # fmt: skip
        assert said in first["answer"]
    assert "chosen by search" not in first["answer"]
    assert "chosen by search" in eight["answer"]


def test_limits_of_latency_are_met_or_missed_by_how_much() -> None:
    text = "serve Llama-3.1-8B on one H100 with vLLM, 64 users, 2k in / 500 out, "
    met, missed = turns(text + "TPOT under 500 ms", text + "TTFT under 1 ms, whole requests within 0.5 s latency")
    assert "Your limits:\n- time per token: met" in met["answer"]
    assert "below the limit of 500 ms" in met["answer"]
    assert verdict(missed["answer"]).startswith("**It fits, but is too slow: TTFT")
    assert re.search(r"time to first token: \*\*missed\*\*, .* times the limit of 1.0 ms", missed["answer"])
    assert met["ungrounded"] == missed["ungrounded"] == []


def test_what_does_not_fit_gets_remedies_and_no_speeds() -> None:
    done = turns("Does Llama-3.1-405B fit on 4 H100 for inference?")[0]
    assert names(done) == ["estimate_inference", "check_fit"]
    assert verdict(done["answer"]).startswith("**It does not fit.**")
    assert "What would make it fit" in done["answer"]
    assert "TTFT" not in done["answer"]
    assert "tokens/s" not in done["answer"]
    assert done["ungrounded"] == []


def test_the_best_way_is_chosen_and_then_estimated() -> None:
    best, engines, devices = turns(
        "What is the best way to serve Llama-3.1-8B on 2 H100, 1k in / 200 out?", "vllm or sglang?", "H100 or L40S?"
    )
    for done in (best, engines, devices):
        assert names(done) == ["best_serving", "estimate_inference"]
        assert "The most tokens/s per device for Llama-3.1-8B" in done["answer"]
        assert done["ungrounded"] == []
    assert arguments(engines)["engines"] == ["vllm", "sglang"]
    assert arguments(devices)["accelerators"] == ["h100-sxm", "l40s"]
    chosen = arguments(best, 1)
    assert {"engine", "weight_dtype", "concurrency", "tp", "pp", "ep", "dp", "count"} <= set(chosen)
    assert "engine" not in best["plan"]["workload"]


def test_a_load_is_sized_asked_again_and_then_tried_on_a_number() -> None:
    sized, more, eight = turns(
        "How many L40S do I need to serve Llama-3.1-8B at 20 requests/s with vllm in fp8?", "and for 60 req/s", "on 2?"
    )
    assert names(sized) == names(more) == ["size_serving", "estimate_inference"]
    assert "can serve Llama-3.1-8B with 20 requests/s" in sized["answer"]
    assert "Assumed limits: 20 tokens/s for each user and 2 s to the first token." in sized["answer"]
    assert arguments(more)["request_rate"] == 60.0
    assert arguments(more, 1)["count"] >= arguments(sized, 1)["count"]
    assert names(eight)[0] == "estimate_inference"
    assert arguments(eight)["count"] == 2
    assert sized["ungrounded"] == more["ungrounded"] == eight["ungrounded"] == []


def test_limits_curves_bills_and_mlperf_are_answered() -> None:
    done = turns(
        "how many users can I serve with llama 3.1 8b on an H100 with vllm, 4k prompts and 500 token answers?",
        "and on an L40S?",
        "what is the longest context?",
        "throughput against concurrency",
        "what does it cost per million tokens?",
        "process 10k prompts in vllm, what does it cost?",
        "MLPerf llama2-70b on 8 H100, server",
    )
    users, other, longest, curve, bill, batch, mlperf = done
    assert names(users) == names(other) == names(longest) == ["find_limit"]
    assert arguments(other)["goal"] == "concurrency"
    assert re.match(r"\*\*At most [\d,]+ users at once with 4,096 tokens in and 500 out", verdict(users["answer"]))
    assert re.match(r"\*\*[\d,]+ tokens is the longest request", verdict(longest["answer"]))
    assert names(curve) == ["sweep"]
    assert "the most output tokens/s for" in curve["answer"]
    assert names(bill) == ["estimate_inference", "estimate_cost"]
    assert "per million output tokens" in bill["answer"]
    assert " requests take " in batch["answer"]
    assert names(mlperf) == ["project_mlperf"]
    assert "p99 limits: time to first token 2.00 s" in mlperf["answer"]
    assert [turn["ungrounded"] for turn in done] == [[]] * len(done)


def test_which_of_all_and_what_is_faster() -> None:
    given, which, faster = turns(
        "serve llama-3.1-8b on one H100 with vllm in bf16, 16 users",
        "which engine and which precision is best?",
        "how can I make it faster?",
    )
    assert {"engine", "weight_dtype"} <= set(arguments(given))
    assert not {"engine", "weight_dtype", "engines", "weight_dtypes"} & set(arguments(which))
    assert names(faster) == ["estimate_inference", "check_fit"]
    # It is about what was found.
    assert arguments(faster)["engine"] in which["answer"].partition("\n")[0]
    assert "A step waits for" in faster["answer"]
    assert "What would make it faster, each by itself" in faster["answer"]
    assert which["ungrounded"] == faster["ungrounded"] == []


def test_a_price_that_is_hoped_for_is_compared() -> None:
    text = "llama-3.1-8b in vllm on one H100, 32 users, {} per million output tokens?"
    cheap, dear = turns(text.format("$0.0001"), text.format("$9000"))
    assert "**over** your $0.0001 per million output tokens" in cheap["answer"]
    assert "within your $9,000 per million output tokens" in dear["answer"]
    assert cheap["ungrounded"] == dear["ungrounded"] == []


def test_a_saved_session_goes_on() -> None:
    first = ask("serve llama-3.1-8b on one H100 with vllm, 8 users", approve=False, model="offline")
    second = ask("and with 16 users?", approve=False, model="offline", session_id=first["session"])
    assert second["tool_calls"][0]["arguments"]["concurrency"] == 16
    assert second["plan"]["workload"] == {"kind": "inference", "engine": "vllm", "concurrency": 16}


def test_training_and_serving_take_turns() -> None:
    train, serve, again, back = turns(
        "fine-tune llama-3.1-8b with lora on 2 H100", "now serve it with vllm, 8 users", "fine-tune it instead",
        "undo that",
    )  # fmt: skip
    assert names(train)[0] == names(again)[0] == "estimate_training"
    assert names(serve)[0] == names(back)[0] == "estimate_inference"
    assert arguments(back) == arguments(serve)
    assert "what was said about training before is set aside" in serve["answer"]
    assert "kind" not in again["plan"].get("workload", {})
    assert [turn["ungrounded"] for turn in (train, serve, again, back)] == [[]] * 4


def test_a_monthly_budget_is_in_the_verdict() -> None:
    over, within = turns(
        "serve llama-3.1-8b on 8 H100, 64 users, monthly budget of 5000 dollars", "monthly budget of 50000 dollars"
    )
    assert over["answer"].startswith("✗ **Over budget by")
    assert "Within budget by" in within["answer"].splitlines()[0]
    assert over["ungrounded"] == within["ungrounded"] == []


def test_two_models_side_by_side_and_their_files() -> None:
    both, files, wrong = turns(
        "llama-3.1-8b vs qwen2.5-7b in vllm on one H100, 32 users",
        "show me the launch files",
        "with tp 3 on 8 GPUs",
    )
    assert names(both) == ["compare"]
    assert "is the fastest" in both["answer"]
    assert names(files)[-1] == "render_configs"
    # An engine that no target starts yet is said to be one.
    assert "Start it with" in files["answer"] or "**No files**" in files["answer"]
    assert not [path for path in Path.cwd().rglob("*") if path.is_file()]
    assert "valid" in wrong["answer"].lower()
    assert wrong["asked"]


def test_unmeasured_engines_and_slow_deployments_are_told() -> None:
    slow, unsure = turns(
        "serve llama-3.1-8b on one L4 at 500 requests/s with vllm", "new question: llama-3.1-8b in vllm on a TPU v5e"
    )
    assert verdict(slow["answer"]).startswith("**It fits, but cannot keep up: it serves ")
    assert "Watch out" in unsure["answer"] or unsure["asked"]
    assert slow["ungrounded"] == unsure["ungrounded"] == []


@pytest.fixture(scope="module")
def estimate() -> dict[str, Any]:
    plan = {
        "model": "llama-3.1-8b",
        "accelerator": "h100-sxm",
        "count": 2,
        "tp": 1,
        "pp": 1,
        "concurrency": 8,
        "ttft_slo_ms": 1,
    }
    return registry()["estimate_inference"](plan)


def test_figures_of_a_deployment_have_origins(estimate: dict[str, Any]) -> None:
    found = origins([estimate], [])
    rate = estimate["throughput"]["output_tokens_per_s"]
    assert estimate["replicas"] == 2
    assert Origin("rate", rate / 2) in found
    assert Origin("rate", estimate["throughput"]["tokens_per_s_per_user"]) in found
    row = estimate["slo"][0]
    assert Origin("fraction", abs(row["value_s"] / row["limit_s"] - 1)) in found


def test_a_queue_without_end_is_no_error(estimate: dict[str, Any]) -> None:
    endless = {name: None for name in estimate["latency"] if name.startswith(("ttft", "e2e"))}
    row = estimate["slo"][0] | {"value_s": None, "met": False}
    found = estimate | {"latency": estimate["latency"] | endless, "slo": [row], "cost": None}
    typed = ServingEstimate.model_validate(found)
    assert "cannot keep up" in serving.verdict(typed, 1.0).text
    assert "grows without bound" in [row[1] for row in serving.latencies(typed.latency).rows]
    assert "**missed**" in serving.slo(typed, 1.0).markdown
    assert "no price" in cost.deployment(None, None).markdown


def test_a_search_without_a_result_is_said() -> None:
    found = registry()["size_serving"](
        {"model": "llama-3.1-405b", "accelerator": "t4", "count": 1, "request_rate": 1, "engine": "vllm"}
    )
    assert found["best"] is None
    assert render(choice.size(SizedServing.model_validate(found))).startswith("✗ **None of ")
    nothing = registry()["find_limit"](
        {"goal": "concurrency", "model": "llama-3.1-405b", "accelerator": "t4", "count": 1, "engine": "vllm"}
    )
    assert render(limit.serving(Limit.model_validate(nothing))).startswith("✗ **None: ")
    swept = registry()["sweep"](
        {"model": "llama-3.1-405b", "accelerator": "t4", "field": "concurrency", "values": [1, 2]}
    )
    assert render(sweep.describe(Sweep.model_validate(swept))).startswith("✗ **None of these fits: ")


def scripted(steps: list[Any], tmp_path: Path) -> dict[str, Any]:
    """The state after one turn of a model that makes these calls."""
    around = Surroundings(Scripted(steps), OfflinePlanner(), registry(), tmp_path, None, lambda: NOON)
    graph = build(around)
    return asyncio.run(graph.ainvoke({"heard": "?", "messages": [], "plan": {}, "topic": {}}))


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (
            ("estimate_inference", {"model": "llama-3.1-8b", "accelerator": "h100", "concurrency": 8}),
            {"kind": "inference", "concurrency": 8},
        ),
        (
            ("find_limit", {"model": "llama-3.1-8b", "accelerator": "h100", "goal": "concurrency"}),
            {"kind": "inference"},
        ),
        (
            ("check_fit", {"model": "llama-3.1-8b", "accelerator": "h100", "engine": "vllm"}),
            {"kind": "inference", "engine": "vllm"},
        ),
        (("check_fit", {"model": "llama-3.1-8b", "accelerator": "h100", "method": "lora"}), {"method": "lora"}),
    ],
)
def test_a_language_models_calls_make_the_sessions_plan(
    call: tuple[str, dict[str, Any]], given: dict[str, Any], tmp_path: Path
) -> None:
    state = scripted([[call], "Done."], tmp_path)
    assert state["plan"]["workload"] == given
    assert state["plan"]["model"] == "llama-3.1-8b"


def test_the_prompt_names_what_estimates_and_searches_deployments() -> None:
    for name in ("estimate_inference", "best_serving", "size_serving"):
        assert name in SYSTEM
        assert name in registry()


def test_a_follow_up_about_the_same_deployment_tells_what_is_asked_now() -> None:
    first, paid, faster = turns("serve llama 3.1 8b on 1 h100 with 64 users", "what does it cost?", "make it faster")
    leads = [folded(turn["answer"]).lead for turn in (first, paid, faster)]
    assert "Key assumption" in leads[0]
    assert not any(words in leads[1] for words in ("Key assumption", "Bottleneck"))
    assert "| Change |" in leads[2]
    assert leads[2].count("What would make it faster") == 1
