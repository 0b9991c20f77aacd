"""What the tools are asked that look up a fact."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from estimator.money.ownership import HOURS_PER_YEAR
from planner.asked.owning import OwningTerms


class ModelQuestion(BaseModel):
    model_config = ConfigDict(extra="forbid")
    model: str | dict[str, Any] = Field(
        description="Catalogue name, path to a config.json, or inline config fields.",
        examples=["llama-3.1-8b", "./config.json"],
    )


class HardwareQuestion(OwningTerms):
    model_config = ConfigDict(extra="forbid")
    accelerator: str = Field(
        description="Id or name, e.g. h100-sxm, 'A100 80GB', 4090.", examples=["h100-sxm", "A100 80GB", "8xh100"]
    )
    count: int | None = Field(default=None, ge=1, le=1_000_000, description="To rent, buy and power so many.")
    hours: float | None = Field(default=None, gt=0, le=1e6, description="Of use in all.")
    hours_per_year: float | None = Field(
        default=None, gt=0, le=HOURS_PER_YEAR, description="Of use; all of a year's unless given."
    )
    region: str | None = Field(default=None, max_length=100, description="Country or cloud region.")


class PlaybookRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    query: str = Field("", max_length=2000, description="Words to look for; left out, the topic is listed.")
    topic: str | None = Field(None, description="Only this topic, e.g. nccl, oom, fp8, serving-batching.")
    limit: int = Field(8, ge=1, le=200, description="How many entries to return.")


class MachineQuestion(BaseModel):
    model_config = ConfigDict(extra="forbid")
    torch: bool = Field(True, description="Ask PyTorch as well, which takes seconds to start.")
