"""What the tools for a training run are asked, and those that push or vary a plan of either kind."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.compare.values import Values
from planner.requests import ONLY_SERVING, EitherRequest, PlanRequest

SERVING_GOALS = ("context", "input_len", "concurrency")


class EstimateRequest(PlanRequest):
    improvements: bool = Field(
        False, description="Whether to look for changes that would make the run faster; takes longer."
    )


class SearchRequest(PlanRequest):
    top: int = Field(5, ge=1, le=100, description="How many alternatives to return beside the best.")


class LimitRequest(EitherRequest):
    goal: Literal[
        "seq_len", "micro_batch", "model", "devices", "accelerator", "tokens", "context", "input_len", "concurrency"
    ] = Field(
        description="What to push to its limit: seq_len, micro_batch, model (largest), devices (least), accelerator "
        "(smallest card), tokens (in time or money); of serving also context, input_len, concurrency."
    )  # fmt: skip
    family: str | None = Field(
        None, description="For goal model: a family such as llama or qwen2.5, or any; else that of the plan's model."
    )

    def asks_serving(self) -> bool:
        return self.goal in SERVING_GOALS


class SweepRequest(EitherRequest):
    field: str = Field(
        description="The Plan field to sweep, flat or dotted: count, seq_len, layout.tp, accelerator …",
        examples=["count", "seq_len", "layout.tp", "accelerator"],
    )
    values: Values = Field(
        description="Its values: a list, {start, stop, factor or step}, words such as '8..512 doubling', or 'all' of a "
        "field of words: all that can run, the best first.",
        examples=["4096,8192,16384", "8..512 doubling"],
    )
    second_field: str | None = Field(None, description="A second field: each of its values gives a curve.")
    second_values: Values | None = Field(None, description="Values of the second field.")
    scale_batch: bool = Field(
        False, description="Weak scaling: global_batch grows with the devices; else it stays (strong scaling)."
    )
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")

    def asks_serving(self) -> bool:
        names = [name for name in (self.field, self.second_field) if name is not None]
        return any(name.strip().replace("-", "_").rpartition(".")[2] in ONLY_SERVING for name in names)


class ScalingRequest(PlanRequest):
    nodes: int | Values = Field(
        64, description="Up to so many nodes, doubling from 1; or a list of numbers of nodes, or words: '1..64'."
    )
    scaling: Literal["strong", "weak"] = Field(
        "strong", description="strong: the global batch stays; weak: it grows with the devices."
    )
    efficiency_threshold: float = Field(
        0.8, gt=0, le=1, description="Scaling efficiency below which more nodes no longer pay."
    )
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")
