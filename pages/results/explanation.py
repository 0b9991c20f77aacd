"""The page of an explanation: a figure down to its formula, its terms and the measured runs nearest to it."""

from __future__ import annotations

from knowledge.figures import amount, change
from pages.blocks import Block, Headline
from pages.results.basis import notes, tail
from pages.results.columns import Column, table
from planner.explain.results import ExplainedTerm, Explanation, Interval, NearestRun


def explain(result: Explanation) -> list[Block]:
    nearest: list[Column] = [
        ("measured run", "id"), "distance", ("differs in", lambda row: ", ".join(row.differs)), ("miss", _miss),
        "source",
    ]  # fmt: skip
    formula = f"Formula: {result.formula or result.name} ({result.source}; {result.code})"
    return [
        Headline(f"{result.name[:1].upper()}{result.name[1:]}: {_value(result)}"),
        *notes("", [formula, *([result.note] if result.note else []), *_interval(result.interval)]),
        *table(result.terms, _TERMS, "Made of"),
        *table(result.operators, [("operator", "name"), "seconds", "share", ("bound by", "bound")], "Operators"),
        *table(result.collectives, ["component", "what", "size_bytes", "link_bytes_per_s", "seconds", "exposed_s"],
               "What is sent"),
        *table(result.nearest, nearest, "Nearest measured runs"),
        *notes("Other figures to explain", [", ".join(result.figures)] if result.figures else []),
        *tail((), result.assumptions),
    ]  # fmt: skip


def _term(row: ExplainedTerm) -> str:
    return amount(row.figure or "", row.unit, row.value)


_TERMS: list[Column] = [
    ("by", "enters"), ("value", _term), "what", "origin", ("from", lambda row: row.source or ""),
]  # fmt: skip


def _value(result: Explanation) -> str:
    value = amount(result.figure, result.unit, result.value)
    if result.low is None or result.high is None:
        return value
    low, high = (amount(result.figure, result.unit, end) for end in (result.low, result.high))
    return f"{value} (80 %: {low} to {high})"


def _interval(interval: Interval | None) -> list[str]:
    if interval is None:
        return []
    runs = f"{interval.runs} measured runs" if interval.runs else "no measured run of its own"
    ends = f"1/{1.0 + interval.below:.3f} to {1.0 + interval.above:.3f} times the figure"
    return [f"Interval: {ends}, {interval.how}; {runs}."]


def _miss(run: NearestRun) -> str:
    return ", ".join(change(row.error) for row in run.figures if row.error)
