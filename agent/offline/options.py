"""What is to be set side by side, as arguments of `compare`: values of one field, or scenarios of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimator.plan.schema import Inference, Training, merge
from knowledge.machines.catalogue import find_accelerator
from pages.results.plan import set_words
from planner.partial import flat, get, is_serving
from planner.requests import ALL_PATHS

Changed = dict[str, Any]
"""What an option changes: flat names and values; None takes a value back."""
_MOST = 8
# What can be on or off: what it is set beside where the plan does not say.
_OFF: Mapping[str, Any] = {"recompute": "none", "offload": "none", "weight_dtype": "bf16", "attention": "eager",
                           "compile": False}  # fmt: skip
NOW = "now"
LINKS = "overrides.scaleup_gb_per_s"
_OPEN = ("tp", "pp", "cp", "ep", "zero_stage")


def changed(plan: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[Changed]:
    """What each of several plans makes of the fields in which any of them leaves `plan`; links have no flat name."""
    before, after = _with_links(plan), [_with_links(other) for other in others]
    names = [name for name in (*ALL_PATHS, LINKS) if any(row.get(name) != before.get(name) for row in after)]
    return [{name: arguments.get(name) for name in names} for arguments in after] if names else []


def _with_links(plan: Mapping[str, Any]) -> Changed:
    rest = {name: value for name, value in flat(plan).items() if name != "overrides"}
    return rest | {LINKS: get(plan, LINKS)}


def compared(plan: Mapping[str, Any], options: Sequence[Changed]) -> dict[str, Any]:
    """compare's own arguments. What all options have alike becomes an argument beside them; one option alone is set
    beside the plan as it is."""
    options = list(options)[:_MOST]
    if len(options) == 1:
        return _beside(plan, options[0])
    names = set().union(*options)
    alike = {name for name in names if all(name in each and each[name] == options[0].get(name) for each in options)}
    rest = [{name: value for name, value in each.items() if name not in alike} for each in options]
    common = {name: options[0][name] for name in alike}
    fields = {name for each in rest for name, value in each.items() if value is not None}
    if len(fields) == 1 and all(rest):
        (name,) = fields
        values = [each.get(name) for each in rest]
        if None not in values:
            return common | {"over": {name: list(dict.fromkeys(values))}}
    return common | {"scenarios": [_scenario(plan, each) for each in rest], "include_base": False}


def over_of(own: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values that are set side by side, by Plan path, of fields that every option has."""
    over = {ALL_PATHS[name]: list(values) for name, values in (own.get("over") or {}).items() if name in ALL_PATHS}
    rows = own.get("scenarios") or []
    for name in ALL_PATHS:
        if len(rows) > 1 and all(each.get(name) is not None for each in rows):
            values = list(dict.fromkeys(each[name] for each in rows if not isinstance(each[name], Mapping)))
            over |= {ALL_PATHS[name]: values} if len(values) > 1 else {}
    return over


def label(option: Mapping[str, Any]) -> str:
    """'16 x h100-sxm, fp8, micro-batch 2'; of what sets nothing 'now'."""
    left = {name: value for name, value in option.items() if value is not None}
    device = [str(left.pop("count"))] if left.get("accelerator") and "count" in left else []
    device += [str(left.pop("accelerator"))] if left.get("accelerator") else []
    words = [set_words(name, value) for name, value in left.items() if name != "per_node"]
    return ", ".join([*([" x ".join(device)] if device else []), *words]) or NOW


def _beside(plan: Mapping[str, Any], option: Changed) -> dict[str, Any]:
    changes = {name: value for name, value in option.items() if value is not None}
    if len(changes) == 1:
        ((name, value),) = changes.items()
        before = get(plan, ALL_PATHS.get(name, name))
        before = _usual(name, is_serving(plan)) if before in (None, value) else before
        if before not in (None, value, "auto"):
            return {"over": {name: [before, value]}}
    if set(changes) & {"accelerator", "count"} and get(plan, "cluster.accelerator"):
        here = {name: value for name in ("accelerator", "count") if (value := get(plan, ALL_PATHS[name])) is not None}
        return {"scenarios": [{"name": label(here), **here}, _scenario(plan, here | option)]}
    return {"scenarios": [_scenario(plan, option)]}


def _scenario(plan: Mapping[str, Any], option: Changed) -> dict[str, Any]:
    # How another program shards is its own business.
    sized = {name: None for name in _OPEN if "framework" in option and get(plan, ALL_PATHS[name]) is not None}
    return {"name": label(_with_named_links(plan, option)), **sized, **option}


def _with_named_links(plan: Mapping[str, Any], option: Changed) -> Changed:
    """An option with the name of the device's own links, where it takes these."""
    device = get(
        merge(plan, {ALL_PATHS.get(name, name): value for name, value in option.items()}), "cluster.accelerator"
    )
    if not device or option.get(LINKS, 0.0) is not None:
        return option
    return {**option, LINKS: find_accelerator(str(device)).value.scaleup_link}


def _usual(name: str, serving: bool) -> Any:
    """What a field is where nothing was said: off, or the Plan's default."""
    if name in _OFF:
        return _OFF[name]
    fields = (Inference if serving else Training).model_fields
    return fields[name].default if name in fields else None
