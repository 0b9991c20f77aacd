"""What the programs on the transformers Trainer have in common; the words are in data/hf_arguments.yaml."""

from __future__ import annotations

from launchers.job import Job
from launchers.tables import table
from launchers.yaml_text import Value


def learning_rate(job: Job) -> float:
    """A value to start from, which the user has to choose."""
    return table("hf_arguments")["learning_rates"]["adapters" if job.uses_adapters else "full"][job.training.stage]


def length(job: Job) -> dict[str, Value]:
    """How long the run is: passes over the data, and the optimizer steps that win over them where the plan has any."""
    fields: dict[str, Value] = {"num_train_epochs": float(job.training.epochs)}
    return fields if job.training.steps is None else fields | {"max_steps": job.training.steps}


def optimizer(job: Job) -> dict[str, Value]:
    """The Trainer's `optim`, with the arguments of GaLore and APOLLO, which it gives to all linear layers."""
    words, name = table("hf_arguments"), job.training.optimizer
    fields: dict[str, Value] = {"optim": words["optimizers"][name]}
    if arguments := words["optimizer_arguments"].get(name):
        fields |= {"optim_args": arguments, "optim_target_modules": "all-linear"}
    return fields


def packages(job: Job, *tables: str) -> list[str]:
    """What the plan's values need installed, by this table's list and those of the programs in `tables`."""
    values: dict[str, object] = {f"workload.{name}": value for name, value in job.training}
    values["workload.lora.quantisation"] = job.quantisation
    wanted = [row for name in ("hf_arguments", *tables) for row in table(name)["packages"].items()]
    return [package for field, by_value in wanted if (package := by_value.get(values[field]))]


def batch_comment(job: Job) -> str:
    """The product that a global batch is, for the line of the accumulation steps."""
    per_group = f"{job.dp} replicas" if job.dp != job.devices else f"{job.devices} devices"
    return f"{job.micro_batch} x {job.accumulation} x {per_group} = {job.global_batch} per step"
