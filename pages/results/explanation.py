"""The page of an explanation: a figure down to its formula, its terms and the measured runs nearest to it."""

from __future__ import annotations

from knowledge.figures import amount, between, change, with_interval
from pages.blocks import Block, Folded, Headline, capitalised
from pages.results.basis import notes, tail
from pages.results.columns import Column, table
from planner.explain.results import ExplainedFigure, ExplainedTerm, Explanation, Interval, NearestRun
from planner.explain.text import arithmetic, ends, opened, share_words

_MOST_DIFFERENCES = 4
_OPERATORS: list[Column] = [("operator", "name"), ("pass", "phase"), "seconds", "share", ("bound by", "bound")]


def explain(result: Explanation) -> list[Block]:
    nearest: list[Column] = [
        ("measured run", "id"), "distance", ("differs in", _differs),
        ("miss", _miss), "source",
    ]  # fmt: skip
    made = opened(result, result.steps)
    formula = f"Formula: {made.formula or made.name} ({made.source}; {made.code})"
    numbers = [f"In numbers: {text}"] if (text := arithmetic(made)) else []
    return [
        Headline(f"{capitalised(result.name)}: {_value(result)}{share_words(result.figure, result.share)}"),
        *notes("", [formula, *numbers, *([result.note] if result.note else []), *_interval(result.interval)]),
        *table(made.terms, _TERMS, "Breakdown"),
        *notes("Breakdown of these", _in_turn(result, made)),
        *table(result.operators, _OPERATORS, "Operators"),
        *table(result.collectives, ["component", "what", "size_bytes", "link_bytes_per_s", "seconds", "exposed_s"],
               "Communication"),
        *table(result.nearest, nearest, "Nearest measured runs"),
        Folded(notes("Other figures to explain", [", ".join(result.figures)] if result.figures else [])),
        *tail((), result.assumptions),
    ]  # fmt: skip


def _in_turn(result: Explanation, made: Explanation | ExplainedFigure) -> list[str]:
    """The terms that were explained further, each with its own numbers."""
    rows = [step for step in result.steps if step is not made and len(step.terms) > 1]
    return [f"{step.name}: {text}" for step in rows if (text := arithmetic(step))]


def _differs(run: NearestRun) -> str:
    """In what most."""
    names = [name.replace("_", " ") for name in sorted(run.differs, key=lambda name: -run.differs[name])]
    return ", ".join(names[:_MOST_DIFFERENCES]) + (" …" if len(names) > _MOST_DIFFERENCES else "")


def _term(row: ExplainedTerm) -> str:
    return amount(row.figure or "", row.unit, row.value)


_TERMS: list[Column] = [
    ("by", "enters"), ("value", _term), "what", "origin", ("from", lambda row: row.source or ""),
]  # fmt: skip


def _value(result: Explanation) -> str:
    value = amount(result.figure, result.unit, result.value)
    if result.low is None or result.high is None:
        return value
    return with_interval(value, between(result.figure, result.low, result.high, result.value), "80 % interval ")


def _interval(interval: Interval | None) -> list[str]:
    if interval is None:
        return []
    runs = f"{interval.runs} measured runs" if interval.runs else "no measured run of its own"
    return [f"Interval: {ends(interval)}, {interval.how}; {runs}."]


def _miss(run: NearestRun) -> str:
    return ", ".join(change(row.error) for row in run.figures if row.error)
