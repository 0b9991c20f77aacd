"""A training run: the verdict, its speed, what limits that, what would raise it, its layout and the rivals of that."""

from __future__ import annotations

from estimator.plan.schema import Training
from knowledge import figures
from pages.answers import lead
from pages.answers.plan import complete, hardware_words, layout_words, run_words
from pages.blocks import Block, Headline, Prose, Table, capitalised
from pages.results.choice import neighbours, ranked
from pages.results.estimate import improvements, where_time_goes
from planner.results import BestParallelism, Roofline, RunLength, TrainingEstimate

# What a step waits for that is told.
_LEAST_SHARE = 0.01
_MOST_RIVALS = 4
_MOST_REJECTED, _MOST_REJECTED_ASKED = 3, 6


def best(search: BestParallelism) -> Headline:
    """The best layout in a sentence."""
    plan = complete(search.plan)
    if not search.feasible:
        return Headline("No layout fits.", False, f"{capitalised(run_words(plan))} on {hardware_words(plan)}.")
    head = f"{search.best.summary} is the best layout for {run_words(plan)} on {hardware_words(plan)}."
    return Headline(head, True, " ".join(f"{text}." for text in search.warnings[:2]), beware=bool(search.warnings))


def speed(estimate: TrainingEstimate, why: bool) -> list[Block]:
    """How fast it goes and how long it takes; where that was asked for, where a step goes."""
    time, rate = estimate.time, estimate.throughput
    text = (
        f"**Speed**: a step takes {figures.held(time, 'step_s')}, "
        f"that is {figures.rate(rate.tokens_per_s)} tokens/s "
        f"({figures.rate(rate.tokens_per_s_per_device)} tokens/s per device), "
        f"at {figures.percent(rate.mfu)} MFU. Bottleneck: {estimate.bottleneck}."
    )
    if run := estimate.run:
        text += (
            f" {figures.whole(run.tokens)} tokens are {figures.whole(run.steps)} steps: "
            f"{figures.held(run, 'hours')}."
            f"{_goodput(run)}"
        )
    return [Prose(text), *(where_time_goes(estimate.limits) if why else [])]


def _goodput(run: RunLength) -> str:
    """What machines that fail add to the steps."""
    lost = run.goodput
    if lost is None:
        return ""
    save = lost.checkpoint_interval_minutes
    saving = f", with a checkpoint every {figures.hours(save / 60.0)}" if save else ""
    times = figures.whole(max(1.0, lost.interruptions))
    return (
        f" {figures.hours(run.step_hours)} of it are steps, {figures.percent(lost.share)}: about {times} "
        f"interruption{'s' * (times != '1')} {'are' if times != '1' else 'is'} expected{saving} (effective MFU "
        f"{figures.percent(lost.mfu)})."
    )


def what_limits(estimate: TrainingEstimate) -> list[Block]:
    """The limit, what the step waits for, the roofline, and what would help."""
    told = [limit for limit in estimate.limits if limit.share >= _LEAST_SHARE]
    none = Prose("No change that fits gains more than a percent.")
    return [
        Prose(limit_words(estimate)),
        *where_time_goes(told),
        _roofline(estimate.roofline),
        *([] if estimate.improvements is None else improvements(estimate, "why") or [none]),
    ]


def limit_words(estimate: TrainingEstimate) -> str:
    """'Bottleneck: compute, 48 % of a step of 158 s, at 36 % MFU.'"""
    first = estimate.limits[0]
    return (
        f"Bottleneck: {first.limit}, {figures.percent(first.share)} of a step of "
        f"{figures.seconds(estimate.time.step_s)}, at {figures.percent(estimate.throughput.mfu)} MFU."
    )


def first_limits(estimate: TrainingEstimate) -> list[Block]:
    """The changes that gain most, for the first lines of an answer."""
    _, *rest = what_limits(estimate)
    return lead.short([block for block in rest if isinstance(block, Table) and block.title], 0)


def _roofline(roof: Roofline) -> Prose:
    side = "above" if roof.bound == "compute" else "below"
    return Prose(
        f"**Roofline**: {figures.number(roof.arithmetic_intensity_flop_per_byte)} FLOP per byte of device memory, "
        f"{side} the ridge point of {figures.number(roof.ridge_flop_per_byte)}: bound by {roof.bound}."
    )


def layout(estimate: TrainingEstimate) -> Prose:
    plan = complete(estimate.plan)
    head = "**Layout** (chosen by search)" if estimate.layout_chosen else "**Layout** (as given)"
    framework = plan.workload.framework if isinstance(plan.workload, Training) else ""
    why = estimate.why if estimate.layout_chosen else []
    return Prose(" ".join([f"{head}, {framework}: {layout_words(plan)}.", *why]))


def rivals(search: BestParallelism, why: bool) -> list[Block]:
    """The best layout with its rivals, and why those lost."""
    words = layout_words(complete(search.plan))
    shown = [search.best, *search.alternatives][:_MOST_RIVALS]
    return [
        Prose(f"**Best layout**, {search.best.framework}: {words}. {' '.join(search.why)}"),
        *(ranked(shown) if len(shown) > 1 else []),
        *neighbours(search, _MOST_REJECTED_ASKED if why else _MOST_REJECTED),
    ]
