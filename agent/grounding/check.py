"""Is every figure of an answer from somewhere? Numbers are matched, with unit, scale and rounding, to their origins.

A figure is a number with what it counts. It is grounded when a number of the same kind, rounded to the digits printed,
is among the origins: a leaf of this turn's tool results, a declared derivation of them, or the user's own words.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent.grounding.figures import Figure, figures_in
from agent.grounding.origins import origins, parts

_ROW = re.compile(r"^\|\s*(?P<name>[A-Za-z][\w &-]*)\|[^\n]*\|$", re.MULTILINE)
# 'Half the memory' is a part and a multiple of what it is compared with.
_ALSO = {"fraction": ("ratio",), "ratio": ("fraction",)}


def ungrounded(text: str, results: Iterable[Mapping[str, Any]], words: Iterable[str]) -> list[Figure]:
    """The figures of `text` that no result of the turn, derivation or word of the user gives."""
    return without_origin(text, gathered(results, words))


def gathered(results: Iterable[Mapping[str, Any]], words: Iterable[str]) -> dict[str, list[float]]:
    """What figures may come from: sorted values by kind. 'Kind of part' holds those of one part of memory or time
    alone."""
    results = list(results)
    known: dict[str, list[float]] = {}
    for origin in origins(results, words):
        known.setdefault(origin.kind, []).append(origin.value)
    for name, values in parts(results).items():
        for origin in values:
            known.setdefault(f"{origin.kind} of {name}", []).append(origin.value)
    return {kind: sorted(values) for kind, values in known.items()}


def without_origin(text: str, known: Mapping[str, list[float]]) -> list[Figure]:
    """The figures of `text` that are not among what was gathered."""
    rows = list(_rows(text, known))
    return [figure for figure in figures_in(text) if not _has_origin(figure, _of_row(figure, rows, known))]


def _rows(text: str, known: Mapping[str, list[float]]) -> Iterator[tuple[int, int, str]]:
    """(start, end, name) of table rows that give the figures of a part: '| weights | 1.3 GiB | 8 % |'."""
    names = {kind.partition(" of ")[2] for kind in known}
    for match in _ROW.finditer(text):
        name = match["name"].strip().lower().replace(" ", "_")
        if name in names or (name := name.removesuffix("_states")) in names:
            yield match.start(), match.end(), name


def _of_row(
    figure: Figure, rows: list[tuple[int, int, str]], known: Mapping[str, list[float]]
) -> Mapping[str, list[float]]:
    """What a figure may come from where it stands: in the row of a part only that part's own."""
    for start, end, name in rows:
        if start <= figure.start < end and (own := known.get(f"{figure.kind} of {name}")):
            return {figure.kind: own}
    return known


def mark(text: str, figures: Iterable[Figure]) -> str:
    """`text` with each ungrounded figure marked where it stands."""
    for figure in sorted(figures, key=lambda figure: -figure.start):
        text = f"{text[: figure.end]} (unverified){text[figure.end :]}"
    return text


def _has_origin(figure: Figure, known: Mapping[str, list[float]]) -> bool:
    tolerance = figure.slack * (1 + 1e-6) + 1e-9 * abs(figure.value)
    if figure.kind == "count":
        # A count is exact: rounding is allowed only where digits were visibly dropped (1.2M, 8.03 billion, 12,000).
        exact = figure.value == int(figure.value) and figure.slack == 0.5
        tolerance = 1e-6 if exact and figure.value < 1000 else tolerance
    if any(_among(known.get(kind, ()), figure.value, tolerance) for kind in (figure.kind, *_ALSO.get(figure.kind, ()))):
        return True
    if figure.kind == "count" and figure.value < 1 and _among(known.get("fraction", ()), figure.value, figure.slack):
        return True
    # In a table the unit stands in the head of the column: 848 there may be 847.6 tokens/s.
    return figure.kind == "count" and any(
        _among(known.get(kind, ()), figure.value, figure.slack) for kind in ("rate", "tflops")
    )


def _among(values: Sequence[float], value: float, tolerance: float) -> bool:
    """Whether one of the sorted values is that near."""
    at = bisect_left(values, value - tolerance)
    return at < len(values) and values[at] <= value + tolerance
