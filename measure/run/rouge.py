"""ROUGE of an answer against a reference: shared words, pairs of words and the longest common sequence (Lin 2004,
"ROUGE: A Package for Automatic Evaluation of Summaries", sections 2 and 3, F-measures of precision and recall alike).

Words are as google-research/rouge_score has them without its stemmer: small letters and digits, all else a space.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_WORDS = re.compile(r"[a-z0-9]+")


def rouge(reference: str, answer: str) -> Mapping[str, float]:
    """F-measures between 0 and 1."""
    wanted, given = (_WORDS.findall(text.lower()) for text in (reference, answer))
    return {
        "rouge1": _measure(_shared(wanted, given, 1), len(wanted), len(given)),
        "rouge2": _measure(_shared(wanted, given, 2), len(wanted) - 1, len(given) - 1),
        "rougeL": _measure(longest_common(wanted, given), len(wanted), len(given)),
    }


def mean_rouge(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Means over (reference, answer), in percent as MLPerf has them; {} of none."""
    scores = [rouge(reference, answer) for reference, answer in pairs]
    return {name: 100.0 * sum(score[name] for score in scores) / len(scores) for name in scores[0]} if scores else {}


def _measure(shared: int, wanted: int, given: int) -> float:
    """Harmonic mean of shared over wanted and shared over given."""
    return 2.0 * shared / (wanted + given) if shared > 0 else 0.0


def _shared(wanted: Sequence[str], given: Sequence[str], size: int) -> int:
    counts = [Counter(zip(*(words[start:] for start in range(size)), strict=False)) for words in (wanted, given)]
    return (counts[0] & counts[1]).total()


def longest_common(wanted: Sequence[str], given: Sequence[str]) -> int:
    """Length of the longest sequence that is in both, not necessarily in one piece; a row of the table is one whole
    number, a bit a word (Hyyrö 2004, "Bit-parallel LCS-length computation revisited")."""
    places: dict[str, int] = {}
    for place, word in enumerate(wanted):
        places[word] = places.get(word, 0) | 1 << place
    every = row = (1 << len(wanted)) - 1
    for word in given:
        hits = row & places.get(word, 0)
        row = (row + hits | row - hits) & every
    return len(wanted) - row.bit_count()
