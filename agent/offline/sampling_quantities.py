"""Numbers of a training that samples answers (PPO, GRPO): lengths of prompts and answers, groups, prompts of a step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from agent.offline.numbers import START, context_length, count
from agent.offline.page import Page
from agent.offline.rules import ANSWERS, OF, rule
from agent.offline.slots import Slot
from planner.partial import get

_TRAININGS = re.compile(r"\b(?:grpo|ppo|rlhf|rlvr|rloo|rollouts?)\b", re.IGNORECASE)
_STAGES = ("grpo", "ppo")
_PROMPTS = r"(?:prompts?|questions?)"
_TOKENS = r"(?:[- ]?tok(?:en)?s?\b)?"
_ABOUT = r"(?: (?:of|up to|at most|to|are|is|with|have|max(?:imum)?|about|around)| ?~)*"
_ANSWER = r"(?:response|completion|rollout|generation|answer|output)"
_GROUP, _LENGTH = "workload.group_size", "workload.response_len"
# Two numbers at once; the first rule holds of any training.
_PAIRS: tuple[tuple[str, str, str], ...] = (
    # '8 answers per prompt, each up to 1024 tokens'
    (rule(rf"N_ (?:samples?|{ANSWERS}) (?:per|for each|for every|a) (?:prompt|question),?"
          r"(?: (?:of|up to|are|with|each|max(?:imum)?|about|~))+ L_[- ]?tok(?:en)?s?\b"), _GROUP, _LENGTH),
    # '512 in, 2048 out'
    (rule(rf"L_{_TOKENS} in(?:put)?\b[ ,/+]*(?:and )?L_{_TOKENS} out(?:put)?\b"), "prompt_len", _LENGTH),
    # '512 prompt + 2048 response', '4k max response + 1k prompt'; of several prompts it is their number.
    (rule(rf"L_{_TOKENS} (?:max )?prompt\s*(?:\+|and|,|/|&)\s*L_{_TOKENS} (?:max )?{_ANSWER}\b"),
     "prompt_len", _LENGTH),
    (rule(rf"L_{_TOKENS} (?:max )?{_ANSWER}\s*(?:\+|and|,|/|&)\s*L_{_TOKENS} (?:max )?prompt\b"),
     _LENGTH, "prompt_len"),
)  # fmt: skip
_RULES: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    (rule(rf"\bprompts?\s*(?:\+|and|plus|&)\s*(?:the )?{ANSWERS}(?: (?:of|up to|are|together|in all|combined|max))*"
          rf" (?:about |~)?L_{_TOKENS}"), "workload.seq_len", context_length),
    (rule(r"\bgroups?(?:[- _]size)?[- =:of]+N_|\bnum[- _]generations[- =:of]*N_|\b(?:rollout\.)?n ?= ?N_|\bg ?= ?N_"),
     _GROUP, count),
    (rule(rf"\b(?:(?:train(?:ing)?|global|rollout)[-_ ])?batch(?:[-_ ]size)?{OF}N_ (?:{_PROMPTS}|{ANSWERS})\b(?! per)"),
     "workload.global_batch", count),
    (rule(rf"N_ {_PROMPTS} (?:per|/|a|each|in (?:a|each|every)) (?:batch|step|update|iteration|rollout)\b"),
     "workload.global_batch", count),
    (rule(rf"\b(?:max(?:imum)?[-_ ])?{_PROMPTS}[-_ ]?(?:len(?:gth)?s?|tokens){OF}L_{_TOKENS}"),
     "prompt_len", context_length),
    (rule(rf"\b{_PROMPTS}{_ABOUT} L_[- ]?tok(?:en)?s?\b"), "prompt_len", context_length),
    (rule(rf"L_[- ]?tok(?:en)?s? {_PROMPTS}\b"), "prompt_len", context_length),
    (rule(r"\bprompt(?: of| is| ?[:=])? ?~?L_(?=\s*(?:[,;+.?!)]|and\b|$))"), "prompt_len", context_length),
    (rule(rf"{ANSWERS}(?: (?:of|up to|are|with|max(?:imum)?))*(?: about| ~)? L_[- ]?tok(?:en)?s?\b"),
     _LENGTH, context_length),
    (rule(rf"\b(?:max(?:imum)?|longest) {ANSWERS}(?: (?:is|are|of|at))? L_{_TOKENS}"),
     _LENGTH, context_length),
    (rule(rf"{ANSWERS} (?:of |up to |max(?:imum)? |are |with )+L_(?!\s*(?:per|for each|%|s\b|ms\b))"),
     _LENGTH, context_length),
    (rule(rf"{START}(\d+(?:\.\d+)?k)(?:[- ]tok(?:en)?s?)?[- ]{ANSWERS}\b"), _LENGTH, context_length),
    (rule(rf"\bmax[-_ ]?new[-_ ]tokens{OF}L_|L_ new tokens\b"), _LENGTH, context_length),
    (rule(rf"\bgenerat(?:e|es|ing){_ABOUT} L_{_TOKENS}(?! (?:samples?|{ANSWERS}|per|for each|a prompt)\b)"),
     _LENGTH, context_length),
    (rule(r"N_ (?:generations?|completions?|rollouts?|samples?(?= (?:per|for each|a) prompt))"
          r"(?: (?:per|for each|a) (?:prompt|question))?\b"), _GROUP, count),
    (rule(rf"N_ (?:samples?|{ANSWERS}) (?:each|apiece)\b"), _GROUP, count),
)  # fmt: skip


def samples_answers(text: str, plan: Mapping[str, Any]) -> bool:
    """Whether answers are sampled in what is said, or in the plan that it changes: they and their number are no data
    then."""
    return bool(_TRAININGS.search(text)) or get(plan, "workload.stage") in _STAGES


def read_sampling(page: Page, sampling: bool) -> list[Slot]:
    """What is said of prompts and answers; their words are blanked. `prompt_len` needs the answers' length, too."""
    slots: list[Slot] = []
    for pattern, *paths in _PAIRS if sampling else _PAIRS[:1]:
        for match in page.find(pattern):
            words = page.take(match.start(), match.end()).strip()
            for path, number in zip(paths, match.groups(), strict=True):
                slots.append(Slot(path, count(number) if path == _GROUP else context_length(number), words))
    for pattern, path, read in _RULES if sampling else ():
        for match in page.find(pattern):
            value = read(next(group for group in match.groups() if group))
            slots.append(Slot(path, value, page.take(match.start(), match.end()).strip()))
    return slots
