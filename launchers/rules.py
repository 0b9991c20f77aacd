"""What each target cannot say or would not run, as data: data/features.yaml and data/targets/<target>.yaml.

A row's `when` names plan fields and the values for which it speaks; all of them must hold. Besides the plan's fields
there are `run.*` facts of the job, listed in `facts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.engines.job import has_experts
from launchers.families import template_of
from launchers.job import last_part
from launchers.tables import table
from launchers.targets import TARGETS

if TYPE_CHECKING:
    from launchers.engines.job import ServingJob
    from launchers.job import Job


def check(job: Job | ServingJob, target: str) -> None:
    """Raises PlanError with the first reason why `target` cannot carry the plan."""
    own = table(f"targets/{target}")
    known = facts(job)
    scope = "frameworks" if job.kind == "training" else "engines"
    field = "workload.framework" if job.kind == "training" else "workload.engine"
    if own.get(scope) and known[field] not in own[scope]:
        raise PlanError(field, f"{known[field]} runs are not started by {target} files", own[scope])
    if TARGETS[target].role != "scheduler":
        _check_features(job.kind, target, own, known)
    for row in own["refusals"]:
        if matches(row["when"], known):
            raise PlanError(row["field"], row["problem"], row.get("valid", ()))


def _check_features(kind: str, target: str, own: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    said = {*own.get("says", ()), *own.get("elsewhere", ())}
    for feature in table("features"):
        if feature.get("kind", "training") == kind and feature["name"] not in said and matches(feature["when"], known):
            named = f"{feature['name']} ({known[feature['field']]})"
            can = ", ".join(targets_that_say(feature["name"], kind))
            offer = f"; these can: {can}" if can else ""
            problem = f"{target} files cannot express {named}{offer}"
            raise PlanError(feature["field"], problem, feature.get("valid", ()))


def targets_that_say(feature: str, kind: str) -> list[str]:
    """The programs whose files have a field for a feature."""
    rows = ((name, target) for name, target in TARGETS.items() if target.role == "program" and kind in target.kinds)
    return [name for name, _ in rows if feature in table(f"targets/{name}").get("says", ())]


def facts(job: Job | ServingJob) -> dict[str, Any]:
    """Dotted plan fields and `run.*` by name.

    Of training: whether the set has a DeepSpeed file and a training program, whether shard groups are smaller than dp,
    micro-steps per optimizer step, the chat template (which names the family), and whether an embedding that is to be
    trained is the output head too. Of serving: whether the model has experts that the layout spreads, and whether over
    all devices of a stage; whether a lane has part of a node and part of another; whether a step holds the longest
    request; and the last part of the model's name. Of both: nodes (of one replica), replicas, and the nodes of all.
    """
    known: dict[str, Any] = {
        f"{section}.{name}": value
        for section in ("workload", "cluster", "layout")
        for name, value in getattr(job.plan, section)
    }
    known |= {"run.nodes": job.nodes, "run.replicas": job.replicas}
    known["run.all_nodes"] = -(-job.devices // (job.plan.cluster.per_node or job.devices))
    return known | (_training_facts(job) if job.kind == "training" else _serving_facts(job))


def _training_facts(job: Job) -> dict[str, Any]:

    shard_group = job.plan.layout.shard_group
    return {f"workload.lora.{name}": value for name, value in job.training.lora} | {
        "run.deepspeed": "deepspeed" in job.targets,
        "run.program": any(TARGETS[name].role == "program" for name in job.targets),
        "run.shard_groups": shard_group is not None and shard_group != job.dp,
        "run.accumulation": job.accumulation,
        "run.template": template_of(job.model),
        "run.tied_embeddings": job.training.lora.train_embeddings and _has_tied_head(job),
    }


def _serving_facts(job: ServingJob) -> dict[str, Any]:

    lane, node = job.tp * job.pp, job.node_devices
    most = job.serving.max_batched_tokens
    return {
        "run.experts": has_experts(job),
        "run.experts_everywhere": job.ep in (1, job.tp * job.dp),
        "run.lane_cut": job.nodes > 1 and bool(node % lane and lane % node),
        "run.step_holds_request": most is None or most >= job.context,
        "run.model": last_part(job.model or "").lower(),
    }


def _has_tied_head(job: Job) -> bool:

    return architecture(job.plan.model).tied


def matches(conditions: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether all `conditions` hold: a list of values, {not: values}, {above: number} or {starts: text} per field."""
    return all(_holds(condition, known[field]) for field, condition in conditions.items())


def _holds(condition: Any, value: Any) -> bool:
    if isinstance(condition, list):
        return value in condition
    ((kind, limit),) = condition.items()
    match kind:
        case "not":
            return value not in limit
        case "above":
            return value is not None and value > limit
        case "starts":
            return isinstance(value, str) and value.startswith(limit)
    raise ValueError(f"unknown condition {kind!r}")
