"""An answer without the figures that no tool gave: their sentences go, and the tools' own figures are told instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from agent.figures import headlines
from agent.grounding.figures import Figure
from agent.wire import Outcome

_LEFT_OUT = "*(left out: a figure that no tool gave)*"
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_)]*\s+(?=\S)")
_LIST_MARK = re.compile(r"\s*(?:[-*+]|\d{1,2}[.)]|#+|>)\s+")


def withhold(text: str, figures: Iterable[Figure], outcomes: Sequence[Outcome]) -> str:
    """`text` without each sentence (in a table: without each number) that holds one of the `figures`."""
    ordered = sorted(figures, key=lambda figure: figure.start)
    lines: list[str] = []
    start = 0
    for line in text.splitlines(keepends=True):
        inside = [(f.start - start, f.end - start) for f in ordered if start <= f.start < start + len(line)]
        start += len(line)
        lines.append(_without(line, inside) if inside else line)
    kept = re.sub(rf"(?:{re.escape(_LEFT_OUT)}\s*)+", lambda match: f"{_LEFT_OUT}{_tail(match[0])}", "".join(lines))
    told = headlines(outcomes)
    own = "\n".join(f"- {line}" for line in told)
    return f"{kept.rstrip()}\n\nThe tools' own figures:\n\n{own}" if told else kept.rstrip()


def _without(line: str, spans: Sequence[tuple[int, int]]) -> str:
    body, end = line.rstrip("\r\n"), line[len(line.rstrip("\r\n")) :]
    if body.lstrip().startswith("|"):
        for first, last in sorted(spans, reverse=True):
            body = f"{body[:first]}—{body[last:]}"
        return body + end
    mark = _LIST_MARK.match(body)
    first = mark.end() if mark else 0
    edges = [first, *(m.end() for m in _SENTENCE_END.finditer(body, first)), len(body)]
    parts = [body[:first]]
    for begin, stop in pairwise(edges):
        bad = any(begin <= place < stop for place, _ in spans)
        sentence = body[begin:stop]
        parts.append(_LEFT_OUT + (" " if sentence.endswith(" ") else "") if bad else sentence)
    return "".join(parts) + end


def _tail(run: str) -> str:
    """The white space that a run of notes ended with."""
    return run[len(run.rstrip()) :]
