"""Every valid layout of a job, estimated in one batch; the best by the goal, the Pareto front, and why others lost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from estimator.architecture import Architecture
from estimator.errors import PlanError
from estimator.job import Job
from estimator.layouts import OFFLOAD, SCHEDULES, Layouts, recompute_code
from estimator.training import Estimates, estimate

_MICRO_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)


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
        if size and size > 1 and not getattr(job.framework, field):
            raise PlanError(
                f"layout.{field}", f"{job.framework.name} has no {_LONG[field]}", ["1", "or another workload.framework"]
            )
    if layout.schedule not in (None, "1f1b") and not job.framework.pp:
        raise PlanError("layout.schedule", f"{job.framework.name} has no pipeline to schedule", ["1f1b"])
    if layout.vpp and layout.vpp > 1 and (layout.pp == 1 or not job.framework.pp):
        raise PlanError("layout.vpp", f"vpp={layout.vpp} needs pipeline stages to interleave, but pp is 1", [1])
    # Embedding and head may count as a pipeline layer each (Megatron-core, account_for_embedding_in_pipeline_split).
    limit = min(architecture.layers, (architecture.layers + 2) // (layout.vpp or 1))
    if layout.pp and layout.pp > limit:
        times = f" × vpp={layout.vpp}" if layout.vpp else ""
        problem = f"pp={layout.pp}{times} is more than the {architecture.layers} layers of {name}"
        raise PlanError("layout.pp", problem, [f"up to {limit}"])
    for field, size in (("ep", layout.ep), ("etp", layout.etp)):
        if size and size > 1 and not architecture.experts:
            raise PlanError(f"layout.{field}", f"{name} has no experts", [1])
    if layout.ep and layout.ep > 1 and architecture.experts % layout.ep:
        raise PlanError(
            "layout.ep", f"ep={layout.ep} does not divide the {architecture.experts} experts of {name}",
            divisors(architecture.experts),
        )  # fmt: skip
    _check_product(job, count)
    _check_batch(job)
    _check_shard_group(job, count)
    if layout.zero_stage is not None and layout.zero_stage not in job.framework.zero_stages:
        stages = job.framework.zero_stages
        raise PlanError("layout.zero_stage", f"{job.framework.name} has no ZeRO-{layout.zero_stage}", stages)
    if layout.offload and layout.offload != "none" and layout.offload not in job.framework.offloads:
        valid = ["none", *job.framework.offloads]
        raise PlanError("layout.offload", f"{job.framework.name} cannot offload {layout.offload}", valid)
    if layout.recompute == "selective" and job.framework.selective == "none":
        raise PlanError(
            "layout.recompute", f"{job.framework.name} has no selective recompute", ["none", "full", "block:N"]
        )
    if layout.cp and layout.cp > 1 and job.seq_len % (2 * layout.cp):
        # Causal load balance gives every rank two chunks (Megatron-core, get_batch_on_this_cp_rank).
        valid = [cp for cp in divisors(count) if job.seq_len % (2 * cp) == 0 or cp == 1]
        raise PlanError("layout.cp", f"seq_len {job.seq_len} is not divisible by 2 × cp={layout.cp}", valid)


_LONG = {
    "tp": "tensor parallelism",
    "pp": "pipeline parallelism",
    "cp": "context parallelism",
    "ep": "expert parallelism",
}


def _check_product(job: Job, count: int) -> None:
    """The given sizes multiply out to the devices, or can with what is left open."""
    layout = job.plan.layout
    sizes = {name: getattr(layout, name) for name in ("tp", "pp", "cp", "dp")}
    product = math.prod(size for size in sizes.values() if size)
    said = " × ".join(f"{name} {size}" for name, size in sizes.items() if size)
    if None not in sizes.values():
        if product != count:
            rest = product // sizes["dp"]
            valid = [count // rest] if count % rest == 0 else []
            hint = f"; dp must be {count // rest}" if valid else ""
            raise PlanError(
                "layout.dp", f"{said} = {product} devices, but cluster.count is {count}{hint}",
                valid or [f"cluster.count={product}"],
            )  # fmt: skip
    elif product and count % product:
        last = [name for name, size in sizes.items() if size][-1]
        rest = product // sizes[last]
        fitting = [size for size in divisors(count // rest) if _possible(job, last, size)] if count % rest == 0 else []
        valid = fitting or [f"cluster.count a multiple of {product}"]
        raise PlanError(f"layout.{last}", f"{said} does not divide the {count} devices", valid)


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


def candidates(job: Job) -> Layouts:
    """All valid layouts that agree with what the plan fixes. Raises PlanError when there is none."""
    check_given(job)
    columns: dict[str, list[np.ndarray]] = {field.name: [] for field in fields(Layouts)}
    units = []
    for sizes in _sizes(job):
        unit = sizes["dp"] * (job.training.micro_batch or 1)
        units.append(unit)
        if job.global_batch % unit == 0:
            for name, values in _expand(job, sizes).items():
                columns[name].append(values)
    if sum(len(part) for part in columns["tp"]):
        return Layouts(**{name: np.concatenate(parts).astype(np.int64) for name, parts in columns.items()})
    batch = job.global_batch
    if units and all(batch % unit for unit in units):
        unit = min(units)
        problem = f"{batch} sequences cannot be dealt evenly to the data-parallel ranks, {unit} at the least"
        valid = [value for value in (batch // unit * unit, batch // unit * unit + unit) if value]
        raise PlanError("workload.global_batch", problem, valid)
    raise PlanError(
        "layout", f"no layout of {job.machine.count} devices keeps to all the given sizes",
        ["leave tp, pp, cp, ep or dp open", "change cluster.count or workload.global_batch"],
    )  # fmt: skip


def _sizes(job: Job) -> Iterator[dict[str, int]]:
    """The parallel sizes: products of tp, pp, cp and dp that give the device count, with ep and etp inside."""
    layout, framework, architecture, machine = job.plan.layout, job.framework, job.architecture, job.machine
    domain = machine.fast_domain
    for tp in _choices(layout.tp, [t for t in valid_tp(architecture) if t <= domain] if framework.tp else [1]):
        for pp in _choices(
            layout.pp, divisors(machine.count // tp) if framework.pp and machine.count % tp == 0 else [1]
        ):
            if machine.count % (tp * pp) or pp > architecture.layers:
                continue
            for cp in _choices(layout.cp, _context_sizes(job)):
                if machine.count % (tp * pp * cp):
                    continue
                dp = machine.count // (tp * pp * cp)
                if layout.dp and layout.dp != dp:
                    continue
                for ep, etp in _expert_sizes(job, tp, cp, dp):
                    yield {"tp": tp, "pp": pp, "cp": cp, "ep": ep, "etp": etp, "dp": dp}


def _choices(given: int | None, otherwise: list[int]) -> list[int]:
    return [given] if given else otherwise


def _context_sizes(job: Job) -> list[int]:
    """Context parallelism is worth trying for long sequences: from 8k tokens on, at least 4k on each rank."""
    if not job.framework.cp:
        return [1]
    return [1, *(cp for cp in (2, 4, 8, 16, 32, 64) if job.seq_len % (2 * cp) == 0 and job.seq_len // cp >= 4096)]


def _expert_sizes(job: Job, tp: int, cp: int, dp: int) -> list[tuple[int, int]]:
    layout, experts = job.plan.layout, job.architecture.experts
    if not experts:
        return [(1, 1)]
    if not job.framework.ep:
        return [(1, tp)] if layout.etp in (None, tp) else []
    ranks = tp * cp * dp
    pairs = []
    for etp in _choices(layout.etp, sorted({1, tp})):
        pairs += [(ep, etp) for ep in _choices(layout.ep, divisors(experts)) if ranks % (ep * etp) == 0]
    return pairs


def _expand(job: Job, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Crosses one set of sizes with micro-batch, ZeRO stage, recompute, virtual stages and shard groups."""
    layout, framework = job.plan.layout, job.framework
    per_replica = job.global_batch // sizes["dp"]
    micro = _choices(job.training.micro_batch, [size for size in _MICRO_BATCHES if per_replica % size == 0])
    stages = [layout.zero_stage] if layout.zero_stage is not None else list(framework.zero_stages)
    modes = [layout.recompute] if layout.recompute else _recompute_modes(job)
    offload = OFFLOAD.index(layout.offload or "none")
    rows = []
    for size in micro:
        accumulate = per_replica // size
        for vpp in _virtual_stages(job, sizes["pp"], accumulate):
            for stage in stages:
                for group in _shard_groups(job, sizes, stage):
                    for mode in modes:
                        rows.append((size, accumulate, vpp, stage, group, *recompute_code(mode)))
    table = np.array(rows, dtype=np.int64).reshape(-1, 7)
    count = len(table)
    schedule = layout.schedule
    sequence = layout.sequence_parallel
    columns = {name: np.full(count, value) for name, value in sizes.items()}
    keys = ("micro_batch", "grad_accum", "vpp", "zero_stage", "shard_group", "recompute", "recompute_layers")
    columns |= {key: table[:, index] for index, key in enumerate(keys)}
    columns["sequence_parallel"] = np.full(count, int(sizes["tp"] > 1 if sequence is None else sequence))
    interleaved = np.where(columns["vpp"] > 1, SCHEDULES.index("interleaved"), SCHEDULES.index("1f1b"))
    columns["schedule"] = interleaved if schedule is None else np.full(count, SCHEDULES.index(schedule))
    columns["offload"] = np.full(count, offload)
    return columns


