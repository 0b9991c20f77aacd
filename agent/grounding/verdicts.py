"""The verdicts of a turn, told by code whichever model speaks; and sentences that say the opposite of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent.figures import figures_of
from agent.grounding.claims import CLAIMS
from agent.wire import Outcome

_HOLDERS = ("memory", "rows", "options", "slo", "best", "chosen")
_HEAD = "**What the tools say**"
_SENTENCE_END = re.compile(r"(?<=[.!?;])[*_)]*\s+(?=\S)|(?<=[。！？；])|\n+")
_HAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
# 'No memory is left' answers nothing.
_NO = r"no(?=\W*$|[,.!;:—–]|\s+[-—–]|\s+(?:it|this|that|the|you)\b)"
_YES_NO = re.compile(rf"^\W*(?P<word>yes|yep|yeah|sure|absolutely|certainly|of course|nope|{_NO})\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Kind:
    """A verdict: the fields of results that hold it, and how it is told."""

    name: str
    fields: tuple[str, ...]
    yes: str
    no: str


_KINDS = (
    _Kind("fits", ("fits",), "it fits", "it does not fit"),
    _Kind("meets_slo", ("meets_slo", "met"), "the latency limits are met", "the latency limits are not met"),
    _Kind("budget", ("within_budget",), "it is within the budget", "it is over the budget"),
    _Kind("deadline", ("within_deadline",), "it meets the deadline", "it misses the deadline"),
)


@dataclass(frozen=True)
class Contradiction:
    """A sentence of a text, from `start` to `end`, and what the tools say instead."""

    text: str
    truth: str
    start: int
    end: int


def told(outcomes: Sequence[Outcome]) -> str:
    """The main figures and verdicts of what the tools gave, as a block of Markdown: for each run a line a tool, nothing
    twice; '' where they gave none."""
    runs: dict[str, list[list[str]]] = {}
    for outcome in outcomes:
        about, parts = figures_of(outcome) if outcome.error is None else ("", [])
        known = {part for line in runs.get(about, ()) for part in line}
        if fresh := [part for part in parts if part not in known]:
            runs.setdefault(about, []).append(fresh)
    blocks = [
        "\n".join([*([f"**{about}**", ""] if about else []), *(f"- {_line(line)}" for line in lines)])
        for about, lines in runs.items()
    ]
    return "\n\n".join([_HEAD, *blocks]) if blocks else ""


def _line(parts: Sequence[str]) -> str:
    """What is no figure is a verdict, and stands out."""
    return ", ".join(part if any(map(str.isdigit, part)) else f"**{part}**" for part in parts)


def contradictions(text: str, outcomes: Iterable[Outcome], asked: str) -> list[Contradiction]:
    """The sentences of `text` that deny a verdict on which all results of the turn agree. `asked` is what the person
    said: to "does it fit?" a bare yes is a verdict too."""
    outcomes = [outcome for outcome in outcomes if outcome.error is None]
    verdicts, remedies = _verdicts([outcome.response for outcome in outcomes]), _remedies(outcomes)
    denied: list[Contradiction] = []
    for start, end in _sentences(text):
        sentence = text[start:end]
        for kind in _KINDS:
            truth = verdicts.get(kind.name)
            claim = _claim(sentence, kind, asked if start == 0 or not text[:start].strip() else "")
            if claim and kind.name == "fits" and remedies.search(sentence):
                continue
            if truth is not None and claim is not None and claim != truth:
                denied.append(Contradiction(sentence.strip(), kind.yes if truth else kind.no, start, end))
                break
    return denied


def _remedies(outcomes: Iterable[Outcome]) -> re.Pattern[str]:
    """What would make it fit, by the methods and the numbers of devices that a sentence about it names."""
    fitting = (remedy for outcome in outcomes for remedy in getattr(outcome.result, "remedies", ()) if remedy.fits)
    changes = [(key, value) for remedy in fitting for key, value in remedy.patch.items()]
    named = {str(value) for key, value in changes if isinstance(value, str) or (value and key.endswith("count"))}
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, named))})\b" if named else r"(?!)", re.IGNORECASE)


def marked(text: str, denied: Iterable[Contradiction]) -> str:
    """`text` with each such sentence struck out, and the truth behind it."""
    for each in sorted(denied, key=lambda each: -each.start):
        sentence = text[each.start : each.end]
        body = sentence.strip()
        lead = sentence[: len(sentence) - len(sentence.lstrip())]
        after = sentence[len(sentence.rstrip()) :]
        text = f"{text[: each.start]}{lead}~~{body}~~ (wrong: {each.truth}){after}{text[each.end :]}"
    return text


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    edges = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    yield from ((first, last) for first, last in pairwise(edges) if text[first:last].strip())


def _claim(sentence: str, kind: _Kind, asked: str) -> bool | None:
    """What a sentence says of a verdict; None where it says nothing of it."""
    claims, words = CLAIMS[kind.name], _other(kind.name)
    is_asked = bool(asked) and (claims.is_topic(asked) or bool(words.search(asked)))
    word = _answer(sentence) if is_asked else None
    rest = sentence[word[0] :] if word else sentence
    claim = claims.claim(rest, is_asked)
    if claim is None and not _other("supposed").search(sentence) and not sentence.rstrip().endswith("？"):
        claim = _said_elsewhere(rest, kind)
    return claim if claim is not None or word is None or "?" in sentence else word[1]


def _said_elsewhere(sentence: str, kind: _Kind) -> bool | None:
    """As `_claim`, in the languages beside English."""
    bad = _other("bad").search(sentence) if kind.name == "fits" else None
    if bad:
        return bool(_other("not").search(f"{sentence[: bad.start()]} {sentence[bad.end() :]}"))
    if not _other(kind.name).search(sentence):
        return None
    # That it fits is said by the word itself; of a limit it is said that it is kept.
    is_denied = bool(_other("not").search(sentence))
    return not is_denied if is_denied or kind.name == "fits" or _other("kept").search(sentence) else None


def _answer(sentence: str) -> tuple[int, bool] | None:
    """Where a yes or no at the beginning ends, and which of them it is."""
    if match := _YES_NO.match(sentence):
        return match.end(), not match["word"].lower().startswith("no")
    start = len(sentence) - len(sentence.lstrip(" \t*_>-"))
    for name, is_yes in (("answer_no", False), ("answer_yes", True)):
        if match := _other(name).match(sentence, start):
            return match.end(), is_yes
    return None


@cache
def _other(name: str) -> re.Pattern[str]:
    """The words of a kind in the languages beside English."""
    words = _others()[name]
    latin = "|".join(word for word in words if not _HAN.search(word))
    joined = "|".join(word for word in words if _HAN.search(word))
    return re.compile("|".join(filter(None, (latin and rf"\b(?:{latin})\b", joined))), re.IGNORECASE)


@cache
def _others() -> dict[str, list[str]]:
    import yaml  # only where a language model speaks

    with (Path(__file__).parent / "verdicts.yaml").open(encoding="utf-8") as file:
        return yaml.safe_load(file)


def _verdicts(responses: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """Each verdict on which all results agree."""
    answers: dict[str, set[bool]] = {}
    for response in responses:
        for part in (response, *_parts(response)):
            for kind in _KINDS:
                values = (part.get(name) for name in kind.fields)
                answers.setdefault(kind.name, set()).update(value for value in values if isinstance(value, bool))
    return {name: values.pop() for name, values in answers.items() if len(values) == 1}


def _parts(response: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts of a result, and its rows, that hold verdicts of its own; not what another plan would do."""
    for name in _HOLDERS:
        value = response.get(name)
        yield from (row for row in (value if isinstance(value, list) else [value]) if isinstance(row, Mapping))
