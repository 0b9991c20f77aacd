"""Which cluster to take, and a plan that was configured as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from estimator.plan.schema import Goal, Inference
from knowledge import figures
from pages.answers.assumptions import taken_data
from pages.answers.change import ShortAnswer, settings_of
from pages.answers.plan import complete, hardware_words, run_words
from pages.blocks import Aside, Block, Folded, Headline, Prose, Steps, capitalised
from pages.results.basis import notes
from pages.results.limits import doubt_words, limit_words
from pages.results.money import (
    ORDERS,
    cluster_name,
    configured_doubts,
    considered,
    decisions,
    near,
    option_doubts,
    options,
    rejected,
    verdicts,
    winner_words,
)
from planner.clusters.options import cheaper, outlay_of
from planner.clusters.results import (
    UNMET,
    AutoConfigured,
    ClusterOption,
    ClusterRejected,
    LooserLimit,
    RecommendedCluster,
    from_whom,
)
from planner.clusters.verdicts import named

_MOST_ROWS, _MOST_REASONS, _MOST_TARGETS, _MOST_OTHERS = 6, 8, 5, 4
# Accelerators and reasons that are told where nothing is left, and reasons that say nothing of a run.
_MOST_NAMES, _MOST_WHYS = 3, 2
_NOT_TRIED = ("filtered", "not_offered", "not_tried", "no_framework")
# What is told of the first choice beside what it was before.
_TOLD = {"hours": "{}", "usd": "{}", "ttft_s": "TTFT {}", "tpot_s": "TPOT {}"}
# The figure of a run that each order goes by, and how the limits are said that it was taken within.
_RANKED = {"cost": "usd", "time": "hours"}
_WITHIN = {"deadline_h": "in time", "budget_usd": "within budget"}
# What auto_configure's reasons are told of: the choices that matter most.
_CHOICES = ("workload.method", "cluster.accelerator", "cluster.count", "workload.precision", "workload.framework",
            "workload.seq_len", "workload.global_batch", "workload.engine", "workload.weight_dtype",
            "layout")  # fmt: skip


def recommended(clusters: RecommendedCluster) -> list[Block]:
    others = rejected([row for row in clusters.rejected if row.reason != "no_framework"])
    if not clusters.options:
        return [Headline("No known cluster meets this.", False, _why_none(clusters)), *others]
    first = clusters.options[0]
    monthly = bool(first.engine) and _of_a_month(clusters)
    goal = complete(clusters.plan).goal if clusters.plan else None
    limits = limit_words(goal, first)
    by_limits = " ".join((*limits.broken, *limits.doubtful))
    best = _best_within(clusters, goal)
    told = _named(first) + best + (_per_month(first) if monthly else _price_and_time(first, by_limits))
    what = f"{first.framework or first.engine}: {first.summary}{_served(first)}." if first.summary else ""
    doubt = " ".join(filter(None, (option_doubts(first), doubt_words(_of_first(clusters)))))
    cheapest = _cheapest(clusters) if clusters.satisfied else ""
    closest = _closest_change(clusters) if clusters.satisfied else ""
    hurts = " ".join(filter(None, (cheapest if monthly else "", doubt, _pays(first), closest)))
    beside = " ".join(filter(None, ("" if monthly else cheapest, what)))
    sure = not (doubt or limits.doubtful)
    head = (
        Headline(
            " ".join([*limits.doubtful, f"{_take(first)} {told}.", *limits.kept]),
            True,
            hurts,
            beware=not sure,
        )
        if clusters.satisfied
        else Headline(
            " ".join(["Nothing meets every limit.", *limits.broken]), False, f"The closest is {told}. {hurts}".strip()
        )
    )
    looser = [_with_twice(row) for row in clusters.looser[:1]]
    later = f"Prices of {clusters.priced}. Your next question will be about the first, unless you name another."
    return [
        head,
        *map(Prose, looser),
        Aside(beside),
        Aside(taken_data(clusters.assumptions)),
        Folded([Prose(" ".join(clusters.why))]),
        *near(clusters.nearest),
        *options(clusters.options[:_MOST_ROWS], clusters.sort),
        *verdicts(clusters),
        *others,
        Prose(later if clusters.priced else ""),
        *_next(clusters),
    ]


def _why_none(clusters: RecommendedCluster) -> str:
    """Why the accelerators that were tried fell out, or else those that were asked about."""
    if closest := _closest_outside(clusters.rejected):
        return closest
    tried = [row for row in clusters.rejected if row.reason not in _NOT_TRIED]
    asked = [row for row in clusters.rejected if row.reason not in ("filtered", "no_framework")]
    rows = tried or asked or clusters.rejected
    told = [f"{', '.join(row.accelerators[:_MOST_NAMES])}: {row.why}." for row in rows]
    return " ".join(told[:_MOST_WHYS])


def _closest_outside(rejected: Sequence[ClusterRejected]) -> str:
    """Of those that only a limit rules out, the one that comes nearest to it."""
    for row in rejected:
        over = {
            "over_hourly": (row.least_usd_per_hour, "cheapest", "{} an hour", figures.usd),
            "over_budget": (row.least_usd, "cheapest", "{}", figures.usd),
            "past_deadline": (row.least_hours, "fastest", "{}", figures.hours),
        }.get(row.reason)
        if over and over[0]:
            values, which, words, write = over
            name = min(values, key=values.__getitem__)
            return f"The {which} that could run it is {name}, at {words.format(write(values[name]))}."
    return ""


def _closest_change(clusters: RecommendedCluster) -> str:
    """What would change the first choice, of what is within the uncertainty if anything is."""
    row = min(clusters.winner_changes, key=lambda row: not row.within, default=None)
    return winner_words(row).replace(named(clusters.options[0]), "it") if row else ""


def _next(clusters: RecommendedCluster) -> list[Block]:
    """Where the rows below are of other plans, which of them is the first would be in doubt."""
    if clusters.nearest and not clusters.satisfied:
        return []
    first, second = [option.launch_targets != [] for option in (clusters.options * 2)[:2]]
    able = len(clusters.options) > 1 and second
    return [Steps(["take the first", *(["take the second"] if able else ["write the files"] if first else [])])]


def _of_first(clusters: RecommendedCluster) -> list[str]:
    """The warnings without those of devices that are not the first choice, and what the verdict says."""
    first = clusters.options[0].accelerator
    others = {row.accelerator for row in clusters.options if row.accelerator not in first}
    left = [text for text in clusters.warnings if text != UNMET]
    return [text for text in left if first in text or not any(name in text for name in others)]


def first_cluster(clusters: RecommendedCluster) -> ShortAnswer:
    """The first choice in short, for what is asked next."""
    first = clusters.options[0]
    told = {
        name: text.format(figures.shown(name, value))
        for name, text in _TOLD.items()
        if (value := getattr(first, name)) is not None
    }
    plan = complete(clusters.plan) if clusters.plan else None
    run = settings_of(plan) if plan else {}
    layout = {"layout": first.summary} if first.engine else {}
    return ShortAnswer(told, {"first choice": _named(first)} | run | layout | {"hardware": ""}, first.hours)


def unchanged(clusters: RecommendedCluster) -> list[Block]:
    """Of a search whose first choice is the one that was told before: that alone."""
    head, *rest = recommended(clusters)
    assert isinstance(head, Headline)
    return [replace(head, text=f"The first choice stays. {head.text}"), *rest]


def _take(option: ClusterOption) -> str:
    if option.capex_usd is not None:
        return "Buy"
    return "Rent" if option.provider else "Take"


def _named(option: ClusterOption) -> str:
    """'8 x h100-sxm at Lambda', or '2 x rtx-5090 for $13,500 (RTX 5090, street)'."""
    if option.capex_usd is None:
        return cluster_name(option) + from_whom(option.provider)
    return f"{cluster_name(option)} for {figures.usd(option.capex_usd)} ({option.instance})"


def _pays(option: ClusterOption) -> str:
    """Of machines that are bought, from how much use they cost less than rented ones."""
    if option.capex_usd is None:
        return ""
    if not option.other_offers:
        return "No offer to rent them is known."
    rent = min(option.other_offers, key=lambda row: row.usd_per_hour)
    rented = f"{figures.usd(rent.usd_per_hour)} an hour at {rent.provider}"
    if (use := option.pays_from_hours_per_year) is None:
        return f"Renting costs less at any use ({rented})."
    return (
        f"Buying pays from {figures.whole(round(use))} hours of use a year; below that renting costs less ({rented})."
    )


def _with_twice(row: LooserLimit) -> str:
    """The limit that decides, by what twice as much of it would bring."""
    if row.deadline_h is not None:
        write, name, twice = figures.hours, "deadline", row.deadline_h
    else:
        write, name, twice = figures.usd, "budget", row.budget_usd or 0.0
    costs = f" for {figures.usd(row.usd)}" if row.usd is not None else ""
    takes = f" in {figures.hours(row.hours)}" if row.hours is not None else ""
    return (
        f"The {name} of {write(twice / 2.0)} decides: with {write(twice)}, "
        f"{row.count} x {row.accelerator}{from_whom(row.provider)}{takes}{costs}."
    )


def _of_a_month(clusters: RecommendedCluster) -> bool:
    """Of a deployment that goes on, not of so many requests."""
    workload = complete(clusters.plan).workload if clusters.plan else None
    return isinstance(workload, Inference) and workload.requests is None


def _per_month(option: ClusterOption) -> str:
    if option.usd is None or option.usd_per_hour is None:
        return ""
    return f": {figures.usd(option.usd)} a month ({figures.usd(option.usd_per_hour)} per hour)"


def _served(option: ClusterOption) -> str:
    """What a deployment gives."""
    if option.output_tokens_per_s is None:
        return ""
    words = [f"{figures.rate(option.output_tokens_per_s)} output tokens/s"]
    words += [f"TTFT {figures.seconds(option.ttft_s)}"] if option.ttft_s is not None else []
    words += [f"TPOT {figures.seconds(option.tpot_s)}"] if option.tpot_s is not None else []
    return f"; {', '.join(words)}"


def _price_and_time(option: ClusterOption, told: str = "") -> str:
    """What it takes and costs, without what is `told` of limits."""
    if option.hours is None:
        return "" if option.usd_per_hour is None else f", {figures.usd(option.usd_per_hour)} per hour"
    known = [figures.held(option, name) for name in ("hours", "usd") if getattr(option, name) is not None]
    left = ", ".join(text for text in known if text not in told)
    return f": {left}" if left else ""


def _best_within(clusters: RecommendedCluster, goal: Goal | None) -> str:
    """', the fastest within budget', where limits were given and no other that keeps them is better."""
    figure, first = _RANKED.get(clusters.sort), clusters.options[0]
    kept = [words for field, words in _WITHIN.items() if getattr(goal, field, None) is not None]
    if not (kept and figure and clusters.satisfied):
        return ""
    value = getattr(first, figure)
    known = [other for row in clusters.options if (other := getattr(row, figure)) is not None]
    return f", the {ORDERS[clusters.sort]} {' and '.join(kept)}" if value is not None and value <= min(known) else ""


def _cheapest(clusters: RecommendedCluster) -> str:
    """The option that costs less than the first and keeps the limits: one that can be launched, where there is one."""
    first, *others = clusters.options
    able = [
        row for row in others
        if outlay_of(row) < outlay_of(first) and row.fits_budget is not False and row.fits_deadline is not False
    ]  # fmt: skip
    written = [row for row in able if row.launch_targets]
    if not able:
        return ""
    row, least = min(written or able, key=outlay_of), min(able, key=outlay_of)
    return f"{cheaper(row, 'Cheapest' if row is least else 'Cheaper')}."


def configured(found: AutoConfigured) -> list[Block]:
    option = found.option
    goal = complete(found.plan).goal if found.plan else None
    limits = limit_words(goal, found.option or found)
    plan = complete(found.plan) if found.plan else None
    run = f"{capitalised(run_words(plan))} on {hardware_words(plan)}" if plan else "A plan"
    run += from_whom(option.provider) if option else ""
    head = f"{': '.join(filter(None, (run, _length_and_cost(found))))}."
    head = head if found.satisfied else f"Nothing meets every limit; the closest is this. {head}"
    head = " ".join([*limits.broken, *limits.doubtful, head, *limits.kept])
    text = f"{option.framework or option.engine}: {option.summary}." if option and option.summary else ""
    if found.per_device_bytes:
        text += f" It needs {figures.gib(found.per_device_bytes)} per device."
    targets = ", ".join(found.launch_targets[:_MOST_TARGETS])
    doubt = configured_doubts(found)
    return [
        Headline(
            head, found.satisfied, " ".join(filter(None, (doubt, text.strip()))), beware=bool(limits.doubtful or doubt)
        ),
        Prose(taken_data(found.assumptions)),
        *decisions([row for row in found.reasons if row.field.startswith(_CHOICES) and row.why][:_MOST_REASONS]),
        *considered([row for row in found.considered if row.why][:_MOST_OTHERS]),
        *notes("What to relax", found.relax[:_MOST_OTHERS]),
        Prose(f"Say *write the files* for launch files ({targets}, …)." if targets else ""),
    ]


def _length_and_cost(result: AutoConfigured) -> str:
    """'20 min (17.3–23.6), $4.29', or what an hour costs."""
    if result.hours is not None:
        return ", ".join(figures.held(result, name) for name in ("hours", "usd") if getattr(result, name) is not None)
    return "" if result.usd_per_hour is None else f"{figures.usd(result.usd_per_hour)} per hour"
