"""A deployment: what it comes to, the best one, and how many devices a load needs."""

from __future__ import annotations

from planner.serving import estimate, mlperf, search, sizing
from planner.serving.mlperf import MlperfRequest
from planner.serving.request import InferenceRequest
from planner.serving.results import BestServing, MlperfProjection, ServingEstimate, SizedServing
from planner.serving.search import BestServingRequest
from planner.serving.sizing import SizeServingRequest
from tools.registry import tool


@tool(title="Estimate serving a model", read_only=True)
def estimate_inference(request: InferenceRequest) -> ServingEstimate:
    """Memory, fit, KV cache room, most requests at once, time to first token, time per output token, request latency,
    tokens/s, cost per million tokens and what limits it, of one LLM serving deployment under a load: concurrency
    (clients) or request_rate, offline (all at once) or single-stream. Use it for "how fast does it serve", "TTFT and
    TPOT", "how many users", "does it fit for inference". What the layout leaves open is chosen by the search; every
    default is listed in assumptions."""
    return estimate.estimate_inference(request)


@tool(title="Find the best way to serve", read_only=True)
def best_serving(request: BestServingRequest) -> BestServing:
    """The best deployment of a model for serving on given devices, of all layouts (tensor, pipeline, expert, data
    parallel, replicas), engines, weight formats and loads (concurrency in powers of two unless given) under limits of
    latency (ttft_slo_ms, tpot_slo_ms): the most throughput, the least latency or the cheapest tokens. With
    alternatives, the Pareto fronts of throughput per device and of cost against time per token, and why each neighbour
    lost. Use it for "how should I serve it", "best engine or precision", "H100 or MI300X for serving"."""
    return search.best_serving(request)


@tool(title="Size a serving cluster", read_only=True)
def size_serving(request: SizeServingRequest) -> SizedServing:
    """How many devices and replicas serve a load (request_rate, or concurrency as users at once) within limits of
    latency (ttft_slo_ms, tpot_slo_ms), for each layout, engine, weight format and accelerator: the most that one
    replica takes, replicas, devices, USD per hour and per million tokens, the cheapest first. A given count is the most
    devices there are. Use it for "how many GPUs for 50 requests/s", "what does it cost to serve", "which GPU is
    cheapest per million tokens"."""
    return sizing.size_serving(request)


@tool(title="Project an MLPerf Inference result", read_only=True)
def project_mlperf(request: MlperfRequest) -> MlperfProjection:
    """What accelerators would score in an MLPerf Inference benchmark (Llama 2 70B, Llama 3.1 8B and 405B, Mixtral 8x7B,
    DeepSeek-R1, gpt-oss-120b): samples/s, tokens/s and whole-dataset time offline, or the highest rate within the p99
    limits of server or interactive; one node against many with scaling efficiency. Use it for "MLPerf projection",
    "tokens/s in MLPerf server"."""
    return mlperf.project_mlperf(request)
