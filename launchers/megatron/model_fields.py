"""The fields of a plan's model as a config says them, for programs that take a model by its dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.models.catalogue import architecture, find_model
from knowledge.models.config_files import read_config
from knowledge.models.fields import canonical
from knowledge.models.known import facts_of
from knowledge.own.home import expanded
from launchers.launch.training import TrainingLaunch
from launchers.tables import table

# Any of these says how tokens are routed; the losses beside it are not of the model.
_ROUTING = ("moe_router_pre_softmax", "moe_router_score_function", "moe_router_dtype")


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


def not_said(launch: TrainingLaunch, arguments: Mapping[str, Any]) -> list[str]:
    """What the model's config.json has and neither plan nor table of families, with its options; and what a family has
    that no option says."""
    lacking = [str(family["beside"]) for family in _families(launch) if "beside" in family]
    if "norm_epsilon" not in arguments:
        lacking.append("--norm-epsilon, rms_norm_eps of the model's config (1e-05 is Megatron's own)")
    if arguments.get("num_experts") and not any(name.startswith(_ROUTING) for name in arguments):
        options = "--moe-router-pre-softmax (norm_topk_prob false), --moe-router-score-function and what it scales"
        lacking.append(f"routing of the model's config: {options} (softmax after top-k is Megatron's own)")
    return lacking


def _names(launch: TrainingLaunch) -> list[str]:
    """What the model is called: the row that it is like, its row, its checkpoint."""
    row = architecture(launch.plan.model).id
    facts = facts_of(row)
    return [name.lower() for name in (facts.like if facts else "", row, launch.model or "") if name]


def _families(launch: TrainingLaunch) -> list[dict[str, Any]]:
    names = _names(launch)
    return [row for row in table("megatron/models")["families"] if any(re.match(row["match"], name) for name in names)]


def rotary_base(launch: TrainingLaunch) -> int | None:
    """The base of the rotary embedding, from the plan's config or the table of families; None where neither says."""
    fields = fields_of(launch.plan.model)
    theta = fields.get("rope_theta") or (fields.get("rope_parameters") or {}).get("rope_theta")
    if isinstance(theta, int | float) and theta >= 1:
        return int(theta)
    names, bases = _names(launch), table("megatron/fields")["rotary_bases"]
    return next((base for start, base in bases if any(re.match(start, name) for name in names)), None)
