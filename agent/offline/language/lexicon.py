"""The words of the field as data: every form of `lexicon/*.yaml` in one tree, and the longest that stand in a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import yaml

from agent.offline.language.tokens import Glyphs, digits, tokens

FOLDER = Path(__file__).parent / "lexicon"
# From so many letters on neighbours may be swapped, and from so many there may be other slips.
_LONGEST_SWAP = 40  # longer than any word of the field; every place of a word is tried
_SHORTEST_SWAP, _SHORTEST_SLIP = 4, 6
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
# What a number without unit costs where its field is counted in one.
_BARE = {
    "time": 3.6,
    "usd": 1.2,
    "devices": 0.6,
    "nodes": 0.6,
    "samples": 0.8,
    "bytes": 2.0,
    "requests": 0.8,
    "kwh": 1.0,
}
_MOST_SLIPS = 60
# Letters of a scale or a size, which are written to a number's digits.
_COUNTING = ("x", "×", "*")
_SCALES = ("k", "m", "b", "t", "bn", "mb", "gb", "tb", "gib")


@dataclass(frozen=True, slots=True)
class Sense:
    """What a form may mean. `kind`: value (of field `name`), field, unit (dimension `name`, `value` base units), does
    (operator `name`), number, scale, fraction, part_over, rhythm, asked (`name` of group `value`), stop."""

    kind: str
    name: str
    value: Any = None
    weak: bool = False
    """Whether it is so only where no other word of content stands behind it."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A form that stands in a text: tokens [start, end) and what it may mean."""

    start: int
    end: int
    senses: tuple[Sense, ...]

    def get(self, kind: str) -> Sense | None:
        for sense in self.senses:
            if sense.kind == kind:
                return sense
        return None

    def all(self, kind: str) -> list[Sense]:
        return [sense for sense in self.senses if sense.kind == kind]


@dataclass(slots=True)
class _Node:
    """A step of the tree; `open`: forms whose last word goes on, by its beginning."""

    next: dict[str, _Node] = field(default_factory=dict)
    senses: list[Sense] = field(default_factory=list)
    open: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Quantity:
    """A field that numbers fill, as fields.yaml describes it."""

    name: str
    of: tuple[str | None, ...] = (None,)
    per: str | None = None
    one: float = 1.0
    per_one: float = 1.0
    usual: tuple[float, float] = (0.0, float("inf"))
    alone: float | None = None
    bare: float = 0.3
    mode: str | None = None
    length: bool = False
    scale: tuple[str, ...] = ()
    after: str | None = None
    each: str | None = None
    rare: float = 0.0


@dataclass(frozen=True)
class Lexicon:
    root: _Node
    known: frozenset[str]
    content: frozenset[str]
    """The words of forms that mean something."""
    quantities: Mapping[str, Quantity]
    values: Mapping[str, frozenset[Any]]
    forms: Mapping[str, Sequence[str]]
    """Forms of each field, and of each value as 'field=value'."""
    wishes: Mapping[str, Sequence[str]]
    """Forms that name what is to be done."""
    refused: Mapping[str, Any]
    """The value that a field takes when its values are refused, by the field's name."""
    sets: Mapping[str, frozenset[str]]
    """Words of words.yaml that are taken as they stand, by the name of their set."""
    spoken: Mapping[str, int]
    """English numbers of one word."""

    def __getattr__(self, name: str) -> frozenset[str]:
        """A set by its name, which is looked for once."""
        if name not in vars(self).get("sets", ()):
            raise AttributeError(name)
        return vars(self).setdefault(name, self.sets[name])

    def words(self, text: Sequence[Glyphs]) -> dict[int, list[Phrase]]:
        """{Token: the forms that begin there, the longest first}."""
        found = {start: here for start in range(len(text)) if (here := self.at(text, start))}
        return _without_inner(text, found)

    def at(self, text: Sequence[Glyphs], start: int) -> list[Phrase]:
        """The forms that begin at a token, the longest first."""
        senses: dict[int, list[Sequence[Sense]]] = {}
        nodes, fillers = [(self.root, start)], self.fillers
        while nodes:
            node, at = nodes.pop()
            if at >= len(text):
                continue
            token = text[at]
            # One sign holds a form together; a row of them is a line, and following it from each would never end.
            joins = at > start and token.joins and not text[at - 1].joins and not _lists(text, at)
            if joins and not (token.text == "." and at + 1 < len(text) and text[at + 1].space):
                nodes.append((node, at + 1))
            if at > start + 1 and token.norm in fillers:
                # 'What can you actually do'
                nodes.append((node, at + 1))
            for found in _steps(node, token):
                if found.senses and not self._counts(text, start, at):
                    senses.setdefault(at + 1, []).append(found.senses)
                nodes.append((found, at + 1))
        return [Phrase(start, end, _each_once(senses[end])) for end in sorted(senses, reverse=True)]

    def _counts(self, text: Sequence[Glyphs], start: int, at: int) -> bool:
        """Whether a form would end with a number that counts what stands behind it: 'flash attention 2T tokens', 'fsdp
        2x 3090', 'flash attention 2 epochs'."""
        if at == start or at + 1 >= len(text) or text[at].kind != "number" or not text[at].space:
            return False
        behind = text[at + 1]
        if behind.norm in _COUNTING or (behind.norm in _SCALES and not behind.space):
            return True
        return any(sense.kind == "unit" for node in _steps(self.root, behind) for sense in node.senses)


