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
    words, heard = (_WORDS.findall(text.lower()) for text in (reference, answer))
    return {
        "rouge1": _measure(_shared(words, heard, 1), len(words), len(heard)),
        "rouge2": _measure(_shared(words, heard, 2), len(words) - 1, len(heard) - 1),
        "rougeL": _measure(longest_common(words, heard), len(words), len(heard)),
    }


def mean_rouge(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Means over (reference, answer), in percent as MLPerf has them; {} of none."""
    scores = [rouge(reference, answer) for reference, answer in pairs]
    return {name: 100.0 * sum(score[name] for score in scores) / len(scores) for name in scores[0]} if scores else {}


def _measure(shared: int, reference: int, answer: int) -> float:
    """Harmonic mean of what is shared over the counts of the reference and of the answer."""
    return 2.0 * shared / (reference + answer) if shared > 0 else 0.0


def _shared(reference: Sequence[str], answer: Sequence[str], size: int) -> int:
    counts = [Counter(zip(*(words[start:] for start in range(size)), strict=False)) for words in (reference, answer)]
    return (counts[0] & counts[1]).total()


def longest_common(reference: Sequence[str], answer: Sequence[str]) -> int:
    """Length of the longest sequence that is in both, not necessarily in one piece; a row of the table is one whole
    number, a bit a word (Hyyrö 2004, "Bit-parallel LCS-length computation revisited")."""
    places: dict[str, int] = {}
    for place, word in enumerate(reference):
        places[word] = places.get(word, 0) | 1 << place
    every = row = (1 << len(reference)) - 1
    for word in answer:
        hits = row & places.get(word, 0)
        row = (row + hits | row - hits) & every
    return len(reference) - row.bit_count()
