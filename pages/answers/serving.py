"""An estimated deployment: the verdict, the limits of latency, latency, throughput, and what limits it."""

from __future__ import annotations

import math

from estimator.plan.schema import Inference
from knowledge import figures
from pages.answers.plan import complete, hardware_words, load_words, replica_words, run_words
from pages.blocks import Block, Figures, Prose
from pages.results.columns import labelled
from pages.results.estimate import where_time_goes
from planner.serving.results import LatencyLimit, ServingEstimate, ServingLatency

# Below this part of the requests that come, those that wait get more all the time.
SERVED = 0.98
LATENCIES = {"ttft": "time to first token", "tpot": "time per token", "e2e": "whole request"}


def verdict(estimate: ServingEstimate, asked_fit: bool, e2e_limit_s: float | None) -> Prose:
    """Whether it fits, how fast it answers and how much it serves, in a few sentences."""
    plan, memory, latency, rate = complete(estimate.plan), estimate.memory, estimate.latency, estimate.throughput
    run = f"{run_words(plan)} on {hardware_words(plan)}"
    needs, has = figures.gib(memory.per_device_bytes), figures.gib(memory.capacity_bytes)
    if not memory.fits or not isinstance(plan.workload, Inference):
        return Prose(f"**No, it does not fit.** {run} needs about {needs} of the {has} a device can allocate.")
    run = f"{run}, with {load_words(plan.workload)}: "
    too_slow = estimate.meets_slo is False or (e2e_limit_s and (latency.e2e_s or math.inf) > e2e_limit_s)
    head = "**Yes, it fits.**" if asked_fit else "**It fits.**"
    head = "**It fits, but it is too slow.**" if too_slow else head
    if plan.workload.scenario == "offline":
        return Prose(f"{head} {run}about **{figures.rate(rate.output_tokens_per_s)} output tokens/s**.")
    wanted = plan.workload.request_rate
    if latency.ttft_s is None or (wanted and rate.requests_per_s < SERVED * wanted):
        return Prose(
            f"**It fits, but it cannot keep up.** {run}requests come faster than they are served, so the wait grows "
            f"all the time; it serves about {figures.rate(rate.requests_per_s)} requests/s."
        )
    return Prose(
        f"{head} {run}the first token comes after about **{figures.seconds(latency.ttft_s)}**, then one every "
        f"**{figures.seconds(latency.tpot_s)}**; in all **{figures.rate(rate.output_tokens_per_s)} output tokens/s**."
    )


def slo(estimate: ServingEstimate, e2e_limit_s: float | None) -> Prose:
    """Each limit of latency: met or missed, by how much, and whether the interval leaves a doubt."""
    lines = [_limit(row) for row in estimate.slo]
    whole_s = estimate.latency.e2e_s
    if e2e_limit_s and whole_s is not None:
        met = "met" if whole_s <= e2e_limit_s else "**missed**"
        lines.append(f"whole request: {met}, {figures.seconds(whole_s)} against {figures.seconds(e2e_limit_s)}")
    return Prose("\n".join(["Your limits:", *(f"- {line}" for line in lines)]) if lines else "")


def _limit(row: LatencyLimit) -> str:
    name = f"p99 {LATENCIES[row.limit]}" if row.statistic == "p99" else LATENCIES[row.limit]
    limit = figures.seconds(row.limit_s)
    if row.value_s is None:
        return f"{name}: **missed**, it grows without end (limit {limit})"
    times = row.value_s / row.limit_s
    if times < 2 or row.met:
        amount = f"{figures.percent(abs(times - 1))} {'below' if row.met else 'over'}"
    else:
        amount = f"{figures.rate(times)} times"
    doubt = "" if row.sure else "; the interval reaches to the other side, so this is not sure"
    met = "met" if row.met else "**missed**"
    return f"{name}: {met}, {figures.seconds(row.value_s)} is {amount} the limit of {limit}{doubt}"


def latencies(found: ServingLatency) -> Figures:
    """Means with their intervals, and the slowest of a hundred."""
    means = labelled(found, ("ttft_s", "tpot_s", "e2e_s"))
    slowest = [row for row in labelled(found, ("ttft_p99_s", "tpot_p99_s")) if row[1] != figures.NONE]
    known = [row if row[1] != figures.NONE else (row[0], "grows without end") for row in means]
    return Figures([*known, *slowest], "Latency")


def throughput(estimate: ServingEstimate) -> Prose:
    rate, replicas = estimate.throughput, estimate.replicas
    low, high = rate.output_tokens_low_per_s, rate.output_tokens_high_per_s
    text = f"**Throughput**: {figures.rate(rate.output_tokens_per_s)} output tokens/s"
    if high > low:
        text += f" ({figures.rate(low)} to {figures.rate(high)})"
    text += f", {figures.rate(rate.total_tokens_per_s)} tokens/s with prompts, "
    text += f"{figures.rate(rate.requests_per_s)} requests/s. "
    text += f"That is {figures.rate(rate.output_tokens_per_s_per_device)} output tokens/s per device"
    if replicas > 1:
        text += f", {figures.rate(rate.output_tokens_per_s / replicas)} output tokens/s for each of "
        text += f"{figures.whole(replicas)} replicas"
    return Prose(f"{text}, and {figures.rate(rate.tokens_per_s_per_user)} tokens/s for each user.")


def what_limits(estimate: ServingEstimate, whole: bool) -> list[Block]:
    """What binds it; where that was asked for, what a step waits for."""
    return [Prose(f"**What limits it**: {estimate.bottleneck}."), *(where_time_goes(estimate.limits) if whole else [])]


def layout(estimate: ServingEstimate) -> Prose:
    head = "**Layout** (chosen by search)" if estimate.layout_chosen else "**Layout**"
    words = replica_words(complete(estimate.plan), estimate.replicas)
    return Prose(" ".join([f"{head}: {words}.", *(estimate.why if estimate.layout_chosen else [])]))
