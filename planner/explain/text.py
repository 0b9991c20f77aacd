"""An explanation in a few lines of Markdown, from the same figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from knowledge.figures import amount, between, percent, with_interval
from planner.explain.results import ExplainedFigure, ExplainedTerm, Explanation, Interval, NearestRun

_MOST_TERMS = 5
# The part of a sum from which on it is told first.
_MOST = 0.3
_MOST_IN_TURN = 2
_MOST_ORIGINS = 4
Figure = TypeVar("Figure", ExplainedFigure, Explanation)


def told(
    explained: ExplainedFigure,
    value: float | bool | None,
    held: tuple[float | None, float | None],
    share: float | None,
    interval: Interval | None,
    nearest: Sequence[NearestRun],
    steps: Sequence[ExplainedFigure],
) -> str:
    """Three to six lines; `held` are the ends of its interval, `share` what it is of its whole, and `steps` the figures
    that its terms are made of in turn."""
    made = opened(explained, steps)
    parts = _in_turn(made, steps)
    unit = explained.unit
    answer = "unbounded" if value is None else amount(explained.figure, unit, value)
    first = f"**{_capital(explained.name)}: {answer}**"
    low, high = held
    if value is not None and low is not None and high is not None:
        span = between(explained.figure, low, high, value)
        first = f"**{_capital(explained.name)}: {answer}**{with_interval('', span, '80 % interval ')}"
    first += share_words(explained.figure, share) + _most_of_it(made)
    # The numbers have room first: the terms are named there, too.
    numbers = [f"- In numbers: {terms}"] if (terms := arithmetic(made)) else []
    lines = [first, *numbers, f"- Formula: {explained.formula or explained.name}"]
    note = f" {_capital(explained.note)}." if explained.note else ""
    lines.append(f"- Source: {explained.source}; `{explained.code}`.{note}")
    if parts:
        lines.append(f"- Where {'; '.join(f'{name} = {arithmetic(part)}' for name, part in parts.items())}")
    if inputs := _inputs([term for part in (made, *parts.values()) for term in part.terms]):
        lines.append(f"- From: {inputs}")
    sure: list[str] = []
    if interval:
        runs = f"{interval.runs} measured runs" if interval.runs else "no measured run of its own"
        sure.append(f"Interval: {ends(interval)}, {interval.how}; {runs}.")
    if nearest:
        run = nearest[0]
        figures = "; ".join(
            f"{figure.name} measured {amount('', figure.unit, figure.measured)}, "
            f"estimated {amount('', figure.unit, figure.estimated)} "
            f"({percent(abs(figure.error))} {'more' if figure.error > 0 else 'less'})"
            for figure in run.figures
        )
        sure.append(f"Nearest measured run: `{run.id}` ({run.source}): {figures}.")
    if sure:
        lines.append(f"- {' '.join(sure)}")
    return "\n".join(lines)


WHOLES = {"time.components.": "time.step_s", "memory.components.": "memory.per_device_bytes"}
"""What the figures are a part of whose keys begin so."""


def share_words(figure: str, share: float | None) -> str:
    """', 5.0 % of a step'."""
    if share is None:
        return ""
    return f", {percent(share)} of {'a step' if figure.startswith('time') else 'the memory per device'}"


def _most_of_it(made: ExplainedFigure) -> str:
    """Of a sum, the term that most of it is."""
    largest = max(made.terms, key=lambda term: term.value, default=None)
    if made.check.rule != "sum" or largest is None or not made.check.recomputed:
        return ""
    share = largest.value / made.check.recomputed
    return f", {percent(share)} of it {largest.what}" if _MOST < share < 1.0 else ""


def _in_turn(made: ExplainedFigure, steps: Sequence[ExplainedFigure]) -> dict[str, ExplainedFigure]:
    """Those of its terms that can be read in a line themselves, by name; of a sum the largest."""
    by_name = {step.figure: step for step in steps}
    ordered = sorted(made.terms, key=lambda term: -abs(term.value)) if made.check.rule == "sum" else made.terms
    parts = {term.what: opened(by_name[term.figure], steps) for term in ordered if term.figure in by_name}
    read = [(name, part) for name, part in parts.items() if 1 < len(part.terms) <= _MOST_TERMS and arithmetic(part)]
    return dict(read[:_MOST_IN_TURN])


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
        # What is taken off stands behind what it is taken off from.
        ordered = sorted(terms, key=lambda term: (_sign(term) == "-", -abs(term.value)))
        ordered = [term for term in ordered if term.value] or ordered
        shown = [f"{_sign(term)} {_amount(term, abs(term.value))} {term.what}" for term in ordered[:most_terms]]
        if rest := ordered[most_terms:]:
            left = sum(-term.value if term.enters == "-" else term.value for term in rest)
            shown.append(f"+ {amount('', rest[0].unit, left)} in {len(rest)} other{'s' * (len(rest) > 1)}")
        text = " ".join(shown).removeprefix("+ ")
    else:
        ordered = sorted(terms, key=lambda term: term.enters == "/")
        marks = {"*": "x", "/": "/"}
        text = " ".join(f"{marks[term.enters]} {_counted(term)}" for term in ordered)
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
    return "; ".join(f"{origin}: {words}" for origin, words in list(origins.items())[:_MOST_ORIGINS])


def _sign(term: ExplainedTerm) -> str:
    return "-" if (term.enters == "-") != (term.value < 0.0) else "+"


def _counted(term: ExplainedTerm) -> str:
    """With what it is, where its unit does not say that already: '8 devices', '7.07 s (step time)'."""
    return _amount(term) if term.what == term.unit else f"{_amount(term)} ({term.what})"


def _amount(term: ExplainedTerm, value: float | None = None) -> str:
    return amount(term.figure or "", term.unit, term.value if value is None else value)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
