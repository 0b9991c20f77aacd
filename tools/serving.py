"""A deployment: what it comes to, the best one, and how many devices a load needs."""

from __future__ import annotations

from typing import Any

from planner.asked.serving import BestServingRequest, InferenceRequest, SizeServingRequest
from tools.registry import tool


@tool(title="Estimate serving a model", read_only=True, by="planner.serving.estimate")
def estimate_inference(request: InferenceRequest) -> Any:
    """Memory, fit, KV cache room, most requests at once, time to first token, time per output token, request latency,
    tokens/s, cost per million tokens and what limits it, of one LLM serving deployment under a load: concurrency
    (clients) or request_rate, offline (all at once) or single-stream. Use it for "how fast does it serve", "TTFT and
    TPOT", "how many users", "does it fit for inference". What the layout leaves open is chosen by the search; every
    default is listed in assumptions."""


@tool(title="Find the best way to serve", read_only=True, by="planner.serving.search")
def best_serving(request: BestServingRequest) -> Any:
    """The best deployment of a model for serving on given devices, of all layouts (tensor, pipeline, expert, data
    parallel, replicas), engines, weight formats and loads (concurrency up to the limits unless given) under limits of
    latency (ttft_slo_ms, tpot_slo_ms): the most throughput, the least latency or the cheapest tokens. With
    alternatives, the Pareto fronts of throughput per device and of cost against time per token, and why each neighbour
    lost. Use it for "how should I serve it", "best engine or precision", "H100 or MI300X for serving"."""


@tool(title="Size a serving cluster", read_only=True, by="planner.serving.sizing")
def size_serving(request: SizeServingRequest) -> Any:
    """How many devices and replicas serve a load (request_rate, or concurrency as users at once) within limits of
    latency (ttft_slo_ms, tpot_slo_ms), for each layout, engine, weight format and accelerator: the most that one
    replica takes, replicas, devices, USD per hour and per million tokens, the cheapest first. A given count is the most
    devices there are. Use it for "how many GPUs for 50 requests/s", "what does it cost to serve", "which GPU is
    cheapest per million tokens"."""
