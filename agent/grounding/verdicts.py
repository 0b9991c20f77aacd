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
from agent.wire import Outcome

_HOLDERS = ("memory", "rows", "options", "slo", "best", "chosen")
_HEAD = "**What the tools say**"
_SENTENCE_END = re.compile(r"(?<=[.!?;])[*_)]*\s+(?=\S)|(?<=[。！？；])|\n+")
# Of what is only supposed, wished or asked no verdict is told; and what another plan would do is none of this one.
_SUPPOSED = re.compile(
    r"\b(?:would|could|might|may|if|unless|until|when|once|whether|should|to\s+(?:make\s+it\s+)?(?:fit|meet|stay)|"
    r"instead)\b|\?\s*$|^\W*(?:with|using|after|by)\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:not|never|no|cannot|without|nor|neither|fails?|failed|unable|hardly|misses|miss|missed|exceeds?|exceeded|"
    r"exceeding|over|above|beyond|too|violates?|broken?|late)\b|n[’']t\b",
    re.IGNORECASE,
)
_BAD_ALONE = re.compile(r"\b(?:oom|(?:runs?|running|ran)\s+out\s+of\s+(?:\w+\s+)?memory|out[\s-]of[\s-]memory)\b", re.I)
_HAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_YES_NO = re.compile(r"^\W*(?P<word>yes|yep|yeah|sure|absolutely|certainly|of course|no|nope)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Kind:
    """A verdict: the fields of results that hold it, and the words that speak of it."""

    name: str
    fields: tuple[str, ...]
    words: re.Pattern[str]
    yes: str
    no: str


_KINDS = (
    _Kind(
        "fits", ("fits",),
        re.compile(
            r"\b(?:fits?|fitting|(?:enough|plenty\s+of|sufficient|spare)\s+(?:\w+\s+)?(?:memory|room|vram|headroom)|"
            r"within\s+(?:the\s+)?(?:\w+\s+)?(?:memory|capacity)|(?:exceeds?|over)\s+(?:the\s+)?(?:\w+\s+)?"
            r"(?:memory|capacity|vram)|too\s+(?:large|big))\b",
            re.IGNORECASE,
        ),
        "it fits", "it does not fit",
    ),
    _Kind(
        "meets_slo", ("meets_slo", "met"),
        re.compile(r"\b(?:slos?|latency\s+(?:limits?|targets?|goals?)|(?:ttft|tpot)\s+(?:limits?|targets?))\b", re.I),
        "the limits of latency are met", "the limits of latency are not met",
    ),
    _Kind(
        "budget", ("within_budget",), re.compile(r"\bbudget\b", re.I),
        "it is within the budget", "it is over the budget",
    ),
    _Kind(
        "deadline", ("within_deadline",), re.compile(r"\b(?:deadline|in\s+time|on\s+time)\b", re.I),
        "it meets the deadline", "it misses the deadline",
    ),
)  # fmt: skip


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
    verdicts = _verdicts([outcome.response for outcome in outcomes if outcome.error is None])
    denied: list[Contradiction] = []
    for start, end in _sentences(text):
        sentence = text[start:end]
        for kind in _KINDS:
            truth = verdicts.get(kind.name)
            claim = _claim(sentence, kind, asked if start == 0 or not text[:start].strip() else "")
            if truth is not None and claim is not None and claim != truth:
                denied.append(Contradiction(sentence.strip(), kind.yes if truth else kind.no, start, end))
                break
    return denied


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
    if _SUPPOSED.search(sentence) or _other("supposed").search(sentence) or sentence.rstrip().endswith("？"):
        return None
    words = _other(kind.name)
    is_asked = bool(asked) and bool(kind.words.search(asked) or words.search(asked))
    word = _answer(sentence) if is_asked else None
    bad = _BAD_ALONE.search(sentence) or _other("bad").search(sentence)
    if kind.name == "fits" and bad:
        return _is_denied(f"{sentence[: bad.start()]} {sentence[bad.end() :]}")
    if kind.words.search(sentence) or words.search(sentence):
        return not _is_denied(sentence[word[0] :] if word else sentence)
    return word[1] if word else None


def _is_denied(sentence: str) -> bool:
    return bool(_NOT.search(sentence) or _other("not").search(sentence))


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