def _each_once(parts: Sequence[Sequence[Sense]]) -> tuple[Sense, ...]:
    """The senses of forms that end at one token; those of one form are different ones."""
    return tuple(parts[0]) if len(parts) == 1 else tuple(dict.fromkeys(sense for part in parts for sense in part))


def _lists(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a stroke between spaces stands at a token, which lists things: 'fsdp / 1 epoch'."""
    return text[at].text == "/" and text[at].space and at + 1 < len(text) and text[at + 1].space


def _without_inner(text: Sequence[Glyphs], found: dict[int, list[Phrase]]) -> dict[int, list[Phrase]]:
    """The forms without those that are only a part of a longer one: the ロード of オフロード.
    What says a value stays: the 微调 of 全参微调."""
    kept: dict[int, list[Phrase]] = {}
    behind = 0
    for start, here in found.items():
        inner = start < behind and _is_of_one_word(text[start])
        stays = [one for one in here if not inner or one.end > behind or one.all("value")]
        if stays:
            kept[start] = stays
        if text[start].kind == "single" and here[0].end > start + 1:
            behind = max(behind, here[0].end)
    return kept


def _is_of_one_word(token: Glyphs) -> bool:
    """Whether a sign of a script goes on with the word before: of Katakana any, of Hangul without a space."""
    if token.kind != "single":
        return False
    return "\u30a0" <= token.norm <= "\u30ff" or ("\uac00" <= token.norm <= "\ud7af" and not token.space)


def _steps(node: _Node, token: Glyphs) -> Iterator[_Node]:
    norm = token.norm
    exact = node.next.get(norm)
    if exact:
        yield exact
    if token.kind == "word" and len(norm) > 3:
        bare = norm.removesuffix("'s").removesuffix("s")
        if bare != norm and len(bare) > 2 and (found := node.next.get(bare)):
            yield found
    elif token.kind == "number" and norm not in node.next and (found := node.next.get(_plain(norm))):
        yield found
    if node.open and token.kind == "word" and not (exact and any(sense.kind == "stop" for sense in exact.senses)):
        for length in range(len(norm), 1, -1):
            if found := node.open.get(norm[:length]):
                yield found
                break


def _plain(norm: str) -> str:
    value = digits(norm)
    return f"{value:g}"


@cache
def lexicon() -> Lexicon:
    """The shipped lexicon; read once."""
    root, known, content, empty = _Node(), set[str](), set[str](), set[str]()
    for form, sense in _senses():
        parts = _insert(root, form, sense)
        known.update(part for part in parts if len(part) >= 2)
        (empty if sense.kind in ("stop", "courtesy") else content).update(parts)
    values = _read("values")
    refused = {name: forms["not"] for name, forms in values.items() if "not" in forms}
    lists = {name: row for name, row in _words().items() if isinstance(row, list) and isinstance(row[0], str)}
    sets = {name: frozenset(map(str, row)) for name, row in lists.items()}
    known.update(word for group in sets.values() for word in group)
    return Lexicon(
        root,
        frozenset(known),
        frozenset(content - empty),
        {name: _quantity(name, row) for name, row in _read("fields").items()},
        {name: frozenset(forms) - {"not"} for name, forms in values.items()},
        _forms(),
        {name: _bare(forms) for name, forms in _read("asked")["wish"].items()},
        refused,
        sets,
        spoken={str(word): int(value) for value, word in _words()["spoken"].items()},
    )


def _senses() -> Iterator[tuple[str, Sense]]:
    """Every form of the lexicon with what it means."""
    for name, values in _read("values").items():
        for value, forms in values.items():
            yield from ((str(form), Sense("value", name, value)) for form in (forms if value != "not" else ()))
    for name, row in _read("fields").items():
        yield from ((str(form), Sense("field", name)) for form in row.get("names", ()))
    for name, sizes in _read("units").items():
        for size, forms in sizes.items():
            yield from ((str(form), Sense("unit", name, float(size))) for form in forms)
    for name, forms in _read("operators").items():
        yield from ((str(form), Sense("does", name)) for form in forms)
    for group, names in _read("asked").items():
        for name, forms in names.items():
            yield from ((str(form), Sense("asked", name, group)) for form in forms)
    times = _read("times")
    for kind, group in (("day", "day"), ("month", "month"), ("when", "word"), ("free", "free"), ("clock", "clock")):
        yield from ((str(form), Sense(kind, group, value)) for value, forms in times[group].items() for form in forms)
    for kind in ("by", "over", "from", "between", "then", "expires", "closing"):
        yield from ((str(form), Sense(kind, kind)) for form in times[kind])
    for name, forms in (*_read("changes").items(), *_read("questions").items()):
        yield from ((str(form), Sense(name, name)) for form in forms)
    yield from _numerals()


def _forms() -> dict[str, list[str]]:
    """{Field, or 'field=value': its forms without marks}."""
    found = {name: _bare(row.get("names", ())) for name, row in _read("fields").items()}
    for name, values in _read("values").items():
        for value, forms in values.items():
            if value != "not":
                found[f"{name}={value}"] = _bare(forms)
    return found


def _bare(forms: Sequence[Any]) -> list[str]:
    """Forms without their marks."""
    return [str(form).rstrip("*!") for form in forms]


def _numerals() -> Iterator[tuple[str, Sense]]:
    words = _words()
    kinds = (
        ("number", "numerals"), ("scale", "scales"), ("fraction", "fractions"), ("part_over", "parts_over"),
        ("rhythm", "rhythms"),
    )  # fmt: skip
    for kind, name in kinds:
        for value, forms in words[name].items():
            yield from ((str(form), Sense(kind, name, float(value))) for form in forms)
    yield from _composed(words["composed"])
    for kind in ("stop", "courtesy"):
        yield from ((str(form), Sense(kind, kind)) for form in words[kind])


def _composed(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Sense]]:
    """Numbers of tens and ones: 'vierundzwanzig', 'vingt-quatre', 二十四."""
    for row in rows:
        for (tens, firsts), (ones, seconds) in product(row["tens"].items(), row["ones"].items()):
            sense = Sense("number", "numerals", float(tens + ones))
            pairs = product(seconds, firsts) if row.get("back") else product(firsts, seconds)
            yield from ((row["joint"].join(pair), sense) for pair in pairs)


@cache
def _read(name: str) -> dict[str, Any]:
    with (FOLDER / f"{name}.yaml").open(encoding="utf-8") as file:
        return yaml.load(file, Loader=_Loader)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML whose only truths are true and false: 'no' and 'off' are words."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if not tag.endswith(":bool") or first in "tTfF"]
    for first, rules in _Loader.yaml_implicit_resolvers.items()
}


def _quantity(name: str, row: Mapping[str, Any]) -> Quantity:
    of = row.get("of", [None])
    low, high = row.get("usual", (0.0, float("inf")))
    return Quantity(
        name,
        tuple(None if one in (None, "null") else one for one in (of if isinstance(of, list) else [of])),
        row.get("per"),
        float(row.get("one", 1.0)),
        float(row.get("per_one", 1.0)),
        (float(low), float(high)),
        row.get("alone"),
        float(row.get("bare", _BARE.get(of[0] if isinstance(of, list) else of, 0.3))),
        row.get("for"),
        bool(row.get("length", False)),
        tuple(row.get("scale", ())),
        row.get("after"),
        row.get("each"),
        float(row.get("rare", 0.0)),
    )


@cache
def compounds() -> tuple[tuple[str, str], ...]:
    """Pairs of words that are written together, too, by their beginnings."""
    return tuple((first, second) for first, _, second in (one.partition(" ") for one in _words()["compounds"]))


@cache
def _words() -> dict[str, Any]:
    return _read("words")


@cache
def _scripts() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """(Its tokens in another script, the name) by the first of them, the longest first."""
    scripts: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for name, forms in _words()["scripts"].items():
        for form in forms:
            norms = tuple(token.norm for token in tokens(form))
            scripts.setdefault(norms[0], []).append((norms, name))
    return {first: sorted(rows, key=lambda row: -len(row[0])) for first, rows in scripts.items()}


def in_latin(text: Sequence[Glyphs]) -> list[Glyphs]:
    """The tokens with names in other scripts as one token each that is compared as it is written in Latin letters."""
    latin: list[Glyphs] = []
    at = 0
    while at < len(text):
        row = next((row for row in _scripts().get(text[at].norm, ()) if _stands(text, at, row[0])), None)
        if row is None:
            latin.append(text[at])
            at += 1
            continue
        last = text[at + len(row[0]) - 1]
        written = "".join(token.text for token in text[at : at + len(row[0])])
        latin.append(Glyphs(written, row[1], text[at].start, last.end, "word", text[at].space))
        at += len(row[0])
        if at < len(text) and text[at].kind == "number":
            # '昇腾910B' is 'Ascend 910B'.
            latin.append(replace(text[at], space=True))
            at += 1
    return latin


def unlike_english(text: Sequence[Glyphs]) -> list[Glyphs]:
    """The tokens with small words that mean something else in English as what they mean beside others of their
    language: the Dutch 'en' and 'of' beside 'het' or 'zonder'."""
    said, meant = {token.norm for token in text}, dict[str, str]()
    for row in _words()["homographs"]:
        meant |= row["mean"] if said.intersection(row["beside"]) else {}
    return [replace(token, norm=meant.get(token.norm, token.norm)) for token in text]


def _stands(text: Sequence[Glyphs], at: int, form: tuple[str, ...]) -> bool:
    return all(at + step < len(text) and text[at + step].norm == norm for step, norm in enumerate(form))


def together(text: Sequence[Glyphs]) -> list[Glyphs]:
    """The tokens with compounds that are written apart as one: 'fine-tuning', 'pre train'."""
    found: list[Glyphs] = []
    at = 0
    pairs = dict(compounds())
    while at < len(text):
        token, behind = text[at], at + 1
        second = pairs.get(token.norm)
        if second:
            behind += behind < len(text) and text[behind].joins
            if behind < len(text) and text[behind].kind == "word" and text[behind].norm.startswith(second):
                last = text[behind]
                norm = token.norm + last.norm
                token = Glyphs(f"{token.text}{last.text}", norm, token.start, last.end, "word", token.space)
                at = behind
        found.append(token)
        at += 1
    return found


def _insert(root: _Node, form: str, sense: Sense) -> list[str]:
    """Puts a form into the tree; its words."""
    goes_on = form.endswith("*")
    if form.endswith("!"):
        form, sense = form[:-1], replace(sense, weak=True)
    if " " in form:
        for first, second in compounds():
            form = form.replace(f"{first} {second}", first + second)
    plain = form.rstrip("*").split(" ")
    if form.isascii() and all(map(str.isalpha, plain)):
        # Most forms: words alone, of which the tokens are the words.
        parts = [part.lower() for part in plain]
    else:
        # 'Moins d'' is two tokens where a word stands behind.
        written = tokens(form.rstrip("*") + "x")[:-1] if form.endswith("'") else tokens(form.rstrip("*"))
        parts = [one.norm for one in written if not one.joins or len(form) < 3]
    if not parts:
        return []
    variants = [parts]
    if len(parts) > 1 and all(part.isalpha() and part.isascii() for part in parts):
        variants.append(["".join(parts)])
    for variant in variants:
        node = root
        for number, part in enumerate(variant):
            last = number == len(variant) - 1
            open_ended = last and goes_on and part[-1:].isalpha() and len(part) > 1
            steps = node.open if open_ended else node.next
            if part not in steps:
                steps[part] = _Node()
            node = steps[part]
        if sense not in node.senses:
            node.senses.append(sense)
    return parts


def mended(text: Sequence[Glyphs], names: frozenset[str]) -> list[Glyphs]:
    """The tokens with single slips of the finger put right: letters left out, doubled, swapped or mistaken. Words that
    are in the lexicon, in `names`, or too short stay."""
    known, found, tried = lexicon(), list(text), 0
    for index, token in enumerate(found):
        norm = token.norm
        if index and token.text[:1].isupper() and not found[index - 1].ends_sentence and not _numbered(found, index):
            # A name of something: 'Paris' is no 'pairs'.
            continue
        numbered, counts = _numbered(found, index), _counted(known, found, index)
        sized = _SHORTEST_SWAP <= len(norm) <= _LONGEST_SWAP
        slip = token.kind == "word" and sized and norm.isascii() and tried < _MOST_SLIPS
        if not slip or norm in names or token.text[1:].lower() != token.text[1:]:
            continue
        if known.at(found, index) or norm in known.known or norm in _plain_speech():
            continue
        tried += 1
        if meant := (
            _one_of(norm, names)
            or _meant(norm, names)
            or (_head_meant(norm, names) if numbered else None)
            or (_unit_meant(norm) if counts else None)
        ):
            found[index] = Glyphs(token.text, meant, token.start, token.end, token.kind, token.space)
    return found


def _numbered(text: Sequence[Glyphs], at: int) -> bool:
    return at + 1 < len(text) and text[at + 1].kind == "number"


def _counted(known: Lexicon, text: Sequence[Glyphs], at: int) -> bool:
    """Whether a number stands right before a word, or one and its scale: '50m tokns'."""
    scaled = at > 1 and any(word.get("scale") for word in known.at(text, at - 1))
    return at > 0 and text[at - 1 - scaled].kind == "number"


def _one_of(norm: str, names: frozenset[str]) -> str | None:
    """The family of models that a word is the plural of: 'gemmas'."""
    single = norm.removesuffix("s")
    return single if single in names - {norm} and single not in plain_words() else None


@cache
def _unit_meant(norm: str) -> str | None:
    """The unit of one word that a word behind a number is one slip away from."""
    units = {str(form) for sizes in _read("units").values() for forms in sizes.values() for form in forms}
    return next(
        (word for word in _slips(norm)[1] if len(norm) > _SHORTEST_SWAP and {word, word.removesuffix("s")} & units),
        None,
    )


@cache
def _plain_speech() -> frozenset[str]:
    """Ordinary words that look like slips of others: they are left as they are."""
    return frozenset(word for words in _read("plain").values() for word in words)


@cache
def _meant(norm: str, names: frozenset[str]) -> str | None:
    """The word that is one slip of the finger away; letters in each other's place before others."""
    swapped, others = _slips(norm)
    # No word has a letter three times in a row.
    swapped += [norm[:at] + norm[at + 1 :] for at in range(2, len(norm)) if norm[at - 2 : at] == 2 * norm[at]]
    meant = _long_words(names)
    near = (word for group in (swapped, others if len(norm) >= _SHORTEST_SLIP else ()) for word in group)
    return next((word for word in near if word in meant), None)


def _slips(norm: str) -> tuple[list[str], list[str]]:
    """(What a word was with two neighbours swapped, with another slip): a letter left out or struck with its neighbour
    on the keyboard, or that one instead. Of the others the first and the last letter stay: endings are no slips."""
    swapped = [norm[: at - 1] + norm[at] + norm[at - 1] + norm[at + 1 :] for at in range(2, len(norm))]
    others = [norm[:at] + letter + norm[at:] for at in range(1, len(norm)) for letter in ascii_lowercase]
    for at in range(1, len(norm) - 1):
        if _beside(norm[at]) & {norm[at - 1], norm[at + 1]}:
            others.append(norm[:at] + norm[at + 1 :])
        others += [norm[:at] + letter + norm[at + 1 :] for letter in sorted(_beside(norm[at]))]
    return swapped, others


@cache
def _beside(letter: str) -> frozenset[str]:
    """A letter and those beside it on the keyboard."""
    keys = {key: (row, place + row / 2) for row, line in enumerate(_KEYS) for place, key in enumerate(line)}
    row, place = keys.get(letter, (9, 0.0))
    near = (key for key, (other, at) in keys.items() if abs(other - row) <= 1 and abs(at - place) <= 1)
    return frozenset([letter, *near])


@cache
def _head_meant(norm: str, names: frozenset[str]) -> str | None:
    """The name that a short word before a number is one slip away from, or has other letters doubled: 'lama 3.1',
    'lamma 3.1'."""
    near = [word for group in _slips(norm) for word in group if word in names and len(word) > 3]
    near += [word for word in sorted(names) if len(word) > 3 and _undoubled(word) == _undoubled(norm)]
    return near[0] if near else None


def _undoubled(word: str) -> str:
    return "".join(letter for letter, _ in groupby(word))


@cache
def _long_words(names: frozenset[str]) -> frozenset[str]:
    """Words that a slip may have been meant as: those of the field, and names."""
    known = lexicon().content | names
    return frozenset(word for word in known if len(word) >= _SHORTEST_SWAP and word.isascii() and word.isalpha())


def plain_words() -> frozenset[str]:
    """Words that are no name by themselves."""
    return lexicon().ordinary
