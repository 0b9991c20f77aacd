"""Sections that reports on training and on serving share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from estimator.errors import PlanError
from pages import figures
from pages.report.page import Card, Section, Table
from planner.advice.advise import AdviseRequest, advise
from planner.money.cost import CostRequest, estimate_cost
from planner.plots import stacked
from planner.requests import parsed

_MOST_OFFERS, _MOST_BARS = 15, 8
_MOST_ADVICE = 10


@dataclass(frozen=True)
class Told:
    """What a report says, but for its title and when it was made."""

    subject: str
    verdict: str
    good: bool
    cards: Sequence[Card]
    warnings: Sequence[str]
    sections: Sequence[Section]


def words(name: str) -> str:
    """A figure's name as it is read."""
    return name.replace("_", " ")


Request = TypeVar("Request", bound=BaseModel)


def result_of(
    function: Callable[[Request], BaseModel], request: type[Request], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """What a function of the planner says to plain arguments, as plain data. Raises PlanError."""
    return function(parsed(request, arguments)).model_dump(mode="json")


def bill_of(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the plan costs; None where the plan lacks what that needs."""
    try:
        return result_of(estimate_cost, CostRequest, arguments)
    except PlanError:
        return None


def piece(part: Callable[[Mapping[str, Any]], Iterator[Section]], arguments: Mapping[str, Any]) -> list[Section]:
    """A part's sections; none where the plan lacks what its tool needs."""
    try:
        return list(part(arguments))
    except PlanError:
        return []


def costs(bill: Mapping[str, Any] | None, open_end: bool) -> Iterator[Section]:
    if bill is None:
        if open_end:
            text = "The length of the run is not known: with dataset_tokens the report has its hours and cost."
            yield Section("Cost", [text])
        return
    listed = [row for row in bill["by_provider"] if row["usd"] is not None][:_MOST_OFFERS]
    rows = [
        [
            row["provider"],
            f"{row['instances']} x {row['instance']}",
            figures.usd(row["usd_per_hour"]),
            figures.usd(row["usd"]),
            figures.usd(row["spot_usd"]) if row["spot_usd"] is not None else "",
            (row["price_date"] or "undated") + (", old" if row["stale"] else ""),
        ]
        for row in listed
    ]
    text = []
    if bill["usd"] is not None:
        hours = "a month" if bill["steps"] is None and bill["hours"] == 730 else figures.hours(bill["hours"])
        low, high = figures.usd(bill["low_usd"]), figures.usd(bill["high_usd"])
        each = figures.usd(bill["usd_per_million_tokens"])
        text.append(f"{figures.usd(bill['usd'])} for {hours} ({low} to {high}), {each} per million tokens.")
    if bill["kwh"] is not None:
        carbon = "" if bill["co2_kg"] is None else f", {bill['co2_kg']:,.0f} kg CO2"
        text.append(f"Energy {bill['kwh']:,.0f} kWh{carbon}.")
    if bill["not_included"]:
        text.append(f"Not included: {'; '.join(bill['not_included'])}.")
    names = [f"{row['provider']} {row['instance']}" for row in listed[:_MOST_BARS]]
    plots = stacked("Cost by provider", "", "USD", names, [{"USD": row["usd"]} for row in listed[:_MOST_BARS]])
    tables = [
        Table(["Provider", "Instances", "Per hour", "In all", "At spot prices", "Price of"], rows, numbers=(2, 3, 4))
    ]
    if bill["parts"]:
        parts = [[words(part["part"]), figures.usd(part["usd"]), part["what"]] for part in bill["parts"]]
        tables.append(Table(["Part", "USD", ""], parts, numbers=(1,), title="What it is made of"))
    unpriced = sorted({row["provider"] for row in bill["by_provider"] if row["usd"] is None})
    if unpriced:
        text.append(f"Without a published price: {', '.join(unpriced)}.")
    yield Section("Cost", text, plots, tables if rows else tables[1:])


def recommendations(arguments: Mapping[str, Any]) -> Iterator[Section]:
    try:
        found = result_of(advise, AdviseRequest, {**arguments, "limit": _MOST_ADVICE})
    except PlanError:
        return
    if not found["entries"]:
        return
    rows = [
        [
            entry["title"],
            "" if entry["gain"] is None else f"{figures.percent(entry['gain'])} {_objective(entry['objective'])}",
            entry["advice"],
            entry["source"],
        ]
        for entry in found["entries"]
    ]
    yield Section("Advice", (), (), [Table(["What", "Gain", "Why and how", "Source"], rows, numbers=())])


def _objective(name: str | None) -> str:
    """What a gain is of: less of bytes, seconds and USD, more of rates."""
    if not name:
        return ""
    less = name.endswith(("_bytes", "_s", "hours")) or name.startswith("usd")
    less = less and not name.endswith("per_s")
    return f"{'less' if less else 'more'} ({name})"


def assumed(assumptions: Sequence[Mapping[str, Any]]) -> Section:
    rows = [[item["field"], figures.plain(item["value"]), item["why"]] for item in assumptions]
    return Section("Assumptions", ["What the plan left open, and what was taken for it."], (), [
        Table(["Field", "Value", "Why"], rows)
    ])  # fmt: skip


def evidence(rows: Sequence[Mapping[str, Any]]) -> Section:
    body = [
        [
            f"{row['figure']}: {row['part']}",
            row["measured"],
            f"{row['runs']:,}",
            "" if row["error"] is None else figures.percent(row["error"]),
            "" if row["spread"] is None else f"± {figures.percent(row['spread'])}",
            ", ".join(row["sources"][:4]) + (" …" if len(row["sources"]) > 4 else ""),
        ]
        for row in rows
    ]
    head = ["Figure", "Measured", "Runs", "Median miss", "80 % interval", "Sources"]
    return Section("Evidence", ["What the figures were fitted on."], (), [Table(head, body, numbers=(2, 3, 4))])


def plan_code(asked_for: Mapping[str, Any], plan: Mapping[str, Any]) -> Section:
    """What was asked for and the plan as completed, to be used again."""
    import yaml

    asked = yaml.safe_dump(dict(asked_for), sort_keys=False, allow_unicode=True, width=110)
    whole = yaml.safe_dump(dict(plan), sort_keys=False, allow_unicode=True, width=110)
    code = f"# as asked for\n{asked}\n# as estimated, every choice written out\n{whole}"
    return Section("To use it again", ["These plans can be handed to any tool of Shardwise."], code=code)
