"""Selective recompute of parts of a layer by their names, as Megatron-core has it.

`core_attn`, `mlp`, `moe` and `shared_experts` drop all that is saved within them and run again from their input.
`layernorm`, `moe_act` and `mla_up_proj` drop their output, which the next operator would have kept as its input
(Megatron-core, transformer_config.py recompute_modules; tensor_parallel/random.py CheckpointWithoutOutput).
"""

from __future__ import annotations

from estimator.model.architecture import Block, WeightMatrix
from estimator.plan.training.job import Job

Elements = tuple[float, float, float]
_USUAL = ("core_attn",)
# Matrices that run again with a part, by their roles and, of latent attention, by their names.
_ROLES = {"mlp": ("mlp",), "moe": ("expert", "router", "shared_expert"), "shared_experts": ("shared_expert",)}
_UP = ("q_b_proj", "kv_b_proj")


def modules_of(job: Job) -> tuple[str, ...]:
    """What selective recompute drops of a layer; '()' where that is not chosen by parts."""
    return tuple(job.plan.layout.recompute_modules or _USUAL) if job.framework.recompute.by_module else ()


def repeats_core(job: Job) -> bool:
    """Whether the attention core runs again."""
    return "core_attn" in modules_of(job)


def repeated_share(job: Job, block: Block) -> float:
    """Part of a block's matmuls that runs again, by the weights that a token meets."""
    modules = modules_of(job)
    roles = {role for module in modules for role in _ROLES.get(module, ())}
    up = "mla_up_proj" in modules and block.mixer == "mla"
    again = sum(_met(block, each) for each in block.matrices if each.role in roles or (up and each.name in _UP))
    return again / sum(_met(block, each) for each in block.matrices)


def _met(block: Block, matrix: WeightMatrix) -> float:
    return matrix.inputs * matrix.outputs * (block.top_k if matrix.role == "expert" else matrix.copies)


def dropped_elements(job: Job, block: Block, experts: Elements, shared: float, dense: float) -> Elements:
    """Elements per token that are not kept, the attention core's apart: (whole, split by tp, of the routed experts).
    `experts` is what their part saves, with `shared` of its second; `dense` what a dense MLP does."""
    modules, kept = set(modules_of(job)), job.input_elements if job.trains_blocks else 0.0
    whole = split = expert = 0.0
    if "layernorm" in modules and job.keeps_norm_outputs:
        whole += min(block.norms, 2) * job.input_elements * job.architecture.hidden
    if "mla_up_proj" in modules and block.mixer == "mla":
        split += 2.0 * block.heads * block.head_dim + block.heads * block.v_head_dim
    if "mlp" in modules and block.feed == "dense":
        split += dense
    if block.feed != "moe":
        return whole, split, expert
    if "moe" in modules:
        return whole + experts[0], split + experts[1], expert + experts[2]
    split += shared if "shared_experts" in modules else 0.0
    expert += kept * block.top_k * block.expert_width if "moe_act" in modules else 0.0
    return whole, split, expert
