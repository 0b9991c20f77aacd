"""A partial plan: what was given so far, nested as the Plan is or as the tools' flat arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.plan.schema import Plan, merge
from planner.requests import FLAT_PATHS, SERVING_PATHS

DATA_SIZES = ("dataset_tokens", "dataset_samples", "steps")


def get(plan: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path of a partial plan, or None."""
    value: Any = plan
    for step in path.split("."):
        # Asked thousands of times for a sentence: whether something is a Mapping at all is slow to find out.
        if value is None or not isinstance(value, (dict, Mapping)):
            return None
        value = value.get(step)
    return value


def is_serving(plan: Mapping[str, Any]) -> bool:
    return get(plan, "workload.kind") == "inference"


def knows_length(plan: Mapping[str, Any]) -> bool:
    """Whether a partial plan says how long the run is."""
    return any(get(plan, f"workload.{name}") for name in DATA_SIZES)


def flat(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A partial plan as the tools' flat arguments; `overrides` holds those figures that have no flat name.

    Of serving `plan` holds what has none.
    """
    if is_serving(plan):
        return _flat_serving(plan)
    arguments = {name: get(plan, path) for name, path in FLAT_PATHS.items()}
    overrides = {name: value for name, value in (get(plan, "overrides") or {}).items() if name not in FLAT_PATHS}
    arguments |= {"overrides": overrides or None}
    return {name: value for name, value in arguments.items() if value is not None}


def _flat_serving(plan: Mapping[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    rest = merge(plan, {})
    for name, path in SERVING_PATHS.items():
        value = get(plan, path)
        if value is None or name == "overrides":
            continue
        arguments[name] = value
        rest = merge(rest, {path: None})
    rest = {name: value for name, value in rest.items() if value}
    return arguments | ({"plan": rest} if rest else {})


def nested(arguments: Mapping[str, Any], serving: bool = False) -> dict[str, Any]:
    """A tool's arguments as a partial plan, of training or of serving: the flat ones laid over `plan`."""
    base = get(arguments, "plan")
    plan = merge(base if isinstance(base, Mapping) else {}, {"workload": {"kind": "inference"}} if serving else {})
    for name, path in (SERVING_PATHS if serving else FLAT_PATHS).items():
        if arguments.get(name) is not None:
            plan = merge(plan, {path: arguments[name]})
    return plan


def checked(path: str, value: Any, serving: bool) -> Any:
    """A value as its field of the Plan holds it. Raises PlanError where the Plan would refuse it."""
    if path == "model" or value is None:
        return value
    kind = "inference" if serving else "training"
    room = {"workload": {"kind": kind}} if path.startswith("workload.") else {}
    part: Any = Plan.parse(merge({"model": "any", **room}, {path: value}))
    for step in path.split("."):
        part = getattr(part, step)
    return part.model_dump(exclude_none=True) if path == "overrides" else part
