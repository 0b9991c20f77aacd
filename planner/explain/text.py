"""An explanation in a few lines of Markdown, from the same figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from knowledge.figures import amount, percent
from planner.explain.results import ExplainedFigure, ExplainedTerm, Explanation, Interval, NearestRun

_MOST_TERMS = 5
Figure = TypeVar("Figure", ExplainedFigure, Explanation)


def told(
    explained: ExplainedFigure,
    value: float | bool | None,
    low: float | None,
    high: float | None,
    interval: Interval | None,
    nearest: Sequence[NearestRun],
    made: ExplainedFigure | None = None,
) -> str:
    """Three to eight lines; `made` is the figure whose terms are told, where it is another."""
    made = made or explained
    unit = explained.unit
    answer = "unbounded" if value is None else amount(explained.figure, unit, value)
    first = f"**{_capital(explained.name)}: {answer}**"
    if low is not None and high is not None:
        first += f" (80 %: {amount(explained.figure, unit, low)} to {amount(explained.figure, unit, high)})"
    lines = [first, f"- Formula: {explained.formula or explained.name} ({explained.source}; `{explained.code}`)"]
    if terms := arithmetic(made):
        lines.append(f"- Arithmetic: {terms}")
    if explained.note:
        lines.append(f"- {_capital(explained.note)}.")
    if inputs := _inputs(made.terms):
        lines.append(f"- From: {inputs}")
    if interval:
        runs = f"{interval.runs} measured runs" if interval.runs else "no measured run of its own"
        lines.append(f"- Interval: {ends(interval)}, {interval.how}; {runs}.")
    if nearest:
        run = nearest[0]
        figures = "; ".join(
            f"{figure.name} measured {amount('', figure.unit, figure.measured)}, "
            f"estimated {amount('', figure.unit, figure.estimated)} ({figure.error:+.1%})"
            for figure in run.figures
        )
        lines.append(f"- Nearest measured run: `{run.id}` ({run.source}), distance {run.distance:.2f}: {figures}.")
    return "\n".join(lines)


def ends(interval: Interval) -> str:
    """'15 % less to 17 % more'."""
    return f"{percent(1.0 - 1.0 / (1.0 + interval.below))} less to {percent(interval.above)} more"


def opened(figure: Figure, steps: Sequence[ExplainedFigure]) -> Figure | ExplainedFigure:
    """The figure itself, or where it is no more than one term of it, that: the first with something to read in it."""
    by_name = {step.figure: step for step in steps}
    made: Figure | ExplainedFigure = figure
    while len(made.terms) == 1 and (only := by_name.get(made.terms[0].figure or "")):
        made = only
    return made


def arithmetic(explained: ExplainedFigure | Explanation, most_terms: int = _MOST_TERMS) -> str:
    """The terms as they make the figure, the smallest of a long sum put together; nothing where they do not make it
    by one operation."""
    rule, terms = explained.check.rule, explained.terms
    if rule == "inputs" or not terms:
        return ""
    if rule in ("least", "most"):
        return f"the {rule} of " + ", ".join(f"{term.what} {_amount(term)}" for term in terms)
    if rule == "sum":
        ordered = sorted(terms, key=lambda term: -abs(term.value))
        shown = [f"{term.enters} {_amount(term)} {term.what}" for term in ordered[:most_terms]]
        if rest := ordered[most_terms:]:
            left = sum(-term.value if term.enters == "-" else term.value for term in rest)
            shown.append(f"+ {amount('', rest[0].unit, left)} in {len(rest)} others")
        text = " ".join(shown).removeprefix("+ ")
    else:
        ordered = sorted(terms, key=lambda term: term.enters == "/")
        marks = {"*": "x", "/": "/"}
        text = " ".join(f"{marks[term.enters]} {_amount(term)} ({term.what})" for term in ordered)
        text = text.removeprefix("x ") if not text.startswith("/") else f"1 {text}"
    rounded = {"rounded_up": ", rounded up", "rounded_down": ", rounded down"}.get(rule, "")
    made = explained.check.recomputed
    return f"{text}{rounded} = {amount(explained.figure, explained.unit, made)}"


def _inputs(terms: Sequence[ExplainedTerm]) -> str:
    """Where the last inputs come from, of each kind of origin the first."""
    origins: dict[str, str] = {}
    for term in terms:
        if term.figure is None and term.source and term.origin not in ("computed", "constant"):
            origins.setdefault(term.origin, f"{term.what} - {term.source}")
    return "; ".join(f"{origin}: {words}" for origin, words in list(origins.items())[:3])


def _amount(term: ExplainedTerm) -> str:
    return amount(term.figure or "", term.unit, term.value)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
