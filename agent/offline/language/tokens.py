"""A text as tokens: numbers, words, single characters of scripts without spaces, and signs.

The only regular expression of the reader stands here. Letters and digits are apart (`8xH100` is 8, x, H, 100), so that
names, counts and units come out the same however they are written together.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?P<number>(?<![^\W_])\d+(?:\.\d+)?e[+-]?\d{1,3}(?![\w.])|\d{1,3}(?:[,_'’]\d{3})+(?:\.\d+)?(?!\d|,\d)|\d+(?:\.\d+)?|(?<![\d.])\.\d+)"
    r"|(?P<single>[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff々])"
    r"|(?P<word>[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
    r"(?:['’][^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+)*)"
    r"|(?P<sign>[^\w\s]|_)"
)
# Signs that hold a name or a phrase together: 'fine-tune', 'per_device', 'tokens/s'.
_JOINING = frozenset("-_./‑–·")
_CLAUSE = frozenset(",;:.?!\n()|。，、；：？！（）")
_ELIDED = frozenset(["l", "d", "j", "n", "s", "c", "m", "t", "qu", "jusqu"])
_SENTENCE = frozenset("?!;\n。？！；")
_FULL_STOP = "。"
# Words that a dot is written behind.
_SHORTENED = frozenset(["approx", "aprox", "ca", "max", "min", "incl", "inkl", "excl", "exkl", "vs", "g", "e", "i", "z",
                        "b", "mio", "mill", "mrd", "tsd", "nr", "no", "resp", "bzw", "ggf", "evtl", "ej", "env", "ex",
                        "st", "std", "fig", "eq", "sec", "temp", "avg", "est", "prof", "dr", "mr", "u", "a", "d", "h",
                        "p", "s", "nos", "qty", "pcs", "esp", "tok", "ctx", "seq"])  # fmt: skip

_CARD_ENDS = ("xt", "xtx")


@dataclass(frozen=True, slots=True)
class Glyphs:
    """`text` as written, `norm` as compared (lower case, no accents), characters [start, end); `kind` is number, word,
    single or sign; `space`: whether white space or the text's beginning stands before it."""

    text: str
    norm: str
    start: int
    end: int
    kind: str
    space: bool

    @property
    def joins(self) -> bool:
        return self.kind == "sign" and self.norm in _JOINING

    @property
    def ends_clause(self) -> bool:
        return self.kind == "sign" and self.norm in _CLAUSE

    @property
    def ends_sentence(self) -> bool:
        return self.kind == "sign" and self.norm in _SENTENCE


def folded(text: str) -> str:
    """Lower case, full-width characters as plain ones, accents of Latin letters dropped."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", text).lower().replace("ß", "ss").replace("œ", "oe").replace("ё", "е")
    if not any("\u00c0" <= one <= "\u024f" for one in plain):
        return plain
    apart = unicodedata.normalize("NFKD", plain)
    return "".join(one for one in apart if not unicodedata.combining(one))


def tokens(text: str) -> list[Glyphs]:
    """The tokens of a text in order. Line ends are signs of their own."""
    found: list[Glyphs] = []
    plain = _same_length(text)
    last = 0
    for match in _TOKEN.finditer(plain):
        start, end = match.span()
        between = text[last:start]
        if "\n" in between and found:
            at = last + between.index("\n")
            found.append(Glyphs("\n", "\n", at, at + 1, "sign", True))
        kind = str(match.lastgroup)
        space = last == 0 or start > last
        times = kind == "word" and end - start > 1 and text[start] in "xX" and not space
        if times and found[-1].kind == "number" and not _ends_card(text, start, end):
            # '8xH100': the sign of counting is apart from what is counted.
            found.append(Glyphs(text[start], "x", start, start + 1, "word", False))
            start, space = start + 1, False
        if kind == "word" and _counts_behind(plain, start, end, found):
            # '40GBx128', 'L40Sx8'
            found.append(Glyphs(text[start : end - 1], folded(plain[start : end - 1]), start, end - 1, "word", space))
            start, space = end - 1, False
        norm = folded(plain[start:end]).replace("’", "'")
        head, apostrophe, _ = norm.partition("'")
        if apostrophe and head in _ELIDED and end - start > len(head) + 1:
            # 'l'optimiseur': the article is apart.
            cut = start + len(head) + 1
            found.append(Glyphs(text[start:cut], f"{head}'", start, cut, kind, space))
            start, space, norm = cut, False, norm[len(head) + 1 :]
        if norm == "/" and found and found[-1].norm == "w" and text[end : end + 1] not in ("o", "O"):
            # '8 nodes w/ 8 H100'
            found[-1] = Glyphs(text[found[-1].start : end], "with", found[-1].start, end, "word", found[-1].space)
            last = end
            continue
        if norm == "." and found and _is_full_stop(text, end, found):
            norm = _FULL_STOP
        found.append(Glyphs(text[start:end], norm, start, end, kind, space))
        last = end
    return found


def _ends_card(text: str, start: int, end: int) -> bool:
    """Whether letters behind a number are of a card's name: '7900XTX', not the 'xT' of '8xT4'."""
    return text[start:end].lower() in _CARD_ENDS and not text[end : end + 1].isdigit()


def _counts_behind(text: str, start: int, end: int, before: list[Glyphs]) -> bool:
    """Whether the x at the end of letters between two numbers is the sign of counting."""
    counted = end - start > 1 and text[end - 1] in "xX" and text[end : end + 1].isdigit()
    return counted and bool(before) and before[-1].kind == "number" and before[-1].end == start


def _is_full_stop(text: str, end: int, found: list[Glyphs]) -> bool:
    """Whether a dot ends a sentence, not an abbreviation or a part of a name."""
    before = found[-1]
    ends = end >= len(text) or text[end].isspace()
    unit = len(found) > 1 and (found[-2].kind == "number" or found[-2].text == "/") and len(before.norm) == 1
    return ends and (unit or before.kind != "word" or before.norm not in _SHORTENED)


def _same_length(text: str) -> str:
    """Full-width digits and letters as plain ones, character by character, so that positions stay."""
    if text.isascii():
        return text
    return "".join(_narrow(one) for one in text)


def _narrow(one: str) -> str:
    return chr(ord(one) - 0xFEE0) if "\uff10" <= one <= "\uff5a" else "." if one == "．" else one


_BETWEEN_DIGITS = dict.fromkeys(map(ord, ",_'’"))


def digits(text: str) -> float:
    """The value of a number token."""
    return min(float(text if text.isdecimal() else text.translate(_BETWEEN_DIGITS)), 1e300)
