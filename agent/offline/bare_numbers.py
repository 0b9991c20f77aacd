"""Numbers without a noun, told by their form, by what changed last, or by what they come nearest to."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from agent.offline.numbers import START, amount, context_length, count
from agent.offline.page import Page
from agent.offline.slots import Relative, Slot
from planner.partial import get

_BARE = re.compile(
    rf"(?:(?<!\S)-|{START})(\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?)(?:\s?(k|m|b|t)(?![\w]))?(?![\w%/]|\.\d|-[a-z]|"
    rf"\s*[\ue000-\ue002]|\s*(?:usd|dollars?|eur|euros?)\b)",
    re.IGNORECASE,
)
# Nothing but the end of a clause stands behind a number that is all the follow-up says.
_CLAUSE_END = re.compile(
    r"\s*(?:[?.!,;]|$|\b(?:then|now|instead|please|with|at|and|but|for|using|of them)\b)", re.IGNORECASE
)
# What is told of a number that could not be placed: the words around it.
_BEFORE = re.compile(r"(?:[A-Za-z][\w'-]*\s+){0,3}$")
_AFTER = re.compile(r"(?:\s?[A-Za-z%][\w/%]*)?")
# Before the number that is left: '24 instead of 16'.
_REPLACED = re.compile(r"\b(?:instead of|rather than|not)\s*$", re.IGNORECASE)
# What a number that is all of a follow-up may be, beside devices, length and batch, where it changed last.
_WHOLE = ("workload.epochs", "workload.micro_batch", "workload.lora.rank", "workload.group_size", "layout.tp",
          "layout.pp", "layout.cp", "layout.ep", "layout.zero_stage")  # fmt: skip
_MOST_ZERO = 3
# What a number behind 'at' can only be.
LENGTHS = frozenset(2**power for power in range(10, 21))
# By what factor a size may change that is told by its number alone.
_NEAR = 4.0
_OF_DEVICES = re.compile(r"\b(?:on|with|to|use|using|had|have|rent|take|get|got|order|buy)$")
# Below it no sequence is, so that thousands are meant.
_LEAST_LENGTH = 512
_Meaning = Callable[[re.Match[str], str, Mapping[str, Any], bool, str | None], Slot | None]


def read_bare(
    page: Page, plan: Mapping[str, Any], recent: str | None, meaning: _Meaning | None = None
) -> tuple[list[Slot | Relative], list[str]]:
    """Numbers without a noun in a follow-up ('what about 16k', 'and on 8'): by form, else by what changed last.

    `meaning` decides what one of them means; by default as in a plan for training. Second: numbers that could not be
    placed, to be told to the user.
    """
    slots: list[Slot | Relative] = []
    unread: list[str] = []
    matches = [match for match in page.find(_BARE) if not _REPLACED.search(page.rest, 0, match.start())]
    for match in matches:
        if page.text[match.start()] not in "-0123456789":
            continue  # a spelled-out number ("which one") counts only with a noun
        alone = len(matches) == 1 and bool(_CLAUSE_END.match(page.rest, match.end()))
        before = page.rest[: match.start()].lower().rstrip()
        named = bool(page.of("model", "path"))
        slot = (
            meaning(match, before, plan, alone, recent)
            if meaning
            else _bare_slot(match, before, plan, alone, recent, named)
        )
        if slot:
            slots.append(slot)
        else:
            before, after = _BEFORE.search(page.rest, 0, match.start()), _AFTER.match(page.rest, match.end())
            unread.append((before[0] if before else "") + match[0].strip() + (after[0] if after else ""))
        page.take(match.start(), match.end())
    return slots, unread


def _stands_alone(match: re.Match[str], before: str) -> bool:
    """Whether a number is all of its clause, as in 'llama 8b, dpo, 2048'."""
    return before.endswith((",", ";")) and bool(_CLAUSE_END.match(match.string, match.end()))


def _nearer_length(number: int, plan: Mapping[str, Any]) -> bool:
    """Whether a number is nearer to the sequence length that was said than to the number of devices."""
    length, devices = get(plan, "workload.seq_len"), get(plan, "cluster.count")
    return bool(length) and abs(math.log(number / length)) < abs(math.log(number / (devices or 1)))


def _bare_slot(
    match: re.Match[str], before: str, plan: Mapping[str, Any], alone: bool, recent: str | None, named: bool
) -> Slot | None:
    """What a number without a noun means, or None. `alone`: it is the only one and ends its clause; `named`: a model
    is."""
    words, suffix = match[0].strip(), (match[2] or "").lower()
    length, whole = context_length(words), count(match[1])
    if words.startswith("-"):
        return None
    if (suffix in ("b", "t") and (plan or named)) or (
        suffix == "m" and (plan or named) and _CLAUSE_END.match(match.string, match.end())
    ):
        return Slot("workload.dataset_tokens", amount(words), words, f"{words} read as tokens of training data")
    if suffix == "k" and length:
        return Slot("workload.seq_len", length, words, f"{words} read as the sequence length, {length:,} tokens")
    if whole in LENGTHS and not suffix and (re.search(r"(?:\bat|@)$", before) or _stands_alone(match, before)):
        return Slot("workload.seq_len", whole, words, f"{words} read as the sequence length")
    back = before.endswith("back to") and recent in ("cluster.count", "workload.global_batch")
    if not (plan and whole and (alone or (back and not suffix))):
        return None
    of_devices = _OF_DEVICES.search(before) and not before.endswith("back to")
    had = get(plan, recent) if recent == "workload.seq_len" else None
    if recent and had and whole <= _LEAST_LENGTH <= had and not of_devices:
        # "Back to 6" of sequences of 8k.
        return Slot(recent, context_length(f"{whole}k"), words, f"{words} read as {whole}k tokens of sequence length")
    if whole in LENGTHS and not suffix and _nearer_length(whole, plan):
        return Slot("workload.seq_len", whole, words, f"{words} read as the sequence length")
    if not suffix and of_devices and not (had and _nearer_length(whole, plan)):
        return Slot("cluster.count", whole, words, f"{words} read as the number of accelerators")
    if recent in ("cluster.count", "workload.seq_len", "workload.global_batch", *_WHOLE):
        if recent == "layout.zero_stage" and whole > _MOST_ZERO:
            return None
        value = length if recent == "workload.seq_len" else whole
        return Slot(recent, value, words, f"{words} read as the {recent.rpartition('.')[2].replace('_', ' ')}")
    return None if suffix else _near(whole, words, plan)


def _near(number: int, words: str, plan: Mapping[str, Any]) -> Slot | None:
    """'No wait, 256' where nothing that is a number changed last: the size that it comes nearest to."""
    sizes = {path: get(plan, path) for path in ("cluster.count", "workload.seq_len", "workload.global_batch")}
    far = {path: abs(math.log(number / size)) for path, size in sizes.items() if size}
    path = min(far, key=lambda name: far[name], default=None)
    if path is None or far[path] > math.log(_NEAR):
        return None
    return Slot(path, number, words, f"{words} read as the {path.rpartition('.')[2].replace('_', ' ')}")
