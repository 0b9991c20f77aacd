"""Whether a run keeps the limits that were set, and by how much: the same words wherever a verdict is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator.plan.schema import Goal
from knowledge import figures
from pages.blocks import Headline, capitalised
from planner.clusters.results import ClusterOption
from planner.money.results import CostEstimate, CreditUse

# Fields of a plan's goal by the figures that they are limits of.
LIMITED = {"hours": "deadline_h", "usd": "budget_usd", "device_hours": "budget_device_hours"}
# With what a budget is held to where machines are bought, and a deadline where they are free a part of the week.
HELD = (*LIMITED.items(), ("capex_usd", "budget_usd"), ("elapsed_hours", "deadline_h"))
_WORDS = {"hours": ("Late", "In time", "deadline"), "usd": ("Over budget", "Within budget", "budget"),
          "device_hours": ("Over the device-hours", "Within the device-hours", "limit")}  # fmt: skip

_HOURS = ("hours", "elapsed_hours")
CENT = 0.01
_MOST_WARNINGS = 2
_DAYS_OF_A_WEEK = 7


@dataclass(frozen=True)
class LimitWords:
    """A sentence each: of limits that are broken, of those that the upper end of the interval breaks, and of others."""

    broken: Sequence[str]
    doubtful: Sequence[str]
    kept: Sequence[str]


def untold(result: Any, *told: str) -> list[str]:
    """The warnings of a result without those of kinds that a verdict has `told`, as it always does what fits."""
    kinds: Mapping[str, str] = getattr(result, "warning_kinds", {})
    return [text for text in result.warnings if kinds.get(text) not in ("fit", *told)]


def doubt_words(warnings: Sequence[str]) -> str:
    """The first warnings as sentences beside a verdict. What several end in is said once, of later ones too: 'No Ada
    runs measured, no verl speeds measured: timing is less certain.'"""
    causes: dict[str, list[str]] = {}
    for text in warnings:
        cause, _, effect = text.rpartition(": ")
        if effect in causes or len(causes) < _MOST_WARNINGS:
            causes.setdefault(effect, []).append(cause)
    sentences = [
        ": ".join(filter(None, (("; " if any(": " in text for text in cause) else ", ").join(cause), effect)))
        for effect, cause in causes.items()
    ]
    # A name with a colon is of a row, and keeps its letters.
    named = (text.partition(" ")[0].endswith(":") for text in sentences)
    return " ".join(f"{text if name else capitalised(text)}." for text, name in zip(sentences, named, strict=True))


def in_doubt(sentence: str, good: bool | None, warnings: Sequence[str], more: str = "") -> Headline:
    """A verdict with what it is in doubt for, and what else is told with it."""
    doubt = "" if good is False else doubt_words(warnings)
    return Headline(sentence, good, " ".join(filter(None, (doubt, more))), beware=bool(doubt))


def limit_words(goal: Goal | None, *rows: object) -> LimitWords:
    """Of each figure that has a limit, as the first of the results says it that knows it."""
    if goal is None:
        return LimitWords((), (), ())
    broken, doubtful, kept = list[str](), list[str](), list[str]()
    for figure, field in LIMITED.items():
        over, within, name = _WORDS[figure]
        most = getattr(goal, field)
        if figure == "hours" and goal.free:
            figure = "elapsed_hours"
        row = next((row for row in rows if getattr(row, figure, None) is not None), None)
        if most is None or row is None:
            continue
        value, high = getattr(row, figure), getattr(row, f"high_{figure}", None)
        if figure == "usd" and isinstance(row, ClusterOption) and row.capex_usd is not None:
            value, high = row.capex_usd, None
        by = figures.shown(figure, abs(value - most))
        # In the unit of what is set against it.
        limit = figures.hours_beside(most, value) if figure in _HOURS else figures.shown(figure, most)
        if value > most:
            broken.append(f"{over} by {by}: {figures.shown(figure, value)}, {name} {limit}.")
        elif high is not None and high > most:
            doubtful.append(
                f"Probably {within[0].lower()}{within[1:]} by {by}: {figures.held(row, figure)}, {name} {limit}."
            )
        else:
            kept.append(f"{within} by {by} ({name} {limit}).")
    if goal.free and (row := next((row for row in rows if getattr(row, "elapsed_hours", None) is not None), None)):
        each, days = figures.number(goal.free.hours_per_day), goal.free.days_per_week
        done, free = figures.held(row, "elapsed_hours"), f"{each} hours a day"
        free += f", {days} days a week" if days < _DAYS_OF_A_WEEK else ""
        kept.append(f"Done {done} after the start, with machines free {free}.")
    bill = next((row for row in rows if isinstance(row, CostEstimate) and row.credits), None)
    if bill is not None and (use := bill.credits) is not None:
        words = broken if use.left_usd >= CENT else doubtful if use.high_left_usd >= CENT else kept
        words.append(_credit_words(use, bill, bool(goal.free)))
    return LimitWords(broken, doubtful, kept)


def _credit_words(use: CreditUse, bill: CostEstimate, waits: bool) -> str:
    """`waits`: for days on which machines are free."""
    credits = f"Credits until {use.end}" if use.end else "Credits"
    # What the days that are left pay for depends on when it begins.
    day = "on the first free day" if waits else "tomorrow"
    begun = f", begun {day}" if use.hours_left is not None and use.hours_left < bill.high_hours else ""
    stored = (bill.usd_total or 0.0) - (bill.usd or 0.0) >= CENT
    if use.left_usd >= CENT:
        whole = f"{figures.usd(use.paid_usd + use.left_usd)}{', storage included' if stored else ''}{begun}"
        return f"{credits} cover {figures.usd(use.paid_usd)} of {whole}; {figures.usd(use.left_usd)} is left to pay."
    if use.high_left_usd >= CENT:
        return f"{credits} probably cover all of it{begun}; up to {figures.usd(use.high_left_usd)} may be left to pay."
    rest = f"; {figures.usd(use.lost_usd)} of them is not used" if use.lost_usd >= CENT else ""
    return f"{credits} cover all of it{rest}."
