"""Serving tools: estimate a deployment, and find the best one."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from estimator.plan import Engine, WeightDtype
from tools.evidence import serving_evidence_of
from tools.registry import tool
from tools.requests import ServingRequest
from tools.result import TimeLimit
from tools.serving_mlperf import projected
from tools.serving_planning import (
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
from tools.serving_pool import Goal, Statistic
from tools.serving_results import BestServing, MlperfProjection, ServingEstimate, SizedServing
from tools.serving_search import searched
from tools.serving_sizing import sized
from tools.serving_warnings import warnings_of


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


@tool(title="Estimate serving a model", read_only=True)
def estimate_inference(request: InferenceRequest) -> ServingEstimate:
    """Memory, fit, KV cache room, most requests at once, time to first token, time per output token, request latency,
    tokens/s, cost per million tokens and what limits it, of one LLM serving deployment under a load: concurrency
    (clients) or request_rate, offline (all at once) or single-stream. Use it for "how fast does it serve", "TTFT and
    TPOT", "how many users", "does it fit for inference". What the layout leaves open is chosen by the search; every
    default is listed in assumptions."""
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


@tool(title="Find the best way to serve", read_only=True)
def best_serving(request: BestServingRequest) -> BestServing:
    """The best deployment of a model for serving on given devices, of all layouts (tensor, pipeline, expert, data
    parallel, replicas), engines, weight formats and loads (concurrency in powers of two unless given) under limits of
    latency (ttft_slo_ms, tpot_slo_ms): the most throughput, the least latency or the cheapest tokens. With
    alternatives, the Pareto fronts of throughput per device and of cost against time per token, and why each neighbour
    lost. Use it for "how should I serve it", "best engine or precision", "H100 or MI300X for serving"."""
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


@tool(title="Size a serving cluster", read_only=True)
def size_serving(request: SizeServingRequest) -> SizedServing:
    """How many devices and replicas serve a load (request_rate, or concurrency as users at once) within limits of
    latency (ttft_slo_ms, tpot_slo_ms), for each layout, engine, weight format and accelerator: the most that one
    replica takes, replicas, devices, USD per hour and per million tokens, the cheapest first. A given count is the most
    devices there are. Use it for "how many GPUs for 50 requests/s", "what does it cost to serve", "which GPU is
    cheapest per million tokens"."""
    return sized(request)


@tool(title="Project an MLPerf Inference result", read_only=True)
def project_mlperf(request: MlperfRequest) -> MlperfProjection:
    """What accelerators would score in an MLPerf Inference benchmark (Llama 2 70B, Llama 3.1 8B and 405B, Mixtral 8x7B,
    DeepSeek-R1, gpt-oss-120b): samples/s, tokens/s and whole-dataset time offline, or the highest rate within the p99
    limits of server or interactive; one node against many with scaling efficiency. Use it for "MLPerf projection",
    "tokens/s in MLPerf server"."""
    return projected(request)
