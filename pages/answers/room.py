"""How much room a plan has, what that room could buy, and what would make a plan fit: check_fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from estimator.plan.schema import Training
from pages import figures
from pages.answers.markdown import bullets
from pages.answers.plan import complete
from planner.results import FitCheck, Remedy

_MOST_REMEDIES, _MOST_RELAXATIONS, _MOST_FASTER = 4, 3, 5
# A gain of less than a percent is within what an estimate can tell apart.
_FASTER = 0.99
_AS_FAST = 0.005
_BUYS = "What that room could buy:"


def training(fit: FitCheck) -> list[str]:
    """How far the plan could grow, or what would make it fit."""
    if not fit.fits:
        short = f"**Short by {figures.gib(-fit.headroom_bytes)}** at the upper end of the memory interval."
        none = "No change that I tried, and no two together, make it fit; many more or larger devices would."
        return _remedies(fit, short, none, _slower)
    text = f"**Headroom**: {figures.gib(fit.headroom_bytes)} remain even at the upper end of the memory interval."
    workload = complete(fit.plan).workload
    more = []
    if isinstance(workload, Training):
        if (fit.largest_micro_batch or 0) > (workload.micro_batch or 0):
            more.append(f"micro-batch {figures.known(fit.largest_micro_batch, figures.whole)}")
        if (fit.largest_seq_len or 0) > (workload.seq_len or 0):
            more.append(f"sequences of {figures.known(fit.largest_seq_len, figures.whole)} tokens")
    text += f" The same layout would take {' or '.join(more)}." if more else ""
    return [text, *_ways(_BUYS, fit.relaxations[:_MOST_RELAXATIONS], _slower)]


def serving(fit: FitCheck, faster: bool) -> list[str]:
    """How much room is left, or what would make it fit, or what would make what fits faster."""
    if not fit.fits:
        short = f"**Short by {figures.gib(-fit.headroom_bytes)}** per device."
        # Of what does not fit there is no speed to compare with.
        return _remedies(fit, short, "No change that I tried makes it fit.", lambda _: "")
    text = f"**Headroom**: {figures.gib(fit.headroom_bytes)} remain for the cache beside one request."
    if not faster:
        return [text, *_ways(_BUYS, fit.relaxations[:_MOST_RELAXATIONS], _gain)]
    quicker = [way for way in (*fit.relaxations, *fit.remedies) if way.fits and way.slowdown < _FASTER]
    ways = sorted(quicker, key=lambda way: way.slowdown)[:_MOST_FASTER]
    nothing = "I found no change that fits and gains more than a percent."
    return [text, *(_ways("What would make it faster, each by itself:", ways, _gain) or [nothing])]


def _remedies(fit: FitCheck, short: str, none: str, speed: Callable[[Remedy], str]) -> list[str]:
    working = [way for way in fit.remedies if way.fits][:_MOST_REMEDIES]
    return [short, *_ways("What would make it fit:", working, speed)] if working else [f"{short} {none}"]


def _ways(head: str, ways: Sequence[Remedy], speed: Callable[[Remedy], str]) -> list[str]:
    return bullets(head, [f"{way.what}: {figures.gib(way.per_device_bytes)} per device{speed(way)}" for way in ways])


def _slower(way: Remedy) -> str:
    change = figures.percent(abs(way.slowdown - 1))
    return (
        ", as fast" if abs(way.slowdown - 1) < _AS_FAST else f", {change} {'slower' if way.slowdown > 1 else 'faster'}"
    )


def _gain(way: Remedy) -> str:
    return f", {figures.percent(1 - way.slowdown)} less time per token served"
