"""What the tools for a deployment are asked."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from estimator.plan.schema import CacheDtype, Engine, WeightDtype
from planner.requests import ServingRequest

Goal = Literal["throughput", "latency", "cost"]


class InferenceRequest(ServingRequest):
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")


class BestServingRequest(InferenceRequest):
    goal: Goal | None = Field(
        None, description="throughput (default: most tokens/s per device), latency (shortest requests) or cost."
    )
    engines: list[Engine] | None = Field(None, description="Engines to try; all servers that run on it unless given.")
    weight_dtypes: list[WeightDtype] | None = Field(None, description="Weight formats to try; the usual unless given.")
    kv_dtypes: list[CacheDtype] | None = Field(None, description="Cache formats to try; the engine's unless given.")
    accelerators: list[str] | None = Field(
        None, max_length=1_000, description="Accelerators to compare, count of each."
    )
    top: int = Field(5, ge=1, le=100, description="How many alternatives to return beside the best.")


class SizeServingRequest(InferenceRequest):
    engines: list[Engine] | None = Field(None, description="Engines to try; all servers that run on it unless given.")
    weight_dtypes: list[WeightDtype] | None = Field(None, description="Weight formats to try; the usual unless given.")
    kv_dtypes: list[CacheDtype] | None = Field(None, description="Cache formats to try; the engine's unless given.")
    accelerators: list[str] | None = Field(
        None, max_length=1_000, description="Accelerators to compare; the plan's unless given."
    )
    top: int = Field(10, ge=1, le=100, description="How many sizes to return.")
