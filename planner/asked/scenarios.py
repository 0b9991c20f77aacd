"""What the tools are asked that compare plans, and keep them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.compare.values import Values
from planner.requests import ONLY_SERVING, EitherRequest


class Scenario(BaseModel):
    """A variation of the base plan, or a plan of its own. Fields of a plan may also stand here by their flat names."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)

    name: str | None = Field(default=None, description="What to call it; made of what it changes unless given.")
    patch: dict[str, Any] | None = Field(
        default=None, description="Changes to the base plan by flat, dotted or nested names: {count: 16, layout.tp: 4}."
    )
    plan: dict[str, Any] | None = Field(
        default=None, description="A whole plan, in place of the base and of changes to it."
    )
    strategy: str | None = Field(
        default=None,
        description="Who chooses the layout: maximum_performance, memory_optimized, minimal_communication or balanced.",
    )


class CompareRequest(EitherRequest):
    scenarios: list[Scenario] | None = Field(
        None, description="What to compare: changes to the plan of the other arguments, or plans of their own."
    )
    over: dict[str, Values] | None = Field(
        None,
        description="Short for scenarios: one or two fields with their values, {method: [full, lora, qlora]} or "
        "{accelerator: [h100, mi300x], count: '8..32'}; strategy is such a field too.",
    )
    baseline: str | int | None = Field(
        None, description="Name or place (from 0) of the row that others are set against; the first unless given."
    )
    include_base: bool | None = Field(
        None,
        description="Whether the base plan is the first row: unless said, where it is whole and scenarios vary it.",
    )
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")

    def asks_serving(self) -> bool:
        keys = [key for scenario in self.scenarios or () for key in changes_of(scenario)] + list(self.over or ())
        return any(str(key).strip().replace("-", "_").rpartition(".")[2] in ONLY_SERVING for key in keys)

    def base(self) -> dict[str, Any]:
        """The data of the plan that scenarios vary, which may lack what they bring."""
        return self._data()


def changes_of(scenario: Scenario) -> dict[str, Any]:
    """What a scenario changes, by the names it uses."""
    return {**(scenario.patch or {}), **(scenario.model_extra or {})}


class RenderScenarioRequest(EitherRequest):
    name: str | None = Field(None, description="Name of the scenario; the plan's own name unless given.")
    text: str | None = Field(None, description="The plan as YAML or JSON text, instead of plan.")
    format: Literal["yaml", "json"] = Field("yaml", description="Of the text.")


class SaveRequest(EitherRequest):
    name: str | None = Field(None, description="Name to save under; the plan's own name unless given.")
    text: str | None = Field(None, description="The plan as YAML or JSON text (to import one), instead of plan.")
    overwrite: bool = Field(False, description="Replace the scenario of that name.")


class ListRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    query: str | None = Field(None, max_length=200, description="Words that must be in the name, model or accelerator.")
    figures: bool = Field(False, description="Estimate each of them, too.")


class LoadRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(description="The scenario's name.")
    format: Literal["yaml", "json"] = Field("yaml", description="Of the text: the file as it is, or the plan as JSON.")


class DeleteRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(description="The scenario's name.")


class DiffRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    a: str | dict[str, Any] = Field(description="Name of a scenario, or a Plan: what is compared with.")
    b: str | dict[str, Any] = Field(description="Name of a scenario, or a Plan: what is compared.")
