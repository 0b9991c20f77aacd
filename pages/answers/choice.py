"""Which deployment to take, how many devices a load needs, and what MLPerf would measure."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.plan.schema import Inference
from knowledge import figures
from pages.answers.lead import verdict
from pages.answers.plan import complete, load_words, model_words
from pages.answers.serving import CALLED, LATENCIES, SERVED
from pages.blocks import Aside, Block, Prose, capitalised
from pages.results.basis import notes
from pages.results.choice import MEASURES, by_nodes, neighbours, ranked, sizes, unserved
from pages.results.overview import latency_limit
from planner.serving.patience import beside, kept, taken
from planner.serving.results import BestServing, LatencyLimit, MlperfProjection, ServingSize, SizedServing

_MOST_ROWS, _MOST_REASONS = 5, 4
_AIMS = {
    "throughput": "the most tokens/s per device", "latency": "the shortest requests", "cost": "the cheapest tokens",
}  # fmt: skip
_WRITTEN = {
    "usd_per_million_output_tokens": "{} per million output tokens", "e2e_s": "{} per request",
    "output_tokens_per_s_per_device": "{} output tokens/s per device", "output_tokens_per_s": "{} output tokens/s",
    "ttft_s": "TTFT {}", "tpot_s": "TPOT {}",
}  # fmt: skip
_ALWAYS = ("output_tokens_per_s", "ttft_s", "tpot_s")
_BINDS = "Bottleneck: "


def best(search: BestServing, why: bool, asked: Sequence[str] = ()) -> list[Block]:
    """The best deployment, its rivals, and what was not taken; `asked` are the figures and intents that were named."""
    one, model = search.best, model_words(complete(search.plan))
    what = f"{one.summary} on {figures.whole(one.devices)} x {one.accelerator}"
    if not one.fits:
        head = "Nothing tried fits."
        more = f"The closest for {model} is {what}"
    elif one.request_rate and one.requests_per_s < SERVED * one.request_rate:
        head = "Nothing keeps up with these requests."
        more = f"The closest for {model} is {what}"
    elif search.meets_slo is False:
        whose = "the assumed" if kept(search.assumptions) else "your"
        missed = _missed(search)
        head = f"Nothing meets {whose} latency limits: {', '.join(missed.values())}."
        others = [words for name, words in _reached(search).items() if name not in missed]
        more = f"The closest for {model} is {what}, with {', '.join(others)}"
    else:
        head, more = _best(search, model, asked), ""
    several = len({row.accelerator for row in search.by_accelerator}) > 1
    rows = search.by_accelerator if several else [one, *search.alternatives]
    # What binds it is told last, unless it is what was asked.
    binds = [text for text in search.why if text.startswith(_BINDS)] if "why" in asked and not more else []
    return [
        verdict(
            " ".join([*binds, head]),
            not more,
            search.warnings,
            " ".join(filter(None, (f"{more}." if more else "", taken(search.assumptions)))),
        ),
        Prose(" ".join(text for text in beside(search.why, search.assumptions) if text not in binds)),
        *(ranked(rows[:_MOST_ROWS], search.goal) if len(rows) > 1 else []),
        *(neighbours(search, _MOST_REASONS) if why else []),
        *notes("Left out", search.skipped[:_MOST_REASONS]),
    ]


def _missed(search: BestServing) -> dict[str, str]:
    """The limits that the closest does not keep, by its figures: 'TPOT 51.2 ms, over 50.0 ms'."""
    workload, missed = complete(search.plan).inference, dict[str, str]()
    statistic = workload.slo_statistic
    for name in ("ttft", "tpot"):
        most_ms = getattr(workload, f"{name}_slo_ms")
        value_s = getattr(search.best, f"{name}_{'p99_' if statistic == 'p99' else ''}s")
        if most_ms is not None and (value_s is None or value_s * 1e3 > most_ms):
            row = LatencyLimit(
                limit=name, statistic=statistic, limit_s=most_ms / 1e3, value_s=value_s, met=False, sure=True
            )
            missed[f"{name}_s"] = latency_limit(row)
    return missed


def _best(search: BestServing, model: str, asked: Sequence[str]) -> str:
    """The best deployment in a sentence; figures of it that were asked for come before what they are of."""
    best, told = search.best, _reached(search)
    aim, where = _AIMS.get(search.goal, search.goal), f"{figures.whole(best.devices)} x {best.accelerator}"
    names = (CALLED.get(name, name) for name in (path.rpartition(".")[2] for path in asked))
    wished = [told.pop(name) for name in dict.fromkeys(names) if name in told]
    others = ", ".join(told.values())
    if not wished:
        return f"{capitalised(aim)} for {model} on {where}: {best.summary}, with {others}."
    return f"{', '.join(wished)}: {model} on {where} with {best.summary}, {aim}{f'; {others}' if others else ''}."


def _reached(search: BestServing) -> dict[str, str]:
    """The figures of the best deployment by name, the one it was chosen by first."""
    # On one device all of them are each.
    keys = [MEASURES[search.goal], *(key for key in _ALWAYS if key != "output_tokens_per_s" or search.best.devices > 1
            or search.goal != "throughput")]  # fmt: skip
    known = {key: value for key in keys if (value := getattr(search.best, key)) is not None}
    return {key: _WRITTEN[key].format(figures.shown(key, value)) for key, value in known.items()}


def size(sized: SizedServing, month_usd: float | None = None) -> list[Block]:
    """How many devices serve the load, the cheapest first; where it was asked what they cost, `month_usd` at first."""
    one, plan = sized.best, complete(sized.plan)
    load = load_words(plan.workload) if isinstance(plan.workload, Inference) else ""
    if one is None:
        head = f"None of the sizes tried serves {model_words(plan)} with {load}."
        return [verdict(head, False, more=" ".join(sized.why))]
    rented = _rented(sized, one)
    price = "" if one.usd_per_hour is None else f", {figures.usd(one.usd_per_hour)} per hour{rented}"
    copies = f"{figures.whole(one.replicas)} replicas" if one.replicas > 1 else "one replica"
    each = f"{figures.whole(one.devices_per_replica)} device{'s' if one.devices_per_replica > 1 else ''}"
    first = ""
    if month_usd is not None and one.usd_per_hour is not None:
        each_million = figures.known(one.usd_per_million_output_tokens, figures.usd)
        hourly = f"{figures.usd(one.usd_per_hour)} an hour{rented}, {each_million} per million output tokens"
        first, price = f"{figures.usd(month_usd)} a month ({hourly}): ", ""
    head = (
        f"{first}{figures.whole(one.devices)} x {one.accelerator} can serve {model_words(plan)} with {load}: "
        f"{copies} of {each} ({one.engine}, {one.weight_dtype}){price}."
    )
    full = f"Utilisation: {figures.percent(one.utilisation)}. Bottleneck: {_limit(one.limited_by)}."
    rows = sized.by_accelerator if len(sized.by_accelerator) > 1 else sized.sizes
    table = sizes(rows[:_MOST_ROWS]) if len(rows) > 1 else []
    return [verdict(head, True, sized.warnings, taken(sized.assumptions)), *table, Aside(full)]


def _rented(sized: SizedServing, best: ServingSize) -> str:
    """' for a machine of 8', where more devices have to be rented than are needed."""
    offer = next((row for row in sized.offers if (row.provider, row.instance) == (best.provider, best.instance)), None)
    if offer is None or offer.instances * offer.devices_per_instance <= best.devices:
        return ""
    many = "a machine" if offer.instances == 1 else f"{figures.whole(offer.instances)} machines"
    return f" for {many} of {figures.whole(offer.devices_per_instance)}"


def _limit(name: str) -> str:
    return LATENCIES.get(name, name)


def mlperf(score: MlperfProjection) -> list[Block]:
    """What a machine would score, on one node and on several."""
    if no_run := unserved(score):
        return [verdict(no_run, False), Prose(" ".join(score.why))]
    low, high = score.samples_low_per_s, score.samples_high_per_s
    text = (
        f"{figures.rate(score.tokens_per_s)} tokens/s in MLPerf {score.benchmark} ({score.scenario}) on "
        f"{figures.whole(score.devices)} x {score.accelerator}, {figures.rate(score.samples_per_s)} samples/s "
        f"({figures.rate(low)} to {figures.rate(high)}): {score.choice.summary}."
    )
    return [
        verdict(text, True, score.warnings),
        *map(Prose, (" ".join(score.why), _mlperf_limits(score))),
        *(by_nodes(score) if len(score.by_nodes) > 1 else []),
        Prose(f"**Bottleneck**: {_limit(score.limited_by)}."),
    ]


def _mlperf_limits(score: MlperfProjection) -> str:
    if score.scenario not in ("server", "interactive"):
        return (
            f"The whole data set takes {figures.seconds(score.dataset_s)}, a valid run {figures.seconds(score.run_s)}."
        )
    limits = [f"{LATENCIES.get(name, name)} {figures.seconds(ms / 1e3)}" for name, ms in score.limits_ms.items()]
    p99s = (("ttft", score.ttft_p99_s), ("tpot", score.tpot_p99_s))
    values = [f"{LATENCIES[name]} {figures.seconds(seconds)}" for name, seconds in p99s if seconds]
    return f"p99 limits: {', '.join(limits)}; estimated there: {', '.join(values)}."
