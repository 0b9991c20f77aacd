"""Questions for a limit: the longest context, the biggest batch, the largest model, the fewest devices."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from agent.offline import vocabulary
from agent.offline.page import Page

# The Plan path that each goal solves for; where the user gives it a value, it is no question.
SOLVED = {
    "seq_len": "workload.seq_len",
    "micro_batch": "workload.micro_batch",
    "model": "model",
    "devices": "cluster.count",
    "context": "workload.max_context",
    "input_len": "workload.input_len",
    "concurrency": "workload.concurrency",
}
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


# Asked for although a value was said: 'seq len is 16k and it OOMs. How long a sequence can we use?'
_IN_ANY_CASE = re.compile(r"\bhow (?:long|large|big) an?\b|\bnumber of them\b")


def read_limit(
    named: str, page: Page, said: Collection[str], recent: str | None = None, again: bool = False
) -> tuple[LimitQuestion | None, str]:
    """The question for a limit, if there is one, and the text without its words. `again`: another one went before.

    `named` is the lower-case text with names blanked, `said` the Plan paths that were given a value.
    """
    for goal, pattern in (*vocabulary.LIMITS, *(vocabulary.LIMIT_TOO if again else ())):
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
