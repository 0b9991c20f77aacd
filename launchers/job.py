"""A complete plan with the few numbers that every launch file is made of, checked against each other once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from estimator.errors import PlanError

if TYPE_CHECKING:
    from estimator.plan.schema import Plan, Training
    from launchers import Prediction, Site
    from launchers.engines.job import ServingJob

_Value = TypeVar("_Value")
_GIB = 2.0**30
# The unit of a figure set by hand, by the end of its name.
_UNITS = {"_gib": "GiB per device", "_gb_per_s": "GB/s", "_us": "us"}


@dataclass(frozen=True)
class Job:
    """What the targets of training render. `devices` = `nodes` x `node_devices`; `devices` = `dp` x tp x pp x cp.

    global_batch = `micro_batch` x `accumulation` x `dp` sequences. `model` is the name or path to load, None when the
    plan describes the model inline. `slug` is safe in a file name, a Slurm job name and a YAML value.
    """

    plan: Plan
    training: Training
    targets: tuple[str, ...]
    prediction: Prediction | None
    site: Site
    model: str | None
    slug: str
    devices: int
    nodes: int
    node_devices: int
    whole_nodes: bool
    dp: int
    zero_stage: int
    recompute: str
    offload: str
    seq_len: int
    micro_batch: int
    global_batch: int
    accumulation: int
    kind: Literal["training"] = "training"
    replicas: Literal[1] = 1

    @property
    def launch(self) -> str:
        """The command of the set's scheduler, '' where there is none."""
        return launch_of(self.targets, self.kind)

    @property
    def uses_adapters(self) -> bool:
        return self.training.method in ("lora", "qlora", "dora", "pissa")

    @property
    def quantisation(self) -> str | None:
        """How frozen weights are packed; None where they are not."""
        return self.training.lora.quantisation if self.training.method == "qlora" else None


