"""What the tool is asked that queues several runs on one cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from planner.requests import FLAT_PATHS, of_scenario


class PortfolioRun(BaseModel):
    """A run of the portfolio: a plan of training, without a cluster of its own. Fields of a plan may stand beside the
    run's own, and a saved scenario's name for the plan."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=80, description="What to call it.")
    plan: Annotated[dict[str, Any], BeforeValidator(of_scenario, json_schema_input_type=dict[str, Any])] = Field(
        description="A partial Plan of training with its data or steps."
    )
    devices: int | None = Field(None, ge=1, le=1_000_000, description="How many it takes; all unless given.")
    priority: float = Field(0.0, ge=-1e6, le=1e6, description="What is higher goes first.")
    after: list[str] = Field(default_factory=list, max_length=100, description="Runs that must have ended.")
    ready_h: float = Field(0.0, ge=0, le=1e6, description="Hours from the start before which it cannot begin.")
    deadline_h: float | None = Field(None, gt=0, le=1e6, description="Hours from the start by which it should end.")

    @model_validator(mode="before")
    @classmethod
    def _with_flat_fields(cls, data: Any) -> Any:
        """Puts fields of a plan that stand beside the run's own into its plan."""
        if not isinstance(data, dict):
            return data
        own = {name: value for name, value in data.items() if name not in FLAT_PATHS or name in cls.model_fields}
        flat = {name: value for name, value in data.items() if name not in own}
        if not flat:
            return data
        plan = of_scenario(own.pop("plan", None) or {})
        return own | {"plan": plan | flat if isinstance(plan, dict) else plan}


class PortfolioRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    accelerator: str = Field(max_length=200, description="Of the cluster.")
    count: int = Field(ge=1, le=1_000_000, description="Its devices.")
    runs: list[PortfolioRun] = Field(
        min_length=1,
        max_length=100,
        description="Each {name, plan, devices, priority, after, ready_h, deadline_h}, plan with its data.",
    )
    start: datetime | None = Field(None, description="When the first may begin, e.g. 2026-12-01T09:00; for dates.")
    usd_per_device_hour: float | None = Field(None, gt=0, le=1e6, description="Your own price of the cluster.")

    @model_validator(mode="before")
    @classmethod
    def _with_count(cls, data: Any) -> Any:
        """Takes the number in the accelerator's name ("64xh100") where none stands beside it. Raises PlanError."""
        from knowledge.machines.counted import find_devices  # loads NumPy

        match data:
            case {"count": int() | float() | str()}:
                return data
            case {"accelerator": str(name)} if (named := find_devices(name)).count is not None:
                return data | {"accelerator": named.match.value.id, "count": named.count}
        return data
