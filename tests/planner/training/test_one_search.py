"""One search: naming any of the best layout's fields leaves the answer as it is, neither slower nor faster."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from samples import part

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from planner.training.planned import Planned, plan_training

_PLANS = part(150, 300)
_MODELS = (
    "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.1-405B", "Qwen/Qwen2.5-7B",
    "mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3", "gpt2",
)  # fmt: skip
_CLUSTERS = (
    ("h100-sxm", 1), ("h100-sxm", 8), ("h100-sxm", 64), ("h100-sxm", 512), ("a100-sxm-80gb", 16), ("mi300x", 32),
    ("gb200", 72), ("rtx-4090", 4),
)  # fmt: skip
_FRAMEWORKS = (
    "megatron-lm", "megatron-bridge", "nemo", "primus", "nanotron", "torchtitan", "deepspeed", "fsdp2", "axolotl",
    "torchtune", "hf-trainer", "auto",
)  # fmt: skip
_OPTIONS = ("dp_overlap", "tp_overlap", "moe_dispatcher", "moe_overlap")


def plans() -> Iterator[tuple[random.Random, Plan]]:
    """Random training plans that leave the layout open, each with its own source of chance."""
    for seed in range(_PLANS):
        chance = random.Random(seed)
        accelerator, count = chance.choice(_CLUSTERS)
        workload = {
            "framework": chance.choice(_FRAMEWORKS),
            "stage": chance.choice(["pretrain", "sft", "sft", "dpo", "grpo"]),
            "method": chance.choice(["full", "full", "lora"]),
            "seq_len": chance.choice([2048, 4096, 8192, 32768, 131072]),
            "global_batch": chance.choice([1, 8, 12, 64, 96, 512, 2048]),
        }
        cluster = {"accelerator": accelerator, "count": count}
        yield chance, Plan.parse({"model": chance.choice(_MODELS), "workload": workload, "cluster": cluster})


def fields_of(planned: Planned) -> dict[str, Any]:
    """What the search decided, by Plan path."""
    plan = planned.plan
    layout = {f"layout.{name}": value for name, value in plan.layout.model_dump(exclude_none=True).items()}
    options = {f"workload.{name}": getattr(plan.training, name) for name in planned.options}
    return {"workload.micro_batch": plan.training.micro_batch} | layout | options


def seconds_of(planned: Planned) -> float:
    return float(planned.estimates.step.seconds[planned.index])


def test_naming_fields_of_the_best_layout_never_changes_the_answer() -> None:
    compared = 0
    for chance, plan in plans():
        try:
            best = plan_training(plan)
        except PlanError:
            continue
        if not best.fits:
            continue
        # A framework that is named is taken with the loss that it has: one by chunks goes along where the best has one.
        training = best.job.training
        framework = {"workload.framework": training.framework, "workload.fused_loss": training.fused_loss}
        fields = fields_of(best)
        for size in (chance.randint(1, 4), chance.randint(1, len(fields)), len(fields)):
            named = framework | {name: fields[name] for name in chance.sample(sorted(fields), size)}
            again = plan_training(plan.patch(named))
            assert seconds_of(again) == pytest.approx(seconds_of(best), rel=1e-9), (plan.given(), named)
            assert again.fits
            compared += 1
    assert compared > 2 * _PLANS // 3


def test_what_is_given_up_in_part_by_name_is_given_up_whole_where_that_is_needed() -> None:
    """Chunked loss that is named goes with an MLP in tiles where both are what fits."""
    cluster = {"accelerator": "a100-sxm-80gb", "count": 1}
    workload = {"framework": "hf-trainer", "stage": "dpo", "method": "qlora", "seq_len": 131072, "global_batch": 8}
    plan = Plan.parse({"model": "Qwen/Qwen2.5-7B", "workload": workload, "cluster": cluster})
    best = plan_training(plan)
    assert best.fits
    assert best.job.training.tiled_mlp
    named = plan_training(plan.patch({"workload.fused_loss": True}))
    assert seconds_of(named) == pytest.approx(seconds_of(best), rel=1e-9)
    assert not plan_training(plan.patch({"workload.fused_loss": False})).fits


def test_named_recompute_is_of_as_many_layers_in_each_virtual_stage() -> None:
    """Megatron's recompute_num_layers is of a virtual stage: eight of 24 layers are dealt to 1, 2, 4 or 8 of them."""
    workload = {"framework": "nanotron", "stage": "pretrain", "seq_len": 8192, "global_batch": 64, "micro_batch": 2}
    cluster = {"accelerator": "mi300x", "count": 32}
    plan = Plan.parse({"model": "Qwen/Qwen3-30B-A3B", "workload": workload, "cluster": cluster})
    layout = {"tp": 1, "pp": 2, "ep": 1, "zero_stage": 1, "recompute": "block:8"}
    planned = plan_training(plan.patch({f"layout.{name}": value for name, value in layout.items()}))
    assert planned.plan.layout.vpp in (1, 2, 4, 8)


