"""Sections that reports share: what the planner says of a plan, as blocks under a title."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from estimator.errors import PlanError
from estimator.money.cost import HOURS_PER_MONTH
from estimator.plan.schema import Inference, Plan
from knowledge import figures
from knowledge.figures import hours, percent, plain, shown, usd
from pages.answers.plan import complete, hardware_words, kind_words, layout_words, load_words, run_words
from pages.blocks import Block, Chart, Details, Figures, Headline, Note, Row, Table, Text, capitalised
from pages.results import deciding
from pages.results.advice import gain_words
from pages.results.basis import notes
from pages.results.columns import Column, table
from pages.results.estimate import Estimate, remedies
from pages.results.fields import field_name
from pages.results.money import providers
from pages.results.overview import figure_rows
from pages.results.plan import plan_lines
from planner.advice.advise import Advice, AdviseRequest, advice_of
from planner.estimates import PlanEstimate
from planner.money.cost import CostRequest, bill_of
from planner.money.results import CostEstimate
from planner.plots import stacked
from planner.requests import parsed
from planner.result import Assumption, Evidence
from planner.results import LayoutChoice, Remedy
from planner.serving.results import ServingChoice

_MOST_OFFERS, _MOST_BARS = 15, 8
_MOST_ADVICE = 10
MOST_ALTERNATIVES = 4


@dataclass(frozen=True)
class Told:
    """What a report says, but for its title and when it was made; its first block is the headline."""

    subject: str
    blocks: Sequence[Block]


# Figures of a plan that are no cards of a first page.
_NO_CARDS = tuple(map(figures.label, ("samples_per_s", "per_node_bytes", "longest_request",
                                      "output_tokens_per_s_per_device", "usd_per_million_tokens")))  # fmt: skip
Rival = LayoutChoice | ServingChoice
Request = TypeVar("Request")
Response = TypeVar("Response")


def asked(function: Callable[[Any], Response], request: type[Any], arguments: Mapping[str, Any]) -> Response:
    """What a function of the planner says to plain arguments. Raises PlanError."""
    return function(parsed(request, arguments))


def subject(plan: Plan) -> str:
    """'Full fine-tuning of llama-3.1-8b on 8 x h100-sxm'."""
    words = f"{run_words(plan)} on {hardware_words(plan)}"
    return words if isinstance(plan.workload, Inference) else capitalised(words)


def the_plan(estimate: Estimate) -> Details:
    """As the app's pane has it, in whole words."""
    plan = complete(estimate.plan)
    workload, goal = plan.workload, plan.goal
    if isinstance(workload, Inference):
        told = {"serving": f"{workload.engine}, {workload.weight_dtype} weights", "requests": load_words(workload)}
    else:
        what = (kind_words(workload), workload.precision, workload.optimizer, workload.framework)
        told = {"training": ", ".join(map(str, what)), "batch": f"sequences of {workload.seq_len:,} tokens",
                "layout": layout_words(plan)}  # fmt: skip
    limits = [f"done within {hours(goal.deadline_h)}"] if goal.deadline_h else []
    limits += [f"for at most {usd(goal.budget_usd)}"] if goal.budget_usd else []
    told |= {"goal": ", ".join([f"best {goal.objective}", *limits])}
    return Details("The plan", [Figures([(name, told.get(name, text)) for name, text in plan_lines(estimate.plan)])])


def cards_of(estimate: Estimate) -> list[Row]:
    """The figures that a first page has; the others are read off them, or among the details."""
    return [row for row in figure_rows(estimate) if row[0] not in _NO_CARDS]


def rivals(options: Sequence[Rival], columns: Sequence[Column], text: str) -> list[Details]:
    """The plan and what a search has besides, the plan first: the figures above are those of its row."""
    if len(options) < 2:
        return []
    rows = table(options[: MOST_ALTERNATIVES + 1], columns, strong=(0,))
    return [Details("Alternatives", [*notes("", [text]), *rows])]


