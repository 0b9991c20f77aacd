"""Serving tools: estimate a deployment, and find the best one."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from estimator.plan.schema import Engine, WeightDtype
from planner.evidence import serving_evidence_of
from planner.requests import ServingRequest
from planner.result import TimeLimit
from planner.serving.mlperf import projected
from planner.serving.planned import (
    Served,
    complete,
    latency_of,
    memory_of,
    money_of,
    served,
    slo_rows,
    throughput_of,
    time_limits,
    time_of,
)
from planner.serving.pool import Goal, Statistic
from planner.serving.results import BestServing, MlperfProjection, ServingEstimate, SizedServing
from planner.serving.search import searched
from planner.serving.sizing import sized
from planner.serving.warnings import warnings_of


class InferenceRequest(ServingRequest):
    slo_statistic: Statistic = Field("mean", description="Whether limits of latency hold for the mean or the p99.")
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")


class BestServingRequest(InferenceRequest):
    goal: Goal | None = Field(
        None, description="throughput (default: most tokens/s per device), latency (shortest requests) or cost."
    )
    engines: list[Engine] | None = Field(None, description="Engines to try; all servers that run on it unless given.")
    weight_dtypes: list[WeightDtype] | None = Field(None, description="Weight formats to try; the usual unless given.")
    accelerators: list[str] | None = Field(None, description="Accelerators to compare, count of each.")
    top: int = Field(5, ge=1, le=100, description="How many alternatives to return.")


class SizeServingRequest(InferenceRequest):
    engines: list[Engine] | None = Field(None, description="Engines to try; all servers that run on it unless given.")
    weight_dtypes: list[WeightDtype] | None = Field(None, description="Weight formats to try; the usual unless given.")
    accelerators: list[str] | None = Field(None, description="Accelerators to compare; the plan's unless given.")
    top: int = Field(10, ge=1, le=100, description="How many sizes to return.")


def estimate_inference(request: InferenceRequest) -> ServingEstimate:
    """Estimate serving a model."""
    found = served(request.to_plan(), request.slo_statistic, request.usd_per_device_hour)
    return estimate_of(found)


def estimate_of(found: Served) -> ServingEstimate:
    rows = slo_rows(found)
    these, entry = found.estimates.deployments, found.entry
    limits: list[TimeLimit] = time_limits(found)
    return ServingEstimate(
        plan=complete(found),
        assumptions=found.assumptions,
        devices=int(found.pool.devices[found.index]),
        replicas=int(these.replicas[entry]),
        memory=memory_of(found),
        latency=latency_of(found),
        throughput=throughput_of(found),
        running=float(found.estimates.steady.running[entry] * these.lanes[entry]),
        waiting=found.queue[1],
        time=time_of(found),
        bottleneck=found.bottleneck,
        limits=limits,
        meets_slo=found.meets_slo,
        slo=rows,
        cost=money_of(found),
        layout_chosen=found.searched,
        why=why_chosen(found),
        warnings=warnings_of(found),
        evidence=serving_evidence_of(found.job),
    )


def why_chosen(found: Served) -> list[str]:
    """Sentences that say why the layout won, and what its step waits for."""
    first = next(iter(found.limits))
    limit = f"Most of a step goes to {first} ({100 * found.limits[first] / sum(found.limits.values()):.0f} %)."
    if found.bottleneck != first:
        limit += f" More room for the {found.bottleneck} would let more requests share it."
    if not found.searched:
        return [f"Only one layout is valid or was named. {limit}"]
    fits = int(found.pool.fits.sum())
    words = f"{len(found.pool)} valid layouts were estimated; {fits} of them fit."
    if not fits:
        return [words, "None fits, so one that is nearest to it is shown."]
    return [words, f"Of those that fit, this one serves the plan's load and goal best. {limit}"]


def best_serving(request: BestServingRequest) -> BestServing:
    """Find the best way to serve."""
    return searched(request)


class MlperfRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    benchmark: str = Field(description="llama2-70b, llama3.1-8b, llama3.1-405b, mixtral-8x7b, deepseek-r1 …")
    accelerator: str = Field(description="Accelerator id or name, e.g. h100-sxm.")
    scenario: Literal["offline", "server", "interactive", "single-stream"] = Field(
        "offline", description="offline: all samples at once; server and interactive: the most within the p99 limits."
    )
    nodes: int | None = Field(None, ge=1, le=100_000, description="Nodes; one unless given.")
    count: int | None = Field(None, ge=1, le=1_000_000, description="Accelerators in all, instead of nodes.")
    per_node: int | None = Field(None, ge=1, le=4096, description="Accelerators per node, as usual unless given.")
    engine: Engine | None = Field(None, description="Serving engine; that of most submissions unless given.")
    software_version: str | None = Field(None, description="Version of the engine, where known.")
    weight_dtype: WeightDtype | None = Field(None, description="Weight format; the usual of submissions unless given.")
    kv_dtype: Literal["auto", "bf16", "fp16", "fp8", "int8"] | None = Field(None, description="Format of the KV cache.")
    tp: int | None = Field(None, ge=1, le=4096, description="Tensor parallel size; searched unless given.")
    pp: int | None = Field(None, ge=1, le=4096, description="Pipeline parallel size; searched unless given.")
    ep: int | None = Field(None, ge=1, le=4096, description="Expert parallel size; searched unless given.")
    dp: int | None = Field(None, ge=1, le=1_000_000, description="Data-parallel attention; searched unless given.")
    plan: dict[str, Any] | None = Field(None, description="Other fields of a serving Plan; they win over the above.")


def size_serving(request: SizeServingRequest) -> SizedServing:
    """Size a serving cluster."""
    return sized(request)


def project_mlperf(request: MlperfRequest) -> MlperfProjection:
    """Project an MLPerf Inference result."""
    return projected(request)
