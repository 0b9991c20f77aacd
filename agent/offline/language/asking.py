"""Which sentences of a text ask something, and which only tell: a run as it is, what happened, what others reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.offline.language.measures import Found
from agent.offline.language.tokens import Glyphs

_GOING_ON = ("with", "on")
# What stands between the parts of a sentence.
_PARTS = (",", "，", ";", "；", "-", "–", "—", ":", "：")
# Groups of asked.yaml whose words ask for something to be done where a sentence begins with them.
_ORDERS = ("wish", "focus", "mode")


def asks(heard: Found, starts: Sequence[int]) -> bool:
    """Whether a sentence that holds one of the tokens is a question of its own: 'does packing help?', not 'and on 16?',
    which goes on with one, nor 'we have 16 now. How long?', which says something and then asks. Without tokens: whether
    any is."""
    return any(
        is_question(heard, sentence)
        for sentence in sentences(heard.text)
        if not starts or any(at in sentence for at in starts)
    )


def is_asked(heard: Found, at: int) -> bool:
    """Whether a token stands in a question of its own."""
    return asks(heard, [at])


def asks_which(heard: Found) -> bool:
    """Whether a sentence, or a part of one, begins with a word that asks for one of several things."""
    return any(_first_sense(heard, part, "which") for part in clauses(heard))


def _first_sense(heard: Found, sentence: range, kind: str) -> bool:
    at = sentence.start
    while at in sentence and (heard.text[at].kind == "sign" or heard.does(at, "and_then", "and")):
        if heard.sense(at, kind):
            return True
        at = heard.does(at, "and_then", "and") or at + 1
    return at in sentence and heard.sense(at, kind) is not None


def supposing(heard: Found, starts: Sequence[int]) -> frozenset[int]:
    """Those of `starts` that are only supposed or asked about: the others stand in a sentence, or in a part of one that
    says how things are ('we have 16 now, should I use LoRA?'), which is said for good."""
    supposed: set[int] = set()
    for sentence in sentences(heard.text):
        inside = [at for at in starts if at in sentence]
        if inside and _supposes(heard, sentence):
            parts = list(_parts(heard, sentence))
            sure = [part for part in parts[:-1] if _asserts(heard, part) and not _supposes(heard, part)]
            supposed.update(at for at in inside if not any(at in part for part in sure))
    return frozenset(supposed)


def _supposes(heard: Found, sentence: range) -> bool:
    """Whether a sentence asks, supposes, or sets things side by side."""
    inside = [at for at in sentence if at not in heard.names]
    if is_question(heard, sentence):
        return True
    # 'It would be overkill' is a verdict.
    told = any(heard.does(at, "judged") for at in inside)
    supposed = not told and any(heard.does(at, "suppose") for at in inside)
    return supposed or any(heard.does(at, "why", "compare") or _is_asked(heard, at, "why") for at in inside)


def _is_asked(heard: Found, at: int, name: str) -> bool:
    return any(sense.name == name for word in heard.words.get(at, ()) for sense in word.all("asked"))


def clauses(heard: Found) -> Iterator[range]:
    """The sentences of a text, cut where a question begins inside one."""
    return (part for sentence in sentences(heard.text) for part in _parts(heard, sentence))


def _parts(heard: Found, sentence: range) -> Iterator[range]:
    """A sentence cut at the signs behind which a question of its own begins; of signs in a row at the last one."""
    start = sentence.start
    for at in sentence:
        ends = at + 1 not in sentence or heard.text[at + 1].kind != "sign"
        cuts = ends and at > start and heard.text[at].text in _PARTS
        if cuts and _first_sense(heard, range(at, sentence.stop), "opens"):
            yield range(start, at)
            start = at
    yield range(start, sentence.stop)


def _asserts(heard: Found, part: range) -> bool:
    """Whether words say how things are, or how they are to be."""
    return any(heard.sense(at, "asserts") for at in part)


def past(heard: Found) -> frozenset[int]:
    """Tokens of the sentences that tell of earlier runs, or of what others say, in a text that has others."""
    parts = list(sentences(heard.text))
    # 'Micro batch 1. OK now?' tells of nothing else.
    brings = [part for part in parts if any(at in heard.names or heard.text[at].kind == "number" for at in part)]
    behind = max((part.start for part in brings if _first_sense(heard, part, "lately")), default=0)
    told = [part for part in parts if not _questions(heard, part)]
    old = [part for part in told if part.start < behind or _is_old(heard, part)]
    return frozenset(at for part in old for at in part) if len(old) < len(parts) else frozenset()


def _is_old(heard: Found, part: range) -> bool:
    inside = [at for at in part if at not in heard.names]
    # 'We pay OpenAI 9k a month' tells of what is so.
    pays = any(heard.is_asked(at, "cost") for at in inside)
    if any(heard.sense(at, "hearsay") and not (pays and heard.is_asked(at, "bought")) for at in inside):
        return True
    return any(heard.sense(at, "earlier") for at in inside) and not any(heard.sense(at, "lately") for at in inside)


def telling(heard: Found) -> frozenset[int]:
    """Tokens of the sentences that ask nothing, in a text of which another sentence is a question; else none."""
    parts = list(sentences(heard.text))
    if len(parts) < 2 or not any(_questions(heard, part) for part in parts):
        return frozenset()
    told = [part for part in parts if not (_questions(heard, part) or _orders(heard, part))]
    return frozenset(at for part in told for at in part)


def sentences(text: Sequence[Glyphs]) -> Iterator[range]:
    start = 0
    for at, token in enumerate(text):
        if token.ends_sentence and token.text != "\n":
            yield range(start, at + 1)
            start = at + 1
    if start < len(text):
        yield range(start, len(text))


def is_question(heard: Found, sentence: range) -> bool:
    """Whether a sentence is a question of its own, not one that goes on with the one before."""
    at, goes_on = sentence.start, False
    while at in sentence and (heard.text[at].kind == "sign" or heard.does(at, "and_then", "and")):
        goes_on = goes_on or heard.text[at].kind != "sign"
        at = heard.does(at, "and_then", "and") or at + 1
    if at in sentence and heard.sense(at, "opens") and not heard.sense(at, "request"):
        return True
    if any(heard.sense(step, "closes") for step in sentence[-3:]):
        return True
    if any(heard.text[step].kind == "single" and heard.sense(step, "which") for step in sentence):
        # Where nothing stands apart a word that asks may stand anywhere.
        return True
    if any(heard.text[part.start].text in ":：" for part in _parts(heard, sentence)):
        # 'Quick one: does it fit'
        return True
    goes_on = goes_on or (at in sentence and heard.text[at].norm in _GOING_ON)
    return not goes_on and _has_mark(heard, sentence)


def _questions(heard: Found, sentence: range) -> bool:
    return is_question(heard, sentence) or _has_mark(heard, sentence)


def _has_mark(heard: Found, sentence: range) -> bool:
    return any(heard.text[step].text in "?？" for step in sentence)


def _orders(heard: Found, sentence: range) -> bool:
    """Whether a sentence asks for something to be done: it begins with a word of it, or says that it is wanted."""
    wanted = any(heard.sense(at, "wants") for at in sentence)
    at = sentence.start
    while at in sentence and (heard.text[at].kind == "sign" or heard.does(at, "and_then", "and")):
        at = heard.does(at, "and_then", "and") or at + 1
    begins = [sense for word in heard.words.get(at, ()) for sense in word.all("asked") if sense.value in _ORDERS]
    return wanted or bool(begins) or bool(heard.does(at, "compare", "back", "take", "new", "dismiss"))