def same_choice(row: Rival, other: Rival) -> bool:
    """Whether two choices come to the same, which is how an estimate's own is known in a search."""
    speeds = ("step_s", "tokens_per_s", "tpot_s", "output_tokens_per_s")
    pairs = [(getattr(row, name, None) or 0.0, getattr(other, name, None) or 0.0) for name in speeds]
    return all(math.isclose(ours, theirs, rel_tol=1e-6) for ours, theirs in pairs)


def doubts(estimate: Estimate) -> list[Details]:
    """What may go wrong and what decides it, and how sure the figures are."""
    decides = deciding.table(estimate.decides, estimate.memory.fits)
    risks = [*notes("", [f"{capitalised(text)}." for text in estimate.warnings]), *decides]
    return [*([Details("Risks", risks)] if risks else []), _sureness(estimate.evidence)]


def ways_to_fit(ways: Sequence[Remedy]) -> list[Details]:
    """What would make a plan fit that does not."""
    rows = remedies([way for way in ways if way.fits][:MOST_ALTERNATIVES], "", timed=False)
    return [Details("Alternatives", [Note("", ["Each of these alone would make it fit."]), *rows])] if rows else []


def closing(plan: Mapping[str, Any], estimate: Estimate, advice: Advice | None) -> list[Block]:
    """What would help, and what the estimate rests on; `plan` is what was asked for."""
    return [
        *_recommendations(advice),
        assumptions_section(estimate.assumptions),
        evidence_section(estimate.evidence),
        plan_code(plan, estimate.plan),
    ]


def costs_of(plan: Plan, price: Mapping[str, Any], known: PlanEstimate | None = None) -> CostEstimate | None:
    """What the plan costs, its estimate `known` or not; None where the plan lacks what that needs."""
    return _if_any(lambda: bill_of(plan, parsed(CostRequest, {"plan": plan.given(), **price}), known=known))


def advised(plan: Plan, estimate: PlanEstimate) -> Advice | None:
    """What would help, of an estimate as `estimate_to_fit` makes it."""
    request = parsed(AdviseRequest, {"plan": plan.given(), "limit": _MOST_ADVICE})
    return _if_any(lambda: advice_of(estimate, plan, request))


def _if_any(part: Callable[[], Response]) -> Response | None:
    try:
        return part()
    except PlanError:
        return None


def piece(part: Callable[[Mapping[str, Any]], Iterator[Details]], arguments: Mapping[str, Any]) -> list[Details]:
    """A part's sections; none where the plan lacks what its tool needs."""
    try:
        return list(part(arguments))
    except PlanError:
        return []


def costs(bill: CostEstimate | None, open_end: bool, told: Sequence[str] = ()) -> Iterator[Details]:
    """What the run costs; `told` are the doubts that stand elsewhere."""
    if bill is None:
        if open_end:
            text = "The length of the run is not known: give dataset_tokens for its hours and cost."
            yield Details("Cost", [Note("", [text])])
        return
    # An old price, a marketplace's, a term that is not filled: what the figures below rest on comes first.
    doubts = [Headline(f"{capitalised(text)}.", beware=True) for text in bill.warnings if text not in told]
    yield Details("Cost", [*doubts, Note("", _cost_words(bill)), *table(bill.parts, ["part", "usd", "what"])])


def prices(bill: CostEstimate | None) -> list[Details]:
    """What every provider asks for the run."""
    listed = [row for row in bill.by_provider if row.usd is not None][:_MOST_OFFERS] if bill else []
    if not listed:
        return []
    names = [f"{row.provider} {row.instance}" for row in listed[:_MOST_BARS]]
    bars = [{"USD": row.usd} if row.usd is not None else None for row in listed[:_MOST_BARS]]
    charts = map(Chart, stacked("Cost by provider", "", "USD", names, bars))
    return [Details("Prices", [*charts, *providers(listed)])]


