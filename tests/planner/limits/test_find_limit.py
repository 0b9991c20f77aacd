"""find_limit: the value that it names fits, the next one does not, and what was given stays."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pace import within
from samples import examples, part

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from knowledge.models.known import models
from planner.limits.training import limit_of
from planner.requests import PlanRequest
from planner.training.planned import plan_to_fit
from tools import call

EIGHT: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8}
ONE: dict[str, Any] = {"model": "Qwen/Qwen2.5-7B", "accelerator": "rtx-4090", "count": 1, "method": "qlora"}
GIVEN: dict[str, Any] = EIGHT | {"framework": "megatron-lm", "tp": 2, "pp": 2, "recompute": "selective",
                                 "micro_batch": 1}  # fmt: skip
KEYS = {"goal", "value", "plan", "limited_by", "why", "memory", "chosen", "next_value", "probes", "assumptions",
        "warnings", "evidence"}  # fmt: skip


def fits(arguments: dict[str, Any]) -> bool:
    """Whether the verdict is that it fits, host memory included."""
    try:
        return plan_to_fit(PlanRequest.model_validate(arguments).to_plan()).fits
    except PlanError:
        return False


def whole(found: dict[str, Any]) -> None:
    """What every answer with a value keeps: a complete plan that fits, again, and figures that agree."""
    assert found.keys() >= KEYS
    again = call("estimate_training", {"plan": found["plan"]})
    assert again["memory"]["fits"]
    assert again["memory"] == found["memory"]
    assert again["time"]["step_s"] == found["chosen"]["step_s"]
    assert not again["layout_chosen"]
    named = [assumption["field"] for assumption in found["assumptions"]]
    assert len(named) == len(set(named))
    assert found["limited_by"] in found["memory"]["components"] or found["limited_by"] in (
        "global_batch", "range", "catalogue",
    )  # fmt: skip
    tried = {probe["value"]: probe for probe in found["probes"]}
    assert tried[found["value"]]["fits"]
    if found["next_value"]:
        assert not tried[found["next_value"]["value"]]["fits"]
        assert (found["next_value"]["per_device_bytes"] is None) == bool(found["next_value"]["why"])


@pytest.mark.parametrize(
    ("accelerator", "framework"), [("rtx-4090", "auto"), ("h200-sxm", "auto"), ("h100-sxm", "axolotl")]
)
def test_offloaded_activations_never_shorten_the_longest_context(accelerator: str, framework: str) -> None:
    """Less usual frameworks are tried whether or not it is named, and nothing named goes further than all left open."""
    run = {"goal": "seq_len", "model": "Qwen/Qwen2.5-7B", "accelerator": accelerator, "count": 8, "method": "lora"}
    without, offloaded, best = (
        call("find_limit", run | {"framework": framework} | changes)["value"]
        for changes in ({"offload": "none"}, {"offload": "activations"}, {})
    )
    assert without <= offloaded <= best


@pytest.mark.parametrize("arguments", [EIGHT, ONE, GIVEN, EIGHT | {"count": 64, "stage": "pretrain"}], ids=range(4))
def test_the_longest_context_fits_and_the_next_does_not(arguments: dict[str, Any]) -> None:
    found = call("find_limit", arguments | {"goal": "seq_len", "seq_len": 2048})
    whole(found)
    value, after = found["value"], found["next_value"]["value"]
    assert found["plan"]["workload"]["seq_len"] == value
    assert after - value == (128 if value < 8192 else 1024)
    assert value % (128 if value < 8192 else 1024) == 0
    assert fits(arguments | {"seq_len": value})
    for length in (after, 2 * after):
        assert not fits(arguments | {"seq_len": length})


@pytest.mark.parametrize("arguments", [EIGHT, ONE, GIVEN | {"micro_batch": None}], ids=range(3))
def test_the_largest_micro_batch_fits_and_one_more_does_not(arguments: dict[str, Any]) -> None:
    found = call("find_limit", arguments | {"goal": "micro_batch"})
    whole(found)
    assert found["plan"]["workload"]["micro_batch"] == found["value"]
    assert found["next_value"]["value"] == found["value"] + 1
    assert fits(arguments | {"micro_batch": found["value"]})
    assert not fits(arguments | {"micro_batch": found["value"] + 1})


LARGE: dict[str, Any] = {"model": "deepseek-v3", "count": 64}


@pytest.mark.parametrize(
    "arguments",
    [
        *({**EIGHT, "goal": goal} for goal in ("seq_len", "micro_batch")),
        *({**LARGE, "accelerator": "b200", "goal": goal} for goal in ("seq_len", "micro_batch", "devices")),
        LARGE | {"accelerator": "rtx 4090", "goal": "context", "concurrency": 64, "request_rate": 0.1,
                 "ttft_slo_ms": 1},
        LARGE | {"accelerator": "b200", "goal": "input_len", "ttft_slo_ms": 500},
    ],
    ids=str,
)  # fmt: skip
def test_a_limit_with_the_framework_open_takes_no_longer_than_a_glance(arguments: dict[str, Any]) -> None:
    call("find_limit", arguments)
    with within(2.0):
        call("find_limit", arguments)


def test_a_given_global_batch_is_kept_and_can_be_what_limits() -> None:
    small = {"model": "gpt2", "accelerator": "h100-sxm", "count": 8, "framework": "fsdp1", "global_batch": 96}
    found = call("find_limit", small | {"goal": "micro_batch"})
    whole(found)
    assert found["value"] == 12
    assert found["limited_by"] == "global_batch"
    assert "96" in found["why"]
    assert found["plan"]["workload"]["global_batch"] == 96
    open_batch = call("find_limit", small | {"goal": "micro_batch", "global_batch": None})
    assert open_batch["value"] > 12


def test_what_is_given_stays() -> None:
    found = call("find_limit", GIVEN | {"goal": "seq_len"})
    plan = found["plan"]
    assert {name: plan["layout"][name] for name in ("tp", "pp", "recompute")} == {
        "tp": 2, "pp": 2, "recompute": "selective",
    }  # fmt: skip
    assert plan["workload"]["framework"] == "megatron-lm"
    assert plan["workload"]["micro_batch"] == 1
    freer = call("find_limit", EIGHT | {"framework": "megatron-lm", "goal": "seq_len"})
    assert freer["value"] > found["value"]


def test_a_context_parallel_size_that_is_given_divides_the_sequence() -> None:
    found = call("find_limit", EIGHT | {"framework": "megatron-lm", "cp": 8, "goal": "seq_len"})
    whole(found)
    assert found["plan"]["layout"]["cp"] == 8
    assert found["value"] % 16 == 0


def test_a_length_beyond_the_models_own_context_is_a_warning() -> None:
    found = call("find_limit", EIGHT | {"model": "gpt2", "goal": "seq_len"})
    assert found["value"] > 1024
    assert any("beyond the model's context" in warning for warning in found["warnings"])


def test_the_fewest_devices_are_parts_of_a_node_or_whole_nodes() -> None:
    for model, accelerator in (
        ("Llama-3.1-70B", "h100-sxm"),
        ("Llama-3.1-8B", "a100-sxm-80gb"),
        ("Llama-3.1-405B", "h200-sxm"),
    ):
        arguments = {"model": f"meta-llama/{model}", "accelerator": accelerator}
        found = call("find_limit", arguments | {"goal": "devices", "count": 8192})
        whole(found)
        value = found["value"]
        assert value in (1, 2, 4, 8) or value % 8 == 0
        assert found["plan"]["cluster"]["count"] == value
        below = [size for size in (1, 2, 4, *range(8, value, 8)) if size < value]
        for framework in ("deepspeed", "megatron-bridge"):
            for size in below[-3:]:
                assert not fits(arguments | {"count": size, "framework": framework})


def test_one_device_is_the_least() -> None:
    found = call("find_limit", {"model": "gpt2", "accelerator": "h100-sxm", "goal": "devices"})
    whole(found)
    assert found["value"] == 1
    assert found["next_value"] is None
    assert found["limited_by"] == "range"


def test_sizes_that_a_given_batch_cannot_be_dealt_to_are_told() -> None:
    arguments = {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "global_batch": 24, "goal": "devices",
                 "framework": "fsdp1", "micro_batch": 1, "offload": "none"}  # fmt: skip
    found = call("find_limit", arguments)
    assert found["value"] is None or 24 % found["plan"]["layout"]["dp"] == 0
    said = [probe["why"] for probe in found["probes"] if probe["why"]]
    assert any("cannot be dealt evenly" in why for why in said)


def test_the_largest_model_of_a_family() -> None:
    found = call("find_limit", {"goal": "model", "family": "llama", "accelerator": "h100-sxm", "count": 8})
    whole(found)
    rows = [row for row in models() if row.family.startswith("llama")]
    sizes = {row.id: architecture(row.id).parameters for row in rows}
    assert found["parameters"] == sizes[found["value"]]
    assert found["plan"]["model"] == found["value"]
    for id, size in sizes.items():
        if size > found["parameters"]:
            for framework in ("deepspeed", "megatron-bridge"):
                assert not fits({"model": id, "accelerator": "h100-sxm", "count": 8, "framework": framework})


def test_the_plans_own_family_is_searched_unless_any_is_asked_for() -> None:
    own = call("find_limit", EIGHT | {"goal": "model", "method": "qlora"})
    assert architecture(own["value"]).family == architecture(EIGHT["model"]).family
    anything = call("find_limit", EIGHT | {"goal": "model", "method": "qlora", "family": "any"})
    whole(anything)
    assert anything["parameters"] >= own["parameters"]
    assert "family" in {assumption["field"] for assumption in anything["assumptions"]}
    assert not architecture(anything["value"]).multimodal


def test_the_largest_model_is_done_by_the_deadline() -> None:
    """Where it is known how many tokens a run takes; where it is not, that nobody looked is said."""
    asked = {"goal": "model", "stage": "pretrain", "accelerator": "h100-sxm", "count": 64, "family": "llama"}
    found = call("find_limit", asked | {"deadline_h": 240, "dataset_tokens": 3e11})
    assert found["limited_by"] == "deadline"
    run = {name: asked[name] for name in ("stage", "accelerator", "count")} | {"dataset_tokens": 3e11}
    assert call("estimate_training", run | {"model": found["value"]})["run"]["hours"] <= 240
    assert call("find_limit", asked)["parameters"] > found["parameters"]
    tuned = {"goal": "model", "accelerator": "h100-sxm", "count": 8, "family": "llama", "deadline_h": 48}
    assert "not checked: the deadline" in call("find_limit", tuned)["warnings"][0]
    with pytest.raises(PlanError, match="too short for every model"):
        call("find_limit", asked | {"deadline_h": 0.01})


def test_models_that_only_papers_describe_are_for_pretraining() -> None:
    def largest(**more: Any) -> dict[str, Any]:
        return call("find_limit", {"goal": "model", "family": "any", "accelerator": "h100-sxm", "count": 1024, **more})

    assert largest(stage="sft", method="lora")["value"] is not None
    facts = {row.id: row for row in models()}
    for stage in ("sft", "pretrain"):
        tried = {probe["value"] for probe in largest(stage=stage, seq_len=2048)["probes"]}
        papers = {id for id in tried if facts[id].license == "paper-only"}
        assert stage == "pretrain" or not papers


@pytest.mark.parametrize(
    "arguments",
    [
        {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 1, "goal": "seq_len"},
        {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 1, "goal": "micro_batch"},
        {"accelerator": "t4", "count": 1, "goal": "model", "family": "llama", "seq_len": 2_000_000},
        {"model": "meta-llama/Llama-3.1-405B", "accelerator": "t4", "goal": "devices", "framework": "ddp"},
    ],
    ids=lambda arguments: arguments["goal"],
)
def test_where_nothing_fits_there_is_no_value_but_a_reason(arguments: dict[str, Any]) -> None:
    found = call("find_limit", arguments)
    assert found["value"] is None
    assert not found["memory"]["fits"]
    assert found["limited_by"] in found["memory"]["components"]
    assert "GiB" in found["why"]
    assert not any(probe["fits"] for probe in found["probes"])


@pytest.mark.parametrize(
    ("arguments", "field", "says"),
    [
        (EIGHT, "goal", "is required"),
        (EIGHT | {"goal": "contxt"}, "goal", "valid: seq_len, micro_batch, model, devices"),
        (EIGHT | {"goal": "context", "seq_len": 4096}, "workload.seq_len", "the plan is for serving"),
        (EIGHT | {"goal": "micro_batch", "concurrency": 8}, "goal", "valid: context, input_len"),
        (EIGHT | {"goal": "seq_len", "tp": 3}, "layout.tp", "valid: 1 2 4 8 16 32"),
        (EIGHT | {"goal": "seq_len", "family": "llama"}, "family", "goal model"),
        (EIGHT | {"goal": "model", "family": "lama"}, "family", "llama"),
        ({"goal": "devices", "accelerator": "h100-sxm"}, "model", "is required"),
        ({"goal": "seq_len", "model": "gpt2"}, "cluster.accelerator", "which accelerator"),
        ({"goal": "model"}, "cluster.accelerator", "which accelerator"),
    ],
    ids=range(10),
)
def test_what_cannot_be_asked_is_said(arguments: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("find_limit", arguments)
    assert caught.value.field == field
    assert says in str(caught.value)


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    count=st.sampled_from([1, 2, 8, 16]),
    method=st.sampled_from(["full", "lora", "qlora"]),
    goal=st.sampled_from(["seq_len", "micro_batch"]),
    more=st.sampled_from([{}, {"recompute": "none"}, {"zero_stage": 2}, {"global_batch": 64}]),
)
def test_a_limit_is_where_it_stops_fitting(count: int, method: str, goal: str, more: dict[str, Any]) -> None:
    arguments = {"model": "Qwen/Qwen2.5-0.5B", "accelerator": "a100-sxm-40gb", "count": count, "method": method,
                 "framework": "deepspeed", **more}  # fmt: skip
    found = call("find_limit", arguments | {"goal": goal})
    assert fits(arguments | {goal: found["value"]})
    if found["next_value"]:
        assert not fits(arguments | {goal: found["next_value"]["value"]})
    roomier = call("find_limit", arguments | {"goal": goal, "accelerator": "a100-sxm-80gb"})
    assert roomier["value"] >= found["value"]


_DRAWN = {
    "model": ["gpt2", "qwen2.5-7b", "mixtral-8x7b", "llama-3.1-70b"],
    "accelerator": ["h100-sxm", "rtx-4090", "mi300x"],
    "framework": ["torchtune", "fsdp2", "deepspeed", "megatron-lm", "unsloth", "hf-trainer"],
    "count": [1, 2, 8, 64],
    "method": ["full", "lora", "qlora"],
    "stage": ["sft", "dpo"],
    "recompute": [None, "none"],
    "offload": [None, None, "none", "optimizer"],
    "fused_loss": [None, True],
}
_FIELDS = {"seq_len": "seq_len", "micro_batch": "micro_batch", "devices": "count"}


def test_limit_and_verdict_agree() -> None:
    """Whatever frameworks do with host memory: the last value is said to fit, and the next is not."""
    draw, known = random.Random(3), 0
    for _ in range(part(16, 40)):
        asked = {name: draw.choice(values) for name, values in _DRAWN.items()}
        goal = draw.choice(list(_FIELDS))
        asked |= {"count": None} if goal == "devices" else {}
        try:
            found = limit_of(goal, PlanRequest.model_validate(asked).to_plan())
        except PlanError:
            continue
        if found.value is not None:
            known += 1
            assert fits(asked | {_FIELDS[goal]: found.value}), asked
        if found.next_value is not None:
            assert not fits(asked | {_FIELDS[goal]: found.next_value.value}), asked
    assert known > part(5, 15)


@pytest.mark.parametrize("goal", ["model", "devices"])
def test_states_that_are_paged_are_held_to_the_host_memory(goal: str) -> None:
    """Full training on cards of 24 GiB comes down to paged states, for which a host is too small as well."""
    plan = {"accelerator": "rtx-4090", "count": 1, "method": "full", "stage": "sft"}
    plan |= {"model": "meta-llama/Llama-3.1-8B"} if goal == "devices" else {}
    found = call("find_limit", {"goal": goal, **plan})
    assert found["value"]
    assert found["memory"]["fits"]
    assert found["memory"]["host"]["fits"]
    assert not any("does not fit" in text for text in found["warnings"])


def test_every_framework_is_asked_for_a_limit_as_for_a_verdict() -> None:
    """A layout without offloading needs no host memory, though its checkpoints may take more than the hosts have."""
    asked = {"model": "meta-llama/Llama-3.1-405B", "accelerator": "h100-sxm"}
    assert fits(asked | {"count": 64})
    found = call("find_limit", asked | {"goal": "devices"})
    assert found["value"] < 64
    assert fits(asked | {"count": found["value"]})


@pytest.mark.parametrize("clients", [1, 100, 2000, 10_000])
@pytest.mark.parametrize("goal", ["seq_len", "input_len"])
def test_lengths_are_kept_by_room_where_without_limits_of_latency_they_end_at_the_same(goal: str, clients: int) -> None:
    load = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 16, "goal": goal, "concurrency": clients}
    free, limited = call("find_limit", load), call("find_limit", load | {"ttft_slo_ms": 5000})
    assert limited["value"] <= free["value"]
    same = limited["value"] == free["value"]
    assert (limited["limited_by"] in ("ttft_slo_ms", "tpot_slo_ms", "max_batch")) is not same
    assert limited["why"].startswith(f"with more than {limited['value']:,} tokens") or same


@pytest.mark.parametrize("goal", ["context", "input_len", "concurrency"])
def test_limits_of_unlike_cards_grow_with_a_card_more(goal: str) -> None:
    """What cards of unlike sizes hold together, some of them beside others, is searched as of equal ones."""
    cards = {"model": "qwen3-14b", "accelerator": "rtx-3090", "engine": "llama.cpp", "weight_dtype": "q4_k_m"}
    alone, beside = (
        call("find_limit", {**cards, "count": 1, "goal": goal, "plan": {"cluster": {"beside": names}}})["value"]
        for names in ([], ["rtx-3060-12gb"])
    )
    assert 0 < alone <= beside
