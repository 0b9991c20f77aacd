"""Groups of samples of each prompt, and how long they are, of runs that generate what they learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from agent.offline.language.assign import Filled
from agent.offline.language.mentions import Mentions
from agent.offline.language.rows import Row

_RL_STAGES = ("grpo", "ppo")
# Tokens between a number of answers and the prompt that each is of.
_BEHIND, _BEFORE = 6, 9
# More prompts than these are all that there are.
_MOST_PROMPTS = 1024
# Answers are more numerous than this only where they are counted in tokens.
_MOST_ANSWERS = 64
_ANSWERED = ("response_len", "output_len", "dataset_samples", "requests", "global_batch")


def is_of_rl(plan: Mapping[str, Any]) -> bool:
    return (plan.get("workload") or {}).get("stage") in _RL_STAGES


def as_prompts(filled: Sequence[Filled]) -> list[Filled]:
    """Prompts beside how often each is answered as those of a step: '64 prompts x 8 samples'."""
    grouped = any(number.field == "group_size" for number in filled)
    batch = any(number.field == "global_batch" for number in filled)
    for number in filled if grouped and not batch else ():
        last = number.row.amounts[-1]
        counted = last.unit("requests", "samples") and not last.unit("tokens") and not last.per
        if counted and number.field in ("prompt_len", "dataset_samples") and number.values[-1] <= _MOST_PROMPTS:
            return [replace(number, field="global_batch"), *(other for other in filled if other is not number)]
    return list(filled)


def generates(read: Mentions, plan: Mapping[str, Any]) -> bool:
    """Whether a run generates what it learns from."""
    stages = [value.value for value in read.values if value.field in ("stage", "rollout")]
    return is_of_rl(plan) or any(stage in (*_RL_STAGES, "separate", "colocated", "trainer") for stage in stages)


def as_groups(read: Mentions, filled: Sequence[Filled], left: Sequence[Row]) -> tuple[list[Filled], list[Row]]:
    """The numbers with samples of each prompt, where samples are generated, as a group, and the rest: '16 samples
    each', '8 respostas por prompt com 4096 tokens', of which the tokens are those of an answer."""
    groups = [number for number in filled if number.field == "group_size"]
    prompts = [range(*number.name) for number in groups if number.name]
    if not groups:
        loose = [Filled("response_len", (row.amounts[-1].value,), row, 1.0) for row in left if row.bare]
        for number in (*filled, *loose):
            counted = _counts_answers(number)
            prompt = _of_each_prompt(read, number) if counted else None
            few = counted and number.values[-1] <= _MOST_ANSWERS
            few = few and (number.field == "dataset_samples" or (number.name and number.field == "response_len"))
            if prompt or few or (number.field == "dataset_samples" and is_each(read, number.row.end)):
                filled = [*(other for other in filled if other is not number), replace(number, field="group_size")]
                left = [row for row in left if row is not number.row]
                prompts += [prompt] if prompt else []
                break
    answered = any(number.field == "response_len" for number in filled)
    for group, number in pairwise(sorted(filled, key=lambda number: number.row.start)):
        each = number.field == "sample_tokens" and is_each(read, number.row.end)
        if group.field == "group_size" and each and not answered:
            # '16 completions, 1024 tokens each'
            filled = [*(other for other in filled if other is not number), replace(number, field="response_len")]
        if group.field == "prompt_len" and group.values[-1] == 1 and number.field == "group_size":
            # '1 prompt, 8 samples'
            filled = [other for other in filled if other is not group]
    if answered or not prompts:
        return list(filled), list(left)
    # What the prompt of 'for each prompt' seems to name.
    named = [number for number in filled if number.field in ("prompt_len", "seq_len")]
    named = [number for number in named if number.row.amounts[-1].unit("tokens") or number.row.amounts[-1].scale]
    named = [number for number in named if number.name is None or number.name[0] in prompts[0]]
    return [replace(number, field="response_len") if number in named else number for number in filled], list(left)


def _counts_answers(number: Filled) -> bool:
    """Whether a number may be one of answers, and is none of tokens."""
    amount = number.row.amounts[-1]
    return number.field in _ANSWERED and not amount.scale and not amount.unit("tokens")


def is_each(read: Mentions, at: int) -> bool:
    return at < len(read.tokens) and read.tokens[at].norm in read.found.lexicon.of_each


def _of_each_prompt(read: Mentions, number: Filled) -> range | None:
    """Where a prompt beside a number of answers is that each of them is of: '8 answers per prompt', 'for every prompt 8
    answers'."""
    start, end = number.row.start, number.row.end
    near = [*range(end, min(end + _BEHIND, len(read.tokens))), *range(max(start - _BEFORE, 0), start)]
    for at in near:
        of = read.found.sense(at, "field")
        if not (of and any(sense.name == "prompt_len" for sense in read.found.words[at][0].senses)):
            continue
        before = any(read.found.does(step, "per") == at for step in range(max(at - 2, 0), at))
        if before or read.found.does(of[1], "per"):
            return range(at, of[1])
    return None
