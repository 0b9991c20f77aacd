"""What questions about serving are read as: the first tool that is called for them, and its arguments."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import NOON, begun, reading
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from agent.models import Thought, Turn
from agent.offline.catalogue import known
from agent.offline.planner import step
from agent.wire import calls_of, said
from planner.partial import is_serving
from tools.registry import registry

ESTIMATE, BEST, SIZE, LIMIT = "estimate_inference", "best_serving", "size_serving", "find_limit"
TRAINING = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h100-sxm", "count": 8}}
SERVED: dict[str, Any] = TRAINING | {"workload": {"kind": "inference", "engine": "vllm", "concurrency": 64}}


def first_step(text: str, plan: dict[str, Any] | None = None, topic: dict[str, Any] | None = None) -> Thought:
    """The planner's first step, before any tool has run."""
    return step(Turn([said(text)], plan or {}, topic or {}, registry(), NOON), known())


def first_call(text: str, plan: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    thought = first_step(text, plan)
    calls = calls_of(thought.content)
    assert calls, thought.content
    return calls[0].name, calls[0].arguments


PHRASES: list[tuple[str, str, dict[str, Any]]] = [
    # lengths of prompts and answers
    ("Serve Llama-3.1-8B on one H100 with vLLM, 2k in / 500 out", ESTIMATE,
     {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 1, "engine": "vllm", "input_len": 2048,
      "output_len": 500}),
    ("inference of Qwen2.5-32B on 2 A100-80GB, prompts of 1000 tokens and answers of 200 tokens", ESTIMATE,
     {"input_len": 1000, "output_len": 200}),
    ("serve llama-3.1-70b on 8 H100, ISL 1024 OSL 1024", ESTIMATE, {"input_len": 1024, "output_len": 1024}),
    ("deepseek v3 on 8 H200 with sglang, 1k/8k, tp 8", ESTIMATE, {"input_len": 1024, "output_len": 8192, "tp": 8}),
    ("llama-3.1-8b on L40S with 4096 tokens in and 256 tokens out", ESTIMATE, {"input_len": 4096, "output_len": 256}),
    ("serve gemma-2-9b on an L4: 1500-token prompts, 300-token answers", ESTIMATE,
     {"input_len": 1500, "output_len": 300}),
    ("serve llama-3.1-8b on H100 with 32k prompts and 1k output", ESTIMATE, {"input_len": 32768, "output_len": 1024}),
    ("serving llama-3.1-8b on an H100 with input length 4096, output length 128", ESTIMATE,
     {"input_len": 4096, "output_len": 128}),
    ("llama-3.1-8b in vLLM on an A10G with max_num_seqs 256 and max_model_len 8192", ESTIMATE,
     {"max_batch": 256, "max_context": 8192}),
    # load
    ("serve Llama-3.1-8B on one H100, 64 users", ESTIMATE, {"concurrency": 64}),
    ("latency of llama-3.1-8b on one H100 with 100 concurrent requests", ESTIMATE, {"concurrency": 100}),
    ("inference of llama-3.1-8b on one H100 at batch 32", ESTIMATE, {"concurrency": 32}),
    ("vllm, llama-3.1-8b, one H100, concurrency 256", ESTIMATE, {"concurrency": 256}),
    ("Llama-3.1-8B AWQ on a 3090, single user", ESTIMATE, {"concurrency": 1, "weight_dtype": "awq"}),
    ("inference of mixtral 8x7b on 2 MI300X at 20 requests/s", ESTIMATE, {"request_rate": 20.0, "count": 2}),
    ("serve gpt-oss-120b on 4 H100, 5 qps", ESTIMATE, {"request_rate": 5.0}),
    ("serve llama 3.1 8b on one L40S for a chatbot with 300 req/min", ESTIMATE, {"request_rate": 5.0}),
    ("serve llama-3.1-8b on an L40S, 36k requests per hour", ESTIMATE, {"request_rate": 10.0}),
    ("serve llama-3.1-8b on a A100-80GB for 1M tokens a day", ESTIMATE,
     {"request_rate": pytest.approx(1e6 / 86400 / 1280)}),
    ("serve llama-3.1-8b on one H100 at 2560 output tokens/s", ESTIMATE, {"request_rate": 10.0}),
    ("process 100k prompts with Qwen2.5-7B on 2 L40S in vllm", ESTIMATE, {"requests": 100_000, "scenario": "offline"}),
    # limits of latency
    ("serve llama-3.1-8b on one H100, TTFT under 500 ms", ESTIMATE, {"ttft_slo_ms": 500.0}),
    ("serve llama-3.1-8b on one H100, p99 TPOT < 50ms and ttft<1s", ESTIMATE,
     {"tpot_slo_ms": 50.0, "ttft_slo_ms": 1000.0, "slo_statistic": "p99"}),
    ("serve llama 3.1 70b on 8 h100, at least 40 tokens/s per user", ESTIMATE, {"tpot_slo_ms": 25.0}),
    ("serve llama 3.1 70b on 8 h100 with 25 ms per token", ESTIMATE, {"tpot_slo_ms": 25.0}),
    ("serve llama 3.1 70b on 8 h100, first token within 2 seconds, ITL of 20 ms", ESTIMATE,
     {"ttft_slo_ms": 2000.0, "tpot_slo_ms": 20.0}),
    # formats and engines
    ("llama-3.1-70b fp8 on 4 H100, fp8 kv cache, vllm 0.8.5", ESTIMATE,
     {"weight_dtype": "fp8", "kv_dtype": "fp8", "engine": "vllm", "software_version": "0.8.5"}),
    ("serve llama-3.1-70b with fp8 weights and kv cache on 4 H100", ESTIMATE,
     {"weight_dtype": "fp8", "kv_dtype": "fp8"}),
    ("can I run llama 3.1 70b Q4_K_M on a single 4090 with llama.cpp?", ESTIMATE,
     {"weight_dtype": "q4_k_m", "engine": "llamacpp", "accelerator": "rtx-4090"}),
    ("llama 3.1 8b q8 in llama cpp on an M2 Ultra", ESTIMATE, {"weight_dtype": "q8_0", "engine": "llamacpp"}),
    ("serve Qwen2.5-72B-Instruct-AWQ on 2 L40S", ESTIMATE,
     {"model": "Qwen/Qwen2.5-72B-Instruct", "weight_dtype": "awq"}),
    ("serve llama-3.1-8b GPTQ on a T4", ESTIMATE, {"weight_dtype": "gptq"}),
    ("serve llama-3.1-70b in int4 on 2 H100", ESTIMATE, {"weight_dtype": "int4"}),
    ("serve gpt-oss-20b mxfp4 on one H100", ESTIMATE, {"weight_dtype": "mxfp4"}),
    ("serve llama-3.1-405b in NVFP4 on 8 B200 with TensorRT-LLM", ESTIMATE,
     {"weight_dtype": "nvfp4", "engine": "trtllm"}),
    ("how fast does trt-llm serve llama-3.1-8b on one H100", ESTIMATE, {"engine": "trtllm"}),
    ("how many tokens per second does llama-3.1-8b generate on an RTX 4090?", ESTIMATE, {"accelerator": "rtx-4090"}),
    ("Llama-3.1-70B inference cost per 1M tokens on 8 H100 at AWS", ESTIMATE, {"provider": "AWS", "requests": None}),
    ("vllm with 5000 users of llama-3.1-8b on 8 H100", ESTIMATE, {"concurrency": 5000, "accelerator": "h100-sxm"}),
    ("$0.30 per million tokens with llama 3.1 8b on H100, possible?", ESTIMATE, {"accelerator": "h100-sxm"}),
    # layout and settings
    ("serve mixtral 8x7b on 8 H100 with tp 4, ep 4", ESTIMATE, {"tp": 4, "ep": 4}),
    ("serve deepseek-v3 in fp8 on 16 H200, tensor parallel 16, expert parallel", ESTIMATE, {"tp": 16, "ep": 16}),
    ("serve llama-3.1-70b on H100 with 2 replicas of TP4", ESTIMATE, {"tp": 4, "count": 8}),
    ("serve Llama-3.1-8B on H100, gpu memory utilization 0.95, 60% prefix cache hit", ESTIMATE,
     {"memory_share": 0.95, "prefix_hit": 0.6}),
    ("serve deepseek-r1 in fp8 on 8 H200 with MTP 2", ESTIMATE, {"speculative_tokens": 2}),
    ("vllm with speculative decoding of 3 draft tokens, acceptance 60%, llama 3.1 70b on 8 H100", ESTIMATE,
     {"speculative_tokens": 3, "acceptance": 0.6}),
    ("offline throughput of llama-3.1-8b on one H100 in sglang", ESTIMATE, {"scenario": "offline"}),
    ("single stream latency of llama-3.1-70b q4_k_m on an M2 Ultra", ESTIMATE, {"scenario": "single-stream"}),
    ("Can I run Llama-3.1-8B on a 4090?", ESTIMATE, {"accelerator": "rtx-4090"}),
    ("Does Llama-3.1-405B fit on 8 H100 for inference in fp8?", ESTIMATE, {"weight_dtype": "fp8", "count": 8}),
    # the best way
    ("What is the best way to serve Llama-3.1-70B on 8 H100?", BEST, {"accelerator": "h100-sxm", "count": 8}),
    ("how should I deploy Qwen3-32B on 4 H100?", BEST, {"count": 4}),
    ("which engine is best for serving llama-3.1-8b on an L40S", BEST, {"accelerator": "l40s"}),
    ("vLLM or SGLang for Qwen3-32B on 4 H100?", "compare", {"over": {"engine": ["vllm", "sglang"]}}),
    ("which of vLLM and SGLang is best for Qwen3-32B on 4 H100?", BEST, {"engines": ["vllm", "sglang"]}),
    ("fp8 or int4 for serving llama-3.1-70b on 4 H100?", "compare", {"over": {"weight_dtype": ["fp8", "int4"]}}),
    ("H100 or MI300X for serving Llama-3.1-70B?", "compare", {"over": {"accelerator": ["h100-sxm", "mi300x"]}}),
    ("cheapest way to serve Llama-3.1-70B on 8 H100 with at least 40 tok/s/user", BEST,
     {"goal": "cost", "tpot_slo_ms": 25.0}),
    ("lowest latency deployment for llama-3.1-70b on 8 H200", BEST, {"goal": "latency"}),
    ("llama-3.1-8b on h100, what is the max throughput for inference?", BEST, {"goal": "throughput"}),
    ("how many requests per second can llama-3.1-8b handle on 8 L40S with TTFT under 500ms", BEST,
     {"ttft_slo_ms": 500.0}),
    # sizes
    ("How many H100s do I need to serve Llama-3.1-70B at 50 requests/s with TTFT under 1 s?", SIZE,
     {"request_rate": 50.0, "ttft_slo_ms": 1000.0, "accelerator": "h100-sxm"}),
    ("how many GPUs to serve 1000 users of llama 3.1 8b on L40S with 25 ms per token", SIZE,
     {"concurrency": 1000, "tpot_slo_ms": 25.0, "accelerator": "l40s"}),
    ("How many nodes of 8 H100 do I need to serve DeepSeek-R1 in fp8 for 2000 users, 25 tokens/s each?", SIZE,
     {"concurrency": 2000, "tpot_slo_ms": 40.0, "per_node": 8, "weight_dtype": "fp8"}),
    ("what does serving llama 3.3 70b to 200 users on H200s cost a month? they type 600 tokens and get 300 back", SIZE,
     {"concurrency": 200, "input_len": 600, "output_len": 300, "accelerator": "h200-sxm"}),
    # limits
    ("longest context I can serve Llama-3.1-8B with on one L40S", LIMIT, {"goal": "context", "concurrency": 1}),
    ("longest prompt for serving Llama-3.1-8B on one L40S", LIMIT, {"goal": "input_len"}),
    ("how many users can I serve with llama 3.1 8b on a 4090, 4k prompts and 500 token answers", LIMIT,
     {"goal": "concurrency", "input_len": 4096, "output_len": 500}),
    ("how many concurrent requests can Qwen3-8B handle on an L40S at 8k context", LIMIT,
     {"goal": "concurrency", "input_len": 7936}),
    ("largest model I can serve on 2 H100 in fp8", LIMIT, {"goal": "model", "family": "any", "weight_dtype": "fp8"}),
    ("how many H100s do I need to serve llama-3.1-405b in fp8?", LIMIT, {"goal": "devices", "weight_dtype": "fp8"}),
    # curves
    ("throughput against concurrency for llama 3.1 8b on one H100 with vllm", "sweep",
     {"field": "workload.concurrency", "values": [1, 2, 4, 8, 16, 32, 64, 128, 256]}),
    ("llama-3.1-8b in vllm, one H100, 128 in 128 out, batch size 1 8 32 64", "sweep",
     {"values": [1, 8, 32, 64], "input_len": 128, "output_len": 128}),
    ("how does throughput change with batch size for llama-3.1-8b on an A100-80GB in vllm?", "sweep",
     {"field": "workload.concurrency"}),
    ("TTFT at 1, 8, 64 and 256 users for llama-3.1-8b on an H100", "sweep",
     {"field": "workload.concurrency", "values": [1, 8, 64, 256]}),
    ("how does llama-3.1-8b in vllm on an H100 scale from 4 to 32 users", "sweep",
     {"field": "workload.concurrency", "values": [4, 8, 16, 32]}),
    ("sweep input length 1k 4k 16k for serving llama-3.1-8b on one H100", "sweep",
     {"field": "workload.input_len", "values": [1024, 4096, 16384]}),
    ("Is TP 4 or TP 8 better to serve llama 3.1 70b on 8 H100?", "compare", {"over": {"tp": [4, 8]}}),
    # MLPerf
    ("MLPerf inference llama2-70b offline on 8 H100", "project_mlperf",
     {"benchmark": "llama2-70b", "accelerator": "h100-sxm", "count": 8, "scenario": "offline"}),
    ("what would 8 B200 score in MLPerf Llama 3.1 405B server?", "project_mlperf",
     {"benchmark": "llama3.1-405b", "scenario": "server"}),
    ("mlperf llama 3.1 8b interactive on 4 nodes of MI300X", "project_mlperf",
     {"benchmark": "llama3.1-8b", "count": 32, "scenario": "interactive"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tool", "expected"), PHRASES, ids=[text[:60] for text, *_ in PHRASES])
def test_phrases_call_this_tool_with_these_arguments(text: str, tool: str, expected: dict[str, Any]) -> None:
    name, arguments = first_call(text)
    assert name == tool
    assert {field: arguments.get(field) for field in expected} == expected
    registry()[name].parse(arguments)
    assert reading(text).unread == []
    assert reading(text).needs == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now in fp8", {"weight_dtype": "fp8"}),
        ("with 128 users", {"concurrency": 128}),
        ("at 10 requests/s", {"request_rate": 10.0, "concurrency": None}),
        ("on MI300X", {"accelerator": "mi300x", "count": 8}),
        ("what about 4 GPUs", {"count": 4}),
        ("with tp 4", {"tp": 4}),
        ("use sglang", {"engine": "sglang"}),
        ("what about 16k prompts", {"input_len": 16384}),
        ("and the 70B?", {"model": "meta-llama/Llama-3.1-70B"}),
        ("double the users", {"concurrency": 128}),
        ("offline instead", {"scenario": "offline", "concurrency": None}),
        ("TTFT below 300 ms", {"ttft_slo_ms": 300.0}),
    ],
)
def test_follow_ups_patch_the_serving_plan(text: str, expected: dict[str, Any]) -> None:
    name, arguments = first_call(text, SERVED)
    assert name == ESTIMATE
    assert {field: arguments.get(field) for field in expected} == expected
    kept = {"engine": "vllm", "concurrency": 64, "model": "meta-llama/Llama-3.1-8B"}
    assert {field: arguments.get(field) for field in kept if field not in expected} == {
        field: value for field, value in kept.items() if field not in expected
    }


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("fine-tune llama-3.1-8b with grpo on 8 H100, generation with vllm", None),
        ("use a colocated vllm", TRAINING),
        ("a separate vllm server for rollouts", TRAINING),
        ("fine-tune llama 3.1 8b for inference on 8 H100", None),
        ("Train Mixtral 8x7B on 16 H100s", SERVED),
        ("gpu_memory_utilization 0.4", TRAINING),
        ("how many tokens per second does it train at?", TRAINING),
        ("mlperf training of llama2-70b on 8 H100 in fp8", None),
    ],
)
def test_training_stays_training(text: str, plan: dict[str, Any] | None) -> None:
    assert not is_serving(begun(text, plan).plan)


