"""What tools for serving ask beside the plan."""

from __future__ import annotations

from pydantic import Field

from planner.requests import ServingRequest
from planner.serving.pool import Statistic


class InferenceRequest(ServingRequest):
    slo_statistic: Statistic = Field("mean", description="Whether limits of latency hold for the mean or the p99.")
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")
