"""A report on a serving plan, from what the planner says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.figures import NONE, gib, percent, plain, rate, seconds, shown, whole
from pages.answers.plan import complete
from pages.blocks import Block, Chart, Details, Figures, Folded, Headline, Note, Row
from pages.report.sections import (
    Told,
    advised,
    asked,
    cards_of,
    closing,
    costs,
    costs_of,
    doubts,
    piece,
    prices,
    rivals,
    same_choice,
    subject,
    the_plan,
    ways_to_fit,
)
from pages.results.columns import Column, table
from pages.results.estimate import component, lacking, memory, memory_chart, time_chart, where_time_goes
from pages.results.limits import doubt_words, limit_words, untold
from planner.asked.serving import InferenceRequest
from planner.compare.sweep import SweepRequest, sweep
from planner.compare.sweep.serving import ServingPoint
from planner.estimates import estimate_to_fit
from planner.fit.serving import fit_of
from planner.money.results import CostEstimate
from planner.plots import Plot, Series
from planner.serving.estimate import estimate_inference
from planner.serving.results import LatencyLimit, ServingChoice, ServingEstimate
from planner.serving.search import BestServingRequest, best_serving

# Loads around the planned one that are estimated for the curve.
_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
_ENDLESS = "without end"


def serving(plan: Plan, price: Mapping[str, Any]) -> Told:
    """What the planner says of a plan; `price` holds the user's own, usd_per_device_hour, or nothing. Raises
    PlanError."""
    partial_plan = plan.given()
    arguments = {"plan": partial_plan}
    estimate = asked(estimate_inference, InferenceRequest, arguments)
    cards: list[Row] = [("memory per device", gib(estimate.memory.per_device_bytes)), *cards_of(estimate)]
    bill = costs_of(plan, price)
    options = _options(arguments, estimate) if estimate.memory.fits else []
    blocks: list[Block] = [
        _verdict(estimate, bill, options),
        Figures(cards),
        the_plan(estimate),
        _latency(estimate),
        _memory(estimate),
        *costs(bill, False, estimate.warnings),
        *(_alternatives(options) if estimate.memory.fits else ways_to_fit(fit_of(complete(estimate.plan)).remedies)),
        *doubts(estimate),
    ]
    appendix: list[Block] = [
        *piece(_load, {"plan": estimate.plan}),
        Details("Memory by component", memory(estimate.memory)),
        *([Details("Where the time goes", waits)] if (waits := where_time_goes(estimate.limits)) else []),
        *prices(bill),
        *closing(partial_plan, estimate, advised(plan, estimate_to_fit(plan))),
    ]
    return Told(subject(complete(estimate.plan)), [*blocks, Folded(appendix)])


def _verdict(estimate: ServingEstimate, bill: CostEstimate | None, options: Sequence[ServingChoice]) -> Headline:
    """A broken budget first; behind it the deployment that a search puts before this one."""
    memory, latency = estimate.memory, estimate.latency
    if not memory.fits:
        most = component(memory.decided_by)
        needs = lacking(memory, complete(estimate.plan))
        return Headline(f"Does not fit: one request needs {needs}; most of it is {most}.", False)
    first = "TTFT grows without bound" if latency.ttft_s is None else seconds(latency.ttft_s)
    speed = f"{rate(estimate.throughput.output_tokens_per_s)} output tokens/s"
    words = f"{speed}; first token after {first}, {seconds(latency.tpot_s)} per token"
    limits = limit_words(complete(estimate.plan).goal, bill)
    missed = " and ".join(row.limit.upper() for row in estimate.slo if not row.met)
    head = {None: "Fits", True: "Meets the latency limits", False: f"Misses the limit of {missed}"}
    text = " ".join([*limits.broken, *limits.doubtful, f"{head[estimate.meets_slo]}: {words}.", *limits.kept])
    better = f"Better by its goal: {options[1].summary}, see Alternatives." if len(options) > 1 else ""
    good = estimate.meets_slo is not False and not limits.broken
    more = " ".join(filter(None, (doubt_words(untold(estimate)), better)))
    return Headline(text, good, more, bool(limits.doubtful or estimate.warnings))


def _latency(estimate: ServingEstimate) -> Details:
    step = estimate.time
    text = [
        f"A sequence gets a token every {seconds(step.step_s)}; bound by {estimate.bottleneck.replace('_', ' ')}.",
        f"Prefill takes {percent(step.prompt_utilisation)} of the time.",
    ]
    limits: list[Column] = [
        ("limit", lambda row: f"{row.limit} ({row.statistic})"), ("asked", "limit_s"),
        ("estimate", lambda row: _ENDLESS if row.value_s is None else shown("value_s", row.value_s)), ("", _kept),
    ]  # fmt: skip
    charts = time_chart(estimate)
    return Details("Latency", [Note("", text), *charts, *table(estimate.slo, limits)])


def _kept(row: LatencyLimit) -> str:
    return ("kept" if row.met else "missed") + ("" if row.sure else ", not certain")


def _load(arguments: Mapping[str, Any]) -> Iterator[Details]:
    """Throughput and latency of the same deployment at other loads."""
    workload = Plan.parse(arguments["plan"]).inference
    if (now := workload.request_rate) is not None:
        field, name = "request_rate", "requests/s"
        loads = [float(f"{now * factor:.3g}") for factor in _FACTORS]
    elif (now := workload.concurrency) is not None:
        field, name = "concurrency", "requests in flight"
        loads = sorted({max(1, round(now * factor)) for factor in _FACTORS})
    else:
        return
    swept = asked(sweep, SweepRequest, {**arguments, "field": field, "values": loads})
    points = [point for point in swept.points if isinstance(point, ServingPoint) and point.tpot_s is not None]
    if len(points) < 2:
        return
    x = [float(load) for load, point in zip(loads, swept.points, strict=True) if point in points]
    load_of = dict(zip(map(id, points), x, strict=True))
    first = [_ENDLESS if point.ttft_s is None else shown("ttft_s", point.ttft_s) for point in points]
    columns: list[Column] = [
        (name, lambda row: plain(load_of[id(row)])), "output_tokens_per_s",
        ("first token", lambda row: first[points.index(row)]), "tpot_s",
    ]  # fmt: skip
    plots = [
        _curve("Throughput by load", name, "output tokens/s", x, [point.output_tokens_per_s for point in points]),
        _curve("Time per token by load", name, "ms", x, [(point.tpot_s or 0.0) * 1e3 for point in points]),
    ]
    strong = [place for place, load in enumerate(x) if load == now]
    yield Details("Load", [*map(Chart, plots), *table(points, columns, strong=strong)])


def _options(arguments: Mapping[str, Any], estimate: ServingEstimate) -> list[ServingChoice]:
    """The plan as one of the deployments of a search, and those that come before it where it leaves any open."""
    try:
        this = asked(best_serving, BestServingRequest, {"plan": estimate.plan}).best
        search = asked(best_serving, BestServingRequest, arguments)
    except PlanError:
        return []
    others = [search.best, *search.alternatives]
    place = next((place for place, row in enumerate(others) if same_choice(row, this)), len(others))
    return [this, *others[:place], *others[place + 1 :]] if place else others


def _alternatives(options: Sequence[ServingChoice]) -> list[Details]:
    columns: list[Column] = [("deployment", "summary"), "output_tokens_per_s", "ttft_s", "tpot_s"]
    return rivals(options, columns, "This plan, and the best deployments where it leaves them open.")


def _curve(title: str, x_label: str, y_label: str, x: list[float], y: list[float | None] | list[float]) -> Plot:
    series = Series(name=y_label, x=list(x), y=list(y))
    return Plot(title=title, kind="line", x_label=x_label, y_label=y_label, x_log=True, series=[series])


def _memory(estimate: ServingEstimate) -> Details:
    result = estimate.memory
    room = f"Room for {whole(result.max_concurrency)} requests of the planned length at once."
    tokens = shown("kv_tokens", result.kv_tokens)
    text = room if tokens == NONE else f"{room} The caches have room for {tokens} tokens."
    return Details("Memory", [Note("", [text]), *memory_chart(result)])
