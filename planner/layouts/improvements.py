"""What would make a plan faster: Plan patches, each estimated as a plan of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.change import OPEN_LAYOUT, Change
from planner.results import Improvement
from planner.training.planned import Planned

# One percent is within what an estimate can tell apart; less is no reason to change a plan.
_LEAST_GAIN = 0.01
_MOST_TOLD = 6
# Frameworks that a run on GPUs can be moved to, AMD having a Megatron of its own. Those never timed are not told.
_FRAMEWORKS = ("megatron-bridge", "torchtitan", "deepspeed", "fsdp2")
_AMD_MEGATRON = "primus"
# What else a new split leaves open.
_SPLIT_FOLLOWS = ("dp", "shard_group", "ep", "etp", "sequence_parallel")


def improvements(planned: Planned) -> list[Improvement]:
    """Changes that fit and give more tokens/s, the most first; each knob once."""
    best: dict[str, Improvement] = {}
    for change in changes(planned):
        told = _estimated(planned, change)
        if told and told.gain > _LEAST_GAIN and (change.knob not in best or told.gain > best[change.knob].gain):
            best[change.knob] = told
    return sorted(best.values(), key=lambda told: -told.gain)[:_MOST_TOLD]


def _estimated(planned: Planned, change: Change) -> Improvement | None:
    """The changed plan's figures; None where it is not valid or does not fit."""
    other = planned.varied(change.patch)
    if other is None or not other.fits:
        return None
    if change.kind == "framework" and not other.job.calibration.time_measured:
        return None
    before = float(planned.estimates.step.seconds[planned.index])
    after = float(other.estimates.step.seconds[other.index])
    speedup = (other.job.tokens_per_step / after) / (planned.job.tokens_per_step / before)
    return Improvement(
        patch=told_patch(change, other),
        what=f"{change.what}: {other.estimates.layouts.summary(other.index)}" if change.keeps_choice else change.what,
        why=change.why,
        kind=change.kind,
        step_s_before=before,
        step_s=after,
        tokens_per_s=other.job.tokens_per_step / after,
        gain=speedup - 1.0,
        speedup=speedup,
        mfu=float(other.estimates.mfu[other.index]),
        per_device_bytes=float(other.estimates.memory.total[other.index]),
        fits=other.fits,
    )


def told_patch(change: Change, other: Planned) -> dict[str, Any]:
    """The patch with the layout that was found for it, where it leaves that open."""
    if not change.keeps_choice:
        return dict(change.patch)
    layouts = other.estimates.layouts
    choice = {"layout": layouts.row(other.index), "workload.micro_batch": int(layouts.micro_batch[other.index])}
    return dict(change.patch) | choice


def changes(planned: Planned) -> Iterator[Change]:
    """What is tried to make a plan faster; of one knob's changes the best is told."""
    yield from _batch_changes(planned)
    yield from _memory_for_speed(planned)
    yield from _split_changes(planned)
    yield from _kernel_changes(planned)
    yield from _network_changes(planned)
    yield from _open_changes(planned)


def _batch_changes(planned: Planned) -> Iterator[Change]:
    job, layouts, index = planned.job, planned.estimates.layouts, planned.index
    micro, accumulate = int(layouts.micro_batch[index]), int(layouts.grad_accum[index])
    for times in (2, 4, 8):
        if accumulate % times == 0:
            what = f"{micro * times} sequences per micro-batch instead of {micro}"
            why = "larger matmuls and fewer of them, and less traffic for each sequence"
            yield Change("micro_batch", {"workload.micro_batch": micro * times}, what, why)
    for times in (2, 4):
        batch = job.global_batch * times
        what = f"a global batch of {batch} sequences instead of {job.global_batch}"
        why = "what is done once a step, and the bubble of a pipeline, is shared by more tokens; the training changes"
        yield Change("global_batch", {"workload.global_batch": batch}, what, why, "training")
    if not job.training.packing:
        why = "no device time goes to padding; which samples share a sequence changes"
        yield Change("packing", {"workload.packing": True}, "pack samples to full sequences", why, "training")


def _memory_for_speed(planned: Planned) -> Iterator[Change]:
    job = planned.job
    row = planned.estimates.layouts.row(planned.index)
    if row["recompute"] != "none":
        why = "less is computed again in the backward pass; activations take the room"
        yield Change("recompute", {"layout.recompute": "none"}, "no recompute", why)
        if row["recompute"] != "selective" and job.framework.recompute.selective != "none":
            yield Change("recompute", {"layout.recompute": "selective"}, "selective recompute only", why)
    for stage in job.framework.limits.zero_stages:
        if stage != row["zero_stage"]:
            why = "less is gathered over the network" if stage < row["zero_stage"] else "updates are shared out further"
            yield Change("zero_stage", {"layout.zero_stage": stage}, f"ZeRO-{stage}", why)
    if row["offload"] != "none":
        why = "nothing crosses the link to the host"
        yield Change("offload", {"layout.offload": "none"}, f"{row['offload']} kept on the device", why)


