"""What the Python scripts on trainers of transformers have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launchers.hf.adapters import embedding_modules, target_modules, whole_alpha
from launchers.launch.placeholders import DATASET
from launchers.launch.training import TrainingLaunch

AS_TEXTS = (
    "",
    "def as_text(rows):",
    '    return {"text": [tokenizer.apply_chat_template(chat, tokenize=False) for chat in rows["messages"]]}',
    "",
    "",
    "data = data.map(as_text, batched=True)",
)
"""Conversations as the texts that a trainer of plain texts takes."""
GOING_ON = (
    "folder = arguments.output_dir",
    "last = get_last_checkpoint(folder) if os.path.isdir(folder) else None",
    "trainer.train(resume_from_checkpoint=last)",
    "trainer.save_model()",
    "",
)
"""The run, from its last checkpoint where there is one."""


def data(launch: TrainingLaunch, path: str, content: str, needs: list[str], comments: dict[str, str]) -> dict[str, Any]:
    """The arguments of load_dataset in the script `path`, for rows with `content`."""
    if launch.site.dataset is None:
        comments["path"] = f"set this: a Hugging Face data set or a folder of one ({content})"
        needs.append(f"{path}: path of load_dataset, your data ({content})")
    return {"path": launch.site.dataset or DATASET, "split": "train"}


def adapter(
    launch: TrainingLaunch,
    path: str,
    program: str,
    every: Sequence[str] | str,
    rest: Mapping[str, Any],
    needs: list[str],
) -> dict[str, Any]:
    """The arguments of an adapter in the script `path`, with the `rest` that its `program` takes; `every` are the
    modules of all linear layers. Raises PlanError."""
    lora = launch.training.lora
    fields: dict[str, Any] = {
        "r": lora.rank,
        "lora_alpha": whole_alpha(launch, program),
        "lora_dropout": lora.dropout,
        "target_modules": target_modules(launch, path, "target_modules", needs) or every,
        "bias": "none",
        **rest,
    }
    if lora.train_embeddings:
        fields["modules_to_save"] = embedding_modules(launch, path, "modules_to_save", needs)
    return fields