def _cost_words(bill: CostEstimate) -> list[str]:
    text = []
    if bill.usd is not None:
        span = "a month" if bill.steps is None and bill.hours == HOURS_PER_MONTH else hours(bill.hours)
        each = "" if bill.usd_per_million_tokens is None else f", {usd(bill.usd_per_million_tokens)} per million tokens"
        text.append(f"{figures.held(bill, 'usd')} for {span}{each}.")
    if bill.kwh is not None:
        carbon = "" if bill.co2_kg is None else f", {shown('co2_kg', bill.co2_kg)} CO2"
        text.append(f"Energy {shown('kwh', bill.kwh)}{carbon}.")
    if bill.not_included:
        text.append(f"Not included: {'; '.join(bill.not_included)}.")
    if unpriced := sorted({row.provider for row in bill.by_provider if row.usd is None}):
        text.append(f"Without a published price: {', '.join(unpriced)}.")
    return text


def _recommendations(advice: Advice | None) -> Iterator[Details]:
    columns: list[Column] = [
        ("what", "title"), ("gain", lambda row: gain_words(row).strip(" ()")), ("why and how", "advice"), "source"
    ]  # fmt: skip
    if advice and advice.entries:
        yield Details("Advice", table(advice.entries, columns))


def assumptions_section(assumptions: Sequence[Assumption]) -> Details:
    rows = [[field_name(item.field), plain(item.value), item.why] for item in assumptions]
    text = "What the plan left open, and what was assumed."
    return Details("Assumptions", [Note("", [text]), Table(("field", "value", "why"), rows)])


# How what is fitted names the values for what was not measured.
_OF_OTHERS = "default"


def _sureness(rows: Sequence[Evidence]) -> Details:
    text = ["Every figure is the middle of an interval that holds the truth four times in five."]
    if not rows:
        text.append("No measured run is near this plan.")
    columns: list[Column] = [
        ("figure", "figure"), ("rests on measured", _measured),
        ("runs", lambda row: str(row.runs or "")), *_MISSES,
    ]  # fmt: skip
    return Details("How sure", [Note("", text), *table(rows, columns)])


def _measured(row: Evidence) -> str:
    """What a figure rests on; where nobody measured it, the usual values of others."""
    return f"{_part(row)}: {'none measured, usual values taken' if row.measured == _OF_OTHERS else row.measured}"


def _part(row: Evidence) -> str:
    return row.part.replace("_", " ")


_MISSES: tuple[Column, ...] = (
    ("median error", lambda row: "" if row.error is None else percent(row.error)),
    ("80 % interval", lambda row: _interval(row.spread, row.spread_above)),
)


def _interval(below: float | None, above: float | None) -> str:
    """'± 17 %', or '-4.0 % to +14 %'."""
    if below is None:
        return ""
    least, most = percent(below), percent(below if above is None else above)
    return f"± {least}" if least == most else f"-{least} to +{most}"


def evidence_section(rows: Sequence[Evidence]) -> Details:
    columns: list[Column] = [
        ("figure", lambda row: f"{row.figure}: {_part(row)}"), "measured", "runs", *_MISSES,
        ("sources", lambda row: ", ".join(row.sources[:4]) + (" …" if len(row.sources) > 4 else "")),
    ]  # fmt: skip
    return Details("Evidence", [Note("", ["What the figures were fitted on."]), *table(rows, columns)])


def plan_code(asked_for: Mapping[str, Any], plan: Mapping[str, Any]) -> Details:
    """What was asked for and the plan as completed, without what it leaves open, to be used again."""
    stated = yaml.safe_dump(_set(asked_for), sort_keys=False, allow_unicode=True, width=100)
    whole = yaml.safe_dump(_set(plan), sort_keys=False, allow_unicode=True, width=100)
    code = f"# as asked for\n{stated}\n# as estimated, every choice written out\n{whole}"
    return Details("Reproduce", [*notes("", ["These plans can be handed to any tool of Shardwise."]), Text(code)])


def _set(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan without fields that hold nothing."""
    inner = {key: _set(value) if isinstance(value, Mapping) else value for key, value in plan.items()}
    return {key: value for key, value in inner.items() if value not in (None, {}, [])}
