"""Numbers written in words: "forty-two gigabytes", "two and a half days", "a third of the memory", "1/2 day"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.grounding import tongues
from agent.grounding.units import UNIT

_ONES = {
    "zero": 0.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0,
    "nine": 9.0, "ten": 10.0, "eleven": 11.0, "twelve": 12.0, "thirteen": 13.0, "fourteen": 14.0, "fifteen": 15.0,
    "sixteen": 16.0, "seventeen": 17.0, "eighteen": 18.0, "nineteen": 19.0,
}  # fmt: skip
_TENS = {
    "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "seventy": 70.0, "eighty": 80.0,
    "ninety": 90.0,
}  # fmt: skip
_MANY = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SHARES = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4, "fifth": 1 / 5, "tenth": 1 / 10}
_SIGNS = {"½": 1 / 2, "¼": 1 / 4, "¾": 3 / 4, "⅓": 1 / 3, "⅔": 2 / 3}
_DOZEN = 12.0
# Smaller ones count things in ordinary prose ("one of the two"); with a unit every number is a figure.
_LEAST_COUNT = 11.0

_ONE = "|".join([*_ONES, *_TENS, *_MANY, "dozen"])
_FIRST = "|".join([*_ONES, *_TENS, "dozen"])
_PART = "|".join(_SHARES)
_WHOLE = (
    rf"(?:an?\s+(?:hundred|thousand|million|billion|trillion|dozen|couple\s+of)|(?:{_FIRST}))"
    rf"(?:(?:[\s-]+(?:and\s+)?)(?:{_ONE}))*(?:\s+point(?:\s+(?:{_ONE}))+)?"
)
_SHARE = rf"(?:(?:an?|one|two|three|four)[\s-]+)?(?:{_PART})s?\b|[{''.join(_SIGNS)}]|\d{{1,3}}/\d{{1,3}}(?![\d/])"
_AFTER_REST, _AFTER_SHARE, _AFTER_NUMBER = (
    rf"[\s-]*(?P<unit_{name}>{UNIT})(?![\w/])" for name in ("rest", "share", "number")
)
_SPELLED = re.compile(
    rf"(?<![\w/.-])(?:"
    rf"(?P<whole>{_WHOLE}|\d{{1,4}})\s*(?:and\s+)?(?:an?\s+)?"
    rf"(?P<rest>half|quarter|third|\d/\d|[{''.join(_SIGNS)}])(?![\w-]){_AFTER_REST}"
    rf"|(?P<share>{_SHARE})(?:(?:\s+of)?\s+an?|\s+of)?{_AFTER_SHARE}"
    rf"|(?P<of>{_SHARE})\s+(?=of\b(?!\s+(?:the\s+)?(?:year|month|\d{{4}})))"
    rf"|an?\s+(?P<with_half>{UNIT})\s+and\s+a\s+half\b"
    rf"|(?P<number>{_WHOLE})(?![\w])(?:{_AFTER_NUMBER})?"
    rf")",
    re.IGNORECASE,
)


# In the other languages a number in words is a figure where a unit stands behind it.
_BEHIND = rf"(?:{UNIT})(?![A-Za-zÀ-ɏ/])"
_ELSEWHERE = re.compile(
    rf"(?<![\w/.-])(?:(?P<number>{tongues.NUMBER}|{tongues.HALF})[\s-]{{0,3}}(?P<unit>{_BEHIND})|(?P<share>{tongues.SHARE})\b)"
    rf"|(?P<han_share>{tongues.HAN_SHARE})|(?<!\d)(?P<han>{tongues.HAN})\s?(?P<han_unit>{_BEHIND})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Spelled:
    """`value` in `unit` (None: a count, or with `share` a part of a whole); `slack` is what such words leave open."""

    text: str
    value: float
    slack: float
    unit: str | None
    share: bool
    start: int
    end: int


def spelled(text: str, least: float = _LEAST_COUNT) -> Iterator[Spelled]:
    """Numbers in words; those that stand without a unit from `least` on."""
    for match in _SPELLED.finditer(text):
        value, slack, unit, share = _read(match)
        if unit is None and not share and value < least:
            continue
        yield Spelled(match[0].strip(), value, slack, unit, share, match.start(), match.end())


def spelled_elsewhere(text: str) -> Iterator[Spelled]:
    """Numbers in words of other languages, with a unit or as parts of a whole."""
    for match in _ELSEWHERE.finditer(text):
        part, words = match.group("share") or match.group("han_share"), match.group("number")
        unit = match.group("unit") or match.group("han_unit")
        value = tongues.share(part) if part else tongues.number(words) if words else tongues.han(match["han"])
        # 'einen Tag', '一天': an article rather than a number.
        if part or value != 1.0:
            slack = 0.05 if part else 0.25 * value if value < 2 else 0.5
            yield Spelled(match[0].strip(), value, slack, unit, bool(part), match.start(), match.end())


def _read(match: re.Match[str]) -> tuple[float, float, str | None, bool]:
    unit = match["unit_rest"] or match["unit_share"] or match["with_half"] or match["unit_number"]
    if match["with_half"]:
        return 1.5, 0.25, unit, False
    if match["whole"]:
        return _whole(match["whole"]) + _part(match["rest"]), 0.125, unit, False
    if part := match.group("share") or match.group("of"):
        value = _part(part)
        return value, 0.25 * value if unit else 0.05, unit, not unit
    value = _whole(match["number"])
    return value, 0.5, unit, False


def _part(words: str) -> float:
    """'two thirds', '½' and '3/4' as a number."""
    if words in _SIGNS:
        return _SIGNS[words]
    if "/" in words:
        above, below = (float(number) for number in words.split("/"))
        return above / below if below else 0.0
    *count, part = re.split(r"[\s-]+", words.lower())
    times = _ONES.get(count[0], 1.0) if count else 1.0
    return times * _SHARES[part.removesuffix("s") if part.removesuffix("s") in _SHARES else "half"]


def _whole(words: str) -> float:
    """'two hundred and forty-two thousand' as a number."""
    if words.isdigit():
        return float(words)
    before, _, after = words.lower().partition(" point ")
    total, group = 0.0, 0.0
    for word in re.split(r"[\s-]+", before):
        if word in _ONES:
            group += _ONES[word]
        elif word in _TENS:
            group += _TENS[word]
        elif word == "dozen":
            group = max(group, 1.0) * _DOZEN
        elif word == "couple":
            group += 2.0
        elif word == "hundred":
            group = max(group, 1.0) * 100.0
        elif word in _MANY:
            total, group = total + max(group, 1.0) * _MANY[word], 0.0
    digits = [_ONES[word] for word in after.split() if word in _ONES and _ONES[word] < 10]
    return total + group + sum(digit / 10.0 ** (place + 1) for place, digit in enumerate(digits))
