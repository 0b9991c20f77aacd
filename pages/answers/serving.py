"""An estimated deployment: the verdict, the limits of latency, latency, throughput, and what limits it."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.plan.schema import Inference
from knowledge import figures
from pages.answers.plan import complete, hardware_words, load_words, replica_words, run_words
from pages.blocks import Block, Figures, Headline, Prose
from pages.results.columns import labelled
from pages.results.estimate import lacking, memory_words, where_time_goes
from pages.results.overview import latency_limit
from planner.serving.results import LatencyLimit, ServingEstimate, ServingLatency, ServingThroughput

# Below this part of the requests that come, those that wait get more all the time.
SERVED = 0.98
# What people mean by the name of another figure.
CALLED = {"tokens_per_s": "output_tokens_per_s"}
LATENCIES = {"ttft": "time to first token", "tpot": "time per token", "e2e": "whole request"}


def verdict(estimate: ServingEstimate, e2e_limit_s: float | None, asked: Sequence[str] = ()) -> Headline:
    """Whether it fits, how fast it answers and how much it serves, in a few sentences; figures and intents that were
    `asked` for come first, unless something hurts."""
    plan, memory, latency, rate = complete(estimate.plan), estimate.memory, estimate.latency, estimate.throughput
    run = f"{run_words(plan)} on {hardware_words(plan)}"
    if not memory.fits or not isinstance(plan.workload, Inference):
        return Headline(
            "It does not fit.",
            False,
            f"{run} needs {lacking(memory, plan)}.",
        )
    run = f"{run}, {load_words(plan.workload)}: "
    too_slow = _missed(estimate, e2e_limit_s)
    probably = "" if all(row.met or row.sure for row in estimate.slo) else "probably "
    head = f"It fits, but is {probably}too slow: {'; '.join(too_slow)}." if too_slow else "It fits."
    if plan.workload.scenario == "offline":
        return Headline(head, not too_slow, f"{run}**{figures.rate(rate.output_tokens_per_s)} output tokens/s**.")
    wanted = plan.workload.request_rate
    if latency.ttft_s is None or (wanted and rate.requests_per_s < SERVED * wanted):
        served = f"{figures.rate(rate.requests_per_s)}{f' of {figures.number(wanted)}' if wanted else ''} requests/s"
        text = f"It fits, but cannot keep up: it serves {served}, so the queue keeps growing."
        return Headline(text, False, f"{run.removesuffix(': ')}.")
    told = {
        "ttft_s": f"TTFT **{figures.seconds(latency.ttft_s)}**",
        "tpot_s": f"TPOT **{figures.seconds(latency.tpot_s)}**",
        "output_tokens_per_s": _speed(plan.workload, rate),
    }
    names = [CALLED.get(name, name) for name in (path.rpartition(".")[2] for path in asked)]
    wished = [name for name in dict.fromkeys(names) if name in told]
    if not too_slow:
        # Of a limit that may not hold the warning has the figure.
        doubtful = {f"{row.limit}_s" for row in estimate.slo if not row.sure}
        told = {name: words for name, words in told.items() if name in wished or name not in doubtful}
    if too_slow or not {*wished, "fit"} & set(names):
        return Headline(head, not too_slow, f"{run}{', '.join(told.values())}.")
    fits = f"It fits: {memory_words(memory)}." if "fit" in names else head
    if not wished:
        return Headline(fits, True, f"{run}{', '.join(told.values())}.")
    first = ", ".join(told.pop(name) for name in wished).replace("**", "")
    others = f"{', '.join(told.values())}." if told else ""
    return Headline(f"{first}: {run.removesuffix(': ')}.", True, f"{fits} {others}".strip())


def writing_rate(workload: Inference, rate: ServingThroughput) -> float:
    """Output tokens/s as people count them: those of a client alone while its answer is written, as its programs tell
    them; of several, all that a deployment writes while it reads prompts too."""
    alone = workload.scenario == "single-stream" or workload.concurrency == 1
    return rate.tokens_per_s_per_user if alone else rate.output_tokens_per_s


def _speed(workload: Inference, rate: ServingThroughput) -> str:
    written, whole = (figures.rate(value) for value in (writing_rate(workload, rate), rate.output_tokens_per_s))
    return f"**{written} output tokens/s**{f' ({whole} over the whole request)' if written != whole else ''}"


def _missed(estimate: ServingEstimate, e2e_limit_s: float | None) -> list[str]:
    """The limits of latency that it does not keep: 'TTFT 297 ms, over 200 ms'."""
    missed, whole_s = (
        [latency_limit(row.model_copy(update={"sure": True})) for row in estimate.slo if not row.met],
        estimate.latency.e2e_s,
    )
    if e2e_limit_s and (whole_s is None or whole_s > e2e_limit_s):
        takes = "grows without bound" if whole_s is None else figures.seconds(whole_s)
        missed.append(f"whole request {takes}, over {figures.seconds(e2e_limit_s)}")
    return missed


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
        return f"{name}: **missed**, it grows without bound (limit {limit})"
    times = row.value_s / row.limit_s
    if times < 2 or row.met:
        amount = f"{figures.percent(abs(times - 1))} {'below' if row.met else 'over'}"
    else:
        amount = f"{figures.rate(times)} times"
    doubt = "" if row.sure else "; not certain, as its interval spans the limit"
    met = "met" if row.met else "**missed**"
    return f"{name}: {met}, {figures.seconds(row.value_s)} is {amount} the limit of {limit}{doubt}"


def latencies(found: ServingLatency) -> Figures:
    """Means with their intervals, and the slowest of a hundred."""
    means = labelled(found, ("ttft_s", "tpot_s", "e2e_s"))
    slowest = [row for row in labelled(found, ("ttft_p99_s", "tpot_p99_s")) if row[1] != figures.NONE]
    known = [row if row[1] != figures.NONE else (row[0], "grows without bound") for row in means]
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
    return [Prose(f"**Bottleneck**: {estimate.bottleneck}."), *(where_time_goes(estimate.limits) if whole else [])]


def layout(estimate: ServingEstimate) -> Prose:
    head = "**Layout** (chosen by search)" if estimate.layout_chosen else "**Layout**"
    words = replica_words(complete(estimate.plan), estimate.replicas)
    return Prose(" ".join([f"{head}: {words}.", *(estimate.why if estimate.layout_chosen else [])]))
