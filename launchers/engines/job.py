"""A complete serving plan with the few numbers that every launch file is made of, checked against each other once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.job import by_hand, given, last_part, launch_of, loadable, one_line, slug

if TYPE_CHECKING:
    from estimator.plan.schema import Inference, Plan
    from launchers import ServingPrediction, Site

_GIB = 2.0**30
# Answers are taken to be spread evenly from (1 - s) to (1 + s) of their mean, which deviates by s / sqrt(3) of it.
_MOST_SPREAD = 0.99


@dataclass(frozen=True)
class ServingJob:
    """What the targets of serving render.

    `devices` = `replicas` x `replica_devices`; `replica_devices` = `tp` x `pp` x `dp` are spread over `nodes` nodes of
    `node_devices` (one replica's, as a scheduler places each by itself). `dp` are lanes of one replica that share its
    experts; `ep` is 1 or over how many devices experts are spread. `context` is the longest request in tokens, prompt
    and output; `spread` half the range of generated tokens over their mean. `model` is the name or path to load, None
    when the plan describes the model inline. `slug` is safe in a file name, a job name and a YAML value.
    """

    plan: Plan
    serving: Inference
    targets: tuple[str, ...]
    prediction: ServingPrediction | None
    site: Site
    model: str | None
    slug: str
    devices: int
    replicas: int
    replica_devices: int
    nodes: int
    node_devices: int
    whole_nodes: bool
    tp: int
    pp: int
    dp: int
    ep: int
    context: int
    spread: float
    kind: Literal["inference"] = "inference"

    @property
    def launch(self) -> str:
        """The command of the set's scheduler, '' where there is none."""
        return launch_of(self.targets, self.kind)


def make_serving_job(
    plan: Plan, targets: Sequence[str], prediction: ServingPrediction | None, model_id: str | None, site: Site
) -> ServingJob:
    """Checks that the plan is complete and consistent. Raises PlanError naming the first field that is not."""
    serving, cluster, layout = plan.inference, plan.cluster, plan.layout
    devices = given("cluster.count", cluster.count)
    per_node = given("cluster.per_node", cluster.per_node)
    tp, pp = given("layout.tp", layout.tp), given("layout.pp", layout.pp)
    dp, ep = layout.dp or 1, layout.ep or 1
    together = tp * pp * dp
    if devices % together:
        problem = f"{devices} accelerators are not whole replicas of tp x pp x dp = {together}"
        low = devices // together * together
        raise PlanError("cluster.count", problem, [size for size in (low, low + together) if size])
    if together > per_node and together % per_node:
        problem = f"a replica of {together} accelerators does not fill nodes of {per_node} evenly"
        raise PlanError("layout.tp", problem)
    nodes = -(-together // per_node)
    model = model_id or (plan.model if isinstance(plan.model, str) else None)
    spread = min(_MOST_SPREAD, round((serving.output_spread or 0.0) * math.sqrt(3), 4))
    longest = math.ceil(serving.input_len) + math.ceil(serving.output_len * (1 + spread))
    name = slug(plan.name) or slug(f"{last_part(model or 'model')}-{serving.engine}") or "serve"
    return ServingJob(
        plan=plan,
        serving=serving,
        targets=tuple(targets),
        prediction=prediction,
        site=site,
        model=loadable(model),
        slug=name,
        devices=devices,
        replicas=devices // together,
        replica_devices=together,
        nodes=nodes,
        node_devices=together // nodes,
        whole_nodes=together == nodes * per_node,
        tp=tp,
        pp=pp,
        dp=dp,
        ep=ep,
        context=serving.max_context or longest,
        spread=spread,
    )


def has_experts(job: ServingJob) -> bool:
    """Whether the lanes or experts that the layout names are those of a mixture of experts; False where it names none.

    Raises PlanError where the model is not known.
    """
    if job.dp == 1 and job.ep == 1:
        return False

    return architecture(job.plan.model).is_moe


def serving_lines(job: ServingJob) -> list[str]:
    """The plan and what was predicted of it, for `launchers.job.heading`."""
    serving, cluster, predicted = job.serving, job.plan.cluster, job.prediction
    if serving.request_rate is not None:
        load = f"{serving.request_rate:g} requests/s"
    elif serving.concurrency is None and serving.scenario == "offline":
        load = "all requests at once"
    else:
        load = f"{serving.concurrency or 1} requests at once"
    copies = f"{job.replicas} replicas of " if job.replicas > 1 else ""
    lines = [
        f"Shardwise: {one_line(job.plan.name)}" if job.plan.name else "Shardwise",
        f"plan: {one_line(job.model or 'inline model')}, {serving.engine}, weights {serving.weight_dtype}, "
        f"kv {serving.kv_dtype}, {load}, {serving.input_len:g} tokens in and {serving.output_len:g} out, "
        f"{copies}tp {job.tp} pp {job.pp} dp {job.dp} ep {job.ep}, {job.devices} x "
        f"{one_line(cluster.accelerator or 'accelerator')}",
        *by_hand(job.plan),
    ]
    if predicted is not None:
        first = "first token: the load is more than can be served"
        if predicted.ttft_s is not None:
            first = f"first token {_interval(predicted.ttft_s, predicted.ttft_low_s, predicted.ttft_high_s)}"
        lines += [
            f"predicted (80 % interval): {first}; per token "
            f"{_interval(predicted.tpot_s, predicted.tpot_low_s, predicted.tpot_high_s)}; "
            f"{predicted.output_tokens_per_s:.4g} output tokens/s",
            f"predicted: {predicted.memory_bytes / _GIB:.1f} of {predicted.capacity_bytes / _GIB:.1f} GiB per device; "
            f"room for {predicted.max_concurrency} requests at once",
        ]
        if not predicted.fits:
            lines.append("WARNING: this plan is predicted to run out of memory")
    return lines


def _interval(value: float, low: float | None, high: float | None) -> str:
    """Seconds as milliseconds, with the interval where there is one."""
    ends = "" if low is None or high is None else f" ({1e3 * low:.4g} to {1e3 * high:.4g})"
    return f"{1e3 * value:.4g} ms{ends}"