def _recompute_modes(job: Job) -> list[str]:
    return ["none", "full"] if job.framework.selective == "none" else ["none", "selective", "full"]


def _virtual_stages(job: Job, pp: int, accumulate: int) -> list[int]:
    """Interleaving needs layers to deal out evenly and micro-batches in multiples of the stages (Megatron)."""
    layout = job.plan.layout
    if layout.vpp:
        return [layout.vpp] if pp > 1 or layout.vpp == 1 else []
    if pp == 1 or layout.schedule not in (None, "interleaved") or accumulate % pp:
        return [1]
    per_stage = job.architecture.layers // pp if job.architecture.layers % pp == 0 else 1
    sizes = [vpp for vpp in divisors(per_stage) if vpp <= 8]
    return sizes[1:] if layout.schedule == "interleaved" and len(sizes) > 1 else sizes


def _shard_groups(job: Job, sizes: dict[str, int], stage: int) -> list[int]:
    """Devices that share one copy: all data-parallel ranks, or those of one node as hybrid sharding does.

    Hybrid sharding is tried only where ZeRO-3 is not asked for by name: that means sharding over all ranks.
    """
    layout = job.plan.layout
    everyone = sizes["dp"] * sizes["cp"]
    if layout.shard_group:
        return [layout.shard_group] if everyone % layout.shard_group == 0 else []
    inside = job.machine.per_node // sizes["tp"]
    if stage == 3 and layout.zero_stage is None and 1 < inside < everyone and everyone % inside == 0:
        return [everyone, inside]
    return [everyone]


