"""torchtitan 0.3.0: a Bash script that starts one of its registered configs with the plan's values over it.

Since 0.3 a run is a function of Python (`--module`, `--config`) and options; there are no TOML files. The options stand
in the script as they are, without variables.
"""

from __future__ import annotations

import math
import shlex

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from knowledge.models.catalogue import architecture
from knowledge.models.known import architecture_row
from launchers.launch.duration import KEPT_NEWEST, run_steps, save_steps
from launchers.launch.heading import bash_heading
from launchers.launch.training import TrainingLaunch
from launchers.megatron.arguments import is_sequence_parallel
from launchers.pieces import File, Piece, Start
from launchers.shell.starting import script_command, torchrun_in_script
from launchers.tables import table
from launchers.trial import profiling

PATH = "torchtitan.sh"
Options = dict[str, object]


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start on every node, and what the user must set."""
    model = architecture(launch.plan.model)
    module, config = _config(launch, model)
    _check(launch, model, config)
    needs = ["environment: pip install torchtitan==0.3.0, and the model's tokenizer in assets/hf (or --hf-assets-path)"]
    groups: dict[str, Options] = {
        "batch": _batch(launch, needs),
        "parallelism": _sharding(launch) | _pipeline(launch, model),
        "precision and memory": _memory(launch),
        "data and output": _data(launch, needs) | profiling.settings(launch),
    }
    lines = [*bash_heading(launch, PATH), ""]
    command = [
        f"exec torchrun {torchrun_in_script(launch)}",
        f"-m torchtitan.train --module {module} --config {config}",
    ]
    command += [shlex.join(_words(options)) for options in groups.values()]
    # tyro's choice of a variant: it stands after all options.
    command.append(f"activation_checkpoint:{table('torchtitan/fields')['recompute'][launch.recompute]}")
    lines += [" \\\n    ".join(command), ""]
    file = File(PATH, "torchtitan", "\n".join(lines), executable=True)
    return Piece((file,), tuple(needs), Start(script_command(launch, PATH), programs=("torchtitan",)))


def _config(launch: TrainingLaunch, model: Architecture) -> tuple[str, str]:
    """Module and config of the plan's model and precision. Raises PlanError with those that there are."""
    known = table("torchtitan/fields")["models"]
    row_id = architecture_row(model.id)
    if row_id not in known:
        raise PlanError("model", f"torchtitan 0.3 has no config of {model.id}", list(known))
    row, precision = known[row_id], launch.training.precision
    if precision not in row:
        problem = f"torchtitan 0.3 has no config of {model.id} in {precision}"
        raise PlanError("workload.precision", problem, [name for name in row if name != "module"])
    return row["module"], row[precision]


def _check(launch: TrainingLaunch, model: Architecture, config: str) -> None:
    """Raises PlanError where the plan is not what the trainer can run."""
    layout = launch.plan.layout
    tp, pp, cp, ep = layout.tp or 1, layout.pp or 1, layout.cp or 1, layout.ep or 1
    if config in table("torchtitan/fields")["compiled"] and not launch.training.compile:
        raise PlanError("workload.compile", f"{config} needs torch.compile", ["true"])
    split = (tp if is_sequence_parallel(launch) else 1) * (2 * cp if cp > 1 else 1)
    if launch.seq_len % split:
        raise PlanError("workload.seq_len", f"{launch.seq_len} tokens cannot be split into {split} parts")
    if launch.zero_stage == 0 and launch.dp > 1 and tp * pp * cp * ep > 1:
        raise PlanError("layout.zero_stage", "whole replicas (DDP) are run without other parallelism", [2, 3])
    shards = _shards(launch)
    if ep > 1 and (not model.experts or model.experts % ep or (shards * cp * tp) % ep):
        problem = f"ep={ep} has to divide the experts and the {shards * cp * tp} ranks of a shard group"
        raise PlanError("layout.ep", problem)
    if model.experts and layout.etp not in (None, split := tp if ep == 1 else 1):
        raise PlanError("layout.etp", "experts are split over the tensor ranks where they are not spread", [split])
    for block in model.blocks:
        if block.heads % tp or (block.mixer == "attention" and block.kv_heads % tp):
            raise PlanError("layout.tp", f"{block.heads} heads, {block.kv_heads} of keys, cannot be split over tp={tp}")
    if launch.training.cuda_graph == "full" and (pp > 1 or ep > 1):
        field = "layout.pp" if pp > 1 else "layout.ep"
        raise PlanError(field, "torchtitan captures no CUDA graph of pipelines and of expert dispatch", [1])


def _batch(launch: TrainingLaunch, needs: list[str]) -> Options:
    """In a pipeline the local batch is all micro-batches of a step; else one, and the rest is accumulation."""
    in_pipeline = (launch.plan.layout.pp or 1) > 1
    known = run_steps(launch)
    if known is None:
        needs.append(f"{PATH}: --training.steps, the optimizer steps of the run (the plan says neither steps nor data)")
    options: Options = {
        "training.local_batch_size": launch.micro_batch * (launch.accumulation if in_pipeline else 1),
        "training.global_batch_size": launch.global_batch,
        "training.seq_len": launch.seq_len,
        "training.steps": known or table("torchtitan/fields")["steps"],
    }
    if in_pipeline:
        options["parallelism.pipeline_parallel_microbatch_size"] = launch.micro_batch
    return options


