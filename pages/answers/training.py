"""A training run: the verdict, its speed, what limits that, what would raise it, its layout and the rivals of that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from estimator.plan.schema import Training
from pages import figures
from pages.answers import memory
from pages.answers.markdown import bullets, label, sentence, table
from pages.answers.plan import complete, hardware_words, layout_words, run_words
from planner.money.results import CostEstimate
from planner.result import TimeLimit
from planner.results import BestParallelism, Improvement, Roofline, TrainingEstimate

# Parts of a step that are told: by what takes the time in seconds, and by what it waits for as a share.
_LEAST_S, _LEAST_SHARE = 1e-4, 0.01
_MOST_RIVALS = 4
_MOST_REJECTED, _MOST_REJECTED_ASKED = 3, 6
_KINDS = {"framework": ", another framework", "training": ", changes the training", "hardware": ", other hardware"}


def best(search: BestParallelism, estimate: TrainingEstimate | None) -> str:
    """The best layout in a sentence, and what it needs where that was estimated."""
    plan = complete(search.plan)
    text = f"**{search.best.summary}** is the best layout I found for {run_words(plan)} on {hardware_words(plan)}."
    if estimate is None:
        return text
    used, has = figures.gib(estimate.memory.per_device_bytes), figures.gib(estimate.memory.capacity_bytes)
    return f"{text} It needs about {used} of the {has} that a device can allocate."


def verdict(estimate: TrainingEstimate, cost: CostEstimate | None, asked_fit: bool) -> str:
    """One or two sentences that answer the question."""
    plan, found, run = complete(estimate.plan), estimate.memory, estimate.run
    fits = found.fits
    head = "**No, it does not fit.**" if not fits else "**Yes, it fits.**" if asked_fit else "**It fits.**"
    # Where the middle of the interval fits and its end does not, the end is the reason.
    close = not fits and found.per_device_bytes < found.capacity_bytes
    span = figures.gib_range(found.low_bytes, found.high_bytes)
    needs = figures.gib(found.per_device_bytes)
    needs += f", and by its interval up to {figures.gib(found.high_bytes)}," if close else f" ({span})"
    text = f"{head} {sentence(run_words(plan))} on {hardware_words(plan)}: the fullest device needs about {needs} of "
    text += f"the {figures.gib(found.capacity_bytes)} it can allocate."
    if not fits:
        return text
    if fails := memory.besides(found):
        text += f" {fails}"
    if run:
        text += f" The run takes about **{figures.hours(run.hours)}**"
        text += f" and costs about **{figures.usd(cost.usd)}**." if cost and cost.usd is not None else "."
    return text


def speed(estimate: TrainingEstimate, why: bool) -> list[str]:
    """How fast it goes and how long it takes; where that was asked for, where a step goes."""
    time, rate = estimate.time, estimate.throughput
    text = (
        f"**Speed**: a step takes {figures.seconds(time.step_s)} "
        f"({figures.seconds(time.low_s)} to {figures.seconds(time.high_s)}), "
        f"that is {figures.rate(rate.tokens_per_s)} tokens/s "
        f"({figures.rate(rate.tokens_per_s_per_device)} tokens/s per device), "
        f"at {figures.percent(rate.mfu)} MFU. What limits it: {estimate.bottleneck}."
    )
    if run := estimate.run:
        text += (
            f" {figures.whole(run.tokens)} tokens are {figures.whole(run.steps)} steps: "
            f"{figures.hours(run.hours)} ({figures.hour_range(run.low_hours, run.high_hours)})."
        )
    if not why:
        return [text]
    parts = sorted(time.components.items(), key=lambda part: -part[1])
    rows = [(label(name), seconds) for name, seconds in parts if seconds >= _LEAST_S]
    return [text, table(("Where the step goes", "time"), rows)]


def what_limits(estimate: TrainingEstimate) -> list[str]:
    """The limit, what the step waits for, the roofline, and what would help."""
    first = estimate.limits[0]
    head = (
        f"**{sentence(first.limit)}** limits it: {figures.percent(first.share)} of a step of "
        f"{figures.seconds(estimate.time.step_s)}, at {figures.percent(estimate.throughput.mfu)} MFU."
    )
    told = [limit for limit in estimate.limits if limit.share >= _LEAST_SHARE]
    return [
        head,
        waits("What the step waits for", told),
        _roofline(estimate.roofline),
        *([] if estimate.improvements is None else _improvements(estimate.improvements)),
    ]


def waits(head: str, limits: Iterable[TimeLimit]) -> str:
    """A table of the parts of a step by what they wait for."""
    rows = [(limit.limit, limit.seconds, limit.share) for limit in limits]
    return table((head, "time", "share"), rows)


def _roofline(roof: Roofline) -> str:
    side = "beyond" if roof.bound == "compute" else "below"
    return (
        f"**Roofline**: the passes do {figures.tenths(roof.arithmetic_intensity_flop_per_byte)} FLOP for each byte of "
        f"device memory, {side} the {figures.tenths(roof.ridge_flop_per_byte)} at which arithmetic takes over from "
        f"memory bandwidth, so as a whole they are bound by {roof.bound}."
    )


def _improvements(changes: Sequence[Improvement]) -> list[str]:
    if not changes:
        return ["I found no change that fits and gains more than a percent."]
    lines = []
    for row in changes:
        gain = f"{figures.percent(row.gain)} more" if row.gain < 1 else f"{figures.ratio(row.speedup)} the"
        lines.append(
            f"{row.what}{_KINDS.get(row.kind, '')}: {gain} tokens/s, {figures.seconds(row.step_s)} a step, "
            f"{figures.percent(row.mfu)} MFU, {figures.gib(row.per_device_bytes)} per device; {row.why}"
        )
    return bullets("What would raise it, each by itself:", lines)


def layout(estimate: TrainingEstimate) -> str:
    plan = complete(estimate.plan)
    head = "**Layout** (chosen by search)" if estimate.layout_chosen else "**Layout** (as given)"
    framework = plan.workload.framework if isinstance(plan.workload, Training) else ""
    return " ".join([f"{head}, {framework}: {layout_words(plan)}.", *(estimate.why if estimate.layout_chosen else [])])


def rivals(search: BestParallelism, why: bool) -> list[str]:
    """The best layout with its rivals, and why those lost."""
    words = layout_words(complete(search.plan))
    blocks = [f"**Best layout**, {search.best.framework}: {words}. {' '.join(search.why)}"]
    shown = [search.best, *search.alternatives][:_MOST_RIVALS]
    if len(shown) > 1:
        rows = [(row.summary, row.step_s, row.tokens_per_s, row.mfu, row.per_device_bytes) for row in shown]
        blocks.append(table(("Layout", "step", "tokens/s", "MFU", "per device"), rows))
    rejected = search.rejected[: _MOST_REJECTED_ASKED if why else _MOST_REJECTED]
    return [*blocks, *bullets("Not taken:", [f"{row.summary}: {row.rule}" for row in rejected])]
