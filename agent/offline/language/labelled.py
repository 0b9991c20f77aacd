"""Choices that a text gives letters or numbers: 'plan A: 8 H100 with tp 8, plan B: tp 4 and pp 2. Which is faster?'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import Found
from agent.offline.language.rows import Row
from agent.offline.language.tokens import Glyphs, folded, tokens

_LETTERS, _NUMBERS = "abcdef", "123456"
_OPENS, _CLOSES = ("(", "[", "（"), (")", "]", "）")
_DEFINES = (":", "=", "–", "—", "：", *_CLOSES)
_FEWEST = 2
_AROUND = " ,;.-–—:\n"


@dataclass(frozen=True)
class LabelledChoices:
    """What a text says of all its choices, and each choice in their order."""

    common: str
    rows: tuple[str, ...]


def choices(text: str, read: Sequence[Glyphs]) -> LabelledChoices | None:
    """The choices of a text and its tokens; None where it labels none, or only one."""
    labels = _labels(read, _LETTERS) or _labels(read, _NUMBERS)
    if len(labels) < _FEWEST:
        return None
    starts = [*(read[start].start for start, _ in labels[1:]), _end(read, labels[-1][1], text)]
    rows = [text[read[behind - 1].end : stop] for (_, behind), stop in zip(labels, starts, strict=True)]
    common = f"{text[: read[labels[0][0]].start]} {text[starts[-1] :].lstrip(_AROUND)}"
    return LabelledChoices(common.strip(), tuple(map(_without_joints, rows)))


def without_labels_behind(text: str) -> str:
    """A text without the letters of its choices where these stand behind them: 'tp 8 (plan A) or tp 4 pp 2 (plan B)'.
    What stands between says the choices."""
    read = tokens(text)
    spans = [
        (start - 1, behind)
        for order in (_LETTERS, _NUMBERS)
        for at in range(1, len(read) - 1)
        if read[at].norm in order and read[at + 1].text in _CLOSES
        for start in [at - (read[at - 1].norm in lexicon().labels)]
        for behind in [at + 2]
        if start > 1 and read[start - 1].text in _OPENS and (start < at or order is _LETTERS)
    ]
    ends = bool(spans) and (spans[-1][1] == len(read) or read[spans[-1][1]].ends_clause)
    if len(spans) < _FEWEST or not ends:
        return text
    for start, behind in reversed(spans):
        text = text[: read[start - 1].end] + text[read[behind - 1].end :]
    return text


def called(read: Sequence[Glyphs]) -> dict[int, int]:
    """{Token of a letter or number behind the name of a choice: which of the choices it is}: 'take setup 2'."""
    behind = [at for at in range(1, len(read)) if read[at - 1].norm in lexicon().labels and len(read[at].norm) == 1]
    places = {at: max(order.find(read[at].norm) for order in (_LETTERS, _NUMBERS)) for at in behind}
    return {at: place for at, place in places.items() if place >= 0}


def all_of_them(heard: Found, rows: Sequence[Row], offers: int) -> frozenset[int]:
    """Tokens of a number that is of all that was offered, or says how many choices follow: 'the cheapest of the three',
    'laquelle des deux', 'three options: …'."""
    read, pointing = heard.text, lexicon().pointing
    bare = [row for row in rows if row.bare and read[row.start].kind == "word"]
    back = [row for row in bare if 1 < row.amounts[-1].value <= offers and row.start > 1]
    back = [row for row in back if read[row.start - 1].norm in pointing or _is_behind_of_the(heard, row.start)]
    return frozenset(row.start for row in (*back, *(row for row in rows if _counts_choices(read, row))))


# Tokens of the longest words that say of what: 'out of the'.
_OF_THE = 4


def _is_behind_of_the(heard: Found, start: int) -> bool:
    return any(heard.does(at, "of_the") == start for at in range(max(start - _OF_THE, 0), start))


_PLURALS = ("", "s", "n", "en", "es", "e", "i")


def _counts_choices(read: Sequence[Glyphs], row: Row) -> bool:
    """Whether a number counts the choices behind a colon: '3 setups: …', 'drei Varianten: …'."""
    if not row.bare or row.end + 1 >= len(read) or read[row.end + 1].text != ":":
        return False
    return row.amounts[-1].value >= _FEWEST and any(
        read[row.end].norm == label + plural for label in lexicon().labels for plural in _PLURALS
    )


def _labels(read: Sequence[Glyphs], order: str) -> list[tuple[int, int]]:
    """(Token, token behind) of each label, the first letter or number first and each once."""
    labels: list[tuple[int, int]] = []
    for at, token in enumerate(read):
        if len(labels) < len(order) and token.norm == order[len(labels)]:
            labels += [label] if (label := _label(read, at, bool(labels))) else []
    return labels


def _label(read: Sequence[Glyphs], at: int, goes_on: bool) -> tuple[int, int] | None:
    """(Token, token behind) of the label whose letter or number stands at a token: 'A)', '(b)', 'option 1:', 'plan A
    is'; one that `goes_on` may stand anywhere."""
    named = at > 0 and read[at - 1].norm in lexicon().labels
    start, behind = at - named, at + 1
    opened = start > 0 and read[start - 1].text in _OPENS
    while behind < len(read) and read[behind].text in _DEFINES:
        behind += 1
    signs = [token.text for token in read[at + 1 : behind]]
    defined = behind < len(read) and read[behind].norm in lexicon().amounting
    if named:
        # 'Tp 8 (plan A)' has its letter behind it.
        return (start, behind + defined) if (signs or defined) and not opened else None
    closed = any(sign in _CLOSES for sign in signs)
    closed = closed or (read[at].norm in _LETTERS and signs[:1] in ([":"], ["="]))
    before = read[start - opened - 1] if start > opened else None
    begins = before is None or goes_on or before.kind == "sign" or before.norm in lexicon().joints
    return (start - opened, behind) if closed and begins and (read[at].space or opened) else None


def _end(read: Sequence[Glyphs], start: int, text: str) -> int:
    """The character where the last choice ends: at the end of its sentence."""
    return next((token.end for token in read[start:] if token.ends_sentence), len(text))


def _without_joints(row: str) -> str:
    """A choice without what joins it to the next."""
    bare = row.strip(_AROUND)
    head, _, last = bare.rpartition(" ")
    return head.strip(_AROUND) if head and folded(last) in lexicon().joints else bare
