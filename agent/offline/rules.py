"""Patterns of numbers beside what they count, and the nouns that several readers share."""

from __future__ import annotations

import re

from agent.offline.numbers import AMOUNT, NUMBER, START, WHOLE

_LENGTH = rf"{START}((?:\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?)\s?(?:[km]i?)?)\b"
OF = r"\s*(?:\(?s?\)?)?\s*(?:(?:fixed|kept|set|held) )?(?:of|=|:|is|to|at|, (?:say|e\.g\.)|like)?\s*(?:about |up to )?"
_SEQUENCE = (
    r"(?:context(?:[- ](?:length|window|size)s?)?|ctx(?:[_ -]?len(?:gth)?)?|"
    r"seq(?:uence)?s?(?:[_ -]?len(?:gth)?s?)?|window|cutoff(?:[_ -]?len(?:gth)?)?|"
    r"max[_ -]?(?:seq[_ -]?)?len(?:gth)?|block[_ -]?size)(?![- ]parallel)"
)
NODES = r"(?:nodes?|machines?|servers?|boxes)\b"
# Before what is to be left: 'full fine-tuning instead of LoRA', 'awq instead of fp8'.
INSTEAD_OF = r"\b(?:instead of|rather than|in place of|no longer)\s+(?:using |with |the |plain )*"
ANSWERS = r"(?:responses?|completions?|rollouts?|generations?|answers?|outputs?)"


def rule(pattern: str) -> str:
    """`pattern` with A_ for an amount, N_ for a whole number, F_ for any, L_ for a length, Q_ for the word sequence."""
    # A number that was spelled out has more than one space behind it.
    expanded = re.sub(r"([ANF]_) ", r"\1\\s+", pattern)
    expanded = expanded.replace("A_", f"({AMOUNT})").replace("N_", f"({WHOLE})").replace("L_", _LENGTH)
    return expanded.replace("Q_", _SEQUENCE).replace("F_", f"({NUMBER})")
