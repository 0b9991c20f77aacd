"""From a Plan to a Job: every name looked up. `estimator.plan.training.defaults` fills what is left open."""

from __future__ import annotations

from dataclasses import replace

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator, Machine
from estimator.model.architecture import Architecture
from estimator.plan.assumptions import Assumption
from estimator.plan.calibration import Calibration
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.defaults import USUAL_SEQ_LEN, UsualRun, fill, fill_adapters
from estimator.plan.training.framework import Framework, OptimizerFacts, by_block, holding, summing, unsharded, unsplit
from estimator.plan.training.job import Job
from estimator.rl.generation import STAGES, engine_seconds, least_generation_s
from knowledge.fitted.training import calibration, framework, optimizer, sharded_by, usual_optimizer, usual_rollout
from knowledge.jobs.images import room, seen
from knowledge.jobs.serving import serving_job
from knowledge.machines.catalogue import machine, no_accelerator
from knowledge.machines.counted import find_devices
from knowledge.machines.networks import with_given_links
from knowledge.models.catalogue import find_architecture
from knowledge.offers import choices
from knowledge.own.files import made_once
from knowledge.recipes import usual_run

# Precisions of 8 and 4 bits.
_LOW = ("fp8", "mxfp8", "mxfp4", "nvfp4")


def job_of(plan: Plan, framework_choice: tuple[str, str] | None = None) -> Job:
    """The Job of a training plan, on the framework of `framework_choice` (name, why) where the plan leaves it open.

    Raises PlanError for an unknown or ambiguous name, or when something is missing.
    """
    asked = ("job", plan.model_dump_json(exclude_unset=True), framework_choice)
    return made_once(asked, lambda: _with_engine(plan, _job_of(plan, framework_choice), framework_choice))


def _with_engine(plan: Plan, job: Job, framework_choice: tuple[str, str] | None) -> Job:
    """The job of a plan that leaves open where GRPO's samples are generated, and whose framework does too, with an
    engine on the same devices where that has them sooner than the trained model can, whatever the layout."""
    training, framework_name = plan.training, job.framework.name
    if training.stage != "grpo" or "rollout" in training.model_fields_set or usual_rollout(framework_name) is not None:
        return job
    try:
        beside = _job_of(plan.patch({"workload.rollout": "colocated"}), framework_choice)
    except PlanError:
        return job
    if beside.rollout is None or engine_seconds(beside, beside.rollout) >= least_generation_s(job):
        return job
    why = "an engine on the same devices generates samples sooner than the trained model"
    return replace(beside, assumptions=(*beside.assumptions, Assumption("workload.rollout", "colocated", why)))


def _job_of(plan: Plan, framework_choice: tuple[str, str] | None) -> Job:
    training = plan.training
    if plan.cluster.accelerator is None:
        raise no_accelerator()
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
    plan, moved = _sharding(plan, count, framework_choice)
    assumptions += moved
    if framework_choice is None and training.framework == "auto":
        framework_choice = choices(plan, accelerator.value, count)[0]
    own = _own_run(plan, architecture.id, framework_choice)
    plan, updated = _updated(plan, framework_choice)
    assumptions += updated
    visual, of_images = seen(training, architecture)
    longer, why_longer = room(training, visual.get("visual_tokens", training.visual_tokens or 0), USUAL_SEQ_LEN)
    plan = plan.patch({"workload": visual | longer}) if visual or longer else plan
    assumptions += [*of_images, *why_longer]
    facts = optimizer(plan.training.optimizer)
    workload, assumed = fill(plan, architecture, accelerator.value, count, framework_choice, own, facts.keeps_gradients)
    settled = {"accelerator": accelerator.value.id, "count": count, "per_node": cluster.per_node}
    filled, generated = _rolled_out(plan.patch({"workload": workload, "cluster": settled}))
    profile = _profile(filled, facts, cluster)
    filled, adapters = fill_adapters(filled, profile)
    factors, assumed = _calibrated(filled, profile, architecture, accelerator.value, assumed)
    job = Job(
        plan=filled,
        architecture=architecture,
        machine=cluster,
        framework=profile,
        optimizer=facts,
        calibration=factors,
        assumptions=(*assumptions, *assumed, *generated, *adapters),
        rollout=_rollout(filled, profile),
    )
    if not job.peak_flops or not job.head_peak_flops:
        kinds = sorted(accelerator.value.peak_flops)
        rate = "16-bit" if job.peak_flops else filled.training.precision
        raise PlanError("workload.precision", f"no {rate} rate is known for {accelerator.value.name}", kinds)
    return job


def _updated(plan: Plan, choice: tuple[str, str] | None) -> tuple[Plan, list[Assumption]]:
    """The plan with the optimizer that its framework takes by default, unless it names one, and what was assumed."""
    name = choice[0] if choice and plan.training.framework == "auto" else plan.training.framework
    usual = usual_optimizer(name)
    if usual is None or "optimizer" in plan.training.model_fields_set:
        return plan, []
    return plan.patch({"workload.optimizer": usual}), [
        Assumption("workload.optimizer", usual, f"the default of {name}")
    ]


