"""A complete serving plan with the few numbers that every launch file is made of, checked against each other once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from knowledge.engines import engine
from knowledge.models.catalogue import architecture
from launchers.launch.fields import loadable, required
from launchers.launch.names import last_part, slug
from launchers.predictions import ServingPrediction
from launchers.site import Site
from launchers.targets import scheduler_command

# Answers are taken to be spread evenly from (1 - s) to (1 + s) of their mean, which deviates by s / sqrt(3) of it.
_MOST_SPREAD = 0.99


@dataclass(frozen=True)
class ServingLaunch:
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
    before_start: Literal[""] = ""

    @property
    def scheduler_command(self) -> str:
        """The command of the set's scheduler, '' where there is none."""
        return scheduler_command(self.targets, self.kind)


def serving_launch(
    plan: Plan, targets: Sequence[str], prediction: ServingPrediction | None, model_id: str | None, site: Site
) -> ServingLaunch:
    """Checks that the plan is complete and consistent. Raises PlanError naming the first field that is not."""
    serving, cluster, layout = plan.inference, plan.cluster, plan.layout
    devices = required("cluster.count", cluster.count)
    per_node = required("cluster.per_node", cluster.per_node)
    tp, pp = required("layout.tp", layout.tp), required("layout.pp", layout.pp)
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
    longest = math.ceil(serving.prompt_len) + math.ceil(serving.output_len * (1 + spread))
    name = slug(plan.name) or slug(f"{last_part(model or 'model')}-{serving.engine}") or "serve"
    return ServingLaunch(
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
        context=serving.max_context or _context(plan, serving, prediction, devices // together * dp, longest),
        spread=spread,
    )


def _context(plan: Plan, serving: Inference, prediction: ServingPrediction | None, caches: int, longest: int) -> int:
    """The longest request that is taken, where the plan does not say: the model's context as far as the predicted cache
    of a replica holds it, as real requests are far longer than their mean. `longest` where nothing is predicted, where
    a prompt is computed in one step, and where the engine sets the whole of each request aside."""
    whole_prompt = serving.chunked_prefill is False or engine(serving.engine).cache_in_full
    if prediction is None or prediction.max_concurrency is None or whole_prompt:
        return longest
    room = prediction.max_concurrency // caches * math.floor(serving.prompt_len + serving.output_len)
    return max(longest, min(architecture(plan.model).context or longest, room // 256 * 256))


def replica_rate(launch: ServingLaunch) -> float | None:
    """Requests per second that a replica answers as planned; None where it is not known."""
    if launch.serving.request_rate is not None:
        return launch.serving.request_rate / launch.replicas
    predicted = launch.prediction
    return predicted and predicted.output_tokens_per_s / launch.serving.output_len / launch.replicas


def replica_load(launch: ServingLaunch) -> float | None:
    """Requests that a replica has at once as planned: those of its rate, for as long as each takes."""
    if launch.serving.concurrency is not None:
        return launch.serving.concurrency / launch.replicas
    rate, predicted = replica_rate(launch), launch.prediction
    if rate is None or predicted is None or predicted.ttft_s is None:
        return None
    return rate * (predicted.ttft_s + predicted.tpot_s * launch.serving.output_len)


def has_experts(launch: ServingLaunch) -> bool:
    """Whether the lanes or experts that the layout names are those of a mixture of experts; False where it names none.

    Raises PlanError where the model is not known.
    """
    if launch.dp == 1 and launch.ep == 1:
        return False

    return architecture(launch.plan.model).is_moe


def copied_experts(launch: ServingLaunch) -> int:
    """Experts that are held once more, so that each of `ep` devices has as many."""
    if launch.ep <= 1:
        return 0
    return -architecture(launch.plan.model).experts % launch.ep
