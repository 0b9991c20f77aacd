"""Several runs side by side: scenarios, strategies, sizes of cluster, and the most that accelerators reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from knowledge import figures
from pages.answers.lead import verdict
from pages.answers.plan import complete
from pages.blocks import Aside, Block, Folded, Headline, Prose, Steps
from pages.results.basis import notes
from pages.results.limits import LimitWords, limit_words, untold
from pages.results.many import by_strategy, fastest, least_of, own_layouts, peaks, side_by_side, sizes, strategy_words

if TYPE_CHECKING:
    from planner.compare.scaling import ScalingProjection
    from planner.compare.scenarios import Comparison
    from planner.layouts.peak import PeakRow, PeakThroughput
    from planner.layouts.strategies import AppliedStrategies

_PLACES = ("first", "second", "third", "fourth")
_MOST_CONCLUSIONS, _MOST_REASONS = 6, 3
_MOST_STRATEGIES, _MOST_PEAKS, _MOST_PROBLEMS, _MOST_THEN = 24, 16, 6, 2


def _led(sentences: Sequence[str]) -> list[Block]:
    """The sentences as one block, the first in bold."""
    first, _, rest = " ".join(sentences).partition(". ")
    return [Prose(f"**{first.rstrip('.')}.** {rest}".strip())] if sentences else []


# What is asked about, by the figures of rows that say it: of a whole run where that is known, else per million tokens.
_ASKED = {
    "usd_per_month": ("usd", "usd_per_hour"),
    "cost": ("usd", "usd_per_million_tokens", "usd_per_million_output_tokens"),
    "kwh": ("kwh", "kwh_per_billion_tokens", "kwh_per_million_output_tokens"),
    "latency.ttft_s": ("ttft_s",),
    "latency.tpot_s": ("tpot_s",),
    "memory.per_device_bytes": ("per_device_bytes",),
}
_LEAST = {
    "cost": "costs the least", "usd_per_month": "costs the least", "kwh": "needs the least energy",
    "latency.ttft_s": "has the lowest TTFT", "latency.tpot_s": "has the lowest TPOT",
    "memory.per_device_bytes": "needs the least memory",
}  # fmt: skip
# Of whole runs, whose unit says it all.
_WHOLE = ("usd", "kwh", "ttft_s", "tpot_s", "per_device_bytes")


def _by_figure(comparison: Comparison, asked: Sequence[str]) -> tuple[str, str]:
    """(The figure that was asked about, a sentence on who has the least of it); empty where nothing was."""
    wish = next((name for name in ("usd_per_month", *asked) if name in asked and name in _ASKED), "")
    for figure in _ASKED.get(wish, ()) if len(comparison.rows) > 1 else ():
        rows = least_of(comparison, figure)
        if len(rows) > 1:
            values = [_behind(row, rows[0], figure) for row in rows[1:3]]
            label = "" if figure in _WHOLE else f" {figures.label(figure).removeprefix('energy ')}"
            least = figures.shown(figure, getattr(rows[0], figure))
            return figure, f"{rows[0].name} {_LEAST[wish]}: {least}{label}, then {', '.join(values)}."
    return "", ""


def _behind(row: Any, first: Any, figure: str) -> str:
    """'8 x h100-sxm at $0.13', or by how much where both are written alike."""
    mine, least = getattr(row, figure), getattr(first, figure)
    shown = figures.shown(figure, mine)
    if shown == figures.shown(figure, least) and least:
        return f"{row.name} at {figures.percent(mine / least - 1)} more"
    return f"{row.name} at {shown}"


def _without(sentences: Sequence[str], answer: str) -> list[str]:
    """The sentences without clauses that say what the answer does."""
    repeated = next((words for words in _LEAST.values() if words in answer), "")
    kept = [
        [part for part in text.rstrip(".").split("; ") if not repeated or repeated not in part] for text in sentences
    ]
    return [f"{'; '.join(parts)}." for parts in kept if parts]


def compared(comparison: Comparison, asked: Sequence[str] = ()) -> list[Block]:
    """`asked` are the intents and figures that were named."""
    figure, answer = _by_figure(comparison, asked)
    conclusions = [*([answer] if answer else []), *_without(comparison.conclusions, answer)]
    first, *more = conclusions[:_MOST_CONCLUSIONS] or [_without_conclusions(comparison)]
    goal = complete(comparison.plan).goal if comparison.plan else None
    words = [(row.name, limit_words(goal, row)) for row in comparison.rows if row.fits]
    broken = [_of(name, limits.broken) for name, limits in words if limits.broken]
    kept = _kept([limits for _, limits in words]) or [
        _of(name, texts) for name, limits in words if (texts := [*limits.doubtful, *limits.kept])
    ]
    able = {row.name for row in comparison.rows if not row.falls_behind}
    usable = [name for name, limits in words if not limits.broken and name in able]
    wholly = len(usable) == len(comparison.rows)
    doubts = untold(comparison, "rate")
    head = verdict(" ".join([*broken, first]), None if usable else False, doubts, " ".join(kept))
    rows = side_by_side(comparison, asked=figure)
    names = [row.name for row in comparison.rows]
    best = least_of(comparison, figure)[0].name if figure else comparison.leader
    offered = best in usable and best in names[: len(_PLACES)]
    take = [Steps([f"take the {_PLACES[names.index(best)]}"])] if best and offered else []
    return [
        replace(head, beware=head.beware or not wholly),
        *rows,
        *notes("What matters", more),
        Aside(own_layouts(comparison)),
        *take,
    ]


def headed(comparison: Comparison) -> list[Block]:
    """The first line alone, as a command prints it over its table."""
    head = compared(comparison)[0]
    assert isinstance(head, Headline)
    return [replace(head, more=f"{head.more} {own_layouts(comparison)}".strip())]


def _of(name: str, sentences: Sequence[str]) -> str:
    """'full: late by 46 min: 4.8 hours, deadline 4.0 hours. Over budget by $72.'"""
    first, *rest = sentences
    return " ".join([f"{name}: {first[:1].lower()}{first[1:]}", *rest])


def _kept(words: Sequence[LimitWords]) -> list[str]:
    """That all keep the same limits, in one sentence; nothing where one does not, or only probably."""
    alike = {tuple(text.partition(" by ")[0].lower() for text in limits.kept) for limits in words}
    if len(words) < 2 or len(alike) > 1 or any(limits.broken or limits.doubtful for limits in words):
        return []
    sides = " and ".join(alike.pop())
    return [f"{'Both' if len(words) == 2 else f'All {len(words)}'}: {sides}."] if sides else []


def _without_conclusions(comparison: Comparison) -> str:
    """What is said where too few of the scenarios can be estimated to set them side by side."""
    estimated = [row for row in comparison.rows if not row.error]
    if fitting := [row.name for row in estimated if row.fits]:
        return f"Only {fitting[0]} can be estimated, and it fits."
    return (
        f"Only {estimated[0].name} can be estimated, and it does not fit."
        if estimated
        else ("None of these can be estimated.")
    )


def reasons(comparison: Comparison) -> list[Block]:
    """Why the fastest is that, where the comparison itself was told: against the baseline, or the others against it."""
    first = comparison.leader if comparison.leader != comparison.baseline else None
    told = [text for text in comparison.conclusions[1:] if " than " in text and text.startswith(first or "")]
    whole = compared(comparison)
    return [*_led(told[:_MOST_REASONS]), Folded(whole)] if told else whole


def strategies(applied: AppliedStrategies) -> list[Block]:
    rows = [row for row in applied.rows if row.per_device_bytes is not None]
    whys = [f"{strategy_words(row.strategy)} on {row.accelerator}: {row.why}" for row in applied.rows if row.why]
    meant = [f"{strategy_words(name)}: {text}" for name, text in applied.strategies.items()]
    return [
        verdict(fastest(applied), any(row.fits for row in rows), applied.warnings),
        *by_strategy(rows[:_MOST_STRATEGIES]),
        *notes("", whys[:_MOST_PROBLEMS]),
        *notes("Strategies", meant),
    ]


def scaling(projection: ScalingProjection) -> list[Block]:
    kind = "the global batch stays" if projection.scaling == "strong" else "the batch grows with the devices"
    last = Prose(f"This is {projection.scaling} scaling: {kind}.")
    first, *rest = projection.why
    return [verdict(first, None, projection.warnings, " ".join(rest)), *sizes(projection), last]


def peak(throughput: PeakThroughput) -> list[Block]:
    rows = [row for row in throughput.rows if not row.error and row.fits]
    failed = [f"{row.model} on {row.accelerator}: {row.error}" for row in throughput.rows if row.error]
    problems = notes("Not estimated", failed[:_MOST_PROBLEMS])
    if not rows:
        return [verdict("None of these can be estimated.", False), *problems]
    best = max(rows, key=lambda row: row.tokens_per_s_per_device or 0.0)
    head = (
        f"**{best.accelerator} in {best.precision}** reaches the most for {best.model.rpartition('/')[2]}: "
        f"{figures.held(best, 'tokens_per_s_per_device')} tokens/s per device, {figures.shown('mfu', best.mfu)} MFU"
        f"{_then(best, rows)}."
    )
    return [
        verdict(head, True, throughput.warnings),
        *peaks(rows[:_MOST_PEAKS]),
        *notes("Rated against measured runs", _measured(rows)),
        *problems,
    ]


def _then(best: PeakRow, rows: Sequence[PeakRow]) -> str:
    """', then h100-sxm in fp8 at 1,604': the best of each other accelerator for the same model."""
    others: dict[str, PeakRow] = {}
    for row in sorted(rows, key=lambda row: -(row.tokens_per_s_per_device or 0.0)):
        if row.model == best.model and row.accelerator != best.accelerator:
            others.setdefault(row.accelerator, row)
    key = "tokens_per_s_per_device"
    told = [
        f"{row.accelerator} in {row.precision} at {figures.shown(key, getattr(row, key))}"
        for row in list(others.values())[:_MOST_THEN]
    ]
    return f", then {', '.join(told)}" if told else ""


def _measured(rows: Sequence[PeakRow]) -> list[str]:
    """What the measured runs reach that the ratings compare with, once each."""
    lines: dict[str, str] = {}
    for row in rows:
        if row.rated_against and row.measured_mfu_median is not None:
            lower, middle, upper = (
                figures.known(mfu, figures.percent)
                for mfu in (row.measured_mfu_lower, row.measured_mfu_median, row.measured_mfu_upper)
            )
            lines[row.rated_against] = f"median measured MFU {middle}, {lower} to {upper} for the middle half"
    return [f"{rated_against}: {words}" for rated_against, words in lines.items()]
