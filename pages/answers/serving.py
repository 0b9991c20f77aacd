"""An estimated deployment: the verdict, the limits of latency, latency, throughput, and what limits it."""

from __future__ import annotations

import math

from estimator.plan.schema import Inference
from pages import figures
from pages.answers.markdown import bullets, table
from pages.answers.plan import complete, hardware_words, load_words, replica_words, run_words
from pages.answers.training import waits
from planner.serving.results import LatencyLimit, ServingEstimate, ServingLatency

# Below this part of the requests that come, those that wait get more all the time.
SERVED = 0.98
LATENCIES = {"ttft": "time to first token", "tpot": "time per token", "e2e": "whole request"}


def verdict(estimate: ServingEstimate, asked_fit: bool, e2e_limit_s: float | None) -> str:
    """Whether it fits, how fast it answers and how much it serves, in a few sentences."""
    plan, memory, latency, rate = complete(estimate.plan), estimate.memory, estimate.latency, estimate.throughput
    run = f"{run_words(plan)} on {hardware_words(plan)}"
    needs, has = figures.gib(memory.per_device_bytes), figures.gib(memory.capacity_bytes)
    if not memory.fits or not isinstance(plan.workload, Inference):
        return f"**No, it does not fit.** {run} needs about {needs} of the {has} a device can allocate."
    run = f"{run}, with {load_words(plan.workload)}: "
    too_slow = estimate.meets_slo is False or (e2e_limit_s and (latency.e2e_s or math.inf) > e2e_limit_s)
    head = "**Yes, it fits.**" if asked_fit else "**It fits.**"
    head = "**It fits, but it is too slow.**" if too_slow else head
    if plan.workload.scenario == "offline":
        return f"{head} {run}about **{figures.rate(rate.output_tokens_per_s)} output tokens/s**."
    wanted = plan.workload.request_rate
    if latency.ttft_s is None or (wanted and rate.requests_per_s < SERVED * wanted):
        return (
            f"**It fits, but it cannot keep up.** {run}requests come faster than they are served, so the wait grows "
            f"all the time; it serves about {figures.rate(rate.requests_per_s)} requests/s."
        )
    return (
        f"{head} {run}the first token comes after about **{figures.seconds(latency.ttft_s)}**, then one every "
        f"**{figures.seconds(latency.tpot_s)}**; in all **{figures.rate(rate.output_tokens_per_s)} output tokens/s**."
    )


def slo(estimate: ServingEstimate, e2e_limit_s: float | None) -> list[str]:
    """Each limit of latency: met or missed, by how much, and whether the interval leaves a doubt."""
    lines = [_limit(row) for row in estimate.slo]
    whole_s = estimate.latency.e2e_s
    if e2e_limit_s and whole_s is not None:
        met = "met" if whole_s <= e2e_limit_s else "**missed**"
        lines.append(f"whole request: {met}, {figures.seconds(whole_s)} against {figures.seconds(e2e_limit_s)}")
    return bullets("Your limits:", lines)


def _limit(row: LatencyLimit) -> str:
    name = f"p99 {LATENCIES[row.limit]}" if row.statistic == "p99" else LATENCIES[row.limit]
    limit = figures.seconds(row.limit_s)
    if row.value_s is None:
        return f"{name}: **missed**, it grows without end (limit {limit})"
    times = row.value_s / row.limit_s
    if times < 2 or row.met:
        amount = f"{figures.percent(abs(times - 1))} {'below' if row.met else 'over'}"
    else:
        amount = f"{figures.tenths(times) if times < 10 else figures.whole(times)} times"
    doubt = "" if row.sure else "; the interval reaches to the other side, so this is not sure"
    met = "met" if row.met else "**missed**"
    return f"{name}: {met}, {figures.seconds(row.value_s)} is {amount} the limit of {limit}{doubt}"


def latencies(found: ServingLatency) -> str:
    """Means with their intervals, and the slowest of a hundred."""
    rows = [
        (LATENCIES["ttft"], found.ttft_s, _span(found.ttft_low_s, found.ttft_high_s), found.ttft_p99_s),
        (LATENCIES["tpot"], found.tpot_s, _span(found.tpot_low_s, found.tpot_high_s), found.tpot_p99_s),
        (LATENCIES["e2e"], found.e2e_s, _span(found.e2e_low_s, found.e2e_high_s), None),
    ]
    known = [row if row[1] is not None else (row[0], "grows without end", None, None) for row in rows]
    return table(("Latency", "mean", "interval", "p99"), known)


def _span(low_s: float | None, high_s: float | None) -> str | None:
    return None if low_s is None or high_s is None else f"{figures.seconds(low_s)} to {figures.seconds(high_s)}"


def throughput(estimate: ServingEstimate) -> str:
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
    return f"{text}, and {figures.rate(rate.tokens_per_s_per_user)} tokens/s for each user."


def what_limits(estimate: ServingEstimate, whole: bool) -> list[str]:
    """What binds it; where that was asked for, what a step waits for."""
    text = f"**What limits it**: {estimate.bottleneck}."
    return [text, waits("What a step waits for", estimate.limits)] if whole else [text]


def layout(estimate: ServingEstimate) -> str:
    head = "**Layout** (chosen by search)" if estimate.layout_chosen else "**Layout**"
    words = replica_words(complete(estimate.plan), estimate.replicas)
    return " ".join([f"{head}: {words}.", *(estimate.why if estimate.layout_chosen else [])])
