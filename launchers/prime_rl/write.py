"""prime-rl 0.8 TOML: its SFT trainer, started by torchrun on every node, or its RL run on one. Words: fields.yaml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from launchers.families import template_of
from launchers.hf.adapters import target_modules
from launchers.hf.write import learning_rate
from launchers.launch.duration import KEPT_NEWEST, run_steps, save_steps
from launchers.launch.heading import heading
from launchers.launch.placeholders import DATASET, ENGINE_HOST, MARK, MODEL, REWARD
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.rollouts import answer_tokens, samples_per_prompt
from launchers.shell.starting import torchrun_options
from launchers.tables import table
from launchers.trial import profiling
from launchers.trial.synthetic import is_own

PATH = "prime_rl.toml"
_OFF = "None"  # docs/configuration.md: TOML has no null
Section = dict[str, Any]


def render(launch: TrainingLaunch) -> Piece:
    """The TOML, its start, and what the user must set."""
    needs = ["environment: prime-rl 0.8 with its locked packages (git clone, uv sync --all-extras), on every node"]
    if launch.training.stage == "grpo":
        command, programs = f"rl @ {PATH}", ("rl",)
        sections = _reinforced(launch, needs)
    else:
        command = f"torchrun {torchrun_options(launch)} -m prime_rl.trainer.sft.train @ {PATH}"
        programs, sections = ("torchrun",), _supervised(launch, needs)
    steps = run_steps(launch)
    if steps is None:
        needs.append(f"{PATH}: max_steps, without which it does not end")
    top: Section = {"output_dir": "saves", **({} if steps is None else {"max_steps": steps})}
    # A run of this name goes on from its newest checkpoint where there is one.
    run: dict[str, Section] = {
        "run": {"name": launch.slug},
        "ckpt": {"interval": save_steps(launch), "keep_last": KEPT_NEWEST},
        "resume": {},
    }
    if profiler := profiling.settings(launch):
        run |= {"trainer": profiler} if launch.training.stage == "grpo" else {}
        top |= profiler if launch.training.stage != "grpo" else {}
    lines = [f"# {line}" for line in heading(launch, command)]
    for name, section in {"": top, **sections, **run}.items():
        lines += ["", *([f"[{name}]"] if name else []), *(f"{key} = {_value(part)}" for key, part in section.items())]
    file = File(PATH, "prime-rl", "\n".join([*lines, ""]))
    return Piece((file,), tuple(needs), Start(command, programs=programs))


def _value(value: Any) -> str:
    """A value of TOML: JSON's words for numbers, truth, text and lists of these are the same."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_value(part)}" for key, part in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _supervised(launch: TrainingLaunch, needs: list[str]) -> dict[str, Section]:
    if launch.site.dataset is None:
        needs.append(f"{PATH}: data.name, a Hugging Face data set with a column messages, or prompt and completion")
    data: Section = {
        **({"type": "fake", "input_ids": "random"} if is_own(launch) else {"name": launch.site.dataset or DATASET}),
        "seq_len": launch.seq_len,
        "batch_size": launch.global_batch,
        "micro_batch_size": launch.micro_batch,
    }
    renderer = _renderer(launch)
    if renderer is None:
        needs.append(f"{PATH}: renderer.name, prime-rl's renderer of this model's chats, without which it trains none")
    deployment = {"num_train_gpus": launch.devices, "gpus_per_node": launch.devices}
    # Several nodes are torchrun's own: the launcher's would ask for Slurm.
    sections = {"deployment": deployment} if launch.nodes == 1 else {}
    return {**sections, **_trainer(launch, "", needs), "renderer": {"name": renderer or MARK}, "data": data}


def _renderer(launch: TrainingLaunch) -> str | None:
    return table("prime_rl/fields")["renderers"].get(template_of(launch.model))


def _reinforced(launch: TrainingLaunch, needs: list[str]) -> dict[str, Section]:
    """Answers come from an engine that is started apart, and their rewards from an environment."""
    answer, size = answer_tokens(launch), samples_per_prompt(launch)
    name = launch.model or MODEL
    lora = f" --vllm.enable-lora --vllm.max-lora-rank {launch.training.lora.rank}" if launch.uses_adapters else ""
    needs.append(
        f"{PATH}: orchestrator.model.client.base_url, the engine's address; on devices of its own and over the same "
        f"folder: inference --vllm.model {name} --vllm.max-model-len {launch.seq_len}{lora}"
    )
    needs.append(f"{PATH}: {REWARD}, the environment (a verifiers task set) that gives prompts and rewards")
    return {
        "deployment": {"num_train_gpus": launch.devices, "num_infer_gpus": 0, "gpus_per_node": launch.devices},
        "weight_broadcast": {"type": "filesystem"},
        **_trainer(launch, "trainer.", needs),
        "orchestrator": {"batch_size": launch.global_batch, "group_size": size, "seq_len": launch.seq_len},
        "orchestrator.model.client": {"base_url": f"http://{ENGINE_HOST}:8000/v1"},
        "orchestrator.renderer": {"name": _renderer(launch) or "default"},
        "orchestrator.train.sampling": {"max_completion_tokens": answer},
        # One of a list, with the agent of one turn of its examples (configs/basic).
        "[orchestrator.train.source]": {"name": "train"},
        "orchestrator.train.source.env.taskset": {"id": REWARD},
        "orchestrator.train.source.env.agent": {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}},
    }


def _trainer(launch: TrainingLaunch, below: str, needs: list[str]) -> dict[str, Section]:
    """What trains: the same sections in both files, in RL below `trainer`."""
    training, layout, words = launch.training, launch.plan.layout, table("prime_rl/fields")
    if launch.model is None:
        needs.append(f"{PATH}: model.name, a checkpoint of the planned architecture")
    group = launch.dp if layout.shard_group is None else layout.shard_group
    model: Section = {
        "seq_len": launch.seq_len,
        "attn": words["attention"].get(training.attention, "auto"),
        "optimization_dtype": "bfloat16" if training.weights == "bf16" else "float32",
        "reduce_dtype": "float32",
        "reshard_after_forward": launch.zero_stage == 3,
        "dp_replicate": launch.dp // group,
        "cp": layout.cp or 1,
        "ep": layout.ep or 1,
        "fsdp_cpu_offload": launch.offload.startswith("params"),
        "optim_cpu_offload": launch.offload.startswith("optimizer"),
    }
    parts: Section = {
        "compile": {} if training.compile else _OFF,
        "ac": {"mode": "full", "freq": 1} if launch.recompute == "full" else _OFF,
        "ac_offloading": {} if launch.offload.endswith("activations") else _OFF,
    }
    if training.fused_loss != "auto":
        model["fused_lm_head_token_chunk_size"] = words["loss_chunk"] if training.fused_loss else "disabled"
    if training.precision != "bf16":
        parts["quantization"] = {"type": training.precision}
    if launch.uses_adapters:
        parts["lora"] = _adapter(launch, needs)
    optimizer: Section = {"type": training.optimizer, "lr": learning_rate(launch)}
    named: dict[str, Section] = {"model": {"name": launch.model or MODEL}}
    if not below:
        model = named.pop("model") | model
    return {**named, f"{below}model": {**model, **parts}, f"{below}optim": optimizer}


def _adapter(launch: TrainingLaunch, needs: list[str]) -> Section:
    lora = launch.training.lora
    targets = target_modules(launch, PATH, "model.lora.target_modules", needs)
    named = {} if targets is None else {"target_modules": targets}
    return {"rank": lora.rank, "alpha": float(lora.alpha), "dropout": lora.dropout, **named}
