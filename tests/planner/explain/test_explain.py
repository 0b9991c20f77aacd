"""explain: every figure has its arithmetic, the values are those of the other tools, words find figures."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import within
from samples import examples

from estimator.errors import PlanError
from knowledge import figures
from knowledge.figure_facts import figure, find_figure, known_figure
from planner.explain.cost import flattened
from planner.explain.explain import ExplainRequest, _explained, _subject
from planner.explain.subject import COST, Subject
from planner.explain.words import ALIASES
from tools import call

TRAINING: dict[str, dict[str, Any]] = {
    "dense": {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8, "dataset_tokens": "1B"},
    "pipeline": {
        "model": "llama-3.1-70b", "accelerator": "h100-sxm", "count": 64, "tp": 8, "pp": 4, "dataset_tokens": "1B",
        "framework": "megatron-lm",
    },
    "experts": {
        "model": "mixtral-8x7b", "accelerator": "h100-sxm", "count": 32, "framework": "megatron-lm", "ep": 8, "tp": 2,
        "steps": 1000,
    },
    "latent attention": {
        "model": "deepseek-v3", "accelerator": "h200-sxm", "count": 512, "framework": "megatron-lm", "pp": 8,
        "ep": 32, "stage": "pretrain", "precision": "fp8",
    },
    "lora": {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 16, "framework": "fsdp2", "method": "lora"},
    "qlora": {"model": "llama-3.1-8b", "accelerator": "a100-sxm-80gb", "count": 2, "method": "qlora"},
    "long context": {
        "model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 16, "cp": 4, "seq_len": 65536, "price": "spot",
        "dataset_tokens": "1B",
    },
    "ppo": {"model": "qwen2.5-7b", "accelerator": "h100-sxm", "count": 8, "stage": "ppo"},
    "eager": {"model": "gpt2", "accelerator": "a100-sxm-80gb", "count": 8, "attention": "eager"},
    "offload": {
        "model": "llama-3.1-8b", "accelerator": "rtx-4090", "count": 2, "offload": "params", "zero_stage": 3,
        "framework": "deepspeed",
    },
    "low rank": {
        "model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8, "optimizer": "galore", "price": "owned",
        "dataset_tokens": "1B",
    },
    "own figures": {
        "model": "llama-3.1-70b", "accelerator": "h100-sxm", "count": 64, "tp": 4, "pp": 4, "schedule": "dualpipe",
        "framework": "megatron-lm", "overrides": {"activations_gib": 3, "usable_gib": 70, "reserve_gib": 2},
    },
    "freeze": {"model": "qwen2.5-7b", "accelerator": "h100-sxm", "count": 1, "method": "freeze"},
}  # fmt: skip
SERVING: dict[str, dict[str, Any]] = {
    "clients": {
        "model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 4, "input_len": 1024, "output_len": 256,
        "concurrency": 64, "engine": "vllm", "weight_dtype": "fp8",
    },
    "rate": {
        "model": "llama-3.1-70b", "accelerator": "h100-sxm", "count": 8, "input_len": 1024, "output_len": 512,
        "request_rate": 4, "price": "spot",
    },
    "too high a rate": {
        "model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 1, "request_rate": 5000, "input_len": 1024,
        "output_len": 512,
    },
    "latent attention": {
        "model": "deepseek-v3", "accelerator": "h200-sxm", "count": 8, "input_len": 1024, "output_len": 512,
        "concurrency": 32, "engine": "sglang",
    },
    "all at once": {
        "model": "mixtral-8x7b", "accelerator": "h100-sxm", "count": 2, "scenario": "offline", "input_len": 512,
        "output_len": 128, "requests": 1000,
    },
    "one stream": {
        "model": "llama-3.1-8b", "accelerator": "rtx-4090", "count": 1, "engine": "llamacpp",
        "weight_dtype": "q4_k_m", "scenario": "single-stream", "input_len": 512, "output_len": 128,
    },
    "in step": {
        "model": "gemma-2-9b", "accelerator": "h100-sxm", "count": 1, "scenario": "static-batch", "engine": "hf",
        "concurrency": 8, "input_len": 100, "output_len": 100,
    },
    "does not fit": {
        "model": "llama-3.1-405b", "accelerator": "h100-sxm", "count": 8, "input_len": 100, "output_len": 100,
        "concurrency": 8, "weight_dtype": "bf16",
    },
}  # fmt: skip
PLANS = [*(("training", name) for name in TRAINING), *(("serving", name) for name in SERVING)]


def arguments(kind: str, name: str) -> dict[str, Any]:
    return (TRAINING if kind == "training" else SERVING)[name]


@cache
def subject(kind: str, name: str) -> Subject:
    request = ExplainRequest(figure="step time", **arguments(kind, name))
    return _subject(request.to_plan(), "step time", request)


def explained(said: str, plan: dict[str, Any], **more: Any) -> dict[str, Any]:
    return call("explain", {**plan, "nearest": 0, **more, "figure": said})


@pytest.mark.parametrize(("kind", "name"), PLANS)
def test_every_figure_that_is_offered_can_be_made_again_from_its_terms(kind: str, name: str) -> None:
    found = subject(kind, name)
    assert found.kind == kind
    assert len(found.accounts) > 50
    for key in found.accounts:
        row = _explained(found, key)
        assert all((row.name, row.formula, row.source, row.code)), key
        assert row.value is not None, key
        if row.check.rule == "inputs":
            assert key in ("memory.fits", "run.steps", "run.tokens"), key
            continue
        assert row.check.holds, (key, row.value, row.check, row.terms)
        assert row.check.recomputed is not None
        assert abs(row.check.recomputed - row.value) <= 1e-6 * max([abs(row.value), *(abs(t.value) for t in row.terms)])
        for term in row.terms:
            assert all((term.what, term.symbol, term.unit, term.origin)), (key, term)
            assert term.figure is None or term.figure in found.accounts


@pytest.mark.parametrize(("kind", "name"), PLANS)
def test_values_are_those_of_the_tools_themselves(kind: str, name: str) -> None:
    found, plan = subject(kind, name), arguments(kind, name)
    terms = {key: plan[key] for key in ("price",) if key in plan}
    bare = {key: value for key, value in plan.items() if key not in terms}
    own = flattened(call("estimate_training" if kind == "training" else "estimate_inference", bare))
    if "usd" in found.accounts:
        cost = call("estimate_cost", plan)
        own |= {key: cost[key] for key in COST if cost[key] is not None}
    compared = 0
    for key in found.accounts:
        place = key
        if key.startswith("memory.stages."):
            _, _, number, rest = key.split(".", 3)
            place = f"memory.stages.{number}.{rest}"
        if place in own and not isinstance(own[place], bool):
            assert _explained(found, key).value == pytest.approx(own[place], rel=1e-9, abs=1e-9), key
            compared += 1
    assert compared > 25


# Figures of another plan or offer than the one asked about, rows of pictures, and terms of a sum that is explained.
OF_OTHERS = re.compile(
    r"(decides|remedies|by_provider|options|break_even|owned|api|evidence|plots|parts|limits|moments|assumptions)\."
)
# What is looked up or found by trying, of which no formula makes it.
LOOKED_UP = {
    "memory.host.capacity_bytes", "memory.host.capacity_low_bytes", "memory.host.page_cache_bytes",
    "roofline.memory_bandwidth_bytes_per_s", "largest_micro_batch", "largest_seq_len", "replicas", "waiting",
    "time.prompt_utilisation", "time.reading_share",
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [("training", "dense"), ("training", "long context"), ("serving", "clients"), ("serving", "rate")]
)
def test_every_figure_that_a_result_shows_can_be_explained(kind: str, name: str) -> None:
    found, plan = subject(kind, name), arguments(kind, name)
    bare = {key: value for key, value in plan.items() if key != "price"}
    for tool in ("estimate_training" if kind == "training" else "estimate_inference", "check_fit", "estimate_cost"):
        result = call(tool, plan if tool == "estimate_cost" else bare)
        result.pop("plan")
        for key, value in flattened(result).items():
            shown = known_figure(key)
            if isinstance(value, bool) or OF_OTHERS.search(key) or shown is None or not shown.label:
                continue
            plain = ALIASES.get(key, key.removeprefix("cost."))
            explained = plain in found.accounts or plain.startswith("memory.stages.") or plain in LOOKED_UP
            assert explained, (tool, key)


@pytest.mark.parametrize(("kind", "name"), PLANS)
def test_a_term_that_is_a_figure_has_the_value_of_that_figure(kind: str, name: str) -> None:
    found = subject(kind, name)
    for key in found.accounts:
        for term in _explained(found, key).terms:
            if term.figure:
                other = _explained(found, term.figure).value
                assert other == pytest.approx(term.value, rel=1e-9, abs=1e-9), (key, term.figure)


@pytest.mark.parametrize("name", TRAINING)
def test_operators_and_collectives_are_the_time_that_they_explain(name: str) -> None:
    found = subject("training", name)
    step = found.step
    assert step is not None
    for phase in ("forward", "backward", "recompute"):
        rows = [row for row in step.operators if row.phase == phase]
        assert sum(row.seconds for row in rows) == pytest.approx(step.component(phase), rel=1e-9)
    assert {row.bound for row in step.operators} <= {"compute", "memory bandwidth", "kernel launch"}
    work = sum(row.flop for row in step.operators if row.phase != "recompute")
    # The slowest stage has no less than its share; freezing and experts' whole rows aside, all the work is there.
    assert work >= 0.9 * float(step.step.model_flop[0])
    for row in step.collectives:
        assert min(row.seconds, row.calls, row.link_bytes_per_s, row.group_size - 1) > 0.0
    moved = sum(row.seconds for row in step.collectives if row.component == "data_parallel")
    assert step.component("data_parallel") <= moved * (1.0 + 1e-9)


def test_passes_of_model_flop_are_three_or_two() -> None:
    for name, passes in (("dense", 3.0), ("pipeline", 3.0), ("lora", 2.0), ("qlora", 2.0)):
        row = _explained(subject("training", name), "work.model_flop")
        assert next(term.value for term in row.terms if term.symbol == "k") == pytest.approx(passes)


def test_adam_keeps_two_states_beside_the_master_copy() -> None:
    row = _explained(subject("training", "dense"), "memory.components.optimizer")
    sizes = {term.symbol: term.value for term in row.terms}
    assert sizes["o_states"] == pytest.approx(2.0 * sizes["o_master"])


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("mfu", "throughput.mfu"), ("MFU", "throughput.mfu"), ("what is the MFU?", "throughput.mfu"),
        ("activation memory", "memory.components.activations"), ("Step time", "time.step_s"),
        ("how much memory", "memory.per_device_bytes"), ("cost", "usd"), ("gpu hours", "device_hours"),
        ("memory.stages.0.components.weights", "memory.stages.0.components.weights"),
        ("time.components.data_parallel", "time.components.data_parallel"), ("hours", "hours"),
        ("communication", "time.components.data_parallel"), ("compute", "time.compute_s"), ("fits", "memory.fits"),
        ("headroom", "headroom_bytes"), ("best.step_s", "time.step_s"), ("CO2", "co2_kg"), ("kwh", "kwh"),
        ("tokens per second per gpu", "throughput.tokens_per_s_per_device"), ("run.hours", "run.hours"),
        ("optimizer states", "memory.components.optimizer"), ("bubble", "time.components.bubble"),
    ],
)  # fmt: skip
def test_keys_and_plain_words_of_training_find_a_figure(said: str, key: str) -> None:
    assert explained(said, TRAINING["dense"])["figure"] == key


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("KV cache", "memory.components.kv_cache"), ("time to first token", "latency.ttft_s"),
        ("TPOT", "latency.tpot_s"),
        ("throughput", "throughput.output_tokens_per_s"), ("how many users", "memory.max_concurrency"),
        ("cost per million tokens", "usd_per_million_tokens"), ("latency.e2e_s", "latency.e2e_s"),
        ("cost.usd_per_month", "usd_per_month"), ("weights", "memory.components.weights"), ("step time", "time.step_s"),
    ],
)  # fmt: skip
def test_keys_and_plain_words_of_serving_find_a_figure(said: str, key: str) -> None:
    assert explained(said, SERVING["clients"])["figure"] == key


@pytest.mark.parametrize("figure", ["ttft", "usd per token"])
@pytest.mark.parametrize("said", [{"dataset_tokens": "1B"}, {"plan": {"workload": {"dataset_tokens": 1e9}}}])
def test_words_of_serving_leave_a_training_run_one(figure: str, said: dict[str, Any]) -> None:
    plan = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8}
    with pytest.raises(PlanError, match="of a training plan"):
        call("explain", plan | said | {"figure": figure})
    assert call("explain", plan | {"figure": "ttft"})["figure"] == "latency.ttft_s"


def test_a_figure_that_only_serving_has_makes_the_plan_one_for_serving() -> None:
    found = explained("ttft", {"model": "llama-3.1-8b", "accelerator": "h100-sxm"})
    assert found["plan"]["workload"]["kind"] == "inference"


@pytest.mark.parametrize(
    "said", ["nonsense", "", " ", "../../etc/passwd", "x" * 5000, "memory.stages.99.components.weights"]
)
def test_an_unknown_figure_lists_some_that_there_are(said: str) -> None:
    with pytest.raises(PlanError) as caught:
        explained(said, TRAINING["dense"])
    assert caught.value.field == "figure"
    assert 1 <= len(caught.value.valid) <= 12
    assert set(caught.value.valid) <= set(subject("training", "dense").offered)


@settings(max_examples=examples(30), deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_figure_or_a_clean_error(said: str) -> None:
    offered = subject("training", "dense").offered
    try:
        found = find_figure(said, offered)
    except PlanError as refused:
        found, field = None, refused.field
        assert field == "figure"
    assert found is None or found in offered


def test_costs_without_the_size_of_the_data_say_what_is_missing() -> None:
    plan = {key: value for key, value in TRAINING["dense"].items() if key != "dataset_tokens"}
    with pytest.raises(PlanError, match="dataset_tokens"):
        explained("cost", plan)


def test_depth_explains_terms_in_turn() -> None:
    steps = [explained("memory", TRAINING["dense"], depth=depth)["steps"] for depth in (1, 2, 3)]
    assert steps[0] == []
    names = {row["figure"] for row in steps[1]}
    assert {"memory.components.weights", "memory.components.activations"} <= names
    assert names < {row["figure"] for row in steps[2]}
    assert "memory.components.activations.kept" in {row["figure"] for row in steps[2]}
    for wrong in (0, 4):
        with pytest.raises(PlanError):
            explained("memory", TRAINING["dense"], depth=wrong)


def test_origins_tell_the_plan_from_what_was_assumed() -> None:
    terms = {term["symbol"]: term for term in explained("work.tokens_per_step", TRAINING["dense"])["terms"]}
    assert terms["B"]["origin"] == "assumption"
    given_batch = explained("work.tokens_per_step", TRAINING["dense"] | {"global_batch": 64})["terms"]
    assert {term["symbol"]: term["origin"] for term in given_batch}["B"] == "plan"
    peak = next(term for term in explained("mfu", TRAINING["dense"])["terms"] if term["symbol"] == "peak")
    assert peak["origin"] == "catalogue"
    assert peak["value"] == pytest.approx(989.5e12, rel=1e-3)


def test_the_interval_is_that_of_the_estimate() -> None:
    own = call("estimate_training", TRAINING["dense"])
    for said, part, value in (("step time", "time", "step_s"), ("memory", "memory", "per_device_bytes")):
        found = explained(said, TRAINING["dense"])
        low, high = ("low_s", "high_s") if part == "time" else ("low_bytes", "high_bytes")
        assert found["value"] == own[part][value]
        assert (found["low"], found["high"]) == pytest.approx((own[part][low], own[part][high]))
        assert found["interval"]["coverage"] == 0.8
    assert explained("activations", TRAINING["dense"])["interval"] is None


def test_what_goes_by_the_hours_of_a_long_run_has_the_interval_of_its_cost() -> None:
    """Failures are in it: the interval of the step alone would be too narrow."""
    long = TRAINING["dense"] | {"dataset_tokens": 1e12}
    bill = call("estimate_cost", long)
    assert bill["hours"] > 24.0
    for figure_of, name in (("hours", "hours"), ("cost", "usd")):
        found = explained(figure_of, long)
        assert found["value"] == pytest.approx(bill[name])
        assert (found["low"], found["high"]) == pytest.approx((bill[f"low_{name}"], bill[f"high_{name}"]))
    assert "failures" in explained("hours", long)["interval"]["how"]


def test_the_text_has_the_figures_and_few_lines() -> None:
    for said, plan in (("step time", TRAINING["dense"]), ("ttft", SERVING["clients"]), ("fits", TRAINING["qlora"])):
        found = call("explain", {**plan, "figure": said})
        lines = found["text"].splitlines()
        assert 3 <= len(lines) <= 8
        assert found["nearest"][0]["id"] in found["text"]
        assert found["formula"] in found["text"]


def test_a_part_says_what_it_is_of_its_whole() -> None:
    plan = TRAINING["dense"]
    for said, whole in (("time.components.backward", "step time"), ("memory.components.weights", "memory per device")):
        part, of = (call("explain", {**plan, "figure": name}) for name in (said, whole))
        assert part["share"] == pytest.approx(part["value"] / of["value"])
        assert f"{figures.percent(part['share'])} of " in part["text"].splitlines()[0]
        assert of["share"] is None


def test_every_described_figure_reads_well() -> None:
    assert figure("memory.stages.3.components.weights.blocks").key == "memory.components.weights.*"
    assert figure("headroom_bytes", "serving").name != figure("headroom_bytes").name


def test_it_takes_less_than_a_third_of_a_second_with_the_nearest_runs() -> None:
    plan = {**TRAINING["dense"], "figure": "mfu"}
    call("explain", plan)
    with within(5 * 0.3):
        for _ in range(5):
            call("explain", plan)
