"""What the programs on the transformers Trainer have in common; the words are in hf/fields.yaml."""

from __future__ import annotations

from collections.abc import Mapping

from launchers.devices import attention_of
from launchers.families import template_of
from launchers.launch.duration import KEPT_NEWEST, save_steps
from launchers.launch.training import TrainingLaunch
from launchers.tables import table
from launchers.yaml_text import Value

LAST_SAVED = "trainer_state.json"
"""The file that a checkpoint gets last (transformers 5, Trainer._save_checkpoint)."""


def learning_rate(launch: TrainingLaunch) -> float:
    """A value to start from, which the user has to choose."""
    return table("hf/fields")["learning_rates"]["adapters" if launch.uses_adapters else "full"][launch.training.stage]


def length(launch: TrainingLaunch) -> dict[str, Value]:
    """How long the run is: passes over the data, and the optimizer steps that win over them where the plan has any."""
    fields: dict[str, Value] = {"num_train_epochs": float(launch.training.epochs)}
    return fields if launch.training.steps is None else fields | {"max_steps": launch.training.steps}


def optimizer(launch: TrainingLaunch) -> dict[str, Value]:
    """The Trainer's `optim`, with the arguments of GaLore and APOLLO, which it gives to all linear layers."""
    words, name = table("hf/fields"), launch.training.optimizer
    fields: dict[str, Value] = {"optim": words["optimizers"][name]}
    if arguments := words["optimizer_arguments"].get(name):
        fields |= {"optim_args": arguments, "optim_target_modules": "all-linear"}
    return fields


def packages(launch: TrainingLaunch, *programs: str) -> list[str]:
    """What the plan's values need installed, by this table's list and those of `programs`."""
    values: dict[str, object] = {f"workload.{name}": value for name, value in launch.training}
    values["workload.lora.quantisation"] = launch.quantisation
    values["workload.attention"] = attention_of(launch)
    wanted = [row for name in ("hf", *programs) for row in table(f"{name}/fields")["packages"].items()]
    needed = [package for field, by_value in wanted if (package := by_value.get(values[field]))]
    own = table("hf/fields")["sinks"].get(template_of(launch.model))
    return [own["package"] if own is not None and package == "flash-attn" else package for package in needed]


def attention_word(launch: TrainingLaunch, chosen: str, words: Mapping[str, Value]) -> Value:
    """The Trainer's word for an attention kernel; a model with attention sinks has a kernel of its own."""
    own = table("hf/fields")["sinks"].get(template_of(launch.model))
    return own["kernel"] if own is not None and chosen.startswith("flash") else words[chosen]


def saving(launch: TrainingLaunch) -> dict[str, Value]:
    """How often the Trainer saves, and how many checkpoints stay."""
    return {"save_steps": save_steps(launch), "save_total_limit": KEPT_NEWEST}


def batch_comment(launch: TrainingLaunch) -> str:
    """The product that a global batch is, for the line of the accumulation steps."""
    per_group = f"{launch.dp} replicas" if launch.dp != launch.devices else f"{launch.devices} devices"
    return f"{launch.micro_batch} x {launch.accumulation} x {per_group} = {launch.global_batch} per step"
