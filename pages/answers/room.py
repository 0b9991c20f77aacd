"""How much room a plan has, what that room could buy, and what would make a plan fit: check_fit."""

from __future__ import annotations

from estimator.plan.schema import Training
from knowledge import figures
from pages.answers.plan import complete
from pages.blocks import Block, Prose
from pages.results.estimate import remedies
from planner.results import FitCheck

_MOST_REMEDIES, _MOST_RELAXATIONS, _MOST_FASTER = 4, 3, 5
# A gain of less than a percent is within what an estimate can tell apart.
_FASTER = 0.99
_BUYS = "What more room would allow"


def training(fit: FitCheck) -> list[Block]:
    """How far the plan could grow, or what would make it fit."""
    if not fit.fits:
        short = f"**Short by {figures.gib(-fit.headroom_bytes)}** at the upper end of the memory interval."
        none = (
            "Nothing makes it fit on these devices, whichever framework trains it, not even recompute, split "
            "sequences, host memory, chunked loss and 8-bit optimizer states together: take more or larger GPUs."
        )
        return _remedies(fit, short, none, True)
    text = f"**Headroom**: {figures.gib(fit.headroom_bytes)} remain even at the upper end of the memory interval."
    if figures.is_no_room(fit.headroom_bytes):
        text = (
            "**Headroom**: at the upper end of the memory interval it fits because cached blocks and paged states give "
            "way when memory runs short."
        )
    workload = complete(fit.plan).workload
    more = []
    if isinstance(workload, Training):
        if (fit.largest_micro_batch or 0) > (workload.micro_batch or 0):
            more.append(f"micro-batch {figures.known(fit.largest_micro_batch, figures.whole)}")
        if (fit.largest_seq_len or 0) > (workload.seq_len or 0):
            more.append(f"sequences of {figures.known(fit.largest_seq_len, figures.whole)} tokens")
    text += f" The same layout would take {' or '.join(more)}." if more else ""
    if fit.tight and (ways := [way for way in fit.remedies if way.fits]):
        return [Prose(text), *remedies(ways[:_MOST_REMEDIES], "What would leave more room", "why", True)]
    return [Prose(text), *remedies(fit.relaxations[:_MOST_RELAXATIONS], _BUYS, "why")]


def serving(fit: FitCheck, faster: bool) -> list[Block]:
    """How much room is left, or what would make it fit, or what would make what fits faster."""
    if not fit.fits:
        short = f"**Short by {figures.gib(-fit.headroom_bytes)}** per device."
        # Of what does not fit there is no speed to compare with.
        return _remedies(fit, short, "No change tried makes it fit.", False)
    text = f"**Headroom**: {figures.gib(fit.headroom_bytes)} are left for the cache after one request."
    if not faster:
        return [Prose(text), *remedies(fit.relaxations[:_MOST_RELAXATIONS], _BUYS, "why")]
    quicker = [way for way in (*fit.relaxations, *fit.remedies) if way.fits and way.slowdown < _FASTER]
    ways = sorted(quicker, key=lambda way: way.slowdown)[:_MOST_FASTER]
    told = remedies(ways, "What would make it faster, each by itself", "why")
    return [Prose(text), *(told or [Prose("No change that fits gains more than a percent.")])]


def _remedies(fit: FitCheck, short: str, none: str, timed: bool) -> list[Block]:
    working = remedies(
        [way for way in fit.remedies if way.fits][:_MOST_REMEDIES], "What would make it fit", "why", timed
    )
    return [Prose(short), *working] if working else [Prose(f"{short} {none}")]
