"""What the tools for runs that people made are asked."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from planner.requests import EitherRequest, PlanRequest


class ReadRequest(PlanRequest):
    """What the log leaves open of the plan can be said beside it, and wins over it."""

    path: str | None = Field(None, description="A log, an event file, or a folder of wandb, MLflow or TensorBoard.")
    text: str | None = Field(None, max_length=20_000_000, description="The text of a log, in place of a path.")


class RateRequest(EitherRequest):
    """A measured speed in one of its units, with the plan; or a run of the history."""

    tokens_per_s: float | None = Field(None, gt=0, description="Measured tokens per second of all devices together.")
    tokens_per_s_per_device: float | None = Field(None, gt=0, description="Measured tokens per second and device.")
    samples_per_s: float | None = Field(None, gt=0, description="Measured sequences per second of all devices.")
    step_s: float | None = Field(None, gt=0, description="Measured seconds per optimizer step.")
    mfu: float | None = Field(None, gt=0, description="Measured model FLOP utilisation: 0.4, or 40 for percent.")
    tflops_per_device: float | None = Field(None, gt=0, description="Measured model TFLOP/s per device.")
    tpot_s: float | None = Field(None, gt=0, description="Of serving: measured seconds per output token.")
    run: str | None = Field(None, description="A run of the history by its id or name, in place of a figure.")


class HistoryRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    model: str | None = Field(None, description="Only runs whose model has this in its name.")
    accelerator: str | None = Field(None, description="Only runs on accelerators with this in their name.")
    software: str | None = Field(None, description="Only runs on software with this in its name or version.")
    tag: str | None = Field(None, description="Only runs with this tag.")
    runs: list[str] = Field(default_factory=list, max_length=50, description="These alone, by id or name.")
    since: str | None = Field(None, description="Only runs from this day on, 2026-01-31.")
    estimates: bool = Field(True, description="Whether each is estimated too.")
