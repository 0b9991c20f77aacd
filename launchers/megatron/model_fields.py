"""The fields of a plan's model as a config says them, for programs that take a model by its dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.models.catalogue import architecture, facts_of, find_model, read_config
from knowledge.models.fields import canonical
from knowledge.own.home import expanded
from launchers.launch.training import TrainingLaunch
from launchers.tables import table


def fields_of(spec: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Canonical fields (estimator.model.configs) of a catalogue name, a config.json or its folder, or an inline config.

    Raises PlanError as knowledge.models.catalogue.architecture does.
    """
    if isinstance(spec, Mapping):
        return canonical(spec)
    path = expanded(spec)
    if facts_of(spec) is None:
        if (path / "config.json").is_file():
            return canonical(read_config(path / "config.json"))
        if path.is_file():
            return canonical(read_config(path))
    return find_model(spec).value.fields


def _config_of(spec: str | Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The config.json of a plan that names a file or a folder of one, or has it inline; None of a catalogue name."""
    if isinstance(spec, Mapping):
        return spec
    if facts_of(spec) is not None:
        return None
    path = expanded(spec)
    file = path if path.is_file() else path / "config.json"
    return read_config(file) if file.is_file() else None


def beyond_dimensions(launch: TrainingLaunch) -> dict[str, Any]:
    """Norms, routing and rotary scaling as arguments: of a config that the plan gives, or of the model's family."""
    words = table("megatron/models")
    config = _config_of(launch.plan.model)
    if config is not None:
        return _of_config(config, words["fields"])
    arguments: dict[str, Any] = {}
    for family in _families(launch):
        arguments |= family["arguments"]
    # What is off is an option that is not there.
    return {name: value for name, value in arguments.items() if value is not False}


def _of_config(config: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    yarn = isinstance(scaling, Mapping) and "yarn" in (scaling.get("type"), scaling.get("rope_type"))
    arguments: dict[str, Any] = {}
    for name, argument in names.items():
        section, _, field = name.rpartition(".")
        value = (scaling.get(field) if yarn else None) if section else config.get(field)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            arguments[argument] = value
    if arguments.get("moe_router_num_groups") in (None, 1):
        arguments.pop("moe_router_num_groups", None)
        arguments.pop("moe_router_group_topk", None)
    if yarn and config.get("kv_lora_rank"):
        arguments |= {"rope_type": "yarn", "no_rope_fusion": True}
    if config.get("topk_method") == "noaux_tc":
        arguments |= {"moe_router_enable_expert_bias": True, "moe_router_load_balancing_type": "seq_aux_loss"}
    return arguments


def mtp_layers(launch: TrainingLaunch) -> int:
    """Layers of the model that predict tokens further on, which are not planned with."""
    config = _config_of(launch.plan.model)
    if config is not None:
        return int(config.get("num_nextn_predict_layers") or 0)
    return max((family.get("mtp", 0) for family in _families(launch)), default=0)


def _families(launch: TrainingLaunch) -> list[dict[str, Any]]:
    names = {architecture(launch.plan.model).id.lower(), (launch.model or "").lower()}
    return [row for row in table("megatron/models")["families"] if any(re.match(row["match"], name) for name in names)]


def rotary_base(launch: TrainingLaunch) -> int | None:
    """The base of the rotary embedding, from the plan's config or the table of families; None where neither says."""
    fields = fields_of(launch.plan.model)
    theta = fields.get("rope_theta") or (fields.get("rope_parameters") or {}).get("rope_theta")
    if isinstance(theta, int | float) and theta >= 1:
        return int(theta)
    names = (architecture(launch.plan.model).id, launch.model or "")
    return next(
        (
            base
            for start, base in table("megatron/fields")["rotary_bases"]
            if any(re.match(start, n.lower()) for n in names)
        ),
        None,
    )
