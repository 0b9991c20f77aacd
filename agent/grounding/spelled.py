"""Numbers written in words: "forty-two gigabytes", "two and a half days", "a third of the memory", "twice as fast"."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.grounding import multiples, tongues
from agent.grounding.units import FILLER, SHARE, TIMES, UNIT, UNITS

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
# Of what is planned each number is a figure, but for what was spoken of before ('the two nodes').
_COUNTED = re.compile(
    r"\s+(?:\w+\s+)?(?:gpu|card|device|accelerator|node|machine|server|host|replica|instance|epoch|step|user|client|"
    r"request)s\b",
    re.IGNORECASE,
)
_DEFINITE = re.compile(r"\b(?:the|these|those|both|first|last|next|other|between)\s+\Z", re.IGNORECASE)
_NEAR = 12

_ONE = "|".join([*_ONES, *_TENS, *_MANY, "dozen"])
_FIRST = "|".join([*_ONES, *_TENS, "dozen"])
_PART = "|".join(_SHARES)
_WHOLE = (
    rf"(?:an?\s+(?:hundred|thousand|million|billion|trillion|dozen|couple\s+of)|(?:{_FIRST}))"
    rf"(?:(?:[\s-]+(?:and\s+)?)(?:{_ONE}))*(?:\s+point(?:\s+(?:{_ONE}))+)?"
)
_SHARE = rf"(?:(?:an?|one|two|three|four)[\s-]+)?(?:{_PART})s?\b|[{''.join(_SIGNS)}]|\d{{1,3}}/\d{{1,3}}(?![\d/])"
_AFTER_REST, _AFTER_SHARE, _AFTER_MANY, _AFTER_NUMBER = (
    rf"{FILLER}[\s-]*(?P<unit_{name}>{UNIT})(?![\w/])" for name in ("rest", "share", "many", "number")
)
# 'A few hundred dollars', 'tens of thousands of tokens/s', 'in the low thirties': of each once to ten times as much.
_MANIES = {"ten": 10.0, "dozen": _DOZEN, **_MANY}
_MANY_OF = "|".join(_MANIES)
_VAGUE = (
    rf"(?:(?:a\s+few|several)\s+(?:{_MANY_OF})|(?:{_MANY_OF})s\s+of(?:\s+(?:{_MANY_OF})s)?)"
    rf"(?:\s+of)?[\s-]*(?P<unit_vague>{UNIT})(?![\w/])"
)
_DECADE = rf"(?:low|mid|high|upper)(?:er)?[\s-]+(?P<decade>{'|'.join(each.removesuffix('y') for each in _TENS)})ies\b"
_SPANS = "|".join(unit for unit, (kind, size) in UNITS.items() if kind == "seconds" and size >= 60 and unit.isascii())
_SPELLED = re.compile(
    rf"(?<![\w/.-])(?:"
    rf"(?P<whole>{_WHOLE}|\d{{1,4}})\s*(?:and\s+)?(?:an?\s+)?"
    rf"(?P<rest>half|quarter|third|\d/\d|[{''.join(_SIGNS)}])(?![\w-])(?:{_AFTER_REST}|(?P<rest_times>\s+times{multiples.THAN}))"
    rf"|(?P<vague>{_VAGUE})|{_DECADE}"
    rf"|(?P<times>{multiples.times_as(_WHOLE)})|(?P<adverb>{multiples.ADVERB})|(?P<verb>{multiples.VERB})"
    rf"|(?P<magnitude>(?:(?:an?|one|two|three|four)\s+)?{multiples.MAGNITUDE})"
    rf"|(?P<share_of_many>{_SHARE})\s+an?\s+(?P<many>{'|'.join([*_MANY, 'dozen'])})\b(?:{_AFTER_MANY})?"
    rf"|(?P<share>{_SHARE})(?:(?:\s+of)?\s+an?\b|\s+of)?{_AFTER_SHARE}"
    rf"|(?P<less>{multiples.less_by(_SHARE)})"
    rf"|(?P<some>{_FIRST})\s+(?:in|of|out\s+of)\s+(?P<all>{_FIRST})\b(?![\s-]+(?:{_ONE}|{UNIT})\b)"
    rf"|(?P<of>{_SHARE})\s+(?=of\b(?!\s+(?:the\s+)?(?:year|month|\d{{4}})))"
    rf"|an?\s+(?P<with_half>{UNIT})\s+and\s+a\s+half\b"
    rf"|(?P<number>{_WHOLE})(?![\w])(?:{_AFTER_NUMBER})?"
    rf")",
    re.IGNORECASE,
)

# 'It takes a week', which a sum a week is not.
_ARTICLE = re.compile(
    rf"\b(?:in|about|around|roughly|nearly|almost|exactly|approximately|takes?|took|needs?|lasts?|is|be|only|just|"
    rf"under|over|than|(?:most|part)\s+of)\s+(?P<article>an?\s+(?:(?:good|full|whole|solid)\s+)?(?P<span>{_SPANS}))(?![\w/-]|\s+(?:and|or)\b)",
    re.IGNORECASE,
)

# In the other languages a number in words is a figure where a unit stands behind it.
_BEHIND = rf"(?:{UNIT})(?![A-Za-zÀ-ɏ/])"
_ELSEWHERE = re.compile(
    rf"(?<![\w/.-])(?:(?P<number>{tongues.NUMBER}|{tongues.HALF})"
    rf"(?:[\s-]{{0,3}}(?P<unit>{_BEHIND})|(?P<times>{tongues.TIMES}))"
    rf"|(?P<share>{tongues.SHARE})\b|(?P<multiple>{'|'.join(tongues.MULTIPLES)})\b)"
    rf"|(?P<han_share>{tongues.HAN_SHARE})|(?<!\d)(?P<han>{tongues.HAN})\s?(?:(?P<han_unit>{_BEHIND})|(?P<han_times>倍))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Spelled:
    """`value` in `unit`, one of units.MEASURES (None: a count); `slack` is what such words leave open."""

    text: str
    value: float
    slack: float
    unit: str | None
    start: int
    end: int


def spelled(text: str, least: float = _LEAST_COUNT) -> Iterator[Spelled]:
    """Numbers in words; those that stand without a unit and count nothing of a plan from `least` on."""
    for match in _SPELLED.finditer(text):
        value, slack, unit = _read(match)
        if unit is None and value < least and not (value > 1 and _counts(text, match)):
            continue
        yield Spelled(match[0].strip(), value, slack, unit, match.start(), match.end())
    for match in _ARTICLE.finditer(text):
        yield Spelled(match["article"], 1.0, 0.5, match["span"], match.start("article"), match.end())


def _counts(text: str, match: re.Match[str]) -> bool:
    start = match.start()
    return bool(_COUNTED.match(text, match.end()) and not _DEFINITE.search(text[max(0, start - _NEAR) : start]))


def spelled_elsewhere(text: str) -> Iterator[Spelled]:
    """Numbers in words of other languages, with a unit, as parts of a whole or as multiples."""
    for match in _ELSEWHERE.finditer(text):
        part, words = match.group("share") or match.group("han_share"), match.group("number")
        times = match.group("times") or match.group("multiple") or match.group("han_times")
        unit = SHARE if part else TIMES if times else match.group("unit") or match.group("han_unit")
        if part:
            value = tongues.share(part)
        elif word := match.group("multiple"):
            value = tongues.MULTIPLES[word.lower()]
        else:
            value = tongues.number(words) if words else tongues.han(match["han"])
        # 'einen Tag', '一天': an article rather than a number.
        if part or value != 1.0:
            slack = 0.05 if part else 0.25 * value if value < 2 or times else 0.5
            yield Spelled(match[0].strip(), value, slack, unit, match.start(), match.end())


def _read(match: re.Match[str]) -> tuple[float, float, str | None]:
    """(value, slack, unit) of what was matched."""
    unit = next(filter(None, match.group("unit_rest", "unit_share", "with_half", "unit_many", "unit_number")), None)
    if match["with_half"]:
        return 1.5, 0.25, unit
    if match["decade"]:
        return (_TENS[f"{match['decade'].lower()}y"] + 5.0) / 100.0, 0.05, SHARE
    if match["vague"]:
        base = math.prod(size for name, size in _MANIES.items() if re.search(name, match["vague"], re.IGNORECASE))
        return 5.5 * base, 4.5 * base, match["unit_vague"]
    if match["whole"]:
        return _whole(match["whole"]) + _part(match["rest"]), 0.125, TIMES if match["rest_times"] else unit
    if match["many"]:
        value = _part(match["share_of_many"]) * _whole(match["many"])
        return value, 0.25 * value, unit
    if times := _times(match):
        return times, 0.5 * times if match["magnitude"] else 0.125 * times, TIMES
    if match["some"]:
        some, whole = _whole(match["some"]), _whole(match["all"])
        return (some / whole, 0.05, SHARE) if some < whole else (some, 0.5, None)
    if part := match.group("share") or match.group("of") or match.group("less"):
        value = _part(part)
        return (value, 0.25 * value, unit) if unit else (value, 0.05, SHARE)
    return _whole(match["number"]), 0.5, unit


def _times(match: re.Match[str]) -> float:
    """How many times as much; 0 where something else was matched."""
    if words := match["times"]:
        return _whole(re.split(r"[\s-]?fold|\s+times", words)[0])
    if word := match.group("adverb") or match.group("verb"):
        return multiples.value(word)
    if words := match["magnitude"]:
        return 10.0 ** (_ONES.get(words.split()[0].lower(), 1.0))
    return 0.0


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
