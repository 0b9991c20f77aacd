"""What the tools are asked that choose a cluster."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.requests import EitherRequest

Sort = Literal["cost", "time", "balanced"]


class Where(EitherRequest):
    """What devices there are, and the limits."""

    accelerators: list[str] | None = Field(
        None, max_length=1_000, min_length=1, description="Accelerators to restrict the choice to."
    )
    vendors: list[str] | None = Field(
        None, max_length=1_000, min_length=1, description="Vendors to restrict to: NVIDIA, AMD, Google …"
    )
    providers: list[str] | None = Field(
        None,
        max_length=1_000,
        min_length=1,
        description="Providers to restrict to: AWS, GCP …; owned: machines to buy.",
    )
    max_devices: int | None = Field(None, ge=1, le=1_000_000, description="Most devices.")
    max_nodes: int | None = Field(None, ge=1, le=1_000_000, description="Most nodes.")
    max_usd: float | None = Field(None, gt=0, description="Most that the run may cost; as budget_usd.")
    max_usd_per_hour: float | None = Field(None, gt=0, description="Most that an hour of the cluster may cost.")
    max_kw: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="Most power at the meter, devices at their limit, with hosts and cooling.",
    )
    least_memory_gib: float | None = Field(None, gt=0, description="Least memory of a device, as vendors print it.")


class ClusterRequest(Where):
    sort: Sort | None = Field(
        None, description="cost, time or balanced (geometric mean of both); else objective, deadline and budget decide."
    )
    limit: int = Field(10, ge=1, le=100, description="Most options to return.")


class ConfigureRequest(Where):
    longest_sample_tokens: int | None = Field(
        None, ge=1, le=100_000_000, description="Tokens of the longest samples of the data; seq_len follows from it."
    )
