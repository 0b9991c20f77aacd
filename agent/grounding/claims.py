"""What a sentence of English says of a verdict: "sits within the card's memory", "memory is not a problem".

A clause speaks of a verdict by its topic, and says yes or no by words that are good or bad for it; a negation turns the
next of these round. Phrases that are both topic and word stand by themselves. Of what is only supposed nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_CLAUSE_END = re.compile(r"[,;:–—()]|\b(?:and|but|so|while|although|though|because|since|which|yet)\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:if|unless|until|when|once|whether)\b|\?\s*$|^\W*(?:with|without|using|after|by)\b", re.IGNORECASE
)
_SUPPOSED = re.compile(
    r"\b(?:would|could|might|may|should|instead|with\s+(?:more|fewer|less|another|a\s+(?:small|larg|bigg)er)|mak(?:e|es|ing)\s+(?:it|this|them)|(?<!\btoo\s\w{3}\s)"
    r"(?<!\btoo\s\w{5}\s)to\s+(?:fit|meet|stay))\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not(?!\s+only)|never|no|cannot|without|nor|neither|hardly|unable|nothing|none|unlikely|rarely|fail(?:s|ed)?)\b|n[’']t\b",
    re.IGNORECASE,
)
# What denies what stands before it: "OOM is unlikely".
_DENIED = re.compile(
    r"\W*(?:\w+\s+)?(?:is|are|will|does|do)(?:n[’']t|\s+(?:be\s+)?(?:not|unlikely|never))\b", re.IGNORECASE
)
# So many words before what is said are looked at for what denies it.
_REACH = 6
_OF = r"(?:(?:the|its|your|their|this|that|these|those|each|every|one|an?|our|any|all)\s+)"
# 'Lower than with 16 GPUs' is no limit.
_NOT_SO = r"(?!(?:with|at|on|for|by|when|if|in)\b)"
_UP_TO = r"(?:[\w’'-]+\s+){0,2}"
# How what is planned stands to a limit: inside it, by less of something than it or by keeping it, or outside.
_WITHIN = (
    r"within|inside|under|below|beneath|ahead\s+of|(?:well\s+)?before|(?:less|fewer|(?:small|low|cheap|light|short|fast|quick|soon|earli)er)\s+than|"
    r"meets?|met|satisf(?:y|ies|ied)|respect(?:s|ed)?|honou?r(?:s|ed)?|obeys?|keeps?\s+to|as\s+\w+\s+as"
)
_OVER = (
    r"over|above|beyond|past|behind|(?:more|later|(?:larg|bigg|great|high|heavi|dear|long|slow)er)\s+than|exceed(?:s|ed|ing)?|"
    r"surpass(?:es|ed)?|out(?:strip|grow|weigh)s?|over(?:shoot|run|step)s?|tops?"
)
# What the person or the device sets, whatever its name.
_SET = (
    r"(?:limit|target|goal|bound|ceiling|cap|requirement|allowance|objective)s?(?!\s+(?:is|are|was|were|holds?)\b)|"
    r"(?:what\s+)?(?:you|we|they)(?:['’]ve)?\s+(?:\w+\s+)?(?:have|had|ask(?:ed)?|want(?:ed)?|need(?:ed)?|set|specified|g[ai]ven?|allow(?:ed)?|"
    r"spend|can\s+\w+)(?!\s+to\s+(?!spend|pay|wait))|(?:required|asked|allowed|specified|wanted)|what\s+(?:\S+\s+){1,3}(?:has|have|offers?|provides?|holds?|allows?|permits?)|"
    r"(?:slos?|budget|deadline|device|card|gpu)\s+(?:permit|allow|provide|offer)s?"
)
_GOOD = (
    r"enough|adequate|sufficient(?:ly)?|suffices?|plenty|ample|spare|fine|ok(?:ay)?|good|comfortabl[ey]|left|safe(?:ly)?|met|satisfied|kept|"
    r"meets?"
)
_BAD = (
    r"insufficient|inadequate|short\s+(?:of|on)|runs?\s+out|lack(?:s|ing)?|problems?|issues?|troubles?|concerns?|exceed(?:s|ed|ing)?|"
    r"miss(?:es|ed)?|violat(?:es|ed)|broken|too\s+\w+"
)
_HOLD = r"(?:hold|handle|accommodate|cover|swallow|carr(?:y|ie)|cope|manage)s?"
_CARD = r"(?:card|gpu|device|accelerator|machine|board)s?"


@dataclass(frozen=True)
class Claims:
    """How English speaks of one verdict: by the `topic` with common words, `good` and `bad` phrases by themselves, and
    those that speak of it in the answer to a question about it alone; `limit` is what it lies within or over, and so is
    any limit in a clause on what is held against it (`of`)."""

    topic: str
    limit: str
    of: str
    good: str
    bad: str
    good_asked: str = r"(?!)"
    bad_asked: str = r"(?!)"

    def claim(self, sentence: str, is_asked: bool) -> bool | None:
        """What the first clause that speaks of the verdict says; None where none does."""
        if _CONDITION.search(sentence):
            return None
        return next((claim for clause in _clauses(sentence) if (claim := self._of(clause, is_asked)) is not None), None)

    def is_topic(self, text: str) -> bool:
        """Whether a question is about the verdict."""
        return bool(re.search(rf"\b(?:{self.topic}|{self.limit}|{self.good})\b", text, re.IGNORECASE))

    def _of(self, clause: str, is_asked: bool) -> bool | None:
        if _SUPPOSED.search(clause):
            return None
        good = [self.good, rf"(?:{_WITHIN})\s+{_NOT_SO}{_OF}?{_UP_TO}(?:{self.limit})"]
        bad = [self.bad, rf"(?:{_OVER})\s+{_NOT_SO}{_OF}{_UP_TO}(?:{self.limit})"]
        if re.search(rf"\b(?:{self.topic}|{self.of})\b", clause, re.IGNORECASE):
            good = [*good, rf"(?:{_WITHIN})\s+{_NOT_SO}{_OF}?{_UP_TO}(?:{_SET})"]
            bad = [*bad, rf"(?:{_OVER})\s+{_NOT_SO}{_OF}?{_UP_TO}(?:{_SET})"]
        if re.search(rf"\b(?:{self.topic})\b", clause, re.IGNORECASE):
            good, bad = [*good, _GOOD], [*bad, _BAD]
        if is_asked:
            good, bad = [*good, self.good_asked], [*bad, self.bad_asked]
        words = re.compile(rf"\b(?:(?P<bad>{'|'.join(bad)})|(?P<good>{'|'.join(good)}))(?![\w])", re.IGNORECASE)
        match = words.search(clause)
        if match is None:
            return None
        before = " ".join(clause[: match.start()].split()[-_REACH:])
        denials = sum(1 for _ in _NEGATION.finditer(before)) + bool(_DENIED.match(clause, match.end()))
        return (match["good"] is not None) != bool(denials % 2)


def _clauses(sentence: str) -> Iterator[str]:
    start = 0
    for match in _CLAUSE_END.finditer(sentence):
        yield sentence[start : match.start()]
        start = match.end()
    yield sentence[start:]


_OTHER_LIMITS = r"(?:budget|deadline|schedule|time|day|week|month|slos?|latency|limit|target)"
CLAIMS = {
    "fits": Claims(
        topic=r"(?<!host\s)(?<!cpu\s)memory(?!\s+of\s+the\s+(?:host|cpu))|v?ram|hbm|headroom|capacity",
        of=r"footprint|peak|usage|consumption|demand|job|run",
        limit=rf"(?:{_UP_TO})?(?:memory|v?ram|hbm|capacity)|{_CARD}|limits?\s+of\s+{_OF}{_CARD}|"
        rf"what\s+{_OF}{_CARD}\s+(?:has|have|offers?|holds?)|\d+(?:\.\d+)?\s?gi?b",
        good=rf"(?:big|large|roomy|small|light)\s+enough|fit(?:s|ting)?(?!\s+(?:in|into|within|inside|under)?\s*{_OF}?{_UP_TO}{_OTHER_LIMITS}\b)|"
        rf"squeez(?:es|ed)\s+(?:in|on)(?:to)?|goes\s+on(?:to)?\s+{_OF}?{_CARD}|(?:head)?room|"
        rf"(?:{_CARD}|it|\d+\s?gi?b|[a-z]+\d+)\s+(?:(?:can|will)\s+)?{_HOLD}(?!\s+(?:\d|up))|{_CARD}\s+(?:has|have)\s+(?=no\s)(?:no\s+(?:trouble|difficulty|problems?))|"
        r"leaves?\s+(?:\S+\s+){0,5}(?:free|spare|unused)",
        bad=rf"(?:{_CARD}|it)\s+(?:cannot|can['’]t|won['’]t|doesn['’]t|(?:can|will|does|do)\s+not)\s+{_HOLD}|"
        rf"{_CARD}\s+(?:is|are)\s+too\s+small|{_CARD}\s+falls?\s+short|(?:bigg|larg)er\s+{_CARD}|oom|out[\s-]of[\s-](?:\w+[\s-])?(?:memory|vram)|overflow(?:s|ed)?|blows?\s+past|"
        rf"too\s+(?:large|big|heavy)|undersized|spills?\s+over|more\s+(?:\w+\s+){{0,2}}than\s+{_OF}?{_UP_TO}(?:has|have|offers?|holds?|available|there\s+is)",
        good_asked=r"(?:will|just)\s+(?:do|fine)|up\s+to\s+(?:it|this|that|the\s+\w+)|within\s+reach|go\s+ahead|feasible|possible|doable|works?(?!\s+(?:in|by|like|as))|viable|enough|suffices?|plenty|no\s+problem",
        bad_asked=r"infeasible|impossible|more\s+(?:gpu|card|device)s|more\s+than\s+(?:one|a\s+single)",
    ),
    "meets_slo": Claims(
        topic=r"slos?|latenc(?:y|ies)|ttft|tpot|time\s+to\s+first\s+token|first\s+tokens?|p9\d",
        limit=r"slos?|(?:limit|target|goal|bound|objective)s?",
        of=r"responds?|responses?|repl(?:y|ies)|answers?",
        good=r"fast\s+enough|limits?\s+(?:hold|are\s+(?:held|kept))", bad=r"too\s+slow",
    ),
    "budget": Claims(
        topic=r"budget", of=r"costs?|prices?|bills?|totals?|money|sum",
        limit=r"budget|what\s+you\s+(?:have|can\s+spend)",
        good=r"afford(?:able)?|(?:you|we)\s+(?:\w+\s+)?(?:have\s+enough|can\s+pay)",
        bad=r"too\s+expensive|over\s*budget|(?:blows?|breaks?|busts?)\s+the\s+budget",
        good_asked=r"enough",
    ),
    "deadline": Claims(
        topic=r"deadline", of=r"finish(?:es|ed)?|ends?|done|ready|completes?|wraps?|takes?", limit=r"deadline|time",
        good=r"(?:in|on)\s+time|(?:done|ready|finish(?:es|ed)?|complete[sd]?|over)\s+(?:by|before)\s+\w+|makes?\s+the\s+deadline",
        bad=r"too\s+(?:late|slow)|(?:finish(?:es)?|ends?|done|ready)\s+(?:after|past)|days?\s+late|hours?\s+late",
    ),
}  # fmt: skip
