"""What each target cannot say or would not run, as data: one row each in expressibility.yaml and refusals.yaml.

A row's `when` names plan fields and the values for which it speaks; all of them must hold. Besides the plan's fields
there are `run.*` facts of the job, listed in `facts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError
from launchers.job import Job
from launchers.tables import table


def check(job: Job, target: str) -> None:
    """Raises PlanError with the first reason why `target` cannot carry the plan."""
    known = facts(job)
    expressible = table("expressibility")
    frameworks = expressible["frameworks"].get(target)
    if frameworks and job.training.framework not in frameworks:
        problem = f"{job.training.framework} runs are not started by {target} files"
        raise PlanError("workload.framework", problem, frameworks)
    for feature in expressible["features"]:
        if target in feature["cannot"] and matches(feature["when"], known):
            can = ", ".join(feature["targets"])
            raise PlanError(
                feature["field"],
                f"{target} files cannot express {feature['name']} ({known[feature['field']]}); these can: {can}",
                feature.get("valid", ()),
            )
    for row in table("refusals"):
        if row["target"] == target and matches(row["when"], known):
            raise PlanError(row["field"], row["problem"], row.get("valid", ()))


def facts(job: Job) -> dict[str, Any]:
    """Dotted plan fields and `run.*`: whether the set has a DeepSpeed file, whether it has a trainer's config, whether
    shard groups are smaller than dp, micro-steps per optimizer step, the chat template (which names the family), and
    whether an embedding that is to be trained is the output head too."""
    from launchers.families import template_of

    known: dict[str, Any] = {}
    for section in ("workload", "cluster", "layout"):
        known |= {f"{section}.{name}": value for name, value in getattr(job.plan, section)}
    known |= {f"workload.lora.{name}": value for name, value in job.training.lora}
    shard_group = job.plan.layout.shard_group
    return known | {
        "run.deepspeed": "deepspeed" in job.targets,
        "run.trainer": "llamafactory" in job.targets,
        "run.shard_groups": shard_group is not None and shard_group != job.dp,
        "run.accumulation": job.accumulation,
        "run.template": template_of(job.model),
        "run.tied_embeddings": job.training.lora.train_embeddings and _has_tied_head(job),
    }


def _has_tied_head(job: Job) -> bool:
    from knowledge.models import architecture

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
