"""A model over cards of several kinds and a processor: what each holds, and what that takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from estimator.model.parts import expert_layers, layers_of, only_experts, without_experts
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import ServingEstimates, estimate
from estimator.serving.memory import serving_memory, weight_bytes
from estimator.serving.space import deployments
from knowledge.jobs import training
from knowledge.jobs.serving import serving_job
from knowledge.models.catalogue import find_architecture

PROCESSOR = "cpu-core-i9-13900k"
EXPERTS, DENSE = "openai/gpt-oss-120b", "meta-llama/Llama-3.3-70B-Instruct"


def plan(model: str, card: str, beside: list[str] | None, **workload: Any) -> Plan:
    own = {"weight_dtype": "mxfp4" if model == EXPERTS else "q4_k_m", "engine": "llamacpp", "scenario": "single-stream"}
    return Plan.parse(
        {
            "model": model,
            "workload": {"kind": "inference", "input_len": 64, "output_len": 256} | own | workload,
            "cluster": {"accelerator": card, "beside": beside},
        }
    )


def job_of(model: str, card: str, beside: list[str] | None, **workload: Any) -> ServingJob:
    return serving_job(plan(model, card, beside, **workload))


def estimate_of(*named: Any, **workload: Any) -> ServingEstimates:
    job = job_of(*named, **workload)
    return estimate(job, deployments(job))


@pytest.mark.parametrize("model", [EXPERTS, DENSE, "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-Next-80B-A3B-Instruct"])
def test_parts_hold_every_parameter_once(model: str) -> None:
    whole, _ = find_architecture(model)
    cut = whole.layers // 3
    front, back = layers_of(whole, 0, cut, outside=False), layers_of(whole, cut, whole.layers, outside=True)
    assert front.parameters + back.parameters == whole.parameters
    moved = expert_layers(whole) // 2
    assert without_experts(whole, moved).parameters + only_experts(whole, moved).parameters == whole.parameters
    assert expert_layers(without_experts(whole, moved)) == expert_layers(whole) - moved


def held_bytes(job: ServingJob) -> float:
    these = deployments(job)
    return sum(float(weight_bytes(part.job, part.of(these))[0]) for part in job.parts)


@pytest.mark.parametrize(("model", "beside"), [(EXPERTS, [PROCESSOR]), (DENSE, ["rtx-3090"]), (DENSE, [PROCESSOR])])
def test_parts_hold_the_weights_of_the_whole(model: str, beside: list[str]) -> None:
    job = job_of(model, "rtx-4090", beside)
    alone = job_of(model, "b200-sxm", None)
    assert held_bytes(job) == pytest.approx(float(weight_bytes(alone, deployments(alone))[0]), rel=1e-3)


def test_what_one_card_has_no_room_for_fits_beside_a_processor_and_not_without() -> None:
    assert not estimate_of(EXPERTS, "rtx-4090", None).memory.fits.any()
    job = job_of(EXPERTS, "rtx-4090", [PROCESSOR])
    memory = serving_memory(job, deployments(job))
    assert memory.fits.all()
    assert memory.capacity == pytest.approx(24 * 2**30, rel=0.02)
    # No more than has to be: with the experts of one layer less on the processor it does not fit.
    away = expert_layers(job.parts[-1].job.architecture)
    assert 0 < away < job.architecture.layers
    less = estimate_of(EXPERTS, "rtx-4090", [PROCESSOR], host_experts=away - 1, device_layers=36)
    assert not less.memory.fits.any()


def test_a_processor_has_one_memory_for_layers_and_experts() -> None:
    # 233 GB in 16 bits are more than 24 and 128.
    assert not estimate_of(EXPERTS, "rtx-4090", [PROCESSOR], weight_dtype="bf16").memory.fits.any()


def test_generation_is_slower_the_more_a_processor_holds() -> None:
    times = [
        float(estimate_of(EXPERTS, "rtx-4090", [PROCESSOR], host_experts=count).steady.tpot_s[0])
        for count in (24, 30, 36)
    ]
    assert times == sorted(times)
    assert times[2] > 1.2 * times[0]
    layers = [
        float(estimate_of(DENSE, "rtx-4090", [PROCESSOR], device_layers=count).steady.tpot_s[0])
        for count in (40, 30, 20)
    ]
    assert layers == sorted(layers)


def test_unlike_cards_take_between_what_like_ones_would() -> None:
    """Layers one after the other: the time of a token is the mean of both, weighed by what they hold."""

    def seconds(card: str, beside: list[str] | None, count: int) -> float:
        given = plan(DENSE, card, beside).patch({"cluster.count": count})
        job = serving_job(given)
        return float(estimate(job, deployments(job)).steady.tpot_s[0])

    fast, slow = seconds("rtx-5090", None, 2), seconds("rtx-3090", None, 2)
    mixed = seconds("rtx-5090", ["rtx-3090"], 1)
    assert fast < mixed < slow
    same = seconds("rtx-4090", ["rtx-4090"], 1)
    assert same == pytest.approx(seconds("rtx-4090", None, 2), rel=0.1)


def test_layers_of_a_card_go_by_its_memory() -> None:
    job = job_of(DENSE, "rtx-4090", ["rtx-3060-12gb"])
    big, small = (part.job.architecture.layers for part in job.parts)
    assert big + small == 80
    assert big == pytest.approx(2 * small, abs=2)


def test_prompts_are_faster_where_more_tokens_share_a_copy_of_the_weights() -> None:
    few, many = (
        float(
            estimate_of(
                EXPERTS, "rtx-3090", [PROCESSOR], host_experts=26, input_len=4096, max_batched_tokens=size
            ).steady.ttft_s[0]
        )
        for size in (512, 2048)
    )
    # 380 and 1,112 tokens/s were measured (llama-bench, RTX 3090).
    assert 4096 / few == pytest.approx(380, rel=0.5)
    assert 4096 / many == pytest.approx(1112, rel=0.5)


# AlexsJones/llmfit pulls 755, 774 and 775: an RTX 2080 of 448 GB/s with 102 GB/s of host memory. An RTX 2080 Ti stands
# in, which is a third faster at what it holds.
@pytest.mark.parametrize(
    ("model", "workload", "measured"),
    [
        ("Qwen/Qwen3-14B", {"device_layers": 32}, 16.9),
        ("microsoft/phi-4", {"device_layers": 32}, 16.7),
        ("mistralai/Mistral-Small-24B-Instruct-2501", {"device_layers": 16}, 5.2),
        ("google/gemma-3-12b-it", {"device_layers": 44}, 26.1),
        ("Qwen/Qwen3-30B-A3B", {"host_experts": 36}, 36.7),
        ("openai/gpt-oss-20b", {"host_experts": 12, "weight_dtype": "mxfp4"}, 36.4),
    ],
)
def test_partly_held_models_generate_as_fast_as_measured(model: str, workload: dict[str, Any], measured: float) -> None:
    given = plan(model, "rtx-2080-ti", [PROCESSOR], **workload).patch({"overrides.host_gb_per_s": 102.0})
    job = serving_job(given)
    tokens = 1.0 / float(estimate(job, deployments(job)).steady.tpot_s[0])
    assert 0.75 * measured < tokens < 1.45 * measured


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"workload.engine": "vllm", "workload.weight_dtype": "awq"}, "cluster.beside"),
        ({"workload.engine": "exllamav2", "workload.weight_dtype": "gptq"}, "workload.engine"),
        ({"cluster.beside": [PROCESSOR, PROCESSOR]}, "cluster.beside"),
        (
            {
                "cluster.beside": None,
                "workload.host_experts": 3,
                "workload.engine": "vllm",
                "workload.weight_dtype": "awq",
            },
            "workload.host_experts",
        ),
    ],
)
def test_what_cannot_be_split_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as refused:
        serving_job(plan(DENSE, "rtx-4090", [PROCESSOR]).patch(changes))
    assert refused.value.field == field


def test_training_has_no_devices_beside() -> None:
    given = Plan.parse({"model": "gpt2", "cluster": {"accelerator": "rtx-4090", "beside": ["rtx-3090"]}})
    with pytest.raises(PlanError, match="training"):
        training.job_of(given)


def test_who_holds_what_is_said() -> None:
    said = {row.field: row.why for row in job_of(EXPERTS, "rtx-4090", [PROCESSOR]).assumptions}
    assert "36 layers" in said["cluster.beside"]
    assert "experts of" in said["cluster.beside"]


def test_a_sub_model_of_no_experts_is_dense() -> None:
    whole, _ = find_architecture(EXPERTS)
    bare: Architecture = without_experts(whole, whole.layers)
    assert not any(bare.blocks[kind].experts for kind in bare.pattern)
    assert np.isfinite(float(bare.parameters))
