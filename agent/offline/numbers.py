"""Numbers as people write them: 1.5T, 52k, 1_000, two, half a trillion, $2.5k."""

from __future__ import annotations

import re

from knowledge import figures

_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "sixteen": 16, "twenty": 20, "twenty-four": 24, "thirty-two": 32,
    "forty-eight": 48, "sixty-four": 64, "hundred": 100, "a hundred": 100, "a dozen": 12, "dozen": 12,
    "a couple of": 2, "a pair of": 2, "single": 1, "a single": 1,
}  # fmt: skip
_SCALES = {
    "": 1.0, "k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "mio": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9,
    "g": 1e9, "billion": 1e9, "t": 1e12, "tn": 1e12, "trillion": 1e12, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30,
}  # fmt: skip
_FRACTIONS = {"half": 0.5, "a quarter of": 0.25, "quarter": 0.25}

_DIGITS = r"(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d{1,3})?"
# Spaces may be many: a spelled-out number is read as digits in the room of the word.
_SCALE = r"(?:\s*(?:thousand|million|billion|trillion|mio|bn|mn|tn|ki|mi|gi)\b|\s?[kmbtg]\b)"
# A number that cannot be the tail of a name, a version or a decimal: "H100", "3.1" and "v0.3" do not give 100, 1 or 3.
START = r"(?<![\w.$-])"
NUMBER = rf"{START}{_DIGITS}"
AMOUNT = rf"(?:(?:half|a quarter of) an? (?:million|billion|trillion)|{NUMBER}{_SCALE}?)"
# By what a change is told in a word.
FACTORS = {"double": 2.0, "twice": 2.0, "triple": 3.0, "quadruple": 4.0, "halve": 0.5, "half": 0.5}
WHOLE = rf"{START}(?:\d{{1,3}}(?:,\d{{3}})+|\d+)"
_WORD = re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, _WORDS), key=len, reverse=True))})\b", re.IGNORECASE)

_AMOUNT = re.compile(rf"\$?\s*({_DIGITS})\s?({'|'.join(filter(None, _SCALES))})?$", re.IGNORECASE)
_PART = re.compile(r"(half|a quarter of) an? (million|billion|trillion)$", re.IGNORECASE)


def spelled_out(text: str) -> str:
    """`text` with number words as digits, padded so that every other character stays where it is."""
    return _WORD.sub(lambda word: str(_WORDS[word[0].lower()]).ljust(len(word[0])), text)


def amount(text: str) -> float | None:
    """'1.5T' as 1.5e12, 'two' as 2.0, 'half a trillion' as 5e11; None when the text is no number."""
    text = " ".join(text.lower().split())
    if part := _PART.match(text):
        return _FRACTIONS[part[1]] * _SCALES[part[2]]
    if match := _AMOUNT.match(text):
        return float(match[1].replace(",", "").replace("_", "")) * _SCALES[match[2] or ""]
    word, _, scale = text.rpartition(" ")
    if scale in _SCALES and word in _WORDS:
        return _WORDS[word] * _SCALES[scale]
    return float(_WORDS[text]) if text in _WORDS else None


def count(text: str) -> int | None:
    """A whole number, or None."""
    value = amount(text)
    return int(value) if value is not None and value == int(value) else None


def context_length(text: str) -> int | None:
    """A context length in tokens. k and M are binary where the size is a power of two (4k is 4096, 100k is 100,000)."""
    match = re.fullmatch(rf"({_DIGITS})\s?([km])?(i)?", text.strip(), re.IGNORECASE)
    if not match:
        return None
    digits = float(match[1].replace(",", "").replace("_", ""))
    suffix = (match[2] or "").lower()
    binary = bool(match[3]) or (digits == int(digits) and int(digits) > 0 and int(digits) & (int(digits) - 1) == 0)
    scale = {"": 1, "k": 1024 if binary else 1000, "m": 1024**2 if binary else 10**6}[suffix]
    value = digits * scale
    return int(value) if value == int(value) and value >= 1 else None


def short(value: float) -> str:
    """1e9 as '1B', 1.5e12 as '1.5T', 4096 as '4,096'."""
    for scale, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if value >= scale:
            return f"{value / scale:.4g}{letter}"
    return figures.number(value)
