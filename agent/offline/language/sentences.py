"""Sentences out of the lexicon that the classifiers learn from beside people's own (lexicon/sentences.yaml): every form
that names a wish, in a plain sentence about some run, with a plan and without one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agent.offline.language.act import NO_TOOL, OF_SERVING
from agent.offline.language.lexicon import lexicon, read_words
from agent.offline.language.mentions import SERVING, TRAINING

_BEFORE = {TRAINING: "estimate_training", SERVING: "estimate_inference"}
_PLANS = {"n": None, "t": TRAINING, "s": SERVING}
# What of each row of sentences.yaml stands in a sentence.
_PLACES = ("model", "device", "count", "figure", "value", "rival", "load", "target")


class Sentence(NamedTuple):
    """`plan` is the kind of plan that there is, `mode` what it is about (None: nothing says), `before` the tool of the
    turn before."""

    text: str
    plan: str | None
    before: str | None
    mode: str | None
    tools: tuple[str, ...]


def sentences() -> Iterator[Sentence]:
    """Each form of each wish once with each of its plans, in its ways by turns; what has no form of its own in all."""
    words = read_words("sentences")
    turn = itertools.count()
    for way in words["ways"]:
        group = next((group for group in ("wish", "topic") if group in way), None)
        if group is None:
            for text, plan, _again in itertools.product(way["say"], way["with"], range(3)):
                yield _sentence(words, way, text, {}, plan, next(turn))
            continue
        for form in lexicon().asked[group][way[group]]:
            for plan in dict.fromkeys(way["with"]):
                index = next(turn)
                yield _sentence(words, way, way["say"][index % len(way["say"])], {group: form}, plan, index)
    for text in words["elsewhere"]:
        yield Sentence(text, None, None, None, (NO_TOOL,))


def _sentence(
    words: Mapping[str, Any], way: Mapping[str, Any], text: str, form: Mapping[str, str], plan: str, index: int
) -> Sentence:
    kind = _PLANS[plan]
    fields = words["fields"][kind or TRAINING]
    name, values, low, high = fields[index % len(fields)]
    places = {place: words[f"{place}s"][index % len(words[f"{place}s"])] for place in _PLACES}
    other = words["devices"][(index + 1) % len(words["devices"])]
    said = text.format(field=lexicon().forms[name][0], values=values, low=low, high=high, other=other, **places, **form)
    mode = SERVING if not kind and (set(way["tools"]) <= OF_SERVING or "load" in text) else None
    return Sentence(said, kind, _BEFORE[kind] if kind else None, mode, tuple(way["tools"]))
