"""What makes a plan take less memory, and what one that fits could give up again: Plan patches, each estimated."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import combinations, islice
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Layout, Plan
from planner.change import OPEN_LAYOUT, Change
from planner.fit.frameworks import movable, other_ways
from planner.limits.training import limit_of
from planner.results import Remedy
from planner.training.ladder import has_room
from planner.training.lightest import any_alone, any_hosted
from planner.training.memory import is_tight
from planner.training.planned import Planned, varied

# Pairs that are estimated, those of the largest savings first, and how many of those that fit are told.
_TRIED_PAIRS, _TOLD_PAIRS = 24, 8
# Sizes of cluster that are tried, in units of the plan's own, until one fits.
_MORE_DEVICES = (2, 4, 8, 16)
# A change that does not make it fit and saves less of it than this is no help.
_SAVES = 0.01
# One percent faster is within what an estimate can tell apart; less is no reason to change a plan.
_GAIN = 0.99


def remedies(planned: Planned, asked: Plan) -> list[Remedy]:
    """Changes that lower the memory, those that fit first, then by slowdown; pairs of them where no single one fits.

    `asked` is the plan as given: what its layout left open is chosen anew where the number of devices changes.
    """
    base, now = planned.plan, float(planned.estimates.memory.total[planned.index])
    singles = [(change, remedy) for change in changes(planned) if (remedy := _estimated(planned, change, now))]
    more = _more_devices(planned, asked, now)
    told = [remedy for _, remedy in singles if remedy.fits or remedy.saves_bytes > _SAVES * now]
    told += [remedy for _, remedy in more if remedy.fits or remedy is more[0][1]]
    if not planned.fits and (other := _other_layout(planned, asked, now)):
        told.append(other)
    if not planned.fits and not any(remedy.fits and "workload.framework" not in remedy.patch for remedy in told):
        # One that is enough alone is no better with another.
        told += _pairs(planned, base, [(change, remedy) for change, remedy in singles + more if not remedy.fits], now)
    if not planned.fits:
        told += other_ways(planned, asked)
        if not any(remedy.fits and "cluster.count" not in remedy.patch for remedy in told):
            told += _shorter(planned, asked, now)
    return sorted(told, key=lambda remedy: (not remedy.fits, remedy.slowdown))


def _more_devices(planned: Planned, asked: Plan, now: float) -> list[tuple[Change, Remedy]]:
    """Larger clusters up to the first that is enough."""
    tried: list[tuple[Change, Remedy]] = []
    for change in device_changes(planned, asked):
        if remedy := _estimated(planned, change, now):
            tried.append((change, remedy))
            if remedy.fits:
                break
    return tried


def relaxations(planned: Planned) -> list[Remedy]:
    """Changes that use the headroom of a plan that fits to make it faster, the fastest first."""
    if not planned.fits:
        return []
    tried = [_estimated(planned, change) for change in _looser(planned)]
    useful = [remedy for remedy in tried if remedy and remedy.fits and remedy.slowdown < _GAIN]
    return sorted(useful, key=lambda remedy: remedy.slowdown)


def _estimated(planned: Planned, change: Change, below: float | None = None) -> Remedy | None:
    """The changed plan's figures; None where it is not valid, or not `below` the memory of the plan asked about, or
    where that plan is tight and stays so."""
    other = planned.varied(change.patch)
    if other is None:
        return None
    size = float(other.estimates.memory.total[other.index])
    if below is not None and (size >= below or (is_tight(planned) and is_tight(other))):
        return None
    return Remedy(
        patch=dict(change.patch),
        what=change.what + _besides(planned, other, change),
        why=change.why,
        per_device_bytes=size,
        saves_bytes=float(planned.estimates.memory.total[planned.index]) - size,
        fits=other.fits and (other.estimates.layouts.offload[other.index] == 0 or other.has_host_memory),
        slowdown=_per_token(other) / _per_token(planned),
    )


def _besides(planned: Planned, other: Planned, change: Change) -> str:
    """What is different besides, where a change leaves it open: another framework, what lies in host memory."""
    name, offload = other.job.framework.name, other.plan.layout.offload
    words = f", on {name}" if name != planned.job.framework.name and name not in change.what else ""
    if change.knob != "layout" and offload not in (
        None, "none", planned.plan.layout.offload, change.patch.get("layout.offload"),
    ):  # fmt: skip
        words += f", {offload} offloaded to host memory"
    return words


def _per_token(planned: Planned) -> float:
    return float(planned.estimates.step.seconds[planned.index]) / planned.job.tokens_per_step


def _pairs(planned: Planned, base: Plan, singles: list[tuple[Change, Remedy]], now: float) -> list[Remedy]:
    """Two changes at once, of those that save most together; both may touch no field of the other."""
    pairs = [
        (change, partner, first.saves_bytes + second.saves_bytes)
        for (change, first), (partner, second) in combinations(singles, 2)
        if not _clash(change, partner)
    ]
    by_size: dict[tuple[str, str], list[Change]] = {}
    for change, partner, _ in sorted(pairs, key=lambda pair: -pair[2])[:_TRIED_PAIRS]:
        both = Change(
            "pair",
            {**change.patch, **partner.patch},
            f"{change.what}, and {partner.what}",
            f"{change.why}; {partner.why}",
        )
        of_size = (change.what, partner.knob if partner.kind == "hardware" else partner.what)
        by_size.setdefault(of_size, []).append(both)
    fitting: list[Remedy] = []
    for sizes in by_size.values():
        # More devices than are needed are no better.
        hopeful = (both for both in sorted(sizes, key=_devices) if _may_fit(base, both.patch))
        estimated = (_estimated(planned, both, now) for both in hopeful)
        fitting += islice((remedy for remedy in estimated if remedy and remedy.fits), 1)
    return sorted(fitting, key=lambda remedy: remedy.slowdown)[:_TOLD_PAIRS]


def _may_fit(base: Plan, patch: Mapping[str, Any], hosted: bool = True) -> bool:
    """By memory alone: sooner known of the many changes that are not enough than the times of their layouts."""
    with suppress(PlanError):
        changed = base.patch(patch)
        return (any_hosted if hosted else any_alone)(changed)
    return False


def _devices(change: Change) -> int:
    return change.patch.get("cluster.count", 0)


def _clash(change: Change, partner: Change) -> bool:
    """Whether both set a field, or one undoes the other: what is trained decides which optimizer states there are."""
    if set(change.patch) & set(partner.patch):
        return True
    fields = {*change.patch, *partner.patch}
    return {"workload.method", "workload.optimizer"} <= fields


def _other_layout(planned: Planned, asked: Plan, now: float) -> Remedy | None:
    """The best layout that the search finds when nothing of it is given, where the one that was given does not fit."""
    if not asked.layout.model_fields_set and asked.training.micro_batch is None:
        return None
    free = varied(asked, {"layout": dict.fromkeys(Layout.model_fields), "workload.micro_batch": None})
    if free is None or not free.fits:
        return None
    patch = {
        "layout": free.plan.layout.model_dump(mode="json"),
        "workload.micro_batch": free.plan.training.micro_batch,
        "workload.framework": free.job.framework.name,
        "workload.global_batch": free.job.global_batch,
    }
    why = f"the best for the plan's goal of the {free.search.valid} layouts tried"
    summary = free.estimates.layouts.summary(free.index)
    return _estimated(planned, Change("layout", patch, f"another layout: {summary}", why), now)


def _shorter(planned: Planned, asked: Plan, now: float) -> list[Remedy]:
    """The longest sequences that fit on the devices that there are, where nothing else makes it fit there."""
    with suppress(PlanError):
        free = asked.patch({**OPEN_LAYOUT, "workload.framework": None})
        if not has_room(free, planned.job.framework.name):
            return []
        longest = limit_of("seq_len", free)
        if isinstance(longest.value, int) and longest.value < planned.job.seq_len:
            workload = {
                f"workload.{name}": value
                for name, value in longest.plan["workload"].items()
                if value != getattr(planned.plan.training, name)
            }
            what = f"sequences of {longest.value:,} tokens instead of {planned.job.seq_len:,}"
            why = f"the longest that fit on {planned.job.machine.count} devices: longer texts are cut off or split"
            change = Change("layout", {**workload, "layout": longest.plan["layout"]}, what, why, "training")
            return [remedy for remedy in [_estimated(planned, change, now)] if remedy]
    return []


def changes(planned: Planned) -> list[Change]:
    """The changes worth trying to lower the memory of a plan on the devices that it has."""
    return [*_activation_changes(planned), *_state_changes(planned), *_split_changes(planned)]


def _activation_changes(planned: Planned) -> list[Change]:
    job, layouts, index = planned.job, planned.estimates.layouts, planned.index
    row, micro = layouts.row(index), int(layouts.micro_batch[index])
    tried = []
    for mode, why in (
        ("selective", "the largest activations are computed again in the backward pass instead of kept"),
        ("full", "only the input of each layer is kept; its forward pass runs again in the backward pass"),
    ):
        if row["recompute"] != mode and not (mode == "selective" and job.framework.recompute.selective == "none"):
            tried.append(Change("recompute", {"layout.recompute": mode}, f"{mode} recompute", why))
    for size in sorted({1, micro // 2} - {0, micro}, reverse=True):
        what = "one sequence per micro-batch" if size == 1 else f"{size} sequences per micro-batch"
        why = "activations and logits shrink with it; more micro-batches make up the same global batch"
        tried.append(Change("micro_batch", {"workload.micro_batch": size}, what, why))
    if not job.fused_loss:
        why = "the logits of a chunk of tokens exist at a time instead of all"
        tried.append(Change("fused_loss", {"workload.fused_loss": True}, "fused cross-entropy (no full logits)", why))
    if not job.training.tiled_mlp and job.framework.activations.tile_tokens is not None:
        why = "an MLP's activations are those of a part of the sequence at a time, made again in the backward pass"
        tried.append(Change("tiled_mlp", {"workload.tiled_mlp": True}, "MLP in tiles of the sequence", why))
    return tried


def _state_changes(planned: Planned) -> list[Change]:
    job, training, framework = planned.job, planned.job.training, planned.job.framework
    row = planned.estimates.layouts.row(planned.index)
    sharded = {1: "optimizer states", 2: "optimizer states and gradients", 3: "optimizer states, gradients and weights"}
    tried = [
        Change(
            "zero_stage",
            {"layout.zero_stage": stage},
            f"ZeRO-{stage} (more states sharded)",
            f"{sharded[stage]} are dealt over the data-parallel devices, which gather them over the network",
        )
        for stage in framework.limits.zero_stages
        if stage > row["zero_stage"]
    ]
    if training.optimizer == "adamw":
        why = "both moments are kept in 8 bits per parameter"
        tried.append(Change("optimizer", {"workload.optimizer": "adamw_8bit"}, "8-bit optimizer states", why))
    if training.optimizer in framework.limits.steps_in_backward and not training.optimizer_in_backward:
        patch = {"workload.optimizer_in_backward": True, "workload.micro_batch": None}
        what, why = "weight updates within the backward pass", "a gradient is freed as soon as its weight is updated"
        tried.append(Change("optimizer_in_backward", patch, what, why))
    if row["offload"] == "none":
        tried += [
            Change(
                "offload",
                {"layout.offload": kind},
                f"{kind} offloaded to host memory",
                "they live in host memory and cross the host link when they are used",
            )
            for kind in framework.limits.offloads
        ]
    if job.uses_adapters and training.lora.targets == "all-linear":
        what, why = "adapters on attention alone", "MLPs and experts, most of the weights, stay as they are"
        tried.append(Change("targets", {"workload.lora.targets": "attention"}, what, why, "training"))
    if training.method == "full" and training.stage != "pretrain" and (moved := _moved(planned, "lora")):
        why = "the weights are frozen: gradients and optimizer states are those of the adapters alone"
        tried.append(Change("lora", moved, "LoRA adapters instead of all weights", why, "training"))
    if training.method in ("full", "lora") and training.stage != "pretrain" and (moved := _moved(planned, "qlora")):
        why = "the frozen weights are kept in 4 bits and read as 16 bits when they are used"
        tried.append(Change("qlora", moved, "QLoRA (adapters on 4-bit weights)", why, "training"))
    return tried


def _moved(planned: Planned, method: str) -> dict[str, Any]:
    """The patch to another method, on another framework with a layout of its own where this one lacks it or another has
    room for it, on the devices alone rather than with host memory; empty where all lack it."""
    patches = [
        {"workload.method": method}
        | ({} if name == planned.job.framework.name else {"workload.framework": name, **OPEN_LAYOUT})
        for name in movable(planned, method)
    ]
    fitting = (patch for hosted in (False, True) for patch in patches if _may_fit(planned.plan, patch, hosted))
    return next(fitting, patches[0] if patches else {})


def _split_changes(planned: Planned) -> list[Change]:
    """Twice the tensor, pipeline or context parallelism on the same devices, with less data parallelism."""
    framework, row = planned.job.framework, planned.estimates.layouts.row(planned.index)
    freed: dict[str, Any] = {"layout.dp": None, "layout.shard_group": None, "layout.ep": None, "layout.etp": None}
    tried = []
    if framework.limits.tp:
        double = row["tp"] * 2
        patch = {"layout.tp": double, **freed} | ({"layout.sequence_parallel": None} if double == 2 else {})
        why = "every matrix and its activations are cut further; its devices talk twice in every layer"
        tried.append(Change("tp", patch, f"tensor parallelism over {double} devices", why))
    if framework.limits.pp:
        double = row["pp"] * 2
        patch = {"layout.pp": double, "layout.vpp": None, "layout.schedule": None, **freed}
        why = "each device holds half the layers; the pipeline idles while it fills and drains"
        tried.append(Change("pp", patch, f"{double} pipeline stages", why))
    if framework.limits.cp:
        double = row["cp"] * 2
        why = "each sequence is cut over more devices, which pass keys and values around"
        tried.append(Change("cp", {"layout.cp": double, **freed}, f"context parallelism over {double} devices", why))
    return tried


def device_changes(planned: Planned, asked: Plan) -> list[Change]:
    """More devices, the next size first; the global batch grows along, so that every device has as much to do."""
    job = planned.job
    named = asked.layout.model_fields_set - {"dp", "shard_group"}
    free: dict[str, Any] = {f"layout.{name}": None for name in Layout.model_fields if name not in named}
    if asked.training.micro_batch is None:
        free["workload.micro_batch"] = None
    if asked.training.framework == "auto":
        free["workload.framework"] = None
    if "cluster.per_node" in {assumption.field for assumption in job.assumptions}:
        free["cluster.per_node"] = None
    why = "the model's states and the batch are dealt over more devices"
    return [
        Change(
            "count",
            {"cluster.count": job.machine.count * times, "workload.global_batch": job.global_batch * times, **free},
            f"{job.machine.count * times} devices instead of {job.machine.count}",
            why,
            "hardware",
        )
        for times in _MORE_DEVICES
    ]


def _looser(planned: Planned) -> list[Change]:
    """Changes that take more memory and may give speed."""
    job, layouts, index = planned.job, planned.estimates.layouts, planned.index
    row, micro = layouts.row(index), int(layouts.micro_batch[index])
    tried = []
    if row["recompute"] != "none":
        partly = row["recompute"] != "selective" and job.framework.recompute.selective != "none"
        modes = ["none", "selective"] if partly else ["none"]
        why = "there is room to keep activations instead of computing them again"
        names = {"none": "no recompute", "selective": "selective recompute only"}
        tried += [Change("recompute", {"layout.recompute": mode}, names[mode], why) for mode in modes]
    tried += [
        Change(
            "zero_stage",
            {"layout.zero_stage": stage},
            f"ZeRO-{stage} (fewer states sharded)",
            "less is gathered over the network",
        )
        for stage in job.framework.limits.zero_stages
        if stage < row["zero_stage"]
    ]
    if row["offload"] != "none":
        what = f"{row['offload']} kept on the device"
        tried.append(Change("offload", {"layout.offload": "none"}, what, "nothing crosses to the host"))
    per_replica = micro * int(layouts.grad_accum[index])
    tried += [
        Change(
            "micro_batch",
            {"workload.micro_batch": size},
            f"{size} sequences per micro-batch",
            "larger matmuls, fewer of them",
        )
        for size in (2 * micro, 4 * micro)
        if per_replica % size == 0
    ]
    if row["tp"] > 1:
        patch = {"layout.tp": row["tp"] // 2, "layout.dp": None, "layout.shard_group": None, "layout.ep": None,
                 "layout.etp": None, "layout.sequence_parallel": None}  # fmt: skip
        what = f"tensor parallelism over {row['tp'] // 2} devices"
        tried.append(Change("tp", patch, what, "fewer devices talk in every layer"))
    return tried