def _shards(launch: TrainingLaunch) -> int:
    """Data-parallel ranks that share a copy of the weights."""
    return 1 if launch.zero_stage == 0 else launch.plan.layout.shard_group or launch.dp


def _sharding(launch: TrainingLaunch) -> Options:
    """FSDP with (3) or without (2) resharding after the forward pass, groups of it, tensors, sequences, experts."""
    layout, shards = launch.plan.layout, _shards(launch)
    options: Options = {
        "parallelism.data_parallel_replicate_degree": launch.dp // shards,
        "parallelism.data_parallel_shard_degree": shards,
        "parallelism.fsdp_reshard_after_forward": "always" if launch.zero_stage == 3 else "never",
        "parallelism.tensor_parallel_degree": layout.tp,
        "parallelism.context_parallel_degree": layout.cp,
        "parallelism.expert_parallel_degree": layout.ep,
        "parallelism.pipeline_parallel_degree": layout.pp,
    }
    if layout.sequence_parallel is False:
        options["parallelism.no_enable_sequence_parallel"] = True
    return options


def _pipeline(launch: TrainingLaunch, model: Architecture) -> Options:
    """Schedule, and layers of a (virtual) stage so that there are pp x vpp of them."""
    layout = launch.plan.layout
    pp, vpp = layout.pp or 1, layout.vpp or 1
    if pp == 1:
        return {}
    kind = "virtual" if vpp > 1 else "single"
    schedules = table("torchtitan/fields")["schedules"][kind]
    wanted = layout.schedule or ("interleaved" if vpp > 1 else "1f1b")
    if wanted not in schedules:
        problem = f"there is no {wanted} schedule with {vpp} stage{'s' if vpp > 1 else ''} per rank"
        raise PlanError("layout.schedule", problem, list(schedules))
    if wanted == "dualpipe" and vpp != 2:
        raise PlanError("layout.vpp", "DualPipeV has two stages per rank", [2])
    if wanted in ("interleaved", "zero-bubble") and launch.accumulation % pp:
        problem = f"{wanted} takes micro-batches in rounds of pp={pp}, and a step has {launch.accumulation}"
        raise PlanError(
            "workload.global_batch", problem, [launch.micro_batch * launch.dp * pp * (launch.accumulation // pp + 1)]
        )
    layers = math.ceil(model.layers / (pp * vpp))
    if math.ceil(model.layers / layers) != pp * vpp:
        raise PlanError(
            "layout.vpp" if vpp > 1 else "layout.pp", f"{model.layers} layers do not make {pp} x {vpp} stages"
        )
    return {
        "parallelism.pipeline_parallel_schedule": schedules[wanted],
        "parallelism.pipeline_parallel_layers_per_stage": layers,
        "parallelism.pipeline_parallel_first_stage_less_layers": 0,
        "parallelism.pipeline_parallel_last_stage_less_layers": 0,
    }


def _memory(launch: TrainingLaunch) -> Options:
    """Types, compile, CUDA graphs, offload. Every switch is said, as the registered configs differ in them."""
    training = launch.training
    compiled, overlapped = training.compile, training.tp_overlap is True
    options: Options = {
        "training.dtype": "bfloat16" if training.weights == "bf16" else "float32",
        "training.mixed_precision_param": "float32" if training.precision == "fp32" else "bfloat16",
        _switch("compile.enable", compiled): True,
        _switch("compile.enable_async_tensor_parallel", overlapped): True,
        _switch("training.disable_cuda_graphs", training.cuda_graph != "full"): True,
        _switch("training.enable_cpu_offload", launch.offload == "params"): True,
    }
    if compiled:
        options["compile.components"] = "model,loss"
    return options


def _switch(name: str, on: bool) -> str:
    section, _, field = name.partition(".")
    return name if on else f"{section}.no_{field}"


def _data(launch: TrainingLaunch, needs: list[str]) -> Options:
    options: Options = {}
    if launch.site.dataset is None:
        needs.append(f"{PATH}: --dataloader.dataset_path, your data (the config streams C4 from the Hugging Face hub)")
    else:
        if launch.synthetic:
            # A folder with a column text (hf_datasets/text_datasets.py); others have the hub's form.
            options["dataloader.dataset"] = "c4_test"
        options["dataloader.dataset_path"] = launch.site.dataset
    return options | {
        "dump_folder": f"saves/{launch.slug}",
        "checkpoint.enable": True,
        "checkpoint.interval": save_steps(launch),
        "checkpoint.keep_latest_k": KEPT_NEWEST,
        "metrics.log_freq": 10,
        # Its own hundred seconds are too short to save a large model.
        **({"comm.train_timeout_seconds": 3600} if launch.devices > 1 else {}),
    }


def _words(options: Options) -> list[str]:
    """Options as words; a value in one word with its option, so that none is taken for another option."""
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]
