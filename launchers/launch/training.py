"""A complete training plan with the few numbers that every launch file is made of, checked against each other once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from estimator.errors import PlanError
from estimator.plan.schema import Plan, Training
from launchers.launch.fields import loadable, required
from launchers.launch.names import last_part, slug
from launchers.predictions import TrainingPrediction
from launchers.site import Site
from launchers.targets import TARGETS, scheduler_command


@dataclass(frozen=True)
class TrainingLaunch:
    """What the targets of training render. `devices` = `nodes` x `node_devices`; `devices` = `dp` x tp x pp x cp.

    global_batch = `micro_batch` x `accumulation` x `dp` sequences. `model` is the name or path to load, None when the
    plan describes the model inline. `slug` is safe in a file name, a Slurm job name and a YAML value. `synthetic`: it
    runs on random tokens, and `site.dataset` is what stands for them. `before_start` are words before the command that
    starts a node, which the last of them runs.
    """

    plan: Plan
    training: Training
    targets: tuple[str, ...]
    prediction: TrainingPrediction | None
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
    synthetic: bool = False
    before_start: str = ""

    @property
    def scheduler_command(self) -> str:
        """The command of the set's scheduler, '' where there is none."""
        return scheduler_command(self.targets, self.kind)

    @property
    def program(self) -> str:
        """The program of the set; of a set without one, what one's own script reads."""
        programs = [name for name in self.targets if TARGETS[name].role == "program"]
        return programs[0] if programs else self.targets[0]

    @property
    def uses_adapters(self) -> bool:
        return self.training.method in ("lora", "qlora", "dora", "pissa")

    def whole_passes(self, program: str) -> int:
        """Passes over the data for a program that takes whole ones. Raises PlanError."""
        epochs = self.training.epochs
        if epochs != int(epochs):
            whole = max(1, int(epochs))
            problem = f"{program} takes whole passes, not {epochs}"
            raise PlanError("workload.epochs", problem, [whole, whole + 1])
        return int(epochs)

    @property
    def quantisation(self) -> str | None:
        """How frozen weights are packed; None where they are not."""
        return self.training.lora.quantisation if self.training.method == "qlora" else None


def training_launch(
    plan: Plan, targets: Sequence[str], prediction: TrainingPrediction | None, model_id: str | None, site: Site
) -> TrainingLaunch:
    """Checks that the plan is complete and consistent. Raises PlanError naming the first field that is not."""
    training, cluster, layout = plan.training, plan.cluster, plan.layout
    devices = required("cluster.count", cluster.count)
    per_node = required("cluster.per_node", cluster.per_node)
    split = {name: required(f"layout.{name}", getattr(layout, name)) for name in ("tp", "pp", "cp", "ep", "dp")}
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
    shard_group = layout.hybrid_group
    if shard_group != layout.shard_group:
        plan = plan.patch({"layout.shard_group": shard_group})
    if shard_group is not None and dp % shard_group:
        groups = [size for size in range(1, min(dp, 4096) + 1) if dp % size == 0]
        nearest_groups = sorted(sorted(groups, key=lambda size: abs(size - shard_group))[:5])
        raise PlanError("layout.shard_group", f"{shard_group} does not divide dp={dp}", nearest_groups)
    micro_batch = required("workload.micro_batch", training.micro_batch)
    global_batch = required("workload.global_batch", training.global_batch)
    round_size = micro_batch * dp
    if global_batch % round_size:
        low = global_batch // round_size * round_size
        problem = f"{global_batch} is not a multiple of micro_batch x dp = {micro_batch} x {dp}"
        raise PlanError("workload.global_batch", problem, [size for size in (low, low + round_size) if size])
    nodes = -(-devices // per_node)
    model = model_id or (plan.model if isinstance(plan.model, str) else None)
    return TrainingLaunch(
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
        zero_stage=required("layout.zero_stage", layout.zero_stage),
        recompute=required("layout.recompute", layout.recompute),
        offload=required("layout.offload", layout.offload),
        seq_len=required("workload.seq_len", training.seq_len),
        micro_batch=micro_batch,
        global_batch=global_batch,
        accumulation=global_batch // round_size,
    )
