"""'LoRA or full?', 'ZeRO-2 vs 3', 'H100 against MI300X': the values of one field that are to be set side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from agent.offline import vocabulary
from agent.offline.comparing import COMPARES
from agent.offline.page import Page, compiled

# Fields that alternatives are read of, by the words of the vocabulary.
_WORDED = ("workload.method", "workload.optimizer", "workload.precision", "workload.framework", "workload.stage",
           "layout.offload", "workload.attention")  # fmt: skip
# 'ZeRO-2 or 3', 'tp 4 vs 8', 'stage 2 and stage 3': the name stands once or before each.
_NUMBERED: tuple[tuple[str, str], ...] = (
    (r"(?:deepspeed )?zero(?:[- _]?stages?)?|stages?", "layout.zero_stage"),
    (r"tp", "layout.tp"),
    (r"pp", "layout.pp"),
    (r"ep", "layout.ep"),
    (r"cp", "layout.cp"),
    (r"(?:lora )?ranks?|r\s*=", "workload.lora.rank"),
    (r"micro[- _]?batch(?:es)?(?: size)?|mbs", "workload.micro_batch"),
    (r"(?:global[- _]?)?batch(?: size)?|gbs", "workload.global_batch"),
)
_SHORT = {name: name for name in ("tp", "pp", "cp", "ep", "dp", "vpp")} | {
    "mbs": "micro_batch", "gbs": "global_batch", "zero": "zero_stage"}  # fmt: skip
_SETTING = rf"(?:(?<![\w])|(?<=\dx))({'|'.join(_SHORT)})[-_ ]*[=:]?\s*(\d+)(?:(?![\w.])|(?=x[a-z]))"
_SETTINGS = rf"{_SETTING}(?:[\s,/+x&-]*{_SETTING})*"
_OR = r"\s*,?\s*\b(?:or|vs\.?|versus|against|compared (?:to|with))(?=\W)\s*"
_VARIANTS = re.compile(rf"{_SETTINGS}(?:{_OR}{_SETTINGS})+", re.I)
_RECOMPUTE: tuple[tuple[str, str], ...] = (
    (r"\b(?:no|without) (?:recompute|recomputation|(?:activation |gradient )?checkpointing)\b", "none"),
    (r"\bselective(?: (?:recompute|recomputation|(?:activation |gradient )?checkpointing))?\b", "selective"),
    (r"\bfull (?:recompute|recomputation|(?:activation |gradient )?checkpointing)\b", "full"),
)
# 'With or without gradient checkpointing'.
_WITHOUT: tuple[tuple[re.Pattern[str], str, tuple[Any, ...]], ...] = tuple(
    (re.compile(rf"\bwith(?:\s*(?:or|and|vs\.?|versus|/)\s*without) (?:the )?(?:{pattern})", re.I), path, values)
    for pattern, path, values in (
        (
            r"(?:activation |gradient |full )?(?:check-?pointing|recompute|recomputation)",
            "layout.recompute",
            ("full", "none"),
        ),
        (r"(?:cpu |optimizer )?off-?load(?:ing)?", "layout.offload", ("optimizer", "none")),
        (r"flash\w*(?:[- ]attention)?", "workload.attention", ("flash", "eager")),
        (r"packing", "workload.packing", (True, False)),
        (r"(?:torch\.?)?compile", "workload.compile", (True, False)),
        (r"sequence parallel\w*", "layout.sequence_parallel", (True, False)),
    )
)
_JOIN = r"\s*(?:,|/|or|vs\.?|versus|and|against|than|&|(?:compared? |stack up )(?:to|with|against))\s*"
_FULL = re.compile(
    r"\bfull(?:[- ](?:parameter|weights?))?(?:[- ](?:fine-?\s?tun\w*|finetun\w*|sft|ft|training))?\b(?![- ](?:shard|"
    r"recomp|check|prec|cuda))",
    re.I,
)


def read_alternatives(page: Page) -> dict[str, list[Any]]:
    """{Plan path: values}, at most two fields; their words are blanked. Empty where nothing is to be compared."""
    for rule, path, values in _WITHOUT:
        for match in page.find(rule):
            page.take(match.start(), match.end())
            return {path: list(values)}
    if not compiled(COMPARES).search(page.rest):
        return {}
    found: dict[str, list[Any]] = {}
    for path, values in (*_numbers(page), *_words(page)):
        if len(values) > 1 and len(found) < 2:
            found.setdefault(path, values)
    return found


def read_variants(page: Page) -> list[dict[str, Any]]:
    """'TP8 PP1 or TP4 PP2' as scenarios of several fields each; their words are blanked."""
    for match in page.find(_VARIANTS):
        parts = [part for part in re.split(_OR, match[0], flags=re.I) if part.strip()]
        settings = [
            {_SHORT[found[1].lower().rstrip("- _")]: int(found[2]) for found in re.finditer(_SETTING, part, re.I)}
            for part in parts
        ]
        if len(settings) > 1 and any(len(one) > 1 for one in settings):
            page.take(match.start(), match.end())
            return [{"name": " ".join(part.split())} | one for part, one in zip(parts, settings, strict=True)]
    return []


def _numbers(page: Page) -> Iterator[tuple[str, list[Any]]]:
    for name, path in _NUMBERED:
        rule = re.compile(rf"(?<![\w-])(?:{name})[- _=]*(\d+)((?:{_JOIN}(?:{name})?[- _=]*\d+)+)(?![\w.])", re.I)
        for match in page.find(rule):
            values = [
                int(number) for number in re.findall(r"\d+", match[1] + " " + re.sub(name, " ", match[2], flags=re.I))
            ]
            page.take(match.start(), match.end())
            yield path, list(dict.fromkeys(values))
            break


def _words(page: Page) -> Iterator[tuple[str, list[Any]]]:
    kinds: list[tuple[str, list[tuple[re.Pattern[str], Any]]]] = [
        ("layout.recompute", [(re.compile(pattern, re.I), value) for pattern, value in _RECOMPUTE])
    ]
    for path in _WORDED:
        rules = [(re.compile(p, re.I), value) for p, at, value in vocabulary.WORDS if at == path]
        if path == "workload.method":
            rules.append((_FULL, "full"))
        kinds.append((path, rules))
    for path, rules in kinds:
        spans: list[tuple[int, int, Any]] = []
        for rule, value in rules:
            for match in rule.finditer(page.rest):
                if match[0] and not any(start < match.end() and match.start() < end for start, end, _ in spans):
                    spans.append((match.start(), match.end(), value))
        spans.sort()
        values = list(dict.fromkeys(value for _, _, value in spans))
        if len(values) < 2 or not _joined(page.rest, spans):
            continue
        if (
            path == "workload.method"
            and "full" in values
            and set(values) == {"full", "lora"}
            and _plain_full(page.rest)
        ):
            continue
        for start, end, _ in spans:
            page.take(start, end)
        yield path, values


def _joined(text: str, spans: list[tuple[int, int, Any]]) -> bool:
    """Whether words of comparing stand between, before or behind the values."""
    between = " ".join(text[one[1] : other[0]] for one, other in pairwise(spans))
    if re.search(r"\b(?:vs\.?|versus|or|against|and|both|compared|than|beats?|out-?performs?)\b|[,/&]", between, re.I):
        return all(other[0] - one[1] <= 40 for one, other in pairwise(spans))
    return False


def _plain_full(text: str) -> bool:
    """'Full' that belongs to something else: 'full context with LoRA or …'."""
    return bool(re.search(r"\bfull (?:context|sequence|node|box|system)\b", text, re.I))