def _rolled_out(plan: Plan) -> tuple[Plan, list[Assumption]]:
    """The plan with samples generated where its framework does, unless it says where, and what was assumed."""
    training = plan.training
    where = usual_rollout(training.framework)
    if where is None or training.stage not in STAGES or "rollout" in training.model_fields_set:
        return plan, []
    why = f"where {training.framework} generates samples"
    return plan.patch({"workload.rollout": where}), [Assumption("workload.rollout", where, why)]


def _profile(plan: Plan, optimizer: OptimizerFacts, cluster: Machine) -> Framework:
    """The framework of a plan that names it, as the plan has it run."""
    training = plan.training
    rack = cluster.fast_domain > cluster.per_node
    low = training.precision in _LOW
    # Some have another implementation where gradients or weights are asked to be sharded.
    sharded = (plan.layout.zero_stage or 0) >= 2
    profile = framework(training.framework, training.software_version, rack, low, sharded)
    profile = summing(holding(profile, training.weights), training.gradients)
    if training.optimizer in profile.limits.whole_optimizers:
        profile = unsharded(profile)
    if training.stage in profile.limits.whole_stages:
        profile = unsplit(profile)
    return by_block(profile) if optimizer.one_block and training.method == "full" else profile


def _own_run(plan: Plan, model: str, framework_choice: tuple[str, str] | None) -> UsualRun | None:
    """What the model's maker trained it with in this stage, where that is known."""
    own = usual_run(model, plan.training.stage)
    name = framework_choice[0] if framework_choice else plan.training.framework
    return own and replace(own, exact=framework(name).limits.pp)


def _sharding(plan: Plan, count: int, choice: tuple[str, str] | None) -> tuple[Plan, list[Assumption]]:
    """The plan on the framework that shards weights or splits sequences for its own, where it asks for that, or for
    states in host memory that its own has not, or that is the `choice`."""
    if plan.cluster.beside:
        raise PlanError("cluster.beside", "has no meaning for training", ["accelerators that are all alike"])
    training, layout = plan.training, plan.layout
    other = sharded_by(training.framework)
    if not other:
        return plan, []
    limits = framework(training.framework).limits
    few = training.global_batch is not None and training.global_batch < count
    lacks_cp, lacks_tp = (few or (layout.cp or 1) > 1) and not limits.cp, (layout.tp or 1) > 1 and not limits.tp
    asked = choice is not None and choice[0] == other
    away = {*(layout.offload or "none").split("+")} - {"none"} - {*limits.offloads}
    stage = layout.zero_stage
    shards = stage is not None and stage not in limits.zero_stages and stage in framework(other).limits.zero_stages
    if not (asked or away or lacks_cp or lacks_tp or shards):
        return plan, []
    why = f"{training.framework} shards weights and splits sequences through it"
    return plan.patch({"workload.framework": other}), [Assumption("workload.framework", other, why)]


def _calibrated(
    plan: Plan, profile: Framework, architecture: Architecture, accelerator: Accelerator, assumed: list[Assumption]
) -> tuple[Calibration, list[Assumption]]:
    """The factors of a plan, and its assumptions with the attention said that sequences are split with where the
    framework does that with one kernel alone and the plan names none."""
    kernel, family, eight = (
        plan.training.attention,
        accelerator.family,
        _eight_bit_attention(plan, profile, architecture),
    )
    alone = "" if "attention" in plan.training.model_fields_set else profile.limits.split_attention
    factors = calibration(family, profile.name, accelerator, kernel, eight, alone, architecture.id)
    if not alone:
        return factors, assumed
    more = f"; {alone} where sequences are split, which {profile.name} does with it alone"
    field = "workload.attention"
    return factors, [replace(each, why=each.why + more) if each.field == field else each for each in assumed]


def _eight_bit_attention(plan: Plan, profile: Framework, architecture: Architecture) -> bool:
    """Whether attention runs in 8 bits: never beside matmuls in 16, nor by recipe with windows, as no fast kernel has
    both (NVIDIA/cudnn-frontend, sdpa_benchmark_training/results/gpt_oss)."""
    training = plan.training
    chosen = training.fp8_attention
    if chosen == "auto":
        chosen = profile.recipe.fp8_attention and not any(block.window for block in architecture.blocks)
    return bool(chosen) and training.precision in _LOW


def _rollout(plan: Plan, profile: Framework) -> ServingJob | None:
    """The engine that generates the samples of reinforcement training on the training's own devices: with weights of 16
    bits, or in the 4 of those that are trained where it has the same."""
    training = plan.training
    if training.stage not in STAGES or training.rollout != "colocated":
        return None

    weights = "bf16" if training.precision not in ("fp16", "fp32") else training.precision
    if profile.recipe.rollout_engine == "shares" and training.method == "qlora":
        weights = "int4"
    workload = {
        "kind": "inference",
        "engine": "vllm",
        "scenario": "offline",
        "weight_dtype": weights,
        "memory_share": training.engine_share,
    }
    cluster = plan.cluster.model_dump(exclude_unset=True)
    return serving_job(Plan.parse({"model": plan.model, "workload": workload, "cluster": cluster}))
