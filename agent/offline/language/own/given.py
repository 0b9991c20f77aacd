"""Names that a person gives to something of their own: behind a word for one, between quotation marks, or by how they
are written."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from agent.offline.language.lexicon import lexicon
from agent.offline.language.rows import Row

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_QUOTES = "'\"`“”‘’„«»「」『』"
_IN_NAMES = "-_./+"
_MARKS = f"{_QUOTES}:=,.;!?()"
# Words that may stand between 'call' and a name.
_MOST_FILLERS = 4
# What is called by words, not by a run of characters.
_OF_WORDS = ("provider", "vendor")


def is_id(chunk: str) -> bool:
    """Whether a run of characters is a model's id of the form owner/name, and no path."""
    owner, slash, name = chunk.partition("/")
    plain = all(sign.isalnum() or sign in "-_." for sign in f"{owner}{name}")
    rooted = chunk.startswith((".", "/", "~")) or chunk.endswith((".json", ".yaml"))
    return bool(slash and owner and name and plain and not rooted) and any(sign.isalpha() for sign in owner)


def chunks(text: str) -> list[str]:
    """Runs of what names are written with: 'h200-450w', 'BM.GPU.MI300X.8', './runs/x'."""
    runs: list[str] = []
    run = ""
    for sign in f"{text} ":
        if (sign.isascii() and sign.isalnum()) or (sign in "~" and not run) or sign in _IN_NAMES:
            run += sign
            continue
        if stripped := run.rstrip("./-+"):
            runs.append(stripped)
        run = ""
    return runs


def name_behind(page: Page, part: str) -> str | None:
    """What stands behind a word for a part of a row: 'call it X', 'provider: X', 'instance X'; of several what is
    written most like a name."""
    read = page.read
    ends = [end for _, end, name in read.asked_at("row_part") if name == part]
    names = [name for end in ends if (name := _behind(read.text[read.tokens[end - 1].end :], part))]
    if part in _OF_WORDS:
        return next(iter(names), None)
    things = {name.text.lower() for name in read.of("accelerator", "model")}
    names = [name for name in names if any(sign.isalpha() for sign in name)]
    return max(reversed(names), key=lambda name: _likeness(name, things), default=None)


def _likeness(name: str, things: set[str]) -> int:
    """How much a word is written like a name of one's own, which no thing of the catalogue has."""
    joined = any(sign in "-_./" for sign in name)
    return 2 * (name.lower() not in things) + joined + any(sign.isdigit() for sign in name)


def _behind(rest: str, part: str) -> str | None:
    """The first word of the rest of a text that may be a name."""
    for word in rest.split()[:_MOST_FILLERS]:
        plain = word.strip(_MARKS)
        if plain.lower() in lexicon().ordinary | lexicon().articles | lexicon().unnamed or not plain:
            continue
        if part in _OF_WORDS and plain.islower() and rest[:1] not in ":=":
            # 'Our vendor ships an L40S with 96 GB'
            return None
        called = next(iter(chunks(plain)), plain) if plain[0].isascii() else plain
        return _whole_name(rest, word, called) if part in _OF_WORDS else called
    return None


def _whole_name(rest: str, word: str, called: str) -> str:
    """A name with the capitalised word behind it: 'Kestrel Silicon'."""
    if not called[:1].isupper() or word[-1:] in ",.;:!?)":
        return called
    behind = rest.split(word, 1)[1].split()[:1]
    second = behind[0].strip(_MARKS) if behind else ""
    return f"{called} {second}" if second[:1].isupper() and second.isalpha() else called


def name_in_quotes(page: Page) -> str | None:
    """The first name between quotation marks that is written as a name: 'h100-capped'."""
    text = page.read.text
    for chunk in chunks(text):
        at = text.find(chunk)
        closed = text[at + len(chunk) : at + len(chunk) + 1]
        if at > 0 and text[at - 1] in _QUOTES and closed and closed in _QUOTES:
            return chunk
    return None


def name_joined(page: Page) -> str | None:
    """The first run of characters that is joined like a name, which nothing in the catalogue is called: gulf-96."""
    things = [name.text.lower() for name in page.read.of("accelerator", "model", "instance") if name.id]
    words = lexicon().known
    for chunk in chunks(page.read.text):
        if "/" in chunk or not chunk[0].isalpha() or not {"-", "."} & set(chunk):
            continue
        plain = all(part.lower() in words for part in chunk.replace(".", "-").split("-"))
        if not plain and not any(chunk.lower() in thing for thing in things):
            return chunk
    return None


def name_unknown(page: Page) -> str | None:
    """A capitalised word that nothing is known of, or any behind 'from' or 'at': whoever rents a machine out."""
    words = page.read.text.split()
    plain = [word.strip(_MARKS) for word in words]
    for before, word in pairwise(plain):
        if before.lower() in lexicon().sellers and word.isalpha() and word.lower() not in lexicon().ordinary:
            return word
    for at in range(1, len(words)):
        opens = words[at - 1][-1:] in ".!?"
        if plain[at][:1].isupper() and plain[at].isalpha() and plain[at].lower() not in lexicon().known and not opens:
            return plain[at]
    return None


def span_of(page: Page, name: str) -> frozenset[int]:
    """Tokens of a name that is written somewhere in the text."""
    at = page.read.text.find(name) if name else -1
    if at < 0:
        return frozenset()
    return frozenset(
        index for index, token in enumerate(page.read.tokens) if at <= token.start and token.end <= at + len(name)
    )


def take(page: Page, rows: Iterable[Row]) -> None:
    """Numbers that something was made of are lost no more."""
    taken = {row.start for row in rows}
    page.taken |= {page.read.tokens[at].start for at in taken}
    page.left = [row for row in page.left if row.start not in taken]
    page.filled = [number for number in page.filled if number.row.start not in taken]
