"""A training plan: what it comes to, how it is best split, and how far it can go."""

from __future__ import annotations

from planner import fit, limits
from planner.compare import scaling
from planner.compare import sweep as compare_sweep
from planner.compare.scaling import ScalingProjection, ScalingRequest
from planner.compare.sweep import Sweep, SweepRequest
from planner.layouts import best, peak, strategies
from planner.layouts.best import SearchRequest
from planner.layouts.peak import PeakRequest, PeakThroughput
from planner.layouts.strategies import AppliedStrategies, StrategiesRequest
from planner.limits import LimitRequest
from planner.requests import EitherRequest
from planner.results import BestParallelism, FitCheck, Limit, TrainingEstimate
from planner.training import estimate
from planner.training.estimate import EstimateRequest
from tools.registry import tool


@tool(title="Estimate a training run", read_only=True)
def estimate_training(request: EstimateRequest) -> TrainingEstimate:
    """Memory by component, fit, step time, throughput, MFU, what limits the step and run length of one training or
    fine-tuning plan. Use it for "does it fit", "how long does it take", "how fast", and with improvements=true for "why
    is it slow", "what limits my MFU" and "how do I get it faster". What the layout leaves open is chosen by the search;
    every default is listed in assumptions."""
    return estimate.estimate_training(request)


@tool(title="Check that a plan fits", read_only=True)
def check_fit(request: EitherRequest) -> FitCheck:
    """Whether a plan for training or serving fits in device memory with margin, how far it could grow (largest
    micro-batch and sequence length of the same layout; of serving, most requests at once and the longest one), what
    would make it fit (two changes at once where no single one does) and what a plan that fits could give up for speed,
    each as a Plan patch with its memory and slowdown. Use it for out-of-memory questions."""
    return fit.check_fit(request)


@tool(title="Find the best layout", read_only=True)
def best_parallelism(request: SearchRequest) -> BestParallelism:
    """The best split of a training plan over its devices for its goal, of all valid ones: tensor, sequence, pipeline
    (with virtual stages), context, expert and data parallel sizes, ZeRO stage and shard groups, recompute of single
    layers, micro-batch, and offloading where nothing fits without. With alternatives of other kinds, the Pareto front
    of speed against memory, and why each neighbour lost. Use it when the user asks how to parallelise or for the
    fastest setup."""
    return best.best_parallelism(request)


@tool(title="Find how far a plan can go", read_only=True)
def find_limit(request: LimitRequest) -> Limit:
    """The most that still fits in memory with margin: goal seq_len (longest context), micro_batch (largest), model
    (largest of the catalogue or of a family; needs no model) or devices (fewest; whole nodes beyond one); for serving
    context (longest request), input_len, concurrency (most users at once, within limits of latency), model or devices.
    What the layout leaves open is searched at every value, what is given stays. Use it for "longest context", "biggest
    batch", "largest model on", "how many GPUs at least", "how many users fit". Gives the plan there, the next value
    that does not fit and what of the memory decides."""
    return limits.find_limit(request)


@tool(title="Sweep one or two fields", read_only=True)
def sweep(request: SweepRequest) -> Sweep:
    """A training plan over a range of values of one or two fields (count, seq_len, global_batch, micro_batch,
    accelerator, model, precision, method, framework, tp, zero_stage, recompute …): at each point the layout, step time,
    tokens/s, MFU, memory, cost and scaling efficiency. Or a serving plan (concurrency, request_rate, input_len,
    weight_dtype, engine, tp, count …): time to first token and per token, tokens/s, requests at once, memory and cost.
    Use it for "how does it scale to 512 GPUs" (field=count), "sweep seq_len 4k 8k 16k",
    "throughput against concurrency". What the layout leaves open is chosen anew at every point; a point that cannot be
    says why."""
    return compare_sweep.sweep(request)


@tool(title="Apply named strategies", read_only=True)
def apply_strategies(request: StrategiesRequest) -> AppliedStrategies:
    """The layout that each named strategy takes for a training plan, for every model on every accelerator, with its
    figures: maximum_performance, truly_identical (one layout that fits everywhere), memory_optimized,
    minimal_communication, balanced, and custom. Use it to compare platforms fairly ("H100 against MI300X under the same
    layout") and for benchmark suites. Layout fields of the plan are kept by every strategy."""
    return strategies.apply_strategies(request)


@tool(title="Project scaling over nodes", read_only=True)
def project_scaling(request: ScalingRequest) -> ScalingProjection:
    """A training plan on 1 to N nodes (strong scaling: the batch stays; weak: it grows along): tokens/s, step time,
    efficiency against the first, hours, USD, what limits each point, and where more nodes stop paying. Use it for "how
    does it scale to 64 nodes" and "how many nodes are worth it"; for serving use size_serving or sweep."""
    return scaling.project_scaling(request)


@tool(title="Peak training throughput", read_only=True)
def peak_throughput(request: PeakRequest) -> PeakThroughput:
    """What models reach at best in training on each accelerator and precision, each with its best layout:
    tokens/s per device and in all, TFLOPS, MFU, tokens a day, and whether that is good, average or poor against
    measured runs. Use it for "how fast can it get", "tokens per day on MI300X against H100"."""
    return peak.peak_throughput(request)
