"""Questions for a limit: the longest context, the biggest batch, the largest model, the fewest devices."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from agent.offline.page import Page
from agent.reader.calls.training import SOLVED

_SIZED = re.compile(r"\d+(?:\.\d+)?\s?[bm]\b", re.IGNORECASE)


@dataclass(frozen=True)
class LimitQuestion:
    """`goal` as find_limit names it; `family` of models that is asked about, or any (goal model alone)."""

    goal: str
    family: str | None = None

    @property
    def arguments(self) -> dict[str, str]:
        return {"goal": self.goal} | ({"family": self.family} if self.family else {})


# "What's the max then?" is about what was changed last.
_OF_RECENT = {path: goal for goal, path in SOLVED.items() if goal in ("seq_len", "micro_batch")} | {
    "workload.global_batch": "micro_batch"}  # fmt: skip
_THE_MOST = re.compile(
    r"\b(?:what(?:'s| is| would be|s)|how (?:far|high|much)|and|so)\b[^?.!]{0,16}"
    r"\b(?:the|my|our) (?:max(?:imum)?|most|limit|ceiling|longest|largest|biggest)\b"
    r"(?=(?: (?:then|possible|here|i|we|you|can|could|do|get|go|use|that|fits?|now|on|this|one))*\W*$)"
)
# Questions for a limit, as find_limit's goals. A number behind the words is a value, not a question ("max context 8k").
_MOST = r"\b(?:longest|max(?:imum|imal)?|largest|biggest|greatest|highest)"
_NO_VALUE = (
    r"(?!(?:[- _]?(?:sizes?|lengths?|len|window)\b)?\s*(?:of|=|:|is|are|to|at|, (?:say|like|e\.g\.)|like)?\s*\d)"
)
_CONTEXT = r"(?:context|ctx|seq(?:uence)?s?)(?![^\W_])(?:[- _]?(?:length|len|size|window)s?\b)?"
_BATCH = r"(?:(?:micro[- _]?)?batch(?:es)?\b(?:[- _]?sizes?\b)?|m?bs\b|bsz\b)"
_HOW_LARGE = r"\bhow (?:long|large|big|much|many)"
_HOW_FAR = (
    r"(?:\b(?:up )?to (?:what|which)(?: max(?:imum)?)?|"
    r"\bhow (?:far|high|much further) (?:can|could) (?:i|we|you|one) (?:push|stretch|extend|raise|increase|crank|"
    r"go (?:with|in|on))"
    r"(?: up)?(?: the| my| our)?)"
)
# "And the context?" after another question for a limit.
LIMIT_TOO: tuple[tuple[str, str], ...] = tuple(
    (
        goal,
        rf"^\W*(?:and|what about|how about)(?: in)?(?: the| my| our| its)? (?:max(?:imum)? )?{words}{_NO_VALUE}(?!\w)",
    )
    for goal, words in (("seq_len", _CONTEXT), ("micro_batch", _BATCH), ("model", "model(?: size)?"))
)
LIMITS: tuple[tuple[str, str], ...] = (
    (
        "seq_len",
        rf"{_MOST} (?:(?!model|batch)[\w-]+ ){{0,2}}?{_CONTEXT}{_NO_VALUE}|"
        rf"\b(?:longer|more|bigger|larger) {_CONTEXT}{_NO_VALUE}|"
        rf"{_HOW_LARGE} (?:an? |of an? |can |could |(?:tokens )?of )?(?:the |my )?{_CONTEXT}{_NO_VALUE}|"
        rf"\b{_CONTEXT} (?:limit|ceiling|cap|max(?:imum)?)\b{_NO_VALUE}|"
        rf"{_HOW_FAR} {_CONTEXT}",
    ),
    (
        "micro_batch",
        rf"{_MOST} (?:(?!model)[\w-]+ ){{0,2}}?{_BATCH}{_NO_VALUE}|\b(?:bigger|larger) {_BATCH}{_NO_VALUE}|"
        rf"{_HOW_LARGE} (?:an? |of an? |can |could )?(?:the |my )?{_BATCH}{_NO_VALUE}|"
        rf"\b(?:what|which) {_BATCH} (?:(?:can|could|should) (?:i|we|you|it)|fits?|is possible|will fit)\b|"
        rf"\b{_BATCH} (?:limit|ceiling|cap|max(?:imum)?)\b{_NO_VALUE}|{_HOW_FAR} {_BATCH}",
    ),
    (
        "model",
        r"\bwhat (?:models? |llms? |size )?(?:would |could |can |will )?(?:actually |even )?fits? (?:in|on|into|"
        r"onto)\b|"
        r"\b(?:largest|biggest) (?:(?:possible|dense|moe|open|text|trainable) )?[\ue000]+(?: (?:models?|llms?)\b)?|"
        r"\b(?:largest|biggest) (?:[\w-]+ ){0,2}?(?:models?|llms?)\b|"
        r"\bhow (?:large|big) (?:an? |of an? )(?:[\w-]+ )?(?:[\ue000]+ ?)?(?:model|llm)\b|"
        r"\bwhat (?:models? |llms? )?(?:can|could) (?:i|we) (?:even |realistically |actually )?"
        r"(?:fine-?\s?tun\w*|train|pre-?train|run|fit|serve|host|lora|qlora)\b(?![^?]*[\ue000])|"
        r"\bwhat (?:model size|size (?:of )?(?:an? )?(?:model|llm))\b",
    ),
    # "How many H100s do I need": the size of the cluster is the question.
    (
        "devices",
        r"\b(?:smallest|least|minimum|minimal|lowest) number of (?:these|those|such|the|[\ue001])|"
        r"\bnumber of [\ue001]+s?(?= (?:for|to|that|needed|required|i need|we need)\b|\W*\?)|"
        r"\bhow many of (?:them|those|these|it)\b(?=\W*$|,| (?:do|would|are|is|will) )|"
        r"\b(?:smallest|least|minimum|minimal|lowest) number of them\b|"
        r"\bhow many (?:do|would|should|will|must) (?:i|we) (?:have to |need to )?(?:need|rent|buy|get)\b|"
        r"\bnumber of (?:gpus?|accelerators?|cards?|devices?|chips?)(?= (?:(?:i|we) need|needed|required)|\W*\?|\W*$)|"
        r"\b(?:how many|what number of|(?:min(?:imum)?|smallest) number of|min(?:imum)?|fewest|least) ?"
        r"(?>[\ue001]+s?|(?:gpus?|accelerators?|cards?|devices?|chips?|tpus?)\b)"
        r"(?! (?:memory|ram)\b)(?!(?:[- ]|\s*\*\s*)?(?:hours?|hrs?|h|days?)\b)",
    ),
)
# Asked for although a value was said: 'seq len is 16k and it OOMs. How long a sequence can we use?'
_IN_ANY_CASE = re.compile(r"\bhow (?:long|large|big) an?\b|\bnumber of them\b")


def read_limit(
    named: str, page: Page, said: Collection[str], recent: str | None = None, again: bool = False
) -> tuple[LimitQuestion | None, str]:
    """The question for a limit, if there is one, and the text without its words. `again`: another one went before.

    `named` is the lower-case text with names blanked, `said` the Plan paths that were given a value.
    """
    for goal, pattern in (*LIMITS, *(LIMIT_TOO if again else ())):
        match = re.search(pattern, named)
        if match is None or (goal != "model" and SOLVED[goal] in said and not _IN_ANY_CASE.search(match[0])):
            continue
        rest = named[: match.start()] + " " * len(match[0]) + named[match.end() :]
        return LimitQuestion(goal, family_of(page) if goal == "model" else None), rest
    goal = _OF_RECENT.get(recent or "", "seq_len")
    if recent and SOLVED[goal] not in said and _THE_MOST.search(named):
        return LimitQuestion(goal), _THE_MOST.sub(" ", named)
    return None, named


def family_of(page: Page) -> str:
    """The family that is named ('the largest Llama model'): a model name without a size; else any."""
    names = [name.text for name in page.of("model") if not _SIZED.search(name.text)]
    return re.sub(r"[\s_-]", "", names[0].lower()) if names else "any"