def make_job(
    plan: Plan, targets: Sequence[str], prediction: Prediction | None, model_id: str | None, site: Site
) -> Job:
    """Checks that the plan is complete and consistent. Raises PlanError naming the first field that is not."""
    training, cluster, layout = plan.training, plan.cluster, plan.layout
    devices = given("cluster.count", cluster.count)
    per_node = given("cluster.per_node", cluster.per_node)
    split = {name: given(f"layout.{name}", getattr(layout, name)) for name in ("tp", "pp", "cp", "ep", "dp")}
    ranks = split["tp"] * split["pp"] * split["cp"] * split["dp"]
    if ranks != devices:
        problem = f"tp x pp x cp x dp is {ranks}, but cluster.count is {devices}"
        group = ranks // split["dp"]
        raise PlanError("layout.dp", problem, [devices // group] if devices % group == 0 else ())
    if devices > per_node and devices % per_node:
        low = devices // per_node * per_node
        problem = f"{devices} accelerators do not fill nodes of {per_node} evenly"
        raise PlanError("cluster.count", problem, [low, low + per_node])
    dp = split["dp"]
    shard_group = layout.shard_group
    if shard_group is not None and dp % shard_group:
        groups = [size for size in range(1, min(dp, 4096) + 1) if dp % size == 0]
        nearest_groups = sorted(sorted(groups, key=lambda size: abs(size - shard_group))[:5])
        raise PlanError("layout.shard_group", f"{shard_group} does not divide dp={dp}", nearest_groups)
    micro_batch = given("workload.micro_batch", training.micro_batch)
    global_batch = given("workload.global_batch", training.global_batch)
    round_size = micro_batch * dp
    if global_batch % round_size:
        low = global_batch // round_size * round_size
        problem = f"{global_batch} is not a multiple of micro_batch x dp = {micro_batch} x {dp}"
        raise PlanError("workload.global_batch", problem, [size for size in (low, low + round_size) if size])
    nodes = -(-devices // per_node)
    model = model_id or (plan.model if isinstance(plan.model, str) else None)
    return Job(
        plan=plan,
        training=training,
        targets=tuple(targets),
        prediction=prediction,
        site=site,
        model=loadable(model),
        slug=slug(plan.name) or slug(f"{last_part(model or 'model')}-{training.stage}-{training.method}") or "run",
        devices=devices,
        nodes=nodes,
        node_devices=devices // nodes,
        whole_nodes=devices == nodes * per_node,
        dp=dp,
        zero_stage=given("layout.zero_stage", layout.zero_stage),
        recompute=given("layout.recompute", layout.recompute),
        offload=given("layout.offload", layout.offload),
        seq_len=given("workload.seq_len", training.seq_len),
        micro_batch=micro_batch,
        global_batch=global_batch,
        accumulation=global_batch // round_size,
    )


def heading(job: Job | ServingJob, run: str) -> list[str]:
    """What a file says about itself, one plain line each and without comment signs: the plan, what was predicted, and
    how it is run (the set's scheduler, or `run`)."""
    return own_heading(job, job.launch or run)


def own_heading(job: Job | ServingJob, run: str) -> list[str]:
    """The heading of a scheduler's file: the set may have several schedulers, and this one is run by `run`."""
    if job.kind == "inference":
        from launchers.engines.job import serving_lines

        lines = serving_lines(job)
    else:
        lines = _training_lines(job)
    return [*lines, f"run, from this folder: {one_line(run)}"]


def _training_lines(job: Job) -> list[str]:
    training, cluster = job.training, job.plan.cluster
    adapters = f" rank {training.lora.rank}" if job.uses_adapters else ""
    weights = "" if training.weights == "auto" else f" ({training.weights} weights)"
    lines = [
        f"Shardwise: {one_line(job.plan.name)}" if job.plan.name else "Shardwise",
        f"plan: {one_line(job.model or 'inline model')}, {training.stage} {training.method}{adapters} "
        f"{training.precision}{weights} {training.optimizer}, seq {job.seq_len}, batch {job.micro_batch} x "
        f"{job.accumulation} x {job.dp} = {job.global_batch}, {job.devices} x "
        f"{one_line(cluster.accelerator or 'accelerator')} ({job.nodes} x {job.node_devices}), zero {job.zero_stage}, "
        f"recompute {job.recompute}, offload {job.offload}{_split(job)}",
    ]
    lines += by_hand(job.plan)
    predicted = job.prediction
    if predicted is not None:
        lines.append(
            f"predicted (80 % interval): {predicted.memory_bytes / _GIB:.1f} GiB per device "
            f"({predicted.memory_low_bytes / _GIB:.1f} to {predicted.memory_high_bytes / _GIB:.1f}) of "
            f"{predicted.capacity_bytes / _GIB:.1f} GiB; step {predicted.step_s:.4g} s ({predicted.step_low_s:.4g} to "
            f"{predicted.step_high_s:.4g})"
        )
        if predicted.memory_bytes > predicted.capacity_bytes:
            lines.append("WARNING: this plan is predicted to run out of memory")
        elif predicted.memory_high_bytes > predicted.capacity_bytes:
            lines.append("note: the upper end of the interval is over the device's memory")
    return lines


def _split(job: Job) -> str:
    """The sizes of model parallelism above 1, for the plan's line."""
    layout = job.plan.layout
    sizes = ((name, getattr(layout, name)) for name in ("tp", "pp", "vpp", "cp", "ep"))
    return "".join(f", {name} {size}" for name, size in sizes if size and size > 1)


def launch_of(targets: Sequence[str], kind: str) -> str:
    """What starts the set of `targets` for a plan of training or inference: its first scheduler's command, '' where
    none is in it."""
    from launchers.targets import TARGETS

    rows = [TARGETS[name] for name in targets]
    return next(((kind == "inference" and row.serve) or row.launch for row in rows if row.launch), "")


def by_hand(plan: Plan) -> list[str]:
    """The line that names the figures which the user set; none where there are none."""
    figures = plan.overrides.model_dump(exclude_none=True)
    if not figures:
        return []
    return [f"figures set by hand: {', '.join(_by_hand(name, value) for name, value in figures.items())}"]


def _by_hand(name: str, value: float) -> str:
    ending, unit = next((ending, unit) for ending, unit in _UNITS.items() if name.endswith(ending))
    return f"{name.removesuffix(ending).replace('_', ' ')} {value:g} {unit}"


def one_line(text: str) -> str:
    """User text for a comment: nothing that a terminal or a parser could take for more than text of one line."""
    return "".join(character if character.isprintable() else "?" for character in text)


def given(field: str, value: _Value | None) -> _Value:
    if value is None:
        raise PlanError(field, "is needed to write launch files, and the plan leaves it open")
    return value


def loadable(model: str | None) -> str | None:
    """The model's name or path, refused where a config file could not carry it as plain text."""
    if model is None:
        return None
    if not model.strip() or not model.isprintable():
        raise PlanError("model", "the name must be printable text on one line to stand in a launch file")
    if "${" in model:
        raise PlanError("model", "the name holds '${', which config files read as a variable")
    return model


def last_part(name: str) -> str:
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1]


def slug(text: str | None) -> str:
    """Letters, digits, dots, dashes and underscores, at most 64, no mark at either end; '' if nothing is left."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text or "").strip("-._")[:64].rstrip("-._")