def test_a_million_tokens_go_to_what_people_run() -> None:
    """TRL, pulls 6845 and 6846: 364 to 380 s a step of one sequence on eight H100, with FSDP2 and chunked loss; a
    framework that few use takes longer without any concession."""
    workload = {"seq_len": 1_048_576, "global_batch": 1}
    data = {"model": "Qwen/Qwen3-8B", "workload": workload, "cluster": {"accelerator": "h100-sxm", "count": 8}}
    planned = plan_training(Plan.parse(data))
    assert planned.fits
    assert seconds_of(planned) == pytest.approx(372, rel=0.1)


def test_a_published_run_named_in_part_is_as_fast_as_it_was() -> None:
    """Llama 3 405B on 16,384 H100 (Llama Team 2024, table 4): 400 TFLOPS, 158 tokens/s a device, on TP 8 and PP 16."""
    workload = {"framework": "megatron-lm", "stage": "pretrain", "seq_len": 8192, "global_batch": 2048}
    cluster = {"accelerator": "h100-sxm", "count": 16384, "interconnect": "roce-400x8"}
    data = {"model": "meta-llama/Llama-3.1-405B", "workload": workload, "cluster": cluster}
    planned = plan_training(Plan.parse(data | {"layout": {"tp": 8, "pp": 16}}))
    assert planned.fits
    speed = planned.job.tokens_per_step / cluster["count"] / seconds_of(planned)
    assert speed == pytest.approx(158, rel=0.15)
    assert planned.plan.layout.vpp
    assert planned.plan.layout.vpp > 1
    assert planned.options == {"dp_overlap": True, "tp_overlap": True}


def test_options_are_on_where_the_layout_has_a_place_for_them() -> None:
    """Of Megatron-core's rules: tensor-parallel overlap needs sequence parallelism, that of dispatch virtual stages in
    a pipeline and layers that are not recomputed whole."""
    workload = {"framework": "megatron-lm", "stage": "pretrain", "seq_len": 4096, "global_batch": 256, "micro_batch": 1}
    layout = {"tp": 2, "pp": 4, "vpp": 2, "cp": 1, "ep": 16, "etp": 1, "zero_stage": 1, "recompute": "none"}
    plan = Plan.parse(
        {
            "model": "Qwen/Qwen3-30B-A3B",
            "workload": workload,
            "cluster": {"accelerator": "h100-sxm", "count": 128},
            "layout": layout | {"sequence_parallel": True},
        }
    )
    everything = {"dp_overlap": True, "tp_overlap": True, "moe_dispatcher": "flex", "moe_overlap": True}
    assert plan_training(plan).options == everything
    for change, off in (
        ({"layout.sequence_parallel": False}, "tp_overlap"),
        ({"layout.vpp": 1}, "moe_overlap"),
        ({"layout.recompute": "full"}, "moe_overlap"),
    ):
        assert plan_training(plan.patch(change)).options == everything | {off: False}, change
    for name, value in everything.items():
        slower = plan_training(plan.patch({f"workload.{name}": "alltoall" if value == "flex" else False}))
        assert seconds_of(slower) > seconds_of(plan_training(plan))


@pytest.mark.parametrize("framework", ["auto", "megatron-lm", "torchtitan", "fsdp2"])
@pytest.mark.parametrize("seq_len", [2048, 131072])
def test_one_sequence_on_eight_devices_is_split_unasked(framework: str, seq_len: int) -> None:
    """A sequence of 131,072 tokens by context parallelism; a short one in whatever way is fastest."""
    workload = {"framework": framework, "seq_len": seq_len, "global_batch": 1}
    data = {"workload": workload, "cluster": {"accelerator": "h100-sxm", "count": 8}}
    planned = plan_training(Plan.parse(data | {"model": "Qwen/Qwen3-1.7B"}))
    layout = planned.plan.layout
    assert planned.fits
    assert layout.dp == 1
    assert (layout.cp or 1) > 1 or seq_len < 131072
    # Where nothing else splits it, sequences are cut shorter than they would be by choice.
    alone = plan_training(Plan.parse(data | {"model": "Qwen/Qwen3-1.7B", "layout": {"tp": 1, "pp": 1}}))
    assert alone.plan.layout.cp == 8


@pytest.mark.parametrize("framework", ["auto", "hf-trainer", "fsdp2"])
def test_grpo_is_not_slower_on_more_devices(framework: str) -> None:
    """Where one has room for nothing but an engine beside the trainer, two would be slower with the trained model."""
    workload = {"stage": "grpo", "framework": framework, "global_batch": 256, "seq_len": 2048}
    plan = Plan.parse({"model": "qwen2.5-7b", "workload": workload, "cluster": {"accelerator": "h100-sxm"}})
    seconds = []
    for count in (2, 4, 8, 16):
        planned = plan_training(plan.patch({"cluster.count": count}))
        assert planned.fits
        assert planned.job.training.rollout == "colocated"
        seconds.append(float(planned.estimates.step.seconds[planned.index]))
    assert seconds == sorted(seconds, reverse=True)
