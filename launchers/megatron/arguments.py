"""What Megatron-LM and the programs on it take besides a model: layout, batch, precision, optimizer, memory, experts.

Arguments have Megatron-LM's names without dashes (megatron/fields.yaml); the consistency rules are those of its
validate_args and of the configs it fills.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from launchers.devices import accelerator_of
from launchers.launch.duration import kept_every, run_steps, save_steps
from launchers.launch.training import TrainingLaunch
from launchers.tables import table
from launchers.yaml_text import Tree

Arguments = dict[str, Tree]


def check_split(launch: TrainingLaunch, model: Architecture) -> None:
    """Raises PlanError where the layout does not divide the model as Megatron's core asks."""
    layout = launch.plan.layout
    tp, pp, cp, ep = layout.tp or 1, layout.pp or 1, layout.cp or 1, layout.ep or 1
    for block in model.blocks:
        if block.heads and block.heads % tp:
            raise PlanError("layout.tp", f"{block.heads} attention heads cannot be split over tp={tp}")
        if block.mixer == "attention" and block.kv_heads % tp and tp % block.kv_heads:
            raise PlanError("layout.tp", f"{block.kv_heads} key-value heads cannot be split over tp={tp}")
    if pp > model.layers:
        raise PlanError("layout.pp", f"{model.layers} layers cannot be split over pp={pp}")
    if cp > 1 and launch.seq_len % (2 * cp):
        raise PlanError("workload.seq_len", f"{launch.seq_len} tokens cannot be split into 2 x cp={cp} parts")
    if is_sequence_parallel(launch) and launch.seq_len % (tp * cp):
        raise PlanError("workload.seq_len", f"{launch.seq_len} tokens cannot be split over tp x cp = {tp} x {cp} ranks")
    if (layout.vpp or 1) > 1 and pp < 2:
        raise PlanError("layout.vpp", "virtual stages need a pipeline", [1])
    if (layout.vpp or 1) > 1 and launch.accumulation % pp:
        problem = f"interleaving takes micro-batches in groups of pp={pp}, and a step has {launch.accumulation}"
        raise PlanError(
            "workload.global_batch", problem, [launch.micro_batch * launch.dp * pp * (launch.accumulation // pp + 1)]
        )
    if ep > 1 and not model.experts:
        raise PlanError("layout.ep", "the model has no experts", [1])
    if model.experts and model.experts % ep:
        raise PlanError("layout.ep", f"{model.experts} experts cannot be split over ep={ep}")
    etp = layout.etp or tp
    if model.experts and (tp * cp * launch.dp) % (ep * etp):
        raise PlanError(
            "layout.ep", f"ep x etp = {ep} x {etp} does not divide tp x cp x dp = {tp} x {cp} x {launch.dp}"
        )
    if model.experts and tp > 1 and layout.sequence_parallel is False:
        problem = "experts and tensor parallelism need sequence parallelism"
        raise PlanError("layout.sequence_parallel", problem, ["true"])


def is_sequence_parallel(launch: TrainingLaunch) -> bool:
    """A plan that does not say has it wherever tensors are split."""
    layout = launch.plan.layout
    return (layout.tp or 1) > 1 and layout.sequence_parallel is not False


def parallelism(launch: TrainingLaunch, model: Architecture) -> Arguments:
    """Sizes of the groups, pipeline stages, what dp shards."""
    layout = launch.plan.layout
    arguments: Arguments = {
        "tensor_model_parallel_size": layout.tp,
        "pipeline_model_parallel_size": layout.pp,
        "context_parallel_size": layout.cp,
    }
    if is_sequence_parallel(launch):
        arguments["sequence_parallel"] = True
    if model.experts:
        arguments["expert_model_parallel_size"] = layout.ep
        if layout.etp is not None:
            arguments["expert_tensor_parallel_size"] = layout.etp
    arguments |= pipeline(launch, model)
    arguments |= table("megatron/fields")["zero"][launch.zero_stage] | _reduction(launch)
    if layout.shard_group is not None and layout.shard_group != launch.dp:
        arguments["num_distributed_optimizer_instances"] = launch.dp // layout.shard_group
    if launch.training.tp_overlap is True:
        arguments["tp_comm_overlap"] = True
    return arguments


def _reduction(launch: TrainingLaunch) -> Arguments:
    """Whether gradients are reduced, and updated weights gathered, beside the passes; Megatron-FSDP decides for itself.

    Weights are gathered by the distributed optimizer alone (validate_args). A plan that does not say has both with it.
    """
    sharded, overlap = launch.zero_stage == 1, launch.training.dp_overlap
    if launch.zero_stage > 1 or not (overlap in (True, "gradients") or (sharded and overlap)):
        return {}
    arguments: Arguments = {"overlap_grad_reduce": True}
    return arguments | {"overlap_param_gather": True} if sharded and overlap != "gradients" else arguments


def pipeline(launch: TrainingLaunch, model: Architecture) -> Arguments:
    """Virtual stages as layers of each; where layers do not divide, the whole pipeline written out."""
    layout, layers = launch.plan.layout, model.layers
    pp, vpp = layout.pp or 1, layout.vpp or 1
    if pp == 1:
        return {}
    if layers % (pp * vpp) == 0:
        return {"num_layers_per_virtual_pipeline_stage": layers // (pp * vpp)} if vpp > 1 else {}
    if layers < pp * vpp:
        raise PlanError("layout.vpp", f"{layers} layers cannot be split into pp x vpp = {pp} x {vpp} parts")
    return {"pipeline_model_parallel_layout": written_out(stage_sizes(layers, pp * vpp))}


def stage_sizes(layers: int, stages: int) -> list[int]:
    """Layers of each stage, as even as they go; the stages with one less are the last, then the first, which hold the
    head and the embedding, then those beside them."""
    less = stages - layers % stages if layers % stages else 0
    sizes = [math.ceil(layers / stages)] * stages
    order = [stage for pair in zip(reversed(range(stages)), range(stages), strict=True) for stage in pair]
    for stage in list(dict.fromkeys(order))[:less]:
        sizes[stage] -= 1
    return sizes


def written_out(sizes: Sequence[int]) -> str:
    """Megatron's pipeline layout: E the embedding, t a layer, L the loss, | between stages."""
    parts = [f"t*{size}" if size > 1 else "t" * size for size in sizes]
    return "|".join(["E" + parts[0], *parts[1:-1], parts[-1] + "L"])


def precision(launch: TrainingLaunch) -> Arguments:
    words = table("megatron/fields")
    return words["precisions"][launch.training.precision] | words["gradients"][launch.training.gradients]


def batch(launch: TrainingLaunch) -> Arguments:
    return {"micro_batch_size": launch.micro_batch, "global_batch_size": launch.global_batch}


def length(launch: TrainingLaunch, option: str, needs: list[str], path: str) -> Arguments:
    """Iterations of the run; a number to start from, and a need, where the plan does not say."""
    known = run_steps(launch)
    if known is None:
        needs.append(f"{path}: {option}, the optimizer steps of the run (the plan says neither steps nor data)")
    return {"train_iters": known or table("megatron/fields")["steps"]}


def saving(launch: TrainingLaunch) -> Arguments:
    """Where checkpoints go, how often, and which stay for good; the run goes on from the newest that lies there."""
    folder = f"saves/{launch.slug}"
    interval = save_steps(launch, table("megatron/fields")["save_interval"])
    return {
        "save": folder,
        "load": folder,
        "save_interval": interval,
        "save_retain_interval": kept_every(launch, interval),
    }


def _recomputed(launch: TrainingLaunch) -> int:
    """The plan's layers per pipeline stage as Megatron counts them: per virtual stage. Raises PlanError."""
    layers, chunks = int(launch.recompute.removeprefix("block:")), launch.plan.layout.vpp or 1
    if layers % chunks:
        low = layers // chunks * chunks
        near = [f"block:{count}" for count in (low, low + chunks) if count]
        problem = f"Megatron recomputes equally many layers in each of the {chunks} virtual stages of a device"
        raise PlanError("layout.recompute", problem, near)
    return layers // chunks


def memory(launch: TrainingLaunch, model: Architecture) -> Arguments:
    """Recompute, offload, attention, fused loss, CUDA graphs."""
    words, training = table("megatron/fields"), launch.training
    if launch.recompute.startswith("block:"):
        arguments: Arguments = {
            "recompute_granularity": "full",
            "recompute_method": "block",
            "recompute_num_layers": _recomputed(launch),
        }
    else:
        arguments = dict(words["recompute"][launch.recompute])
        if modules := launch.plan.layout.recompute_modules:
            arguments["recompute_modules"] = [*modules]
    arguments |= words["offload"][launch.offload]
    arguments |= words["attention"][training.attention]
    if training.fused_loss is True:
        arguments |= {"cross_entropy_loss_fusion": True, "cross_entropy_fusion_impl": "native"}
    arguments |= words["cuda_graphs"][training.cuda_graph]
    if training.cuda_graph == "layers" and model.experts:
        arguments["cuda_graph_modules"] = list(words["cuda_graph_parts_of_experts"])
    return arguments


def experts(launch: TrainingLaunch, model: Architecture) -> Arguments:
    """Dispatch of tokens, capacity, grouped matmuls; nothing for a dense model."""
    if not model.experts:
        return {}
    words, training = table("megatron/fields"), launch.training
    arguments: Arguments = dict(words["moe"])
    arguments |= words["moe_dispatchers"][dispatcher(launch) or "alltoall"]
    if training.moe_capacity is True:
        arguments |= words["moe_capacity"]
    if training.moe_overlap is True:
        arguments["overlap_moe_expert_parallel_comm"] = True
    return arguments


def dispatcher(launch: TrainingLaunch) -> str | None:
    """What carries tokens to experts, by its own name; None where the plan leaves it open."""
    match launch.training.moe_dispatcher:
        case "auto":
            return None
        case "flex":
            return "hybridep" if in_rack(launch) else "deepep"
        case named:
            return named


def in_rack(launch: TrainingLaunch) -> bool:
    """Whether the devices are those of racks in which NVLink joins more than eight (GB200 and later)."""
    try:
        return accelerator_of(launch).id.startswith("gb")
    except PlanError:
        return False


def check_experts(launch: TrainingLaunch, model: Architecture) -> None:
    """Raises PlanError where experts cannot be run as the plan says."""
    layout, training = launch.plan.layout, launch.training
    if not model.experts:
        for name in ("moe_overlap", "moe_capacity"):
            if getattr(training, name) is True:
                raise PlanError(f"workload.{name}", "the model has no experts", ["false"])
        return
    if training.cuda_graph == "full" and training.moe_capacity is not True:
        problem = "one CUDA graph of an iteration needs a fixed number of tokens per expert"
        raise PlanError("workload.moe_capacity", problem, ["true"])
    if training.moe_capacity is True and dispatcher(launch) == "deepep":
        raise PlanError("workload.moe_dispatcher", "DeepEP takes no padding to a capacity", ["alltoall"])
    if training.moe_overlap is not True:
        return
    if (layout.ep or 1) == 1:
        raise PlanError(
            "workload.moe_overlap", "dispatch is overlapped only where experts are split (ep > 1)", ["false"]
        )
    if (layout.pp or 1) > 1 and (layout.vpp or 1) == 1:
        raise PlanError("layout.vpp", "in a pipeline dispatch is overlapped only with virtual stages")
    if launch.recompute == "full" or launch.recompute.startswith("block:"):
        raise PlanError(
            "layout.recompute", "dispatch is not overlapped where whole layers are recomputed", ["selective"]
        )


def connections(launch: TrainingLaunch) -> str | None:
    """CUDA_DEVICE_MAX_CONNECTIONS: 1 orders collectives before matmuls where tensors or sequences are split on devices
    before Blackwell; FSDP and overlapped dispatch want several, which is the default."""
    layout = launch.plan.layout
    if launch.zero_stage > 1 or (layout.tp or 1) * (layout.cp or 1) == 1:
        return None
    try:
        family = accelerator_of(launch).family
    except PlanError:
        family = ""
    return None if family.startswith("Blackwell") else "1"
