"""Figures as they are printed in a text: a number with what it counts, its scale and its rounding.

Numbers inside names (H100, Llama-3.1-8B, ZeRO-3) are not figures; neither are list ordinals. Numbers in words
("forty-two gigabytes", "half a day") are, and so are those joined to a word by what is no name ("Memory:41.7GiB").
Languages beside English are in agent.grounding.tongues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.grounding.multiples import is_multiple
from agent.grounding.spelled import Spelled, spelled, spelled_elsewhere
from agent.grounding.tongues import in_english
from agent.grounding.units import FILLER, MEASURES, MONEY, SCALE, SCALES, TIMES, UNIT, UNITS

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d+)?"
# A letter that would go on with a unit; Chinese and Japanese write none between words.
_LETTER = r"[^\W\u3040-\u30ff\u4e00-\u9fff]"
_TAIL = (
    rf"(?:{FILLER}[\s-]?(?:(?P<unit>{UNIT})(?!{_LETTER}|/)|(?P<scale>{SCALE})"
    rf"(?!{_LETTER})(?:\s?(?P<unit2>{UNIT})(?!{_LETTER}|/))?))?"
)
_FIGURE = re.compile(rf"(?P<money>[$€£¥]\s?)?(?P<number>{_NUMBER}){_TAIL}", re.IGNORECASE)
# '58.0–66.3 GiB', '65.2 of 79.1 GiB': the first has the unit of the second.
_RANGE = re.compile(
    rf"(?P<first>{_NUMBER})(?=\s?(?:–|-|/|to|(?:out )?of|bis|von|à|sur|a|de)\s?(?:{_NUMBER})\s?"
    rf"(?P<unit>{UNIT})(?![\w/]))",
    re.IGNORECASE,
)
# '61.2 GiB (58.0–66.3)': both ends have the unit of the figure before.
_INTERVAL = re.compile(rf"\((?P<low>\$?(?:{_NUMBER}))\s?–\s?(?P<high>{_NUMBER})\)")
# Words that start with a letter take the digits joined to them along: names, versions, ZeRO-3, fp8, file names.
_NAME = re.compile(r"(?<![\w$€£¥])[A-Za-z_][\w]*(?:[-./_:+][\w]+)*")
# A word without digits, and a number joined to it that a unit or a decimal point tells from the end of a name.
_GLUED = re.compile(
    rf"(?:(?:[A-Za-z_]+[-./_:+])*[A-Za-z_]+?[-_.:+]?)(?P<figure>{_NUMBER})(?P<unit>{UNIT})?\Z", re.IGNORECASE
)
_JOINS = (":", "+")
_ENDLESS = re.compile(r"[\d.,]{40,}")
# No figure is larger, whatever its power of ten.
_LARGEST = 1e100
_ORDINAL = re.compile(r"^\s*(?:#+\s*)?\d{1,2}[.)]\s", re.MULTILINE)
# 'and 6 more.' says how much longer a list is than what is shown of it.
_DIMENSION = re.compile(r"\b[1-4][dD]\b|\b[Pp]er 1M\b|\band \d+ more(?=[.;]|$)", re.MULTILINE)


@dataclass(frozen=True)
class Figure:
    """A number in a text: `value` in the unit of `kind`, `slack` what the printed digits leave open."""

    text: str
    kind: str
    value: float
    slack: float
    start: int
    end: int


def bounded(text: str) -> str:
    """The text with blanks in the place of digits without end, which are no figure and take ever longer to look at."""
    return _ENDLESS.sub(lambda match: " " * len(match[0]), text)


def figures_in(text: str) -> Iterator[Figure]:
    printed, text = text, in_english(bounded(text), UNIT)
    for read in (spelled, spelled_elsewhere):
        for word in list(read(text)):
            yield _in_words(word, printed)
            text = f"{text[: word.start]}{' ' * (word.end - word.start)}{text[word.end :]}"
    blanked = text
    for pattern in (_NAME, _ORDINAL, _DIMENSION):
        blanked = pattern.sub(lambda match: _kept(match[0]), blanked)
    ranges = {match.start("first"): match["unit"] for match in _RANGE.finditer(blanked)}
    ends = {match.start(end) for match in _INTERVAL.finditer(blanked) for end in ("low", "high")}
    last: str | None = None
    for match in _FIGURE.finditer(blanked):
        start = match.start("number")
        if start > 0 and blanked[start - 1] in "._" and not match["money"]:
            continue
        if match.start() not in ends:
            last = _unit(match) or ranges.get(start) or (TIMES if is_multiple(printed, start, match.end()) else None)
        yield _figure(match, last, printed)


def _kept(word: str) -> str:
    """Blanks a name; what follows the word as a unit of a number before it must stay ('12 GiB', '3 hours')."""
    if word.lower() in UNITS or word.lower() in SCALES or not re.search(r"\d", word):
        return word
    if (glued := _GLUED.match(word)) and _is_measured(glued):
        return " " * glued.start("figure") + word[glued.start("figure") :]
    return " " * len(word)


def _is_measured(glued: re.Match[str]) -> bool:
    """Whether a number at the end of a word is a figure: one with a unit of more than a letter, which names have after
    digits alone (A100-80GB); or, after what joins no name, one too long for the number of a device."""
    unit, number = glued.group("unit", "figure")
    if unit:
        return len(unit) > 1
    before = glued.string[: glued.start("figure")]
    return before.endswith(_JOINS) and before[:-1].lower() != "localhost" and ("." in number or len(number) > 2)


def _in_words(word: Spelled, printed: str) -> Figure:
    kind, factor = MEASURES[word.unit.lower()] if word.unit else ("count", 1.0)
    return Figure(
        printed[word.start : word.end].strip(), kind, word.value * factor, word.slack * factor, word.start, word.end
    )


def _unit(match: re.Match[str]) -> str | None:
    return MONEY[match["money"].strip()] if match["money"] else match["unit"] or match["unit2"]


def _figure(match: re.Match[str], unit: str | None, printed: str) -> Figure:
    digits = match["number"].replace(",", "")
    scale = SCALES[match["scale"].lower()] if match["scale"] else 1.0
    kind, factor = MEASURES[unit.lower()] if unit else ("count", 1.0)
    step = 10.0 ** -len(digits.partition(".")[2].partition("e")[0]) if "." in digits else _whole_step(digits)
    factor *= scale
    value, text = min(float(digits), _LARGEST) * factor, printed[match.start() : match.end()].strip()
    return Figure(text, kind, value, 0.5 * step * factor, match.start(), match.end())


def _whole_step(digits: str) -> float:
    """What the last printed digit of a whole number counts: '12000' may be rounded to two digits, '300' may not."""
    significant = digits.rstrip("0")
    return 10.0 ** (len(digits) - max(len(significant), 2)) if digits.isdigit() and len(significant) >= 2 else 1.0
