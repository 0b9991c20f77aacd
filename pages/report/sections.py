"""Sections that reports share: what the planner says of a plan, as blocks under a title."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from estimator.errors import PlanError
from knowledge import figures
from knowledge.figures import hours, percent, plain, shown, usd
from pages.blocks import Block, Chart, Details, Figures, Note, Table, Text
from pages.results.advice import gain_words
from pages.results.basis import notes
from pages.results.columns import Column, table
from pages.results.estimate import Estimate
from pages.results.money import providers
from pages.results.plan import plan_lines
from planner.advice.advise import AdviseRequest, advise
from planner.money.cost import CostRequest, estimate_cost
from planner.money.results import CostEstimate
from planner.plots import stacked
from planner.requests import parsed
from planner.result import Assumption, Evidence

_MOST_OFFERS, _MOST_BARS = 15, 8
_MOST_ADVICE = 10


@dataclass(frozen=True)
class Told:
    """What a report says, but for its title and when it was made; its first block is the headline."""

    subject: str
    blocks: Sequence[Block]


Request = TypeVar("Request")
Response = TypeVar("Response")


def asked(function: Callable[[Any], Response], request: type[Any], arguments: Mapping[str, Any]) -> Response:
    """What a function of the planner says to plain arguments. Raises PlanError."""
    return function(parsed(request, arguments))


def opening(estimate: Estimate) -> list[Block]:
    """What to watch out for, and the plan."""
    plan = Details("The plan", [*notes("", estimate.why), Figures(plan_lines(estimate.plan))])
    return [*notes("Watch out", estimate.warnings), plan]


def closing(plan: Mapping[str, Any], estimate: Estimate) -> list[Block]:
    """What would help, and what the estimate rests on; `plan` is what was asked for."""
    return [
        *_recommendations({"plan": plan}),
        assumptions_section(estimate.assumptions),
        evidence_section(estimate.evidence),
        plan_code(plan, estimate.plan),
    ]


def bill_of(arguments: Mapping[str, Any]) -> CostEstimate | None:
    """What the plan costs; None where the plan lacks what that needs."""
    try:
        return asked(estimate_cost, CostRequest, arguments)
    except PlanError:
        return None


def piece(part: Callable[[Mapping[str, Any]], Iterator[Details]], arguments: Mapping[str, Any]) -> list[Details]:
    """A part's sections; none where the plan lacks what its tool needs."""
    try:
        return list(part(arguments))
    except PlanError:
        return []


def costs(bill: CostEstimate | None, open_end: bool) -> Iterator[Details]:
    if bill is None:
        if open_end:
            text = "The length of the run is not known: with dataset_tokens the report has its hours and cost."
            yield Details("Cost", [Note("", [text])])
        return
    listed = [row for row in bill.by_provider if row.usd is not None][:_MOST_OFFERS]
    names = [f"{row.provider} {row.instance}" for row in listed[:_MOST_BARS]]
    bars = [{"USD": row.usd} if row.usd is not None else None for row in listed[:_MOST_BARS]]
    yield Details("Cost", [
        Note("", _cost_words(bill)),
        *map(Chart, stacked("Cost by provider", "", "USD", names, bars)),
        *providers(listed),
        *table(bill.parts, ["part", "usd", "what"], "Made of"),
    ])  # fmt: skip


def _cost_words(bill: CostEstimate) -> list[str]:
    text = []
    if bill.usd is not None:
        span = "a month" if bill.steps is None and bill.hours == 730 else hours(bill.hours)
        each = "" if bill.usd_per_million_tokens is None else f", {usd(bill.usd_per_million_tokens)} per million tokens"
        text.append(f"{usd(bill.usd)} for {span} ({figures.interval(bill, 'usd')}){each}.")
    if bill.kwh is not None:
        carbon = "" if bill.co2_kg is None else f", {shown('co2_kg', bill.co2_kg)} CO2"
        text.append(f"Energy {shown('kwh', bill.kwh)}{carbon}.")
    if bill.not_included:
        text.append(f"Not included: {'; '.join(bill.not_included)}.")
    if unpriced := sorted({row.provider for row in bill.by_provider if row.usd is None}):
        text.append(f"Without a published price: {', '.join(unpriced)}.")
    return text


def _recommendations(arguments: Mapping[str, Any]) -> Iterator[Details]:
    try:
        advice = asked(advise, AdviseRequest, {**arguments, "limit": _MOST_ADVICE})
    except PlanError:
        return
    columns: list[Column] = [
        ("what", "title"), ("gain", lambda row: gain_words(row).strip(" ()")), ("why and how", "advice"), "source"
    ]  # fmt: skip
    if advice.entries:
        yield Details("Advice", table(advice.entries, columns))


def assumptions_section(assumptions: Sequence[Assumption]) -> Details:
    rows = [[item.field, plain(item.value), item.why] for item in assumptions]
    text = "What the plan left open, and what was taken for it."
    return Details("Assumptions", [Note("", [text]), Table(("field", "value", "why"), rows)])


def evidence_section(rows: Sequence[Evidence]) -> Details:
    columns: list[Column] = [
        ("figure", lambda row: f"{row.figure}: {row.part}"), "measured", "runs",
        ("median miss", lambda row: "" if row.error is None else percent(row.error)),
        ("80 % interval", lambda row: "" if row.spread is None else f"± {percent(row.spread)}"),
        ("sources", lambda row: ", ".join(row.sources[:4]) + (" …" if len(row.sources) > 4 else "")),
    ]  # fmt: skip
    return Details("Evidence", [Note("", ["What the figures were fitted on."]), *table(rows, columns)])


def plan_code(asked_for: Mapping[str, Any], plan: Mapping[str, Any]) -> Details:
    """What was asked for and the plan as completed, to be used again."""
    stated = yaml.safe_dump(dict(asked_for), sort_keys=False, allow_unicode=True, width=110)
    whole = yaml.safe_dump(dict(plan), sort_keys=False, allow_unicode=True, width=110)
    code = f"# as asked for\n{stated}\n# as estimated, every choice written out\n{whole}"
    return Details("Reproduce", [*notes("", ["These plans can be handed to any tool of Shardwise."]), Text(code)])
