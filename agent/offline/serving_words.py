"""What an utterance about serving says besides its numbers: engines, formats, scenarios, intents and limits."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, get_args

from agent.offline import serving_vocabulary, vocabulary
from agent.offline.limit_words import LIMIT_TOO, LIMITS, LimitQuestion, family_of
from agent.offline.numbers import amount, context_length, count
from agent.offline.page import Page
from agent.offline.rules import INSTEAD_OF
from agent.offline.slots import Question, Slot
from estimator.plan.schema import Engine, WeightDtype
from knowledge.mlperf import benchmarks

# 'Traffic doubles in Q4' is about the fourth quarter.
_QUARTER = re.compile(
    r"\b(?:doubl|tripl|grow|launch|ris|go live|start|begin|expect)\w*(?: \w+){0,3} (?:in|by|for|until)\s+$",
    re.IGNORECASE,
)
_VERSION = r"[- ]?(?:version )?v?(\d+\.\d+(?:\.\d+)*(?:rc\d+|\.?post\d+)?)\b"
_CACHE = "|".join(serving_vocabulary.CACHE_FORMATS)
_KV = r"(?:kv|key[-/ ]value)(?:[-_ ]?cache)?(?:[-_ ]?(?:dtype|format|precision))?"
_CACHE_RULES = (
    re.compile(rf"\b({_CACHE})[-_ ](?:for (?:the )?)?(?:{_KV}|cache)\b", re.IGNORECASE),
    re.compile(
        rf"\b{_KV}\s*(?:(?:in|as|to|at|is|was|were|of|goes|also|too|stored|kept|quanti[sz]ed|only)\b\s*|[=:]\s*)*({_CACHE})\b",
        re.IGNORECASE,
    ),
)
_BOTH = re.compile(rf"\b({_CACHE})\b(?: weights?)? (?:and|\+) (?:the )?{_KV}\b(?! (?:in|as))", re.IGNORECASE)
_EITHER = re.compile(
    rf"\b({_CACHE})(?: {_KV})? (?:or|vs\.?|versus) ({_CACHE})[- ](?:for (?:the )?)?(?:{_KV}|cache)\b", re.I
)
_OR = re.compile(r"\b(?:or|vs\.?|versus|compared?|against|between|which|best|than)\b|/", re.IGNORECASE)
_WHICH = {
    "workload.engine": r"\b(?:which|what|best)(?: \w+)? (?:engine|runtime|inference server)s?\b",
    "workload.weight_dtype": r"\b(?:which|what|best)(?: \w+)? (?:precision|format|dtype|quanti[sz]ation)s?\b",
}
# A limit whose value stands beside it is no question.
_SOLVED_BY_VALUE = {"concurrency": "workload.concurrency", "input_len": "workload.input_len"}
# What is said of these is a wish, however like a question its words are.
LIMIT_PATHS = ("workload.ttft_slo_ms", "workload.tpot_slo_ms", "e2e_limit_s", "token_rate", "workload.request_rate")
_BARE_PATHS = ("workload.input_len", "workload.output_len", "workload.max_context")


def read_words(page: Page) -> tuple[list[Slot], list[Question], dict[str, list[str]]]:
    """(Slots, questions, alternatives): where several engines or formats are named to choose from, none is a slot;
    where the question is which of all, there are no names."""
    slots: list[Slot] = []
    questions: list[Question] = []
    choices: dict[str, list[str]] = {}
    asks = bool(_OR.search(page.rest))
    for match in page.find(_EITHER):
        choices["kv_dtype"] = [serving_vocabulary.CACHE_FORMATS[name.lower()] for name in match.groups()]
        page.take(match.start(), match.end())
    _cache(page, slots)
    engines = _engines(page, slots, questions)
    formats = _formats(page, questions)
    for path, found in (("workload.engine", engines), ("workload.weight_dtype", formats)):
        found = [one for one in found if not re.search(rf"{INSTEAD_OF}{re.escape(one[1])}\b", page.text, re.I)] or found
        names = list(dict.fromkeys(name for name, _ in found))
        if len(names) > 1 and asks:
            choices[path.rpartition(".")[2]] = names
        elif names:
            # "Is that with fp8? Try nvfp4.": the last said.
            slots.append(Slot(path, *found[-1]))
        elif re.search(_WHICH[path], page.text, re.IGNORECASE):
            choices[path.rpartition(".")[2]] = []
    for pattern, path, value in serving_vocabulary.WORDS:
        for match in page.find(re.compile(pattern, re.IGNORECASE)):
            words = page.take(match.start(), match.end()).strip()
            if all(slot.path != path for slot in slots):
                slots.append(Slot(path, value, words))
    return slots, questions, choices


def _cache(page: Page, slots: list[Slot]) -> None:
    for match in page.find(_BOTH):
        name = serving_vocabulary.CACHE_FORMATS[match[1].lower()]
        words = page.take(match.end(1), match.end())
        # The format itself is left for the weights.
        slots.append(Slot("workload.kv_dtype", name, words.strip()))
    for rule in _CACHE_RULES:
        for match in page.find(rule):
            name = serving_vocabulary.CACHE_FORMATS[match[1].lower()]
            slots.append(Slot("workload.kv_dtype", name, page.take(match.start(), match.end())))


def _engines(page: Page, slots: list[Slot], questions: list[Question]) -> list[tuple[str, str]]:
    for match in page.find(re.compile(serving_vocabulary.UNKNOWN_ENGINES, re.IGNORECASE)):
        words = page.take(match.start(), match.end())
        valid = ", ".join(get_args(Engine))
        questions.append(Question("workload.engine", f"I know nothing about {words}; which of {valid} shall it be?"))
    found: list[tuple[str, str]] = []
    for pattern, name in serving_vocabulary.ENGINES:
        for match in page.find(re.compile(rf"(?:{pattern})(?:{_VERSION})?", re.IGNORECASE)):
            words = page.take(match.start(), match.end())
            found.append((name, words))
            if match.lastindex and match[match.lastindex]:
                slots.append(Slot("workload.software_version", match[match.lastindex], words))
    return found


def _formats(page: Page, questions: list[Question]) -> list[tuple[str, str]]:
    found: list[tuple[int, str, str]] = []
    known = get_args(WeightDtype)
    for match in page.find(re.compile(serving_vocabulary.GGUF, re.IGNORECASE)):
        if _QUARTER.search(page.text, 0, match.start()):
            continue
        words = page.take(match.start(), match.end())
        name = words.lower()
        name = serving_vocabulary.GGUF_SHORT.get(name, name if name in known else f"{name}_m")
        if name in known:
            found.append((match.start(), name, words))
        else:
            near = ", ".join(dtype for dtype in known if dtype[:2] == name[:2])
            questions.append(Question("workload.weight_dtype", f"{words} is no format that I know; near it are {near}"))
    patterns = [*serving_vocabulary.FORMATS, *([] if found else [(r"\bgguf\b", "gguf")])]
    for pattern, name in patterns:
        for match in page.find(re.compile(rf"(?:{pattern})(?: weights?| quanti[sz]\w*)?", re.IGNORECASE)):
            found.append((match.start(), name, page.take(match.start(), match.end())))
    return [(name, words) for _, name, words in sorted(found)]


def intents_of(asked: str) -> list[str]:
    """What is asked for; `asked` is the lower-case text with names blanked."""
    asked = re.sub(r"\b(?:gpu|device)[-_ ]memory[-_ ]utili[sz]ation\b", " ", asked)
    shared = [row for row in vocabulary.INTENTS if row[0] in serving_vocabulary.SHARED_INTENTS]
    found = [name for name, pattern in (*serving_vocabulary.INTENTS, *shared) if re.search(pattern, asked)]
    # "Which is cheapest per million tokens" is about the choice; so is "how can I make it faster" about this plan.
    return [name for name in found if name != "best" or "faster" not in found]


def read_serving_limit(
    named: str, page: Page, said: Collection[str], recent: str | None = None, again: bool = False
) -> tuple[LimitQuestion | None, str]:
    """As read_limit, of serving: the longest context or prompt, most clients, largest model, fewest devices."""
    shared = {"seq_len": "context", "model": "model", "devices": "devices"}
    rows = [*serving_vocabulary.LIMITS]
    patterns = (*LIMITS, *(LIMIT_TOO if again else ()))
    rows += [(shared[goal], pattern) for goal, pattern in patterns if goal in shared]
    for goal, pattern in rows:
        match = re.search(pattern, named)
        if match is None or _SOLVED_BY_VALUE.get(goal) in said or (goal == "devices" and "cluster.count" in said):
            continue
        rest = named[: match.start()] + " " * len(match[0]) + named[match.end() :]
        return LimitQuestion(goal, family_of(page) if goal == "model" else None), rest
    return None, named


def bare_slot(
    match: re.Match[str], before: str, plan: Mapping[str, Any], alone: bool, recent: str | None
) -> Slot | None:
    """What a number without a noun means in a session about serving, or None."""
    words, suffix = match[0].strip(), (match[2] or "").lower()
    length, whole = context_length(words), count(match[1])
    if words.startswith("-"):
        return None
    path = recent if recent in _BARE_PATHS else None
    if suffix == "k" and length and (path or alone):
        name = (path or "workload.input_len").rpartition(".")[2].replace("_", " ")
        return Slot(path or "workload.input_len", length, words, f"{words} read as the {name}, {length:,} tokens")
    if not (plan and alone and whole) or suffix:
        return None
    accelerators = Slot("cluster.count", whole, words, f"{words} read as the number of accelerators")
    if re.search(r"\bon$", before):
        return accelerators
    if path:
        return Slot(path, length, words, f"{words} read as the {path.rpartition('.')[2].replace('_', ' ')}")
    if recent == "workload.request_rate":
        return Slot(recent, amount(words), words, f"{words} read as requests per second")
    if recent == "workload.concurrency":
        return Slot(recent, whole, words, f"{words} read as clients at once")
    return accelerators if recent == "cluster.count" or re.search(r"\bto$", before) else None


def mlperf_arguments(plan: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """project_mlperf's arguments: the benchmark of the plan's model, and what the plan says of machine and engine."""

    model = str(plan.get("model") or "")
    plain = model.removesuffix("-Instruct").removesuffix("-hf").lower()
    same = [row.id for row in benchmarks().values() if _stem(row.model) == _stem(model)]
    scenario = arguments.get("scenario")
    taken = ("accelerator", "count", "per_node", "engine", "software_version", "weight_dtype", "kv_dtype", "tp", "pp",
             "ep", "dp")  # fmt: skip
    found = {name: arguments[name] for name in taken if name in arguments}
    found |= {"scenario": scenario} if scenario in ("offline", "server", "interactive", "single-stream") else {}
    return {"benchmark": same[0] if same else plain.rpartition("/")[2], **found}


def _stem(model: str) -> str:
    """A model's name without its owner and without what sets instruction-tuned variants apart."""
    name = model.rpartition("/")[2].lower()
    return re.sub(r"^meta-|-(?:instruct|chat|hf|it|base|v0\.\d)(?=-|$)", "", name)
