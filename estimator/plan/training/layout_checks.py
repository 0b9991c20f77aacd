"""What a plan may ask of a layout: the sizes that a model, a framework and a number of devices allow."""

from __future__ import annotations

import math

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from estimator.plan.training.job import Job


def divisors(number: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def valid_tp(architecture: Architecture) -> list[int]:
    """Tensor-parallel sizes that divide the attention heads, and divide the key/value heads or are a multiple of them.

    With more ranks than key/value heads each head is held by several ranks (Megatron-core, Attention.__init__ and the
    check of num_query_groups in TransformerConfig; vLLM's attention layers ask the same).
    """
    if not architecture.heads:
        return divisors(architecture.hidden)
    kv = max(1, architecture.kv_heads)
    return [tp for tp in divisors(architecture.heads) if kv % tp == 0 or tp % kv == 0]


def splits_sequences(job: Job) -> bool:
    """Whether the framework has context parallelism, and with the attention that the plan names: one that never holds
    all scores (DeepSpeed, UlyssesSPAttentionHF.register_with_transformers; Megatron-core, DotProductAttention), except
    under XLA, which splits any operator."""
    limits, kernel = job.framework.limits, job.training.attention
    if kernel == "eager" and job.framework.allocator == "caching":
        return False
    return limits.cp and (not limits.split_attention or kernel in ("flash", limits.split_attention))


def splits_evenly(job: Job, cp: int) -> bool:
    """Whether sequences can be cut so. Where keys and values are brought every rank has two chunks, for causal balance
    (Megatron-core, get_batch_on_this_cp_rank); an exchange deals heads (DeepSpeed, ulysses_sp.py)."""
    if not job.framework.gathering.exchanges_heads:
        return job.seq_len % (2 * cp) == 0
    return job.seq_len % cp == 0 and cp in valid_tp(job.architecture)


def _check_context(job: Job, cp: int) -> None:
    if splits_evenly(job, cp):
        return
    valid = [size for size in divisors(job.machine.count) if size == 1 or splits_evenly(job, size)]
    problem = f"seq_len {job.seq_len} is not divisible by 2 × cp={cp}"
    if job.framework.gathering.exchanges_heads:
        heads = f"{job.architecture.heads} attention and {job.architecture.kv_heads} key/value heads"
        problem = f"cp={cp} deals neither {job.seq_len} tokens nor {heads} evenly"
    raise PlanError("layout.cp", problem, valid)


def check_given(job: Job) -> None:
    """Raises PlanError for the first given layout field that cannot be, naming the values that can."""
    layout, architecture, count = job.plan.layout, job.architecture, job.machine.count
    name = architecture.id
    if layout.tp and layout.tp not in valid_tp(architecture):
        if architecture.heads and architecture.heads % layout.tp:
            what = f"does not divide the {architecture.heads} attention heads of {name}"
        else:
            what = f"does not go with the {architecture.kv_heads} key/value heads of {name}"
        raise PlanError("layout.tp", f"tp={layout.tp} {what}", valid_tp(architecture))
    for field, size in (("tp", layout.tp), ("pp", layout.pp), ("cp", layout.cp), ("ep", layout.ep)):
        if size and size > 1 and not getattr(job.framework.limits, field):
            raise PlanError(
                f"layout.{field}",
                f"{job.framework.name} has no {_LONG[field]}{_beside(job, field)}",
                ["1", "or another workload.framework"],
            )
    if layout.cp and layout.cp > 1 and not splits_sequences(job):
        alone = job.framework.limits.split_attention
        kernels = f"{alone} alone" if alone else "fused kernels alone"
        problem = f"{job.framework.name} splits sequences with {kernels}"
        raise PlanError("workload.attention", problem, [alone or "sdpa", "flash"])
    if layout.sequence_parallel and (layout.tp or 1) > 1 and not job.framework.limits.sequence_parallel:
        problem = f"{job.framework.name} keeps whole sequences on every tensor-parallel rank"
        raise PlanError("layout.sequence_parallel", problem, ["false"])
    _check_in_backward(job)
    _check_pipeline(job)
    _check_experts(job)
    _check_product(job, count)
    _check_batch(job)
    _check_shard_group(job, count)
    if layout.zero_stage is not None and layout.zero_stage not in job.framework.limits.zero_stages:
        stages = job.framework.limits.zero_stages
        raise PlanError(
            "layout.zero_stage", f"{job.framework.name} has no ZeRO-{layout.zero_stage}{_beside(job)}", stages
        )
    offloaded = {*(layout.offload or "none").split("+")} - {"none"}
    if not offloaded <= {*job.framework.limits.offloads}:
        valid = ["none", *job.framework.limits.offloads]
        raise PlanError("layout.offload", f"{job.framework.name} cannot offload {layout.offload}", valid)
    if layout.recompute_modules:
        _check_modules(job)
    if layout.recompute == "selective" and job.framework.recompute.selective == "none":
        raise PlanError(
            "layout.recompute", f"{job.framework.name} has no selective recompute", ["none", "full", "block:N"]
        )
    if layout.cp and layout.cp > 1:
        _check_context(job, layout.cp)


def _beside(job: Job, field: str = "") -> str:
    """What takes from a framework what it has with others."""
    optimizer, stage, limits = job.training.optimizer, job.training.stage, job.framework.limits
    if optimizer in limits.whole_optimizers:
        return f" with {optimizer}, which steps on whole gradients"
    return f" in {stage}" if field == "cp" and stage in limits.whole_stages else ""


_LONG = {
    "tp": "tensor parallelism",
    "pp": "pipeline parallelism",
    "cp": "context parallelism",
    "ep": "expert parallelism",
}


def given_recompute(job: Job) -> str | None:
    """The recompute that the plan asks for; parts of a layer are those of the selective one."""
    return job.plan.layout.recompute or ("selective" if job.plan.layout.recompute_modules else None)


def _check_modules(job: Job) -> None:
    layout, field = job.plan.layout, "layout.recompute_modules"
    if not job.framework.recompute.by_module:
        problem = f"{job.framework.name} does not choose parts of a layer by their names"
        raise PlanError(field, problem, ["megatron-lm", "megatron-bridge", "or none of them"])
    if given_recompute(job) != "selective":
        raise PlanError(field, f"are of selective recompute, and recompute is {layout.recompute}", ["no modules"])


def _check_in_backward(job: Job) -> None:
    """Weights that are updated within the backward pass: by hooks on their gradients, which are reduced before where
    FSDP shards them and nowhere else (torch, DistributedDataParallel), and are never summed over micro-batches."""
    training, framework, field = job.training, job.framework, "workload.optimizer_in_backward"
    if not training.optimizer_in_backward:
        return
    if training.method != "full":
        raise PlanError(field, f"{framework.name} has it where all weights are trained", ["false"])
    if job.machine.count > 1 and not framework.gathering.live_units:
        raise PlanError(field, f"{framework.name} has it on one device", ["false"])


def _check_pipeline(job: Job) -> None:
    layout, architecture = job.plan.layout, job.architecture
    if layout.schedule not in (None, "1f1b") and not job.framework.limits.pp:
        raise PlanError("layout.schedule", f"{job.framework.name} has no pipeline to schedule", ["1f1b"])
    if layout.vpp and layout.vpp > 1 and (layout.pp == 1 or not job.framework.limits.pp):
        raise PlanError("layout.vpp", f"vpp={layout.vpp} needs pipeline stages to interleave, but pp is 1", [1])
    if layout.vpp and layout.vpp > 1 and not job.framework.limits.interleaves:
        raise PlanError("layout.vpp", f"{job.framework.name} has no virtual stages", [1])
    # Embedding and head may count as a pipeline layer each (Megatron-core, account_for_embedding_in_pipeline_split).
    limit = min(architecture.layers, (architecture.layers + 2) // (layout.vpp or 1))
    if layout.pp and layout.pp > limit:
        times = f" × vpp={layout.vpp}" if layout.vpp else ""
        problem = f"pp={layout.pp}{times} is more than the {architecture.layers} layers of {architecture.id}"
        raise PlanError("layout.pp", problem, [f"up to {limit}"])


def _check_experts(job: Job) -> None:
    layout, architecture = job.plan.layout, job.architecture
    for field, size in (("ep", layout.ep), ("etp", layout.etp)):
        if size and size > 1 and not architecture.experts:
            raise PlanError(f"layout.{field}", f"{architecture.id} has no experts", [1])
    if layout.ep and layout.ep > 1 and architecture.experts % layout.ep:
        raise PlanError(
            "layout.ep", f"ep={layout.ep} does not divide the {architecture.experts} experts of {architecture.id}",
            divisors(architecture.experts),
        )  # fmt: skip
    splits = job.framework.limits.etp if job.framework.limits.ep else "tp"
    spread = {1: layout.tp, None: None}.get(layout.ep, 1)
    taken = {"none": 1, "tp": layout.tp, "unspread": spread}.get(splits)
    if architecture.experts and layout.etp and taken and layout.etp != taken:
        within = f"tp={layout.tp}" + (f" and ep={layout.ep}" if splits == "unspread" else "")
        problem = f"{job.framework.name} has no etp={layout.etp} with {within}"
        raise PlanError("layout.etp", problem, [taken])


def _check_product(job: Job, count: int) -> None:
    """The given sizes multiply out to the devices, or can with what is left open."""
    layout = job.plan.layout
    sizes = {name: getattr(layout, name) for name in ("tp", "pp", "cp", "dp")}
    product = math.prod(size for size in sizes.values() if size)
    factors = " × ".join(f"{name} {size}" for name, size in sizes.items() if size)
    if None not in sizes.values():
        if product != count:
            rest = product // sizes["dp"]
            valid = [count // rest] if count % rest == 0 else []
            hint = f"; dp must be {count // rest}" if valid else ""
            raise PlanError(
                "layout.dp", f"{factors} = {product} devices, but cluster.count is {count}{hint}",
                valid or [f"cluster.count={product}"],
            )  # fmt: skip
    elif product and count % product:
        last = [name for name, size in sizes.items() if size][-1]
        rest = product // sizes[last]
        fitting = [size for size in divisors(count // rest) if _possible(job, last, size)] if count % rest == 0 else []
        valid = fitting or [f"cluster.count a multiple of {product}"]
        raise PlanError(f"layout.{last}", f"{factors} does not divide the {count} devices", valid)


def _possible(job: Job, name: str, size: int) -> bool:
    """Whether the model alone allows this tensor or pipeline parallel size; other sizes depend on the devices alone."""
    if name == "tp":
        return size in valid_tp(job.architecture)
    return name != "pp" or size <= job.architecture.layers


def _check_shard_group(job: Job, count: int) -> None:
    layout = job.plan.layout
    if layout.shard_group is None:
        return
    sharing = count // ((layout.tp or 1) * (layout.pp or 1))
    if sharing % layout.shard_group:
        problem = f"{layout.shard_group} does not divide the {sharing} data-parallel devices"
        raise PlanError("layout.shard_group", problem, divisors(sharing))


def _check_batch(job: Job) -> None:
    layout, batch, micro = job.plan.layout, job.global_batch, job.training.micro_batch
    group = job.training.group_size
    if job.training.stage == "grpo" and batch % group:
        lower = batch // group * group
        raise PlanError(
            "workload.global_batch", f"{batch} samples are not whole groups of group_size={group}",
            [value for value in (lower, lower + group) if value],
        )  # fmt: skip
    unit = (layout.dp or 1) * (micro or 1)
    if batch % unit:
        if layout.dp and batch % layout.dp:
            lower = batch // layout.dp * layout.dp
            raise PlanError(
                "workload.global_batch", f"{batch} sequences cannot be shared by dp={layout.dp}",
                [value for value in (lower, lower + layout.dp) if value],
            )  # fmt: skip
        valid = divisors(batch // (layout.dp or 1))
        raise PlanError("workload.micro_batch", f"micro_batch={micro} does not divide the batch of each replica", valid)
