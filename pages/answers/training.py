"""A training run: the verdict, its speed, what limits that, what would raise it, its layout and the rivals of that."""

from __future__ import annotations

from estimator.plan.schema import Training
from knowledge import figures
from pages.answers import memory
from pages.answers.plan import complete, hardware_words, layout_words, run_words
from pages.blocks import Block, Prose
from pages.results.choice import neighbours, ranked
from pages.results.estimate import improvements, where_time_goes
from planner.money.results import CostEstimate
from planner.results import BestParallelism, MemoryEstimate, Roofline, TrainingEstimate

# What a step waits for that is told.
_LEAST_SHARE = 0.01
_MOST_RIVALS = 4
_MOST_REJECTED, _MOST_REJECTED_ASKED = 3, 6


def best(search: BestParallelism, estimate: TrainingEstimate | None) -> Prose:
    """The best layout in a sentence, and what it needs where that was estimated."""
    plan = complete(search.plan)
    text = f"**{search.best.summary}** is the best layout I found for {run_words(plan)} on {hardware_words(plan)}."
    if estimate is None:
        return Prose(text)
    used, has = figures.gib(estimate.memory.per_device_bytes), figures.gib(estimate.memory.capacity_bytes)
    return Prose(f"{text} It needs about {used} of the {has} that a device can allocate.")


def verdict(estimate: TrainingEstimate, cost: CostEstimate | None, asked_fit: bool) -> Prose:
    """One or two sentences that answer the question."""
    plan, found, run = complete(estimate.plan), estimate.memory, estimate.run
    fits = found.fits
    head = _head(found, asked_fit)
    # Where the middle of the interval fits and its end does not, the end is the reason.
    close = not fits and found.per_device_bytes < found.capacity_bytes
    span = figures.gib_range(found.low_bytes, found.high_bytes)
    needs = figures.gib(found.per_device_bytes)
    needs += f", and by its interval up to {figures.gib(found.high_bytes)}," if close else f" ({span})"
    text = f"{head} {_sentence(run_words(plan))} on {hardware_words(plan)}: the fullest device needs about {needs} of "
    text += f"the {figures.gib(found.capacity_bytes)} it can allocate."
    if not fits:
        return Prose(text)
    if fails := memory.besides(found):
        text += f" {fails}"
    if run:
        text += f" The run takes about **{figures.hours(run.hours)}**"
        text += f" and costs about **{figures.usd(cost.usd)}**." if cost and cost.usd is not None else "."
    return Prose(text)


def _head(memory: MemoryEstimate, asked_fit: bool) -> str:
    if not memory.fits:
        return "**No, it does not fit.**"
    if memory.tight:
        room = f"{figures.gib(memory.capacity_bytes - memory.high_bytes)} stay free at the upper end of the interval."
        return f"**{'Yes, but tightly' if asked_fit else 'It fits, but tightly'}**: {room}"
    return "**Yes, it fits.**" if asked_fit else "**It fits.**"


def _sentence(words: str) -> str:
    """The words with a capital first; names within keep theirs."""
    return f"{words[:1].upper()}{words[1:]}"


def speed(estimate: TrainingEstimate, why: bool) -> list[Block]:
    """How fast it goes and how long it takes; where that was asked for, where a step goes."""
    time, rate = estimate.time, estimate.throughput
    text = (
        f"**Speed**: a step takes {figures.held(time, 'step_s')}, "
        f"that is {figures.rate(rate.tokens_per_s)} tokens/s "
        f"({figures.rate(rate.tokens_per_s_per_device)} tokens/s per device), "
        f"at {figures.percent(rate.mfu)} MFU. What limits it: {estimate.bottleneck}."
    )
    if run := estimate.run:
        text += (
            f" {figures.whole(run.tokens)} tokens are {figures.whole(run.steps)} steps: "
            f"{figures.hours(run.hours)} ({figures.hour_range(run.low_hours, run.high_hours)})."
        )
    return [Prose(text), *(where_time_goes(estimate.limits) if why else [])]


def what_limits(estimate: TrainingEstimate) -> list[Block]:
    """The limit, what the step waits for, the roofline, and what would help."""
    first = estimate.limits[0]
    head = (
        f"**{_sentence(first.limit)}** limits it: {figures.percent(first.share)} of a step of "
        f"{figures.seconds(estimate.time.step_s)}, at {figures.percent(estimate.throughput.mfu)} MFU."
    )
    told = [limit for limit in estimate.limits if limit.share >= _LEAST_SHARE]
    none = Prose("I found no change that fits and gains more than a percent.")
    return [
        Prose(head),
        *where_time_goes(told),
        _roofline(estimate.roofline),
        *([] if estimate.improvements is None else improvements(estimate, "why") or [none]),
    ]


def _roofline(roof: Roofline) -> Prose:
    side = "beyond" if roof.bound == "compute" else "below"
    return Prose(
        f"**Roofline**: the passes do {figures.number(roof.arithmetic_intensity_flop_per_byte)} FLOP for each byte of "
        f"device memory, {side} the {figures.number(roof.ridge_flop_per_byte)} at which arithmetic takes over from "
        f"memory bandwidth, so as a whole they are bound by {roof.bound}."
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
