"""What of a text shows what kind of question it is: words, what they were found to mean, and how they stand together.

The form counts for more than the words: two people who ask the same hardly ever use the same words, but the lexicon
finds the same senses in both.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from agent.offline.language.mentions import Mentions

_MOST_WORDS = 160


class Context(NamedTuple):
    """What the conversation brings: the kind of plan there is (None: none), the tool of the turn before."""

    plan: str | None = None
    tool: str | None = None
    generates: bool = False
    """Whether the plan is of reinforcement learning, which has an engine of its own."""


def of_mode(read: Mentions, context: Context) -> list[str]:
    """What shows whether a text is about training or serving."""
    found = [f"plan={context.plan}"]
    found += [f"{sense.kind}:{sense.name}" for sense in read.senses() if sense.kind in ("field", "unit", "asked")]
    found += [f"value:{value.field}={value.value}" for value in read.values]
    found += [f"name:{name.kind}" for name in read.names]
    found += [
        f"rate:{unit.name}/{per.name}"
        for row in read.rows
        for unit in row.amounts[-1].units
        for per in row.amounts[-1].per
    ]
    terms = words(read)
    crossed = (f"{context.plan}&{one}" for one in found[1:] if one.startswith(("value", "asked")))
    triples = (" ".join(three) for three in zip(terms, terms[1:], terms[2:], strict=False))
    return [*found, *crossed, *(f"w:{one}" for one in (*terms, *pairs(terms), *triples, *beginnings(terms)))]


def words(read: Mentions) -> list[str]:
    """Words, with names and numbers in general."""
    terms: list[str] = []
    at = 0
    while at < len(read.tokens) and len(terms) < _MOST_WORDS:
        end = read.found.names.get(at)
        if end is not None and at in read.telling:
            at = end
            continue
        if end is not None:
            terms.append(next(f"<{name.kind}>" for name in read.names if name.start == at))
            at = end
            continue
        token = read.tokens[at]
        if at in read.asides or at in read.telling:
            at += 1
            continue
        if token.kind == "number":
            terms.append("<number>")
        elif not token.joins and (token.kind != "sign" or token.text in "?？"):
            terms.append(token.norm)
        at += 1
    return terms


def pairs(terms: Sequence[str]) -> list[str]:
    return [f"{one} {two}" for one, two in itertools.pairwise(terms)]


def beginnings(terms: Sequence[str]) -> list[str]:
    return [f"{word[:5]}~" for word in terms if len(word) > 5]
