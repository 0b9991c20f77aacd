"""Host memory: what others measured and what the frameworks' code says, and that nothing is lost on the way there."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from estimator_jobs import open_job, with_layout
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.layouts import OFFLOAD, Layouts
from estimator.plan.schema import Framework
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates
from estimator.training.checkpoints import checkpoint_size, device_bytes_at_save
from estimator.training.host import PHASES, HostMemory, host_memory
from estimator.training.memory import stage_memory
from estimator.training.node import rounded
from knowledge.machines.host import host_capacity, host_facts

FRAMEWORKS = [name for name in get_args(Framework) if name != "auto"]
# One of each way to load and to save.
KINDS = (
    "hf-trainer",
    "deepspeed",
    "fsdp1",
    "fsdp2",
    "torchtitan",
    "torchtune",
    "llm-foundry",
    "megatron-lm",
    "maxtext",
)
LLAMA_8B, LLAMA_70B, MOE = "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-30B-A3B"


def job_on(framework: str, model: str = LLAMA_8B, count: int = 8, **flat: Any) -> Job:
    batch = {"workload_micro_batch": 1, "workload_global_batch": 2 * count, "workload_seq_len": 2048}
    return open_job(model=model, workload_framework=framework, cluster_count=count, **(batch | flat))


def layout_of(job: Job, zero_stage: int | None = None, offload: str = "none", **changes: int) -> Layouts:
    """One data-parallel candidate of the job with the named fields set."""
    count = job.machine.count
    base = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "etp": 1, "dp": count, "shard_group": count, "vpp": 1}
    stage = max(job.framework.limits.zero_stages) if zero_stage is None else zero_stage
    found = candidates(job).take(np.array([0]))
    return with_layout(found, **(base | {"zero_stage": stage, "offload": OFFLOAD.index(offload)} | changes))


def host_of(job: Job, asynchronous: bool = False, **changes: Any) -> HostMemory:
    return host_memory(job, layout_of(job, **changes), host_facts(job.framework.name), asynchronous)


def part(memory: HostMemory, phase: str, *names: str) -> float:
    """Components of a phase on the node; all but the processes themselves where none is named."""
    components = next(values for name, values in memory.components.items() if name == phase)
    wanted = names or [name for name in components if name not in ("processes", "workers")]
    return sum(float(components[name][0]) for name in wanted)


def routed(job: Job) -> int:
    return sum(job.architecture.blocks[kind].expert_parameters for kind in job.architecture.pattern)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_is_described(framework: str) -> None:
    facts = host_facts(framework)
    assert facts.name == framework
    assert len(facts.source) > 20
    assert sum(facts.pinned_bytes) <= 4 + facts.offload_extra_bytes  # fp32 weights at most, and what is only there


def test_an_unknown_framework_is_named() -> None:
    with pytest.raises(PlanError, match=r"workload\.framework"):
        host_facts("deepsped")


@pytest.mark.parametrize(
    ("offload", "stage", "low", "high"), [("params", 3, 18, 27), ("optimizer", 3, 16, 24), ("optimizer", 2, 16, 24)]
)
def test_zero_offload_is_between_what_deepspeed_counts_and_that_with_its_margin(
    offload: str, stage: int, low: float, high: float
) -> None:
    # deepspeed estimate_zero2_model_states_mem_needs and estimate_zero3_model_states_mem_needs: 16 or 18, times 1.5
    job = job_on("deepspeed")
    steady = part(host_of(job, zero_stage=stage, offload=offload), "steady")
    assert low <= steady / job.architecture.parameters <= high


def test_a_measured_zero3_offload_of_frozen_fp32_weights() -> None:
    # PEFT README: bloomz-7b1, LoRA with DeepSpeed CPU offloading on one A100, 35 GB of host memory (fp32).
    job = job_on(
        "deepspeed", "bigscience/bloomz-7b1", 1,
        cluster_accelerator="a100-sxm-80gb", workload_method="lora", workload_precision="fp32",
    )  # fmt: skip
    assert host_of(job, offload="params").peak[0] == pytest.approx(35e9, rel=0.15)


def test_a_documented_full_state_dict_of_a_lora_run_fits_into_what_was_seen() -> None:
    # PEFT docs, fsdp.md: Llama-2-70B on 8 devices, 72 GB while training and up to 80 GB at the final save.
    job = job_on("fsdp1", "meta-llama/Llama-2-70b-hf", 8, workload_method="lora")
    memory = host_of(job)
    assert 1e9 < memory.device_at_save[0] < 8e9
    assert part(memory, "saving", "gathered_weights") == pytest.approx(2 * job.architecture.parameters, rel=0.02)


def test_a_documented_qlora_run_with_offloading() -> None:
    # PEFT docs, fsdp.md: Llama-2-70B on 2 devices of 24 GB, "CPU RAM usage is around 107 GB" (of the whole machine).
    job = job_on("fsdp1", "meta-llama/Llama-2-70b-hf", 2, workload_method="qlora")
    assert 0.75 * 107e9 < host_of(job, offload="params").peak[0] < 107e9


def test_mapped_files_take_nothing_a_cast_takes_the_model_on_every_rank() -> None:
    # Measured with transformers 5.23: 0.00 bytes per parameter as bf16, 4.0 as fp32.
    assert part(host_of(job_on("hf-trainer", workload_method="lora")), "loading") == 0
    full = job_on("hf-trainer")
    assert part(host_of(full), "loading") == 8 * 4 * full.architecture.parameters
    assert host_of(full).page_cache[0] == 2 * full.architecture.parameters


def test_experts_are_put_together_on_every_rank_without_zero3_and_once_with_it() -> None:
    # Measured with transformers 5.23: 2.0 bytes per expert parameter beside the mapped file.
    job = job_on("deepspeed", MOE, workload_method="lora")
    assert part(host_of(job, zero_stage=2), "loading") == 8 * 2 * routed(job)
    assert part(host_of(job, zero_stage=3), "loading") == 2 * routed(job)


def test_a_reference_model_is_loaded_beside_the_policy() -> None:
    one, two = (job_on("hf-trainer", workload_stage=stage) for stage in ("sft", "dpo"))
    assert part(host_of(two), "loading") == 2 * part(host_of(one), "loading")


def test_a_70b_cast_on_every_rank_does_not_fit_a_node_but_distributed_checkpoints_do() -> None:
    capacity = host_capacity("h100-sxm", 8)
    assert capacity is not None
    casts = host_of(job_on("fsdp2", LLAMA_70B, 64))
    assert casts.peak[0] > capacity.bytes
    assert casts.peak_phase == ["loading"]
    assert host_of(job_on("torchtitan", LLAMA_70B, 64)).peak[0] < 0.1 * capacity.bytes


def test_own_shards_of_all_nodes_are_the_model() -> None:
    job = job_on("torchtitan", LLAMA_70B, 64)
    assert 8 * part(host_of(job), "loading", "weights") == pytest.approx(4 * job.architecture.parameters)


@pytest.mark.parametrize("framework", ["megatron-lm", "maxtext"])
def test_staged_parts_of_all_nodes_are_the_checkpoint(framework: str) -> None:
    job = job_on(framework, LLAMA_70B, 64)
    size = checkpoint_size(job, host_facts(framework))
    assert 8 * part(host_of(job), "saving", "staged_copy") == pytest.approx(size.resumable)


def test_asynchronous_saving_stages_what_every_rank_holds() -> None:
    job = job_on("torchtitan", LLAMA_70B, 64)
    assert part(host_of(job), "saving") == 0
    staged = part(host_of(job, asynchronous=True), "saving", "staged_copy")
    assert 8 * staged == pytest.approx(checkpoint_size(job, host_facts("torchtitan")).resumable)


def test_a_gathered_checkpoint_is_on_one_node_and_passes_over_the_device_in_pieces() -> None:
    job = job_on("llm-foundry", LLAMA_70B, 64)
    memory, size = host_of(job), checkpoint_size(job, host_facts("llm-foundry"))
    assert part(memory, "saving", "gathered_weights", "gathered_optimizer") == pytest.approx(size.resumable)
    assert 4 * job.architecture.embedding_parameters < memory.device_at_save[0] < 0.05 * size.weights


def test_weights_and_optimizer_are_gathered_one_after_the_other_where_the_code_does_so() -> None:
    job = job_on("fsdp1")
    saving = host_of(job).components["saving"]
    assert saving["gathered_weights"][0] == 0
    assert saving["gathered_optimizer"][0] == 8 * job.architecture.parameters


def test_zero3_gathers_one_module_in_16_bits() -> None:
    dense, sparse = job_on("deepspeed"), job_on("deepspeed", MOE)
    assert host_of(dense).device_at_save[0] == 2 * dense.architecture.embedding_parameters
    assert host_of(sparse).device_at_save[0] == 2 * sparse.architecture.blocks[0].expert_parameters
    assert host_of(dense, zero_stage=2).device_at_save[0] == 0


def test_what_is_on_the_device_at_save_has_no_activations() -> None:
    job = job_on("fsdp1")
    layouts = layout_of(job)
    memory = stage_memory(job, layouts, np.zeros_like(layouts.pp))
    extra = host_of(job).device_at_save
    # A sixteenth of fp32 weights and moments would be there on sixteen devices; gathered units and gradients are gone.
    share = job.architecture.parameters / layouts.shard_group[0]
    context = memory.components["framework_and_context"][0]
    assert device_bytes_at_save(memory, extra)[0] == pytest.approx(12 * share + context + extra[0])


# Bytes per parameter: weights, and with a 16-bit copy and master weights where they are written too.
@pytest.mark.parametrize(
    ("framework", "stage", "weights", "resumable"),
    [
        ("deepspeed", 3, 2, 14), ("deepspeed", 2, 2, 16), ("fsdp1", 3, 4, 12), ("torchtitan", 3, 4, 12),
        ("torchtune", 3, 2, 6), ("litgpt", 3, 2, 6), ("megatron-lm", 1, 2, 14), ("maxtext", 3, 4, 12),
    ],
)  # fmt: skip
def test_checkpoints_on_disk(framework: str, stage: int, weights: float, resumable: float) -> None:
    job = job_on(framework)
    size = checkpoint_size(job, host_facts(framework), stage)
    assert size.weights == pytest.approx(weights * job.architecture.parameters)
    assert size.resumable == pytest.approx(resumable * job.architecture.parameters)


def test_adapters_are_small_on_disk_unless_they_are_merged() -> None:
    alone, merged = (job_on(name, workload_method="lora") for name in ("deepspeed", "torchtune"))
    small, large = (checkpoint_size(job, host_facts(job.framework.name)) for job in (alone, merged))
    adapters = 41_943_040  # rank 16 on all linear layers of Llama-3.1-8B
    assert small.weights == alone.framework.adapters.held_bytes * adapters
    assert small.resumable > small.weights
    assert large.weights == merged.framework.adapters.held_bytes * adapters + 2 * merged.architecture.parameters


@pytest.mark.parametrize("framework", ["deepspeed", "megatron-lm", "torchtune"])
def test_what_leaves_the_devices_arrives_on_the_host(framework: str) -> None:
    job = job_on(framework)
    offload = "optimizer" if "optimizer" in job.framework.limits.offloads else "params"
    layouts = layout_of(job)
    there = stage_memory(job, layouts, np.zeros_like(layouts.pp)).components["optimizer"][0]
    assert part(host_of(job, offload=offload), "steady", "optimizer") == pytest.approx(8 * there)
    assert part(host_of(job), "steady") == 0


def test_offloaded_activations_grow_with_the_sequence_and_with_nothing_else_offloaded() -> None:
    short, long = (job_on("axolotl", workload_seq_len=length) for length in (2048, 8192))
    kept = [part(host_of(job, offload="activations"), "steady") for job in (short, long)]
    assert kept[1] == pytest.approx(4 * kept[0], rel=0.01)
    assert part(host_of(short), "steady") == 0


@pytest.mark.parametrize("framework", KINDS)
@pytest.mark.parametrize("method", ["full", "lora", "qlora", "freeze"])
def test_every_candidate_stands_alone_and_the_peak_is_the_worst_phase(framework: str, method: str) -> None:
    job = job_on(framework, count=16, workload_method=method)
    facts, layouts = host_facts(framework), candidates(job)
    layouts = layouts.take(np.arange(0, len(layouts), max(1, len(layouts) // 40)))
    codes = [OFFLOAD.index(name) for name in ("none", *job.framework.limits.offloads)]
    for code in codes:
        many = with_layout(layouts, offload=code)
        memory = host_memory(job, many, facts)
        totals = {phase: memory.total(phase) for phase in PHASES}
        assert all((value >= 0).all() for phase in PHASES for value in memory.components[phase].values())
        np.testing.assert_array_equal(memory.peak, np.max(list(totals.values()), axis=0))
        assert [float(totals[phase][index]) for index, phase in enumerate(memory.peak_phase)] == memory.peak.tolist()
        index = len(many) // 2
        alone = host_memory(job, many.take(np.array([index])), facts)
        assert alone.peak[0] == pytest.approx(memory.peak[index])
        assert alone.device_at_save[0] == pytest.approx(memory.device_at_save[index])


@settings(max_examples=examples(30), deadline=None)
@given(framework=st.sampled_from(KINDS), nodes=st.sampled_from([1, 2, 4]), stage=st.sampled_from(PHASES))
def test_more_nodes_never_need_more_memory_each(framework: str, nodes: int, stage: Any) -> None:
    few, more = (host_of(job_on(framework, count=8 * size)) for size in (nodes, 2 * nodes))
    assert more.total(stage)[0] <= few.total(stage)[0] * (1 + 1e-9)


@given(st.floats(min_value=1, max_value=1e13))
def test_page_locked_buffers_are_powers_of_two_just_above(size: float) -> None:
    block = float(rounded(np.array([size]))[0])
    assert size <= block < 2 * size
    assert np.log2(block) == np.round(np.log2(block))


def test_the_capacity_of_a_node_is_that_of_machines_with_as_many_devices() -> None:
    whole, half = host_capacity("h100-sxm", 8), host_capacity("h100", 4)
    assert whole is not None
    assert half is not None
    assert 1.5e12 < whole.low_bytes <= whole.bytes < 2.3e12
    assert "p5.48xlarge" in whole.source
    assert half.bytes == pytest.approx(whole.bytes / 2, rel=0.15)
    assert "scaled to 4" in half.source


def test_a_capacity_that_nobody_prints_is_of_kin_that_are_named() -> None:
    kin = host_capacity("mi100", 8)
    assert kin is not None
    assert "with rtx-5090" in kin.source
    assert host_capacity("apple-m3-max", 1) is None
    with pytest.raises(PlanError, match=r"cluster\.accelerator"):
        host_capacity("h1000", 8)
