"""The arguments that every planning tool shares: a whole or partial Plan, and each Plan field under its own flat name.

`{"model": "llama-3.1-8b", "accelerator": "h100", "count": 8}` says the same as the nested Plan. The flat fields are
made from the Plan's own, so there is one definition of each; a flat argument wins over the same field inside `plan`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from estimator.errors import PlanError
from estimator.plan import Cluster, Goal, Layout, Lora, Overrides, Plan, Training, merge

# Fields inside the Plan whose own name would be unclear or taken when flat.
_RENAMED = {"rank": "lora_rank", "alpha": "lora_alpha", "targets": "lora_targets", "dropout": "lora_dropout"}
# Of the figures that a user may set only these have flat names; `overrides` takes them all.
_FLAT_OVERRIDES = ("usable_gib", "reserve_gib")
_SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("workload", Training),
    ("workload.lora", Lora),
    ("cluster", Cluster),
    ("layout", Layout),
    ("goal", Goal),
)


def _flat_fields() -> Iterator[tuple[str, str, FieldInfo]]:
    """(flat name, dotted Plan path, Plan field) of every field that can be given flat."""
    for section, model in _SECTIONS:
        for name, info in model.model_fields.items():
            if name not in ("kind", "lora"):
                yield _RENAMED.get(name, name), f"{section}.{name}", info
    for name in _FLAT_OVERRIDES:
        yield name, f"overrides.{name}", Overrides.model_fields[name]


# `overrides` stands before its own fields, so that those win over the same field inside it.
FLAT_PATHS: dict[str, str] = {name: name for name in ("model", "name", "overrides")} | {
    flat: path for flat, path, _ in _flat_fields()
}


class PlanArguments(BaseModel):
    """Base of the planning requests; `to_plan` gives the Plan that they describe."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    plan: dict[str, Any] | None = Field(None, description="A whole or partial Plan; flat arguments win over it.")

    def to_plan(self) -> Plan:
        """Raises PlanError as Plan.parse does, or when no model is named."""
        changes = {
            path: value
            for flat, path in FLAT_PATHS.items()
            if flat in self.model_fields_set and (value := getattr(self, flat)) is not None
        }
        data = merge({}, self.plan or {})
        for path, value in changes.items():
            data = merge(data, {path: value})
        if data.get("model") is None:
            raise PlanError(
                "model", "is required: name a catalogue model or a config.json", ["meta-llama/Llama-3.1-8B"]
            )
        return Plan.parse(data)


def _optional(info: FieldInfo) -> tuple[Any, FieldInfo]:
    """The Plan field without its constraints' default: given or not given. The Plan itself checks the bounds."""
    return info.annotation | None, Field(None, description=info.description)  # type: ignore[operator]


if TYPE_CHECKING:
    PlanRequest = PlanArguments
else:
    PlanRequest = create_model(
        "PlanRequest",
        __base__=PlanArguments,
        model=(str | dict[str, Any] | None, Field(None, description=Plan.model_fields["model"].description)),
        name=(str | None, Field(None, description="A name for the plan.")),
        overrides=(
            dict[str, Any] | None,
            Field(
                None,
                description="Figures that you know better, each in place of what would be estimated or looked up: "
                "memory in GiB per device, bandwidths of links in GB/s one way, latency in microseconds; "
                + ", ".join(Overrides.model_fields),
            ),
        ),
        **{flat: _optional(info) for flat, _, info in _flat_fields()},
    )
