"""How many times as much: "2x the speed", "three times as long", "twice the price", "tenfold", "a factor of four";
and parts that no "of" follows: "half the memory", "a third cheaper", "by a quarter", "one in five"."""

from __future__ import annotations

import re

_MEASURED = r"(?:fast|slow|cheap|larg|small|bigg|high|low|long|short|few|great|quick|dear|heavi|light)er"
# What is measured stands behind: 'twice as', 'three times the', 'twice a week' is none.
THAN = rf"(?=\s+(?:as|the|that|its|their|what|more|less|better|worse|{_MEASURED})\b)"
_MORE = rf"(?=\s+(?:more|less|better|worse|{_MEASURED})\b)"
_OF_ALL = r"(?=\s+(?:as|the|that|its|their|what)\b)"
_VERBS = {"doubl": 2.0, "tripl": 3.0, "quadrupl": 4.0, "halv": 0.5}
_ADVERBS = {"twice": 2.0, "thrice": 3.0, "double": 2.0, "triple": 3.0, "quadruple": 4.0}
_FACTOR = r"(?:factor|speed-?up|slow-?down)\s+of\s+(?:(?:about|around|some|nearly|almost|roughly|over)\s+|~\s?)?"
# '8x H100', '8 x tpu-v5p' and '8 x gpus' count devices.
_COUNTED = r"(?:gpus?|cards?|devices?|accelerators?|nodes?|machines?|servers?|hosts?|rtx|tesla|nvidia|amd|instinct)\b"
_BEHIND = re.compile(
    rf"\s?[xX×](?!\w)(?!\s*{_COUNTED})(?=[*_]*\s*(?:$|[.,;:()!?|–—]|[a-z]+\b(?!-[-\w]*\d)))|[\s-]?fold\b|\s?times{THAN}|\s?倍"
    r"|\s?(?:fois|veces)\b|\s?mal\s+so\b"
)
_BEFORE = re.compile(rf"\b{_FACTOR}\Z|(?<![\w×]\s)(?<!\w)[x×]\s?\Z", re.IGNORECASE)
_LONGEST = 40

# In words of English, with the number's own pattern where there is one.
# 'Double the batch size' is advice.
ADVERB = rf"(?<!to\s)(?:{'|'.join(_ADVERBS)})(?<!(?-i:D)ouble)(?<!(?-i:T)riple)(?<!(?-i:Q)uadruple){THAN}"
VERB = rf"(?:{'|'.join(_VERBS)})e[sd]\b(?!-)"
MAGNITUDE = r"orders?\s+of\s+magnitude"


def times_as(number: str) -> str:
    """The pattern of a number in words that says how many times: 'three times as', 'tenfold', 'a factor of ten'."""
    return rf"(?:{number})(?:[\s-]?fold\b|\s+times{THAN})|(?<=factor\sof\s)(?:{number})\b"


def less_by(share: str) -> str:
    """The pattern of a part that no 'of' follows: 'half the', 'a third cheaper', 'by a quarter'."""
    in_half = r"(?<=in\s)half(?=\s*(?:$|[.,;:!?)]))"
    return rf"(?:{share})(?:{_MORE}|{_OF_ALL})|{in_half}|(?<=by\s)(?:{share})(?!\s+(?:of|to)\b)"


def is_multiple(text: str, start: int, end: int) -> bool:
    """Whether the digits from `start` to `end` say how many times as much."""
    return bool(_BEHIND.match(text, end) or _BEFORE.search(text[max(0, start - _LONGEST) : start]))


def value(word: str) -> float:
    """'twice', 'doubled' and 'halves' as a number."""
    word = word.lower()
    return _ADVERBS[word] if word in _ADVERBS else _VERBS[re.sub(r"e[sd]$", "", word)]
