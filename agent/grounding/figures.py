"""Figures as they are printed in a text: a number with what it counts, its scale and its rounding.

Numbers inside names (H100, Llama-3.1-8B, ZeRO-3) are not figures; neither are list ordinals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_GIB, _MIB, _KIB = 2.0**30, 2.0**20, 2.0**10
# Unit as printed: (kind, factor to the kind's own unit). Longer spellings stand first in the pattern.
_UNITS: dict[str, tuple[str, float]] = {
    "gib": ("bytes", _GIB), "mib": ("bytes", _MIB), "kib": ("bytes", _KIB), "tib": ("bytes", 2.0**40),
    "gb": ("bytes", 1e9), "mb": ("bytes", 1e6), "kb": ("bytes", 1e3), "tb": ("bytes", 1e12), "bytes": ("bytes", 1.0),
    "gb/s": ("bytes_per_s", 1e9), "tb/s": ("bytes_per_s", 1e12), "gib/s": ("bytes_per_s", _GIB),
    "ms": ("seconds", 1e-3), "µs": ("seconds", 1e-6), "us": ("seconds", 1e-6), "s": ("seconds", 1.0),
    "sec": ("seconds", 1.0), "second": ("seconds", 1.0), "seconds": ("seconds", 1.0), "min": ("seconds", 60.0),
    "minute": ("seconds", 60.0), "minutes": ("seconds", 60.0), "h": ("seconds", 3600.0), "hr": ("seconds", 3600.0),
    "hrs": ("seconds", 3600.0), "hour": ("seconds", 3600.0), "hours": ("seconds", 3600.0), "day": ("seconds", 86400.0),
    "days": ("seconds", 86400.0), "week": ("seconds", 604800.0), "weeks": ("seconds", 604800.0),
    "%": ("fraction", 0.01), "percent": ("fraction", 0.01), "usd": ("usd", 1.0), "dollars": ("usd", 1.0),
    "tokens/s": ("rate", 1.0), "tok/s": ("rate", 1.0), "tokens/sec": ("rate", 1.0), "tokens per second": ("rate", 1.0),
    "samples/s": ("rate", 1.0), "tflops": ("tflops", 1.0), "tflop/s": ("tflops", 1.0), "pflops": ("tflops", 1e3),
    "device-hours": ("device_hours", 1.0), "gpu-hours": ("device_hours", 1.0),
    "kwh": ("kwh", 1.0), "mwh": ("kwh", 1e3), "kg": ("kg", 1.0), "kw": ("w", 1e3), "w": ("w", 1.0),
}  # fmt: skip
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "billion": 1e9, "t": 1e12, "trillion": 1e12}
_UNIT = "|".join(sorted((re.escape(unit) for unit in _UNITS), key=len, reverse=True))
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d+)?"
# A letter that would go on with a unit; Chinese and Japanese write none between words.
_LETTER = r"[^\W\u3040-\u30ff\u4e00-\u9fff]"
_TAIL = (
    rf"(?:\s?(?:(?P<unit>{_UNIT})(?!{_LETTER}|/)|(?P<scale>thousand|million|billion|trillion|"
    rf"[kmbt])(?!{_LETTER})(?:\s?(?P<unit2>{_UNIT})(?!{_LETTER}|/))?))?"
)
_FIGURE = re.compile(rf"(?P<money>\$\s?)?(?P<number>{_NUMBER}){_TAIL}", re.IGNORECASE)
# '58.0–66.3 GiB': the first end has the unit of the second.
_RANGE = re.compile(
    rf"(?P<first>{_NUMBER})(?=\s?(?:–|-|to)\s?(?:{_NUMBER})\s?(?P<unit>{_UNIT})(?![\w/]))", re.IGNORECASE
)
# '61.2 GiB (58.0–66.3)': both ends have the unit of the figure before.
_INTERVAL = re.compile(rf"\((?P<low>\$?(?:{_NUMBER}))\s?–\s?(?P<high>{_NUMBER})\)")
# Words that start with a letter take the digits joined to them along: names, versions, ZeRO-3, fp8, file names.
_NAME = re.compile(r"(?<![\w$])[A-Za-z_][\w]*(?:[-./_:+][\w]+)*")
_ORDINAL = re.compile(r"^\s*(?:#+\s*)?\d{1,2}[.)]\s", re.MULTILINE)
_DIMENSION = re.compile(r"\b[1-4][dD]\b|\b[Pp]er 1M\b")


@dataclass(frozen=True)
class Figure:
    """A number in a text: `value` in the unit of `kind`, `slack` what the printed digits leave open."""

    text: str
    kind: str
    value: float
    slack: float
    start: int
    end: int


def figures_in(text: str) -> Iterator[Figure]:
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
            last = _unit(match) or ranges.get(start)
        yield _figure(match, last)


def _kept(word: str) -> str:
    """Blanks a name; what follows the word as a unit of a number before it must stay ('12 GiB', '3 hours')."""
    if word.lower() in _UNITS or word.lower() in _SCALES or not re.search(r"\d", word):
        return word
    return " " * len(word)


def _unit(match: re.Match[str]) -> str | None:
    return "usd" if match["money"] else match["unit"] or match["unit2"]


def _figure(match: re.Match[str], unit: str | None) -> Figure:
    digits = match["number"].replace(",", "")
    scale = _SCALES[match["scale"].lower()] if match["scale"] else 1.0
    kind, factor = _UNITS[unit.lower()] if unit else ("count", 1.0)
    step = 10.0 ** -len(digits.partition(".")[2].partition("e")[0]) if "." in digits else _whole_step(digits)
    factor *= scale
    return Figure(match[0].strip(), kind, float(digits) * factor, 0.5 * step * factor, match.start(), match.end())


def _whole_step(digits: str) -> float:
    """What the last printed digit of a whole number counts: '12000' may be rounded to two digits, '300' may not."""
    significant = digits.rstrip("0")
    return 10.0 ** (len(digits) - max(len(significant), 2)) if digits.isdigit() and len(significant) >= 2 else 1.0
