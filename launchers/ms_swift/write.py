"""ms-swift 4.6: a Bash script of its command, which starts torchrun itself. Words: fields.yaml, ../hf/fields.yaml."""

from __future__ import annotations

import shlex

from launchers.devices import attention_of
from launchers.hf.adapters import checkpoint, embedding_modules, target_modules
from launchers.hf.profiler import CALLBACK, IMPORTS, callback
from launchers.hf.sharding import backend_of
from launchers.hf.write import LAST_SAVED, learning_rate, length, optimizer, packages, saving
from launchers.launch.heading import bash_heading, heading
from launchers.launch.placeholders import DATASET, ENGINE_HOST, REWARD
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.rollouts import answer_tokens, samples_per_prompt
from launchers.shell.starting import RANK_HERE, script_command
from launchers.tables import table
from launchers.yaml_text import Tree

PATH = "swift.sh"
PLUGIN = "swift_profiler.py"


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start on every node, and what the user must set."""
    words, training = table("ms_swift/fields"), launch.training
    stage = words["stages"][training.stage]
    needs: list[str] = []
    options: dict[str, Tree] = {
        "model": checkpoint(launch, PATH, "--model", needs, {}),
        "use_hf": True,
        "torch_dtype": words["precisions"][training.precision],
        "attn_impl": words["attention"][attention_of(launch)],
        **stage["options"],
        **_method(launch, needs),
        **_data(launch, needs),
        **(_generation(launch, needs) if training.stage == "grpo" else {}),
        "per_device_train_batch_size": launch.micro_batch,
        "gradient_accumulation_steps": launch.accumulation,
        "gradient_checkpointing": launch.recompute == "full",
        **({"use_liger_kernel": True} if training.fused_loss is True else {}),
        **({"deepspeed": "deepspeed.json"} if backend_of(launch.plan) == "deepspeed" else {}),
        **({"sequence_parallel_size": launch.plan.layout.cp} if (launch.plan.layout.cp or 1) > 1 else {}),
        **optimizer(launch),
        "learning_rate": learning_rate(launch),
        **length(launch),
        **words["run"],
        **saving(launch),
        "output_dir": f"saves/{launch.slug}",
    }
    profiler = _profiler(launch)
    if profiler:
        options |= {"external_plugins": PLUGIN, "callbacks": CALLBACK.lower()}
    wanted = [words["package"], *packages(launch)]
    if training.fused_loss is True:
        wanted.append("liger-kernel")
    if training.stage == "grpo" and training.rollout != "trainer":
        wanted.append("vllm")
    needs.append(f"environment: pip install {' '.join(dict.fromkeys(wanted))}")
    command = [f"exec swift {stage['command']}", *(_option(name, value) for name, value in options.items())]
    command.append('${LAST:+--resume_from_checkpoint "$LAST"}')
    lines = bash_heading(launch, PATH)
    lines += _world(launch)
    lines += [
        f"LAST=$(find saves/{launch.slug} -maxdepth 1 -name 'checkpoint-*' 2>/dev/null | sort -V | tail -n 1 || true)"
    ]
    text = "\n".join([*lines, " \\\n    ".join(command), ""])
    file = File(PATH, "ms-swift", text, executable=True)
    return Piece(
        (file, *profiler), tuple(needs), Start(script_command(launch, PATH), programs=("swift",), last_saved=LAST_SAVED)
    )


def _profiler(launch: TrainingLaunch) -> tuple[File, ...]:
    """The plugin that profiles the run, where it is."""
    lines = callback(launch)
    if not lines:
        return ()
    head = [*(f"# {line}" for line in heading(launch, f"bash {PATH}")), *(f"import {name}" for name in IMPORTS)]
    head += ["", "from transformers import TrainerCallback", "", "from swift.callbacks.mapping import callbacks_map"]
    last = f'callbacks_map["{CALLBACK.lower()}"] = lambda args, trainer: {CALLBACK}()'
    return (File(PLUGIN, "ms-swift", "\n".join([*head, "", "", *lines, "", "", last, ""])),)


def _world(launch: TrainingLaunch) -> list[str]:
    """What swift reads of the environment and gives to torchrun; one device starts no torchrun."""
    if launch.devices == 1:
        return []
    lines = [f"export NPROC_PER_NODE={launch.node_devices}"]
    if launch.nodes > 1:
        lines += [f"export NNODES={launch.nodes}", f"export NODE_RANK={RANK_HERE}"]
        lines += ["export MASTER_ADDR=${MASTER_ADDR:?} MASTER_PORT=${MASTER_PORT:?}"]
    return lines


def _option(name: str, value: Tree) -> str:
    values = value if isinstance(value, list) else [value]
    return shlex.join([f"--{name}", *(str(part).lower() if isinstance(part, bool) else str(part) for part in values)])


def _method(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    words, lora = table("ms_swift/fields"), launch.training.lora
    options: dict[str, Tree] = {**words["methods"][launch.training.method]}
    if not launch.uses_adapters:
        return options
    if launch.quantisation:
        options |= words["quantisations"][launch.quantisation]
    targets = target_modules(launch, PATH, "--target_modules", needs)
    options |= {"lora_rank": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": lora.dropout}
    options["target_modules"] = ["all-linear"] if targets is None else targets
    if lora.train_embeddings:
        options["modules_to_save"] = embedding_modules(launch, PATH, "--modules_to_save", needs)
    return options


def _data(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    """The data set, and rows of max_length tokens; of GRPO that is the prompt alone."""
    training = launch.training
    if launch.site.dataset is None:
        content = table("ms_swift/fields")["data"][training.stage]
        needs.append(f"{PATH}: --dataset, a Hugging Face data set or a file ({content})")
    rows = launch.seq_len - answer_tokens(launch) if training.stage == "grpo" else launch.seq_len
    options: dict[str, Tree] = {"dataset": launch.site.dataset or DATASET, "max_length": rows}
    if training.stage in ("sft", "pretrain"):
        options["packing"] = training.packing
    return options | {"truncation_strategy": "delete" if training.stage == "grpo" else "right"}


def _generation(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    """GRPO's groups, rewards and the engine that generates. The batch counts samples, not prompts."""
    training = launch.training
    needs.append(f"{PATH}: --reward_funcs, those of ms-swift (accuracy, format) or of your plugin (--external_plugins)")
    options: dict[str, Tree] = {
        "num_generations": samples_per_prompt(launch),
        "max_completion_length": answer_tokens(launch),
        "reward_funcs": [REWARD],
        "use_vllm": training.rollout != "trainer",
    }
    if training.rollout == "colocated":
        options |= {"vllm_mode": "colocate", "vllm_gpu_memory_utilization": training.engine_share}
    elif training.rollout == "separate":
        options |= {"vllm_mode": "server", "vllm_server_host": [ENGINE_HOST], "vllm_server_port": 8000}
        needs.append(f"{PATH}: --vllm_server_host, where `swift rollout --model ...` runs on other devices")
    return options
