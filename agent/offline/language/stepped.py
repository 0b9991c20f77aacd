"""Changes without a number: 'a bigger batch', 'less pp', 'longer sequences', 'reduce tp', 'make the batch smaller'."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.offline.language.mentions import Mentions

# What sizes are doubled and halved by, where nobody says by how much.
STEP = 2.0
# Sizes that people turn up and down. What is counted one by one, or limits a run, is none of them.
_SIZES = frozenset({
    "batch", "micro_batch", "global_batch", "accumulation", "seq_len", "length", "max_context", "input_len",
    "prompt_len", "output_len", "response_len", "tp", "pp", "cp", "ep", "vpp", "lora_rank", "group_size",
    "concurrency", "request_rate", "load",
})  # fmt: skip
_OF_UNITS = {"users": "concurrency"}
# Tokens between a word that refuses and the change that it refuses.
_REFUSES = 4
_DIRECTIONS = {"larger": STEP, "raise": STEP, "smaller": 1 / STEP, "lower": 1 / STEP}


def steps(read: Mentions) -> Iterator[tuple[int, int, float, tuple[str, ...]]]:
    """(Token, token behind, factor, the fields that it may be of) of each word that makes a size larger or smaller and
    stands right beside it, in a part of a sentence that has no number."""
    for at in sorted(read.found.words):
        word = read.found.words[at][0]
        factor = next((_DIRECTIONS[sense.kind] for sense in word.senses if sense.kind in _DIRECTIONS), None)
        if factor is None or at in read.named_tokens or _is_pointed_at(read, at) or _has_number(read, at):
            continue
        places = [_behind_small_words(read, word.end), *_closed_by(read, at, word.end)]
        if sizes := next(
            filter(None, (_sizes(read, place, of_length=bool(word.all("stretch"))) for place in places)), ()
        ):
            yield at, word.end, factor, sizes


def is_refused(read: Mentions, at: int) -> bool:
    """Whether a word that refuses leads to a change: 'don't lower', 'we can't make it any longer'; 'why not double'
    supposes it."""
    heard = read.found
    # 'No more than twice the cost'
    limits = {step for first, last, _ in read.limits for step in range(first, last)}
    for start in range(max(at - _REFUSES, 0), at):
        takes = start in limits or heard.does(start, "minus")
        end = None if takes else heard.does(start, "refuse_right")
        if end is None or end > at or any(token.ends_clause for token in read.tokens[end:at]):
            continue
        near = range(max(start - 2, 0), start + 1)
        supposed = any((heard.does(step, "suppose") or 0) >= end for step in near) or _asks_back(read, end)
        small = (heard.sense(step, "stop") or heard.sense(step, "field") for step in range(end, at))
        return not supposed and all(small)
    return False


def _asks_back(read: Mentions, at: int) -> bool:
    """Whether who is to do it stands behind a word that refuses, in a question: 'can't we reduce it?'."""
    part = part_of(read, at)
    asked = read.tokens[min(part.stop, len(read.tokens) - 1)].text == "?"
    return asked and at < len(read.tokens) and read.tokens[at].norm in read.found.lexicon.persons


def _is_pointed_at(read: Mentions, at: int) -> bool:
    """Whether words point at one of several: 'the longer one', 'the larger batch'."""
    words = read.found.lexicon
    return at > 0 and read.tokens[at - 1].norm in words.pointing - words.articles


def _has_number(read: Mentions, at: int) -> bool:
    """Whether a number stands in the same part of a sentence: 'reduce tp to 4', 'a 16k longer context'."""
    part = part_of(read, at)
    return any(row.start in part for row in read.rows)


def part_of(read: Mentions, at: int) -> range:
    """The tokens of the part of a sentence that a token stands in."""
    first = next((step + 1 for step in range(at - 1, -1, -1) if read.tokens[step].ends_clause), 0)
    last = next((step for step in range(at, len(read.tokens)) if read.tokens[step].ends_clause), len(read.tokens))
    return range(first, last)


def _behind_small_words(read: Mentions, at: int) -> int:
    """The token behind articles and whose something is: 'reduce the', 'cut our'."""
    small = read.found.lexicon.articles | read.found.lexicon.pointing | read.found.lexicon.of_ones_own
    while at < len(read.tokens) and read.tokens[at].norm in small:
        at += 1
    return at


def _sizes(read: Mentions, at: int, of_length: bool) -> tuple[str, ...]:
    """The sizes that the longest words at a token name; of what is counted its length, where that is said: 'longer
    prompts', not 'more prompts'."""
    for word in read.found.words.get(at, ())[:1]:
        counted = {sense.name for sense in word.all("unit")}
        lengths = {name for name, quantity in read.found.lexicon.quantities.items() if quantity.length}
        named = [sense.name for sense in word.all("field") if of_length or not (counted and sense.name in lengths)]
        named += [_OF_UNITS[name] for name in counted if name in _OF_UNITS and not of_length]
        return tuple(name for name in dict.fromkeys(named) if name in _SIZES)
    return ()


def _closed_by(read: Mentions, at: int, end: int) -> list[int]:
    """Where the words begin that stand right before the last of a part of a sentence: 'make the batch smaller', 'if
    answers get longer', 序列更长."""
    if end < len(read.tokens) and not (read.tokens[end].ends_clause or read.tokens[end].kind == "single"):
        return []
    words, last = read.found.words, at
    while last and read.tokens[last - 1].norm in read.found.lexicon.becoming:
        last -= 1
    return [start for start in range(max(last - 3, 0), last) if words.get(start) and words[start][0].end == last]