def test_what_has_been_trained_can_be_served() -> None:
    assert is_serving(begun("serve my fine-tuned llama-3.1-8b on one H100").plan)
    assert is_serving(begun("deploy the instruction-tuned llama-3.1-8b on one L4").plan)


def test_unknown_engines_are_asked_about_and_unknown_formats_told() -> None:
    assert begun("serve llama-3.1-8b on H100 with lmdeploy").fields_asked == ["workload.engine"]
    assert begun("serve llama-3.1-8b q9_x on a 4090").reading["lost"] == ["q9_x"]


def test_rates_in_tokens_wait_for_no_lengths_but_use_them() -> None:
    arguments = first_call("serve llama-3.1-8b on one H100, 3000 in / 1000 out, 4000 output tokens/s")[1]
    assert arguments["request_rate"] == 4.0
    arguments = first_call("serve llama-3.1-8b on one H100, 2000 in / 1000 out, a shared prefix of 500 tokens")[1]
    assert arguments["prefix_hit"] == 0.25


def test_a_switch_keeps_model_and_devices_and_says_so() -> None:
    plan = TRAINING | {"workload": {"method": "lora", "seq_len": 4096}, "layout": {"zero_stage": 3}}
    thought = first_step("now serve it with vllm", plan)
    assert thought.plan == TRAINING | {"workload": {"kind": "inference", "engine": "vllm"}}
    assert thought.topic is not None
    assert "set aside" in thought.topic["turn"]["notes"][0]
    back = first_step("fine-tune it with lora", SERVED | {"layout": {"tp": 8}})
    assert back.plan == TRAINING | {"workload": {"method": "lora", "stage": "sft"}}


