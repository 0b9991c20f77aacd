"""A training plan: what it comes to, how it is best split, and how far it can go."""

from __future__ import annotations

from typing import Any

from planner.asked.training import EstimateRequest, LimitRequest, ScalingRequest, SearchRequest, SweepRequest
from planner.requests import EitherRequest
from tools.registry import tool


@tool(title="Estimate a training run", read_only=True, by="planner.training.estimate")
def estimate_training(request: EstimateRequest) -> Any:
    """Memory by component, fit, step time, throughput, MFU, what limits the step and run length of one training or
    fine-tuning plan. Use it for "does it fit", "how long does it take", "how fast", and with improvements=true for "why
    is it slow", "what limits my MFU" and "how do I get it faster". What the layout leaves open is chosen by the search;
    every default is listed in assumptions."""


@tool(title="Check that a plan fits", read_only=True, by="planner.fit")
def check_fit(request: EitherRequest) -> Any:
    """Whether a plan for training or serving fits in device memory with margin, how far it could grow (largest
    micro-batch and sequence length of the same layout; of serving, most requests at once and the longest one), what
    would make it fit (two changes at once where no single one does) and what a plan that fits could give up for speed,
    each as a Plan patch with its memory and slowdown. Use it for out-of-memory questions."""


@tool(title="Find the best layout", read_only=True, by="planner.layouts.best")
def best_parallelism(request: SearchRequest) -> Any:
    """The best split of a training plan over its devices for its goal, of all valid ones: tensor, sequence, pipeline
    (with virtual stages), context, expert and data parallel sizes, ZeRO stage and shard groups, recompute of single
    layers, micro-batch, and offloading where nothing fits without. With alternatives of other kinds, the Pareto front
    of speed against memory, and why each neighbour lost. Use it when the user asks how to parallelise or for the
    fastest setup."""


@tool(title="Find how far a plan can go", read_only=True, by="planner.limits")
def find_limit(request: LimitRequest) -> Any:
    """The most that still fits in memory with margin: goal seq_len (longest context), micro_batch (largest), model
    (largest of the catalogue or of a family; needs no model), devices (fewest) or accelerator (smallest card); for
    serving also context (longest request), input_len, concurrency (most users at once, within latency limits). What
    the layout leaves open is searched at every value, what is given stays. Use it for "longest context", "largest model
    on", "how many GPUs at least", "smallest GPU for", "how many users fit". Gives the plan there, the next value that
    does not fit and what of the memory decides."""


@tool(title="Sweep one or two fields", read_only=True, by="planner.compare.sweep")
def sweep(request: SweepRequest) -> Any:
    """A training plan over values of one or two fields (count, seq_len, global_batch, micro_batch,
    accelerator, model, precision, tp, zero_stage, recompute …): at each point the layout, step time,
    tokens/s, MFU, memory, cost and scaling efficiency. Or a serving plan (concurrency, request_rate, input_len,
    weight_dtype, engine, tp, count …): time to first token and per token, tokens/s, requests at once, memory and cost.
    Use it for "how does it scale to 512 GPUs" (field=count), "throughput against concurrency". What the layout leaves
    open is chosen anew at every point; a point that cannot be says why."""


@tool(title="Project scaling over nodes", read_only=True, by="planner.compare.scaling")
def project_scaling(request: ScalingRequest) -> Any:
    """A training plan on 1 to N nodes (strong scaling: the batch stays; weak: it grows along): tokens/s, step time,
    efficiency against the first, hours, USD, what limits each point, and where more nodes stop paying. Use it for "how
    does it scale to 64 nodes" and "how many nodes are worth it"; for serving use size_serving or sweep."""
