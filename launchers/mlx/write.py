"""mlx-lm YAML: LoRA, DoRA and QLoRA of mlx_lm.lora on one Mac. Words: fields.yaml.

Its iterations are micro-steps. It saves adapters and not where it was: a run that is started again starts over.
"""

from __future__ import annotations

from launchers.hf.write import batch_comment, learning_rate
from launchers.launch.duration import run_steps, save_steps
from launchers.launch.heading import heading
from launchers.launch.names import last_part
from launchers.launch.placeholders import DATASET, MODEL
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.tables import table
from launchers.yaml_text import Tree, document

PATH = "mlx.yaml"


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, mlx_lm.lora on it, and what the user must set."""
    words, training = table("mlx/fields"), launch.training
    needs = ["environment: pip install mlx-lm==0.32.2 on a Mac with Apple silicon"]
    comments = {
        "learning_rate": "a value to start from; yours to choose",
        "grad_accumulation_steps": batch_comment(launch),
        "num_layers": "all of them",
    }
    steps = run_steps(launch)
    if steps is None:
        comments["iters"] = "set this: the plan says neither steps nor data"
        needs.append(f"{PATH}: iters, micro-steps of the run (the plan says neither steps nor data)")
    if launch.site.dataset is None:
        comments["data"] = "set this: a folder with train.jsonl and valid.jsonl, or a data set of the hub"
        needs.append(f"{PATH}: data, a folder with train.jsonl and valid.jsonl, or a data set of the hub")
    micro_steps = (steps or words["steps"]) * launch.accumulation
    every = min(save_steps(launch) * launch.accumulation, micro_steps)
    lora = training.lora
    sections: dict[str, dict[str, Tree]] = {
        "model": {"model": _model(launch, needs, comments)},
        "method": {
            "train": True,
            "fine_tune_type": words["methods"][training.method],
            "num_layers": -1,
            "lora_parameters": {"rank": lora.rank, "scale": lora.alpha / lora.rank, "dropout": lora.dropout},
        },
        "data": {"data": launch.site.dataset or DATASET, "max_seq_length": launch.seq_len},
        "batch": {
            "batch_size": launch.micro_batch,
            "grad_accumulation_steps": launch.accumulation,
            "iters": micro_steps,
        },
        "optimizer": {
            "optimizer": words["optimizers"][training.optimizer],
            "learning_rate": learning_rate(launch),
        },
        "memory": {"grad_checkpoint": launch.recompute == "full"},
        "run": {
            "adapter_path": f"saves/{launch.slug}",
            "save_every": every,
            "steps_per_report": min(10 * launch.accumulation, micro_steps),
            "steps_per_eval": every,
            "seed": 0,
        },
    }
    command = f"mlx_lm.lora --config {PATH}"
    text = document(heading(launch, command), sections, comments)
    start = Start(command, programs=("mlx-lm",), resumes=False)
    return Piece((File(PATH, "mlx", text),), tuple(needs), start)


def _model(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> str:
    """The checkpoint; of QLoRA the folder that mlx_lm.convert makes of it."""
    if launch.model is None:
        comments["model"] = "set this: a checkpoint of the planned architecture"
        needs.append(f"{PATH}: model, a checkpoint of the planned architecture")
        return MODEL
    if launch.training.method != "qlora":
        return launch.model
    folder = last_part(launch.model) + table("mlx/fields")["packed"]
    needs.append(f"{folder}: mlx_lm.convert --hf-path {launch.model} -q --mlx-path {folder}, once before the run")
    return f"./{folder}"