def test_what_is_missing_is_asked_for_once() -> None:
    thought = first_step("how fast can vllm serve at 20 requests/s?")
    assert [question.partition(":")[0] for question in thought.asked] == ["model", "cluster.accelerator"]
    assert calls_of(thought.content) == []
    which = first_step("which GPU is cheapest to serve llama 3.1 8b at 10 requests/s?")
    call = calls_of(which.content)[0]
    assert call.name == SIZE
    assert len(call.arguments["accelerators"]) > 3
    assert "accelerator" not in call.arguments


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=120))
def test_any_text_is_read_in_a_session_about_serving(text: str) -> None:
    begun(text, SERVED)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 99_999), st.sampled_from(["{} users", "{} concurrent requests", "concurrency {}", "{} clients"]))
def test_clients_are_read_in_every_form(number: int, form: str) -> None:
    text = f"serve llama-3.1-8b on one H100 with {form.format(number)}"
    assert begun(text).changes.get("workload.concurrency") == number


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(16, 99_999), st.integers(16, 9_999), st.sampled_from(["{}/{}", "{} in / {} out", "ISL {} OSL {}",
       "{} input tokens and {} output tokens", "prompts of {} tokens, answers of {} tokens"]))  # fmt: skip
def test_lengths_are_read_in_every_form(prompt: int, answer: int, form: str) -> None:
    found = begun(f"serve llama-3.1-8b on one H100, {form.format(prompt, answer)}").changes
    assert (found.get("workload.input_len"), found.get("workload.output_len")) == (prompt, answer)


@pytest.mark.parametrize(
    "said",
    ["{i}M input and {o}M output tokens a month", "{o}M output and {i}M input tokens a month",
     "{i}M input tokens a month and {o}M output tokens a month"],
)  # fmt: skip
@pytest.mark.parametrize(("prompts", "answers"), [(500, 100), (40, 80)])
def test_tokens_of_prompts_and_answers_by_the_month_are_one_load(said: str, prompts: int, answers: int) -> None:
    _, arguments = first_call(f"serve Llama-3.1-8B on 8xh100, {said.format(i=prompts, o=answers)}")
    output_len = 256
    assert arguments["input_len"] == round(output_len * prompts / answers)
    month_s = 30 * 24 * 3600
    assert arguments["request_rate"] * output_len * month_s == pytest.approx(answers * 1e6, rel=1e-6)
