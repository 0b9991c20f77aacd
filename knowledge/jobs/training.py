"""From a Plan to a Job: every name looked up. `estimator.plan.training.defaults` fills what is left open."""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.plan.assumptions import Assumption
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.defaults import fill, fill_adapters
from estimator.plan.training.framework import by_block, holding, summing
from estimator.plan.training.job import Job
from estimator.rl.generation import STAGES
from knowledge.fitted.training import calibration, framework, optimizer
from knowledge.jobs.serving import serving_job
from knowledge.machines.catalogue import machine
from knowledge.machines.counted import find_devices
from knowledge.machines.networks import with_given_links
from knowledge.models.catalogue import find_architecture
from knowledge.offers import choices


def job_of(plan: Plan, framework_choice: tuple[str, str] | None = None) -> Job:
    """The Job of a training plan, on the framework of `framework_choice` (name, why) where the plan leaves it open.

    Raises PlanError for an unknown or ambiguous name, or when something is missing.
    """
    training = plan.training
    if plan.cluster.accelerator is None:
        raise PlanError(
            "cluster.accelerator", "is required: name the accelerator", ["h100-sxm", "a100-sxm-80gb", "mi300x"]
        )
    architecture, said_model = find_architecture(plan.model)
    devices = find_devices(plan.cluster.accelerator)
    accelerator = devices.match
    assumptions: list[Assumption] = []
    if said_model:
        assumptions.append(Assumption("model", architecture.id, said_model))
    if accelerator.note:
        assumptions.append(Assumption("cluster.accelerator", accelerator.value.id, accelerator.note))
    count, per_node = plan.cluster.count or devices.count, plan.cluster.per_node or devices.per_node
    if count is None:
        count = 1
        assumptions.append(Assumption("cluster.count", count, "one device unless a number is given"))
    cluster, sentences = machine(accelerator.value, count, per_node, plan.cluster.interconnect)
    cluster = with_given_links(cluster, plan.overrides)
    if per_node is None:
        assumptions.append(Assumption("cluster.per_node", cluster.per_node, f"usual for {accelerator.value.name}"))
    if plan.cluster.interconnect == "auto" and cluster.nodes > 1:
        assumptions.append(Assumption("cluster.interconnect", cluster.network.name, "; ".join(sentences)))
    if framework_choice is None and training.framework == "auto":
        framework_choice = choices(plan, accelerator.value, count)[0]
    workload, assumed = fill(plan, architecture, accelerator.value, count, framework_choice)
    settled = {"accelerator": accelerator.value.id, "count": count, "per_node": cluster.per_node}
    filled = plan.patch({"workload": workload, "cluster": settled})
    name = filled.training.framework
    rack = cluster.fast_domain > cluster.per_node
    low = filled.training.precision in ("fp8", "mxfp8")
    profile = holding(framework(name, training.software_version, rack, low), training.weights)
    profile = summing(profile, training.gradients)
    facts = optimizer(training.optimizer)
    if facts.one_block and training.method == "full":
        profile = by_block(profile)
    filled, adapters = fill_adapters(filled, profile)
    job = Job(
        plan=filled,
        architecture=architecture,
        machine=cluster,
        framework=profile,
        optimizer=facts,
        calibration=calibration(accelerator.value.family, name, accelerator.value, training.attention),
        assumptions=(*assumptions, *assumed, *adapters),
        rollout=_rollout(filled),
    )
    if not job.peak_flops or not job.head_peak_flops:
        kinds = sorted(accelerator.value.peak_flops)
        rate = "16-bit" if job.peak_flops else filled.training.precision
        raise PlanError("workload.precision", f"no {rate} rate is known for {accelerator.value.name}", kinds)
    return job


def _rollout(plan: Plan) -> ServingJob | None:
    """The engine that generates the samples of reinforcement training on the training's own devices."""
    training = plan.training
    if training.stage not in STAGES or training.rollout != "colocated":
        return None

    workload = {
        "kind": "inference",
        "engine": "vllm",
        "scenario": "offline",
        "weight_dtype": "bf16" if training.precision not in ("fp16", "fp32") else training.precision,
        "memory_share": training.engine_share,
    }
    cluster = plan.cluster.model_dump(exclude_unset=True)
    return serving_job(Plan.parse({"model": plan.model, "workload": workload, "cluster": cluster}))
