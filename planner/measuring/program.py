"""The benchmark of a training plan: a program with synthetic data, what it is told, and how it is started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from estimator.model.architecture import Architecture, Block
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.plan.training.stages import lora_targets
from knowledge.models.catalogue import find_architecture
from knowledge.models.known import facts_of
from launchers.matrix import WAITS, runnable
from launchers.pieces import File, Rendered
from launchers.render import render
from launchers.site import Site
from planner.files.render import training_prediction
from planner.training.planned import Planned

TARGET = "benchmark"
PROGRAM, SETTINGS, PLAN = "train.py", "benchmark.json", "plan.json"
_PROGRAMS = (PROGRAM, "decoder.py", "mixers.py")
_SOURCES = Path(__file__).parents[2] / "measure/run/programs"
_OPTIMIZERS = ("adamw", "sgd")
_PRECISIONS = ("bf16", "fp32")
_METHODS = ("full", "lora", "qlora")
# Matrices that the program splits over devices (train.py, split_tensors).
_SPLIT = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
_PLAIN = {"mamba1": "Mamba's states", "mamba2": "Mamba's states", "linear_attention": "states of linear attention"}
_HOURS = 1.0


@dataclass(frozen=True)
class Timing:
    """How a benchmark is timed: optimizer steps that do not count, those that do, how often, and the pause between."""

    warmup: int
    steps: int
    repeats: int
    cooldown_s: float
    profile: bool
    device: str
    threads: int | None

    @property
    def all_steps(self) -> int:
        """The first, which compiles, among them."""
        return 1 + self.warmup + self.steps * self.repeats


def scaled(plan: Plan, layers: int | None) -> Plan:
    """The plan with a model of so many layers, everything else of it as it is. Raises PlanError."""
    if layers is None:
        return plan
    architecture, _ = find_architecture(plan.model)
    if layers > architecture.layers:
        raise PlanError("layers", f"{architecture.id} has {architecture.layers}", [architecture.layers])
    facts = facts_of(architecture.id)
    fields = plan.model if isinstance(plan.model, Mapping) else facts.fields if facts else None
    if fields is None:
        raise PlanError("layers", "is only for models of the catalogue and inline ones", ["no layers"])
    shorter = {
        # A list has an entry for each layer, Nemotron-H's pattern a letter.
        name: value[:layers]
        if (isinstance(value, list) and len(value) == architecture.layers) or name == "hybrid_override_pattern"
        else value
        for name, value in fields.items()
        if value is not None
    }
    shorter |= {"num_hidden_layers": layers, "name": f"{architecture.id} with {layers} layers"}
    return plan.patch({"model": shorter})


def checked(plan: Plan, architecture: Architecture) -> None:
    """Raises PlanError for what the program does not run, so that it never runs something else."""
    training, layout = plan.training, plan.layout
    sets: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
        ("workload.method", training.method, _METHODS), ("workload.precision", training.precision, _PRECISIONS),
        ("workload.optimizer", training.optimizer, _OPTIMIZERS), ("layout.pp", layout.pp or 1, (1,)),
        ("layout.cp", layout.cp or 1, (1,)), ("layout.ep", layout.ep or 1, (1,)),
        ("layout.zero_stage", layout.zero_stage or 0, (0, 2, 3)),
    )  # fmt: skip
    for field, value, valid in sets:
        if value not in valid:
            raise PlanError(field, f"the benchmark's program does not run {value}", valid)
    if layout.recompute == "selective":
        raise PlanError(
            "layout.recompute", "the benchmark's program recomputes whole layers", ["none", "full", "block:8"]
        )
    if (layout.tp or 1) > 1:
        if (layout.zero_stage or 0) < 2 and (layout.dp or 1) > 1:
            raise PlanError("layout.zero_stage", "with tensor parallelism the program shards replicas", [2, 3])
        splits = {matrix.name for block in architecture.blocks for matrix in block.matrices} <= _SPLIT
        if not splits or architecture.tied or training.method != "full":
            problem = "the program splits tensors of dense models with a head of their own, trained in full"
            raise PlanError("layout.tp", problem, [1])


def stand_ins(planned: Planned) -> list[str]:
    """What runs in plain PyTorch and of which the prediction has a framework's own kernels."""
    mixers = {block.mixer for block in planned.job.architecture.blocks}
    parts = sorted({words for mixer, words in _PLAIN.items() if mixer in mixers})
    parts += ["weights in 4 bits"] * planned.job.quantised
    return [f"{what} run in plain PyTorch, and the prediction is of kernels made for them" for what in parts]