def _split_changes(planned: Planned) -> Iterator[Change]:
    row = planned.estimates.layouts.row(planned.index)
    freed: dict[str, Any] = {f"layout.{name}": None for name in _SPLIT_FOLLOWS}
    if row["tp"] > 1:
        size = row["tp"] // 2
        why = "fewer devices talk in every layer, and matmuls are wider"
        yield Change("tp", {"layout.tp": size, **freed}, f"tensor parallelism over {size}", why)
        if not row["sequence_parallel"]:
            why = "norms and residual sums are split over the tensor-parallel devices too"
            yield Change("sequence_parallel", {"layout.sequence_parallel": True}, "sequence parallelism", why)
    if row["pp"] > 1:
        why = "the pipeline fills and drains in less time"
        fewer: dict[str, Any] = {"layout.pp": row["pp"] // 2, "layout.vpp": None, "layout.schedule": None, **freed}
        yield Change("pp", fewer, f"{row['pp'] // 2} pipeline stages", why)
        for times in (2, 4):
            more = {"layout.vpp": row["vpp"] * times, "layout.schedule": "interleaved"}
            yield Change("vpp", more, f"{row['vpp'] * times} virtual stages per device", why)
    if row["cp"] > 1:
        size = row["cp"] // 2
        why = "keys and values go round fewer devices"
        yield Change("cp", {"layout.cp": size, **freed}, f"context parallelism over {size}", why)


def _kernel_changes(planned: Planned) -> Iterator[Change]:
    job, training = planned.job, planned.job.training
    if not job.fused_loss:
        why = "logits are not written to memory and read again"
        yield Change("fused_loss", {"workload.fused_loss": True}, "fused cross-entropy", why)
    if not training.compile:
        why = "operators that are bound by memory are joined into fewer kernels"
        yield Change("compile", {"workload.compile": True}, "torch.compile", why)
    if training.attention == "eager":
        why = "scores never go through device memory"
        yield Change("attention", {"workload.attention": "flash"}, "flash attention", why)
    elif training.attention != "flash3" and job.machine.accelerator.family == "Hopper":
        why = "its kernels are written for this device"
        yield Change("attention", {"workload.attention": "flash3"}, "flash attention 3", why)
    # Switches that are on already gain nothing, and so do those of a framework that has none.
    why = "kernels are launched together, so that the device waits less for the host"
    yield Change("cuda_graph", {"workload.cuda_graph": "full"}, "CUDA graphs of the whole iteration", why)
    yield Change("cuda_graph", {"workload.cuda_graph": "layers"}, "CUDA graphs of layers", why)
    if int(planned.estimates.layouts.tp[planned.index]) > 1:
        why = "tensor-parallel communication runs beside the matmuls"
        yield Change("tp_overlap", {"workload.tp_overlap": True}, "overlap of tensor-parallel communication", why)
    if int(planned.estimates.layouts.ep[planned.index]) > 1:
        why = "tokens cross between nodes once per node and not once per expert"
        yield Change("moe_dispatcher", {"workload.moe_dispatcher": "flex"}, "a dispatcher that knows nodes", why)
        why = "tokens are on their way while another micro-batch is computed"
        yield Change("moe_overlap", {"workload.moe_overlap": True}, "overlap of expert dispatch", why)
    if training.precision in ("bf16", "fp16") and not job.quantised and job.machine.accelerator.peak_flops.get("fp8"):
        why = "matmuls run at the 8-bit rate, against which MFU is then counted; the numerics of the training change"
        yield Change("precision", {"workload.precision": "fp8"}, "fp8 matmuls", why, "training")


def _network_changes(planned: Planned) -> Iterator[Change]:
    """Twice the bandwidth of a node's network, on as many ports."""
    machine = planned.job.machine
    kind, _, ports = machine.network.name.partition("-")
    gbps, _, count = ports.rpartition("-")[2].partition("x")
    if machine.nodes > 1 and count:
        faster = f"{kind}-{2 * float(gbps):g}x{count}"
        what = f"twice the network between nodes ({faster})"
        why = "gradients, weights and activations cross between nodes in half the time"
        yield Change("interconnect", {"cluster.interconnect": faster}, what, why, "hardware")


def _open_changes(planned: Planned) -> Iterator[Change]:
    """The best layout of the search, and other frameworks with theirs."""
    job = planned.job
    why = "the fastest of all layouts that fit"
    if job.plan.layout.model_fields_set or job.training.micro_batch is not None:
        yield Change("layout", OPEN_LAYOUT, "the best layout", why, keeps_choice=True)
    vendor = job.machine.accelerator.vendor
    if vendor not in ("NVIDIA", "AMD"):
        return
    for name in (_AMD_MEGATRON if name == "megatron-bridge" and vendor == "AMD" else name for name in _FRAMEWORKS):
        if name != job.framework.name:
            patch = OPEN_LAYOUT | {"workload.framework": name}
            why = f"with its own best layout, its measured runs behind it, ahead of {job.framework.name}"
            yield Change("framework", patch, name, why, "framework", keeps_choice=True)
