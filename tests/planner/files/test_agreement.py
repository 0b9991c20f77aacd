"""What is estimated of a plan and of its own files read back is the same: every value that moves memory or time is in
the files as it was in the estimate, for every training target, of models with experts too.

Eight plans a target, 40 of each with SHARDWISE_THOROUGH=1; those that its files cannot say are not compared."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import part

sys.path.insert(0, str(Path(__file__).parents[2] / "launchers"))
from test_reading_round_trip import SETS  # pyright: ignore[reportMissingImports]

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.render import render
from planner.asked.files import RenderRequest
from planner.estimates import estimate_plan
from planner.files.importing import imported
from planner.files.render import render_configs
from planner.serving import planned as serving
from planner.training.memory import memory_of
from planner.training.planned import Planned, time_of

PLANS = part(8, 40)


_EXPERTS = ["Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x7B-v0.1", "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3"]
# Programs that have none of these models, or few of their layouts.
_FEW = ("trl", "torchtune", "nanotron", "optimum-neuron", "maxtext")
_drawn = settings(
    max_examples=PLANS, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def agree(target: str, plan: Plan) -> bool:
    """Whether the plan could be estimated and written, so that there was something to compare."""
    if plan.training.stage not in ("pretrain", "sft"):
        # Pairs are never packed: what a plan says of it is whether they are full, which no file has a word for.
        plan = plan.patch({"workload.packing": True})
    if target in ("torchtune", "verl") and plan.cluster.count == 1:
        # A recipe of one device shards nothing.
        plan = plan.patch({"layout.zero_stage": 0})
    try:
        estimate = estimate_plan(plan)
        assert isinstance(estimate, Planned)
        files = render(estimate.settled_plan, [target], model_id=estimate.job.architecture.id).files
    except PlanError:
        return False
    found = imported({file.path: file.text for file in files}, {})
    assert found.per_device_bytes is not None, (found.refused, found.missing)
    assert found.per_device_bytes == pytest.approx(memory_of(estimate).per_device_bytes, rel=0.01)
    assert found.step_s == pytest.approx(time_of(estimate).step_s, rel=0.01)
    return True


def compared(target: str, drawn: Callable[[Any], Plan]) -> int:
    """How many of the plans that are drawn there was something to compare of."""
    agreeing: list[bool] = []

    @_drawn
    @given(data=st.data())
    def plans(data: Any) -> None:
        agreeing.append(agree(target, drawn(data)))

    plans()
    return sum(agreeing)


@pytest.mark.parametrize("target", SETS)
def test_files_are_estimated_as_their_plan_was(target: str) -> None:
    assert compared(target, lambda data: data.draw(SETS[target]))


@pytest.mark.parametrize("target", SETS)
def test_files_of_models_with_experts_are_estimated_as_their_plan_was(target: str) -> None:
    count = compared(target, lambda data: _with_experts(SETS[target], data))
    assert count or target in _FEW


def _with_experts(plans: st.SearchStrategy[Plan], data: Any) -> Plan:
    plan = data.draw(plans)
    sizes = [size for size in (1, 2, 4, 8) if (plan.layout.dp or 1) % size == 0]
    experts = {
        "model": data.draw(st.sampled_from(_EXPERTS)),
        "layout.ep": data.draw(st.sampled_from(sizes)),
        "layout.etp": data.draw(st.sampled_from([None, 1])),
    }
    return plan.patch(experts)


@pytest.mark.parametrize(("ep", "etp"), [(1, 2), (4, 1)])
def test_experts_are_split_over_tensor_ranks_where_the_framework_does_it(ep: int, etp: int) -> None:
    plan = {
        "model": "Qwen/Qwen3-30B-A3B",
        "workload": {"framework": "torchtitan", "stage": "pretrain", "seq_len": 4096, "packing": True},
        "cluster": {"accelerator": "h100-sxm", "count": 16, "per_node": 8},
        "layout": {"tp": 2, "ep": ep},
    }
    estimate = estimate_plan(Plan.parse(plan))
    assert isinstance(estimate, Planned)
    assert estimate.settled_plan.layout.etp == etp
    with pytest.raises(PlanError, match="etp") as refused:
        estimate_plan(Plan.parse(plan).patch({"layout.etp": 3 - etp}))
    assert refused.value.field == "layout.etp"


def test_a_dispatcher_is_written_by_the_name_that_it_was_estimated_with() -> None:
    plan = {
        "model": "Qwen/Qwen3-30B-A3B",
        "workload": {"framework": "megatron-bridge", "stage": "pretrain", "seq_len": 4096, "packing": True},
        "cluster": {"accelerator": "h100-sxm", "count": 16, "per_node": 8},
        "layout": {"tp": 2, "ep": 8},
    }
    estimate = estimate_plan(Plan.parse(plan))
    assert isinstance(estimate, Planned)
    assert estimate.settled_plan.training.moe_dispatcher == estimate.job.framework.recipe.moe_dispatcher == "hybridep"
    assert agree("megatron-bridge", estimate.settled_plan)


def test_layers_by_their_names_are_those_of_shared_experts_too() -> None:
    named = "q_proj,kv_a_proj_with_mqa,kv_b_proj,o_proj,gate_proj,up_proj,down_proj"
    plan = Plan.parse(
        {
            "model": "deepseek-ai/DeepSeek-V2-Lite",
            "workload": {"framework": "fsdp2", "stage": "sft", "method": "lora", "lora": {"rank": 128}},
            "cluster": {"accelerator": "h100-sxm", "count": 8},
        }
    )
    both = [estimate_plan(plan.patch({"workload.lora.targets": targets})) for targets in ("all-linear", named)]
    first, second = (memory_of(one).components for one in both if isinstance(one, Planned))
    assert first["optimizer"] == second["optimizer"]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize(("count", "tp", "at_once"), [(4, 1, 128), (8, 2, 1), (2, 2, 16)])
def test_files_of_servers_are_estimated_as_their_plan_was(engine: str, count: int, tp: int, at_once: int) -> None:
    """Of the longest request that the file takes: a plan without one is estimated for those of its load."""
    plan = {
        "model": "Qwen/Qwen3-8B",
        "workload": {"kind": "inference", "engine": engine, "input_len": 2048, "concurrency": at_once},
        "cluster": {"accelerator": "h100-sxm", "count": count},
        "layout": {"tp": tp},
    }
    made = render_configs(RenderRequest.model_validate({"plan": plan, "targets": [engine, "slurm"]}))
    found = imported({file.path: file.text for file in made.files}, {})
    assert found.complete_plan is not None, (found.refused, found.missing)
    longest = found.plan["workload"]["max_context"]
    estimate = estimate_plan(Plan.parse(made.plan).patch({"workload.max_context": longest}))
    assert not isinstance(estimate, Planned)
    assert found.per_device_bytes == pytest.approx(serving.memory_of(estimate).per_device_bytes, rel=0.01)
    assert found.tokens_per_s == pytest.approx(serving.throughput_of(estimate).output_tokens_per_s, rel=0.01)
