"""Memory of random plans: splitting, sharding, recomputing and offloading never cost what they are there to save."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from estimator_jobs import open_job, with_layout
from hypothesis import example, given
from hypothesis import strategies as st

from estimator.kernels.activations import block_bytes, boundary_bytes, kept_bytes
from estimator.plan.layouts import OFFLOAD, RECOMPUTE, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats
from estimator.search.layouts import candidates, valid_tp
from estimator.training.estimates import estimate
from estimator.training.memory import COMPONENTS, stage_memory
from knowledge.fitted.training import framework
from knowledge.models.known import models

# One of each kind: plain, tied, biased, grouped-query, very large; experts (shared, fine, latent attention, top-4);
# hybrids of Mamba 1 and 2, gated and Kimi delta layers with attention; state space alone.
KINDS = (
    "openai-community/gpt2", "EleutherAI/pythia-70m", "Qwen/Qwen2.5-0.5B", "meta-llama/Llama-3.1-8B",
    "google/gemma-2-9b", "meta-llama/Llama-3.1-405B", "mistralai/Mixtral-8x7B-v0.1", "openai/gpt-oss-20b",
    "deepseek-ai/DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V3", "ai21labs/Jamba-v0.1", "nvidia/Nemotron-H-8B-Base-8K",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "Qwen/Qwen3.5-35B-A3B", "moonshotai/Kimi-K3",
    "state-spaces/mamba-2.8b-hf",
)  # fmt: skip
FRAMEWORKS = (
    "deepspeed", "hf-trainer", "ddp", "unsloth", "fsdp1", "fsdp2", "torchtitan", "torchtune", "pytorch", "megatron-lm",
    "megatron-bridge", "megatron-deepspeed", "nanotron", "maxtext", "neuronx",
)  # fmt: skip
STATES = ("weights", "gradients", "optimizer")
# Sums of the same numbers in another order.
ROUNDING = 1e-12
MOST_CANDIDATES = 64

any_number = st.integers(0, 10**6)
models_of_all_kinds = st.one_of(st.sampled_from(KINDS), st.sampled_from([model.id for model in models()]))


Flat = dict[str, Any]


def plans(frameworks: Sequence[str] = FRAMEWORKS) -> st.SearchStrategy[Flat]:
    """What `open_job` takes: a workload on up to 64 devices, its layout left open."""
    fields: dict[str, Sequence[Any]] = {
        "cluster_count": (1, 2, 8, 16, 64),
        "workload_framework": frameworks,
        "workload_method": ("full", "full", "full", "freeze", "lora", "qlora", "dora"),
        "workload_stage": ("sft", "sft", "pretrain", "dpo", "ppo", "grpo"),
        "workload_optimizer": (
            "adamw", "adamw", "adamw_8bit", "sgd", "adafactor", "muon", "galore", "apollo", "lion", "adam_mini", "lomo",
            "badam",
        ),
        "workload_precision": ("bf16", "bf16", "fp8", "fp32"),
        "workload_attention": ("flash", "flash", "eager"),
        "workload_fused_loss": ("auto", True, False),
        "workload_seq_len": (512, 2048, 16384),
        "workload_global_batch": (64, 256, 384),
    }  # fmt: skip
    choices = {name: st.sampled_from(values) for name, values in fields.items()}
    return st.fixed_dictionaries({"model": models_of_all_kinds} | choices)


def plan_of(**changes: Any) -> Flat:
    """A plain plan on eight devices with changes, for examples that are always tried."""
    plain = {"model": "meta-llama/Llama-3.1-8B", "cluster_count": 8, "workload_framework": "deepspeed"}
    return plain | {"workload_seq_len": 512, "workload_global_batch": 64} | changes


def some(job: Job) -> Layouts:
    """Candidates of the job, evenly spread over all there are."""
    found = candidates(job)
    return found.take(np.unique(np.linspace(0, len(found) - 1, MOST_CANDIDATES).astype(int)))


# Layers of very different sizes, of which only the last few are trained.
HYBRID_FROZEN = {
    "model": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "workload_framework": "megatron-lm",
    "workload_method": "freeze",
}


def held(job: Job, layouts: Layouts, names: Iterable[str]) -> Floats:
    """The sum of the named components, each at its own worst moment, on the first, second and last stage: (3, n)."""
    last = layouts.pp - 1
    stages = [stage_memory(job, layouts, stage) for stage in (last * 0, np.minimum(1, last), last)]
    return np.stack([sum(memory.component_peaks[name] for name in names) for memory in stages])


def never_more(now: Floats, before: Floats, layouts: Layouts) -> None:
    """Fails with the first candidate for which `now` is above `before`."""
    above = now > before * (1 + ROUNDING)
    if above.any():
        index = int(np.argwhere(above)[0][-1])
        raise AssertionError(f"{layouts.summary(index)}: {before[..., index]} became {now[..., index]}")


@given(plans(), st.sampled_from([1, 2, 8, 64]))
@example(plan_of(workload_method="qlora"), 2)
@example(plan_of(model="mistralai/Mixtral-8x7B-v0.1", workload_framework="pytorch"), 2)
@example(plan_of(), 1)
def test_more_zero_never_holds_more_states(plan: Flat, most_sharing: int) -> None:
    job = open_job(**plan)
    layouts = some(job)
    layouts = replace(layouts, shard_group=np.gcd(layouts.dp * layouts.cp, most_sharing))
    stages = job.framework.limits.zero_stages
    sizes = [held(job, with_layout(layouts, zero_stage=stage), STATES) for stage in stages]
    for before, now in pairwise(sizes):
        never_more(now, before, layouts)


@given(plans([name for name in FRAMEWORKS if framework(name).limits.tp]), any_number, any_number, st.booleans())
def test_more_tensor_parallel_never_holds_more(plan: Flat, first: int, second: int, cuts_experts: bool) -> None:
    job = open_job(**plan)
    sizes = valid_tp(job.architecture)
    tp = sizes[first % len(sizes)]
    wider = [size for size in sizes if size % tp == 0]
    layouts = some(job)
    few, many = (
        with_layout(layouts, tp=size, etp=size if cuts_experts else 1, sequence_parallel=int(size > 1))
        for size in (tp, wider[second % len(wider)])
    )
    for name in (*STATES, "activations", "logits_and_loss"):
        never_more(held(job, many, [name]), held(job, few, [name]), layouts)


@given(plans([name for name in FRAMEWORKS if framework(name).limits.pp]), st.integers(1, 8), st.integers(1, 8))
@example(plan_of(**HYBRID_FROZEN), 5, 2)
def test_more_pipeline_stages_never_hold_more_states_on_the_fullest(plan: Flat, pp: int, times: int) -> None:
    job = open_job(**plan)
    layouts = with_layout(some(job), vpp=1, schedule=0)
    sizes = [min(size, job.architecture.layers) for size in (pp, pp * times)]
    for name in ("weights", "optimizer"):
        few, many = (fullest(job, with_layout(layouts, pp=size), size, name) for size in sizes)
        never_more(many, few, layouts)


def fullest(job: Job, layouts: Layouts, pp: int, name: str) -> Floats:
    stages = [np.full(len(layouts), stage) for stage in range(pp)]
    return np.max([stage_memory(job, layouts, stage).component_peaks[name] for stage in stages], axis=0)


@given(plans())
@example(plan_of(model="openai-community/gpt2", workload_framework="torchtitan", workload_method="freeze"))
def test_recomputing_more_keeps_less(plan: Flat) -> None:
    job = open_job(**plan)
    layouts = some(job)
    modes = [with_layout(layouts, recompute=RECOMPUTE.index(mode)) for mode in ("none", "selective", "full")]
    for block in job.architecture.blocks:
        kept = [kept_bytes(job, block, mode, block_bytes(job, block, mode)) for mode in modes]
        for before, now in pairwise(kept):
            never_more(now, before, layouts)
        assert (kept[2] == boundary_bytes(job, layouts)).all()
    whole = [held(job, mode, ["activations"]) for mode in modes]
    for before, now in pairwise(whole):
        never_more(now, before, layouts)


@given(plans(), st.lists(st.integers(0, 200), min_size=2, max_size=4))
@example(plan_of(**HYBRID_FROZEN), [0, 1])
def test_recomputing_more_blocks_keeps_less(plan: Flat, blocks: list[int]) -> None:
    job = open_job(**plan)
    layouts = some(job)
    code = RECOMPUTE.index("block")
    sizes = [
        held(job, with_layout(layouts, recompute=code, recompute_layers=count), ["activations"])
        for count in sorted(blocks)
    ]
    for before, now in pairwise(sizes):
        never_more(now, before, layouts)


@given(plans(), st.sampled_from([2, 3, 8]))
def test_more_in_a_micro_batch_never_takes_less(plan: Flat, times: int) -> None:
    job = open_job(**plan)
    layouts = some(job)
    larger = replace(layouts, micro_batch=layouts.micro_batch * times)
    # With the batch kept, a larger micro-batch means fewer of them.
    fewer = replace(larger, grad_accum=np.maximum(1, layouts.grad_accum // times))
    assert job.training.seq_len is not None
    longer = replace(job, plan=job.plan.patch({"workload.seq_len": job.training.seq_len * times}))
    for name in ("activations", "logits_and_loss"):
        now = held(job, layouts, [name])
        never_more(now, held(job, larger, [name]), layouts)
        whole = layouts.grad_accum % times == 0
        never_more(now[:, whole], held(job, fewer, [name])[:, whole], layouts.take(whole))
        never_more(now, held(longer, layouts, [name]), layouts)


@given(plans(), st.lists(st.integers(0, MOST_CANDIDATES), min_size=3, max_size=3))
def test_an_estimate_is_the_same_alone_and_in_a_batch(plan: Flat, draws: list[int]) -> None:
    job = open_job(**plan)
    layouts = some(job)
    batch = estimate(job, layouts)
    for index in {draw % len(layouts) for draw in draws}:
        alone = estimate(job, layouts.take(np.array([index])))
        for name, values in batch.memory.components.items():
            assert alone.memory.components[name][0] == values[index], name
        for name, values in batch.step.components.items():
            assert alone.step.components[name][0] == values[index], name
        assert alone.memory.total[0] == batch.memory.total[index]
        assert alone.step.seconds[0] == batch.step.seconds[index]
        assert alone.fullest_stage[0] == batch.fullest_stage[index]


@given(plans())
def test_parts_make_the_whole_and_the_interval_holds_it(plan: Flat) -> None:
    job = open_job(**plan)
    found = estimate(job, some(job))
    for whole, parts in ((found.memory.total, found.memory.components), (found.step.seconds, found.step.components)):
        assert np.isfinite(whole).all()
        assert (whole > 0).all()
        assert all((values >= 0).all() for values in parts.values()), [n for n, v in parts.items() if (v < 0).any()]
        np.testing.assert_allclose(sum(parts.values()), whole, rtol=ROUNDING)
    assert set(found.memory.components) == set(COMPONENTS)
    for low, value, high in (
        (found.low_bytes, found.memory.total, found.high_bytes),
        (found.low_s, found.step.seconds, found.high_s),
    ):
        assert (low <= value).all()
        assert (value <= high).all()


OFFLOADED = {"optimizer": ("optimizer",), "params": ("optimizer", "weights"), "activations": ("activations",)}


@given(plans([name for name in FRAMEWORKS if framework(name).limits.offloads]), any_number)
def test_offloading_never_raises_what_it_moves(plan: Flat, which: int) -> None:
    job = open_job(**plan)
    layouts = some(job)
    kind = job.framework.limits.offloads[which % len(job.framework.limits.offloads)]
    moved = with_layout(layouts, offload=OFFLOAD.index(kind))
    for name in OFFLOADED[kind]:
        never_more(held(job, moved, [name]), held(job, layouts, [name]), layouts)