def objective_order(estimates: Estimates) -> np.ndarray:
    """Indices of the candidates from best to worst: what fits first, then by the goal, then the simpler layout."""
    layouts = estimates.layouts
    seconds, memory = estimates.step.seconds, estimates.high_bytes
    primary = memory if estimates.job.plan.goal.objective == "memory" else seconds
    complexity = layouts.pp * layouts.tp * layouts.cp * layouts.vpp + layouts.zero_stage
    # Cost at a fixed number of devices is time, so throughput, time and cost order alike here.
    over = np.where(estimates.fits, 0.0, memory)
    return np.lexsort((memory, complexity, np.round(primary, 12), over))


def search(job: Job) -> tuple[Estimates, np.ndarray]:
    """All candidates estimated, and their order from best to worst."""
    estimates = estimate(job, candidates(job))
    return estimates, objective_order(estimates)


def pareto(estimates: Estimates) -> np.ndarray:
    """Candidates that fit and that no other beats in both step time and memory, fastest first."""
    index = np.flatnonzero(estimates.fits)
    order = index[np.lexsort((estimates.memory.total[index], estimates.step.seconds[index]))]
    best = np.minimum.accumulate(np.concatenate([[np.inf], estimates.memory.total[order][:-1]]))
    return order[estimates.memory.total[order] < best]


_NEIGHBOUR_FIELDS = ("tp", "pp", "cp", "ep", "zero_stage", "recompute", "micro_batch", "vpp")


def neighbours(estimates: Estimates, best: int) -> list[tuple[int, str]]:
    """For each field, the best candidate that has another value there, and the rule that rejected it."""
    layouts, found = estimates.layouts, []
    have = estimates.job.usable_bytes
    order = objective_order(estimates)
    for name in _NEIGHBOUR_FIELDS:
        values = getattr(layouts, name)[order]
        for value in np.unique(values):
            if value == getattr(layouts, name)[best]:
                continue
            index = int(order[np.argmax(values == value)])
            if estimates.fits[index]:
                rule = _lost(estimates, index, best)
            else:
                rule = f"does not fit: up to {estimates.high_bytes[index] / 2**30:.1f} GiB of {have / 2**30:.1f} GiB"
            found.append((index, rule))
    return found


def _lost(estimates: Estimates, index: int, best: int) -> str:
    """Why a candidate that fits comes after the best one."""
    slower = estimates.step.seconds[index] / estimates.step.seconds[best] - 1.0
    more = estimates.memory.total[index] - estimates.memory.total[best]
    if estimates.job.plan.goal.objective != "memory" and slower > 0:
        return f"fits, but is {100 * slower:.1f} % slower"
    if more > 0:
        return f"fits, but takes {more / 2**30:.1f} GiB more"
    return "equal; the simpler layout wins"
