"""What each target cannot say or would not run, as data: data/features.yaml and <folder of the target>/refusals.yaml.

A row's `when` names plan fields and the values for which it speaks; all of them must hold. Besides the plan's fields
there are `run.*` facts of the launch, listed in `facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.devices import FIELD, has_flash_kernels, maker, not_started
from launchers.families import template_of
from launchers.launch.names import last_part
from launchers.launch.of_plan import Launch
from launchers.launch.serving import ServingLaunch, has_experts
from launchers.launch.training import TrainingLaunch
from launchers.tables import table
from launchers.targets import TARGETS

_OFFER = "; these can: "
_NO_OTHER = ["auto"]


def check(launch: Launch, target: str) -> None:
    """Raises PlanError with the first reason why `target` cannot carry the plan."""
    refusals = table(f"{TARGETS[target].folder}/refusals")
    known = facts(launch)
    scope = "frameworks" if launch.kind == "training" else "engines"
    field = "workload.framework" if launch.kind == "training" else "workload.engine"
    if refusals.get(scope) and known[field] not in refusals[scope]:
        raise not_started(launch.plan, f"{known[field]} runs are not started by {target} files", refusals[scope])
    if refusals.get("devices") and known["run.maker"] not in (None, *refusals["devices"]):
        problem = f"{target} files are for devices of {', '.join(refusals['devices'])}, and {known[FIELD]} is none"
        raise PlanError(FIELD, problem, targets_on(known["run.maker"], launch.kind))
    # What no other value mends comes first: nobody looks for others of what is refused in the end.
    _check_rows(launch, [row for row in refusals["refusals"] if row.get("valid") == _NO_OTHER], known)
    if TARGETS[target].role in ("config", "program"):
        _check_features(launch.kind, target, refusals, known)
    _check_rows(launch, refusals["refusals"], known)


def _check_rows(launch: Launch, rows: Iterable[Mapping[str, Any]], known: Mapping[str, Any]) -> None:
    for row in rows:
        if matches(row["when"], known):
            raise PlanError(row["field"], row["problem"], row.get("valid", _one_group(launch, row["field"])))


def _one_group(launch: Launch, field: str) -> list[int]:
    """The shard group that is none: all replicas."""
    if field != "layout.shard_group" or launch.kind != "training":
        return []
    return [launch.dp * (launch.plan.layout.cp or 1)]


def _check_features(kind: str, target: str, refusals: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    expressible = {*refusals.get("says", ()), *refusals.get("elsewhere", ())}
    for feature in table("data/features"):
        if (
            feature.get("kind", "training") == kind
            and feature["name"] not in expressible
            and matches(feature["when"], known)
        ):
            named = f"{feature['name']} ({known[feature['field']]})"
            can = ", ".join(targets_that_say(feature["name"], kind))
            offer = f"{_OFFER}{can}" if can else f": {feature['why']}" if "why" in feature else ""
            problem = f"{target} files cannot express {named}{offer}"
            raise PlanError(feature["field"], problem, feature.get("valid", ()))


def briefly(problem: str) -> str:
    """Why files cannot say something, with the first of the programs whose files can, and how many others there are."""
    why, offer, names = problem.partition(_OFFER)
    first, *others = names.split(", ")
    return f"{why}; {first}{f' and {len(others)} others' if others else ''} can" if offer else why


def targets_that_say(feature: str, kind: str) -> list[str]:
    """The programs whose files have a field for a feature."""
    rows = ((name, row) for name, row in TARGETS.items() if row.role == "program" and kind in row.kinds)
    return [name for name, row in rows if feature in table(f"{row.folder}/refusals").get("says", ())]


def targets_on(maker: str, kind: str) -> list[str]:
    """The programs whose files are for devices of a maker (data/devices.yaml), as advice."""
    rows = ((name, table(f"{row.folder}/refusals").get("devices")) for name, row in TARGETS.items()
            if row.role == "program" and kind in row.kinds)  # fmt: skip
    return [f"targets: {name}" for name, devices in rows if devices is None or maker in devices]


def facts(launch: Launch) -> dict[str, Any]:
    """Dotted plan fields and `run.*` by name.

    Of training: whether the set has a DeepSpeed file and a training program, whether shard groups are smaller than dp,
    micro-steps per optimizer step, the chat template (which names the family), and whether an embedding that is to be
    trained is the output head too. Of serving: whether the model has experts that the layout spreads, and whether over
    all devices of a stage; whether a lane has part of a node and part of another; whether a step holds the longest
    request; and the last part of the model's name. Of both: nodes (of one replica), replicas, the nodes of all, and the
    maker of the devices (None where they are not known).
    """
    known: dict[str, Any] = {
        f"{section}.{name}": value
        for section in ("workload", "cluster", "layout")
        for name, value in getattr(launch.plan, section)
    }
    known |= {"run.nodes": launch.nodes, "run.replicas": launch.replicas}
    known["run.maker"] = maker(launch)
    known["run.all_nodes"] = -(-launch.devices // (launch.plan.cluster.per_node or launch.devices))
    return known | (_training_facts(launch) if launch.kind == "training" else _serving_facts(launch))


def _training_facts(launch: TrainingLaunch) -> dict[str, Any]:
    shard_group = launch.plan.layout.shard_group
    return {f"workload.lora.{name}": value for name, value in launch.training.lora} | {
        "run.deepspeed": "deepspeed" in launch.targets,
        "run.program": any(TARGETS[name].role == "program" for name in launch.targets),
        "run.shard_groups": shard_group is not None and shard_group != launch.dp,
        "run.flash_kernels": has_flash_kernels(launch),
        "run.accumulation": launch.accumulation,
        "run.template": template_of(launch.model),
        "run.tied_embeddings": launch.training.lora.train_embeddings and _has_tied_head(launch),
    }


def _serving_facts(launch: ServingLaunch) -> dict[str, Any]:
    lane, node = launch.tp * launch.pp, launch.node_devices
    most = launch.serving.max_batched_tokens
    return {
        "run.experts": has_experts(launch),
        "run.experts_everywhere": launch.ep in (1, launch.tp * launch.dp),
        "run.lane_cut": launch.nodes > 1 and bool(node % lane and lane % node),
        "run.step_holds_request": most is None or most >= launch.context,
        "run.model": last_part(launch.model or "").lower(),
    }


def _has_tied_head(launch: TrainingLaunch) -> bool:
    return architecture(launch.plan.model).tied


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