def settings_of(planned: Planned, timing: Timing) -> dict[str, Any]:
    """What the program is told: sizes and switches alone, no names to look up."""
    plan, architecture = planned.settled_plan, planned.job.architecture
    training, layout = plan.training, plan.layout
    repeated = {"none": 0, "full": architecture.layers}.get(layout.recompute or "none")
    if repeated is None:
        repeated = int((layout.recompute or "").partition(":")[2])
    micro, replicas = training.micro_batch or 1, layout.dp or 1
    lora, away = training.lora, (layout.offload or "none").split("+")
    return {
        "model": {
            "vocab": architecture.vocab,
            "hidden": architecture.hidden,
            "pattern": list(architecture.pattern),
            "tied": architecture.tied,
            "head_bias": architecture.head_bias,
            "parallel": architecture.parallel_block,
            "parameters": architecture.parameters,
            "blocks": [_block(planned.job, block) for block in architecture.blocks],
        },
        "training": {
            "seq_len": training.seq_len,
            "micro_batch": micro,
            "accumulation": (training.global_batch or micro * replicas) // (micro * replicas),
            "precision": training.precision,
            "weights": training.weights,
            "method": training.method,
            "lora": {"rank": lora.rank, "alpha": lora.alpha},
            "optimizer": training.optimizer,
            "repeated_layers": repeated,
            "loss_in_pieces": training.fused_loss is True,
            "compile": training.compile,
        },
        "layout": {
            "tp": layout.tp or 1,
            "dp": replicas,
            "zero_stage": layout.zero_stage or 0,
            "shard_group": layout.hybrid_group or replicas,
            "params_to_host": "params" in away,
            "states_to_host": "optimizer" in away,
            "activations_to_host": "activations" in away,
        },
        "benchmark": vars(timing),
    }


def _block(job: Job, block: Block) -> dict[str, Any]:
    facts = ("mixer", "norms", "heads", "kv_heads", "head_dim", "v_head_dim", "window", "qk_norm", "experts", "top_k",
            "state_size", "ssm_inner", "ssm_heads", "conv_kernel", "kv_lora_rank", "rope_head_dim", "borrows_cache",
            "crosses", "cache_every", "local_window", "chosen_keys", "index_dim", "parameters")  # fmt: skip
    targets = lora_targets(job, block) if job.uses_adapters else []
    matrices = [
        {
            "name": matrix.name, "role": matrix.role, "copies": matrix.copies, "inputs": matrix.inputs,
            "outputs": matrix.outputs, "bias": matrix.bias,
            "adapted": matrix in targets, "packed": job.quantises(matrix),
        }
        for matrix in block.matrices
    ]  # fmt: skip
    return {name: getattr(block, name) for name in facts} | {"matrices": matrices}


def benchmark_files(planned: Planned, timing: Timing, scheduler: str, site: Site) -> Rendered:
    """The files of the benchmark, and the command that runs it and waits for its end. Raises PlanError."""
    plan, architecture = planned.settled_plan, planned.job.architecture
    checked(plan, architecture)
    if scheduler != "none" and scheduler not in WAITS:
        raise PlanError("scheduler", f"{scheduler!r} does not wait for a run's end", ["none", *WAITS])
    sharded = (plan.layout.zero_stage or 0) >= 2
    started = plan.patch({"workload.framework": "fsdp2" if sharded else "ddp", "workload.steps": timing.all_steps})
    targets = ["torchrun"] if scheduler == "none" else ["torchrun", scheduler]
    site = replace(site, time_limit_h=site.time_limit_h or _HOURS, dataset="synthetic")
    own = (
        *(File(name, TARGET, (_SOURCES / name).read_text(encoding="utf-8")) for name in _PROGRAMS),
        File(SETTINGS, TARGET, _json(settings_of(planned, timing))),
        File(PLAN, TARGET, _json(plan.model_dump(mode="json"))),
    )
    rendered = render(
        started, targets, training_prediction(planned), "benchmark", site,
        lambda files: (*map(_own_program, files), *own),
    )  # fmt: skip
    if scheduler == "none" and "NODE_RANK" in rendered.launch_command:
        raise PlanError("scheduler", "a run of several nodes needs one", list(WAITS))
    needs = tuple(need for need in rendered.needs_from_user if not need.startswith((PROGRAM, "torchrun.sh")))
    waits = WAITS.get(scheduler, rendered.launch_command)
    # What only our own function waits for is shown as a person starts it.
    command = waits if waits == runnable(waits) else rendered.launch_command
    return replace(rendered, launch_command=command, needs_from_user=needs)


def command_of(scheduler: str, rendered: Rendered) -> str:
    """What a shell runs that starts a benchmark and comes back at its end."""
    return runnable(WAITS.get(scheduler, rendered.launch_command))


def _own_program(file: File) -> File:
    """The script that starts it, without the arguments that a training script of the person's own would be given."""
    if file.path != "torchrun.sh":
        return file
    text = file.text.partition(" \\\n    --")[0].replace('"${TRAIN_SCRIPT:-train.py}"', PROGRAM)
    return replace(file, text=f"{text}\n")


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
