"""The catalogues' names as trees of words, and what the catalogues say of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from agent.offline.catalogue import Catalogue, Instance
from agent.offline.language.lexicon import Phrase, lexicon, plain_words
from agent.offline.language.tokens import Glyphs, tokens
from estimator.errors import PlanError
from knowledge.prices.energy import place_names

# Tokens of the longest name: to follow what nobody knows from each of its words to its end would never end.
MOST_GLUED = 24

# (Id, note, what it may mean where that is several, the problem where it is none).
Looked = tuple[str | None, str | None, tuple[str, ...], str | None]


@dataclass(frozen=True)
class Name:
    """A name in tokens [start, end). `kind`: model, accelerator, instance, provider or path. `id` is None where the
    catalogue does not know it, or knows several; then `options` are those that it may mean and `problem` says so."""

    kind: str
    start: int
    end: int
    text: str
    id: str | None = None
    note: str | None = None
    options: tuple[str, ...] = ()
    problem: str | None = None
    instance: Instance | None = None
    sized: bool = False
    box: bool = False
    count: int | None = None
    """Devices that the name itself says: a slice of TPUs."""


@dataclass
class Tree:
    next: dict[str, Tree] = field(default_factory=dict)
    leaf: str | None = None


@dataclass(frozen=True)
class Known:
    """The catalogues' names as trees of words, by kind."""

    models: Tree
    heads: dict[str, frozenset[str]]
    accelerators: Tree
    instances: dict[str, Instance]
    series: dict[str, list[Instance]]
    """Machines by what stands before a dash or dot of their names: 'p5', 'a3-ultragpu'."""
    providers: Tree
    places: Tree


def head_words(catalogue: Catalogue) -> frozenset[str]:
    """First words of models and every word of accelerators: no slips of the finger."""
    known = known_names(catalogue)
    return frozenset(known.heads) | frozenset(known.accelerators.next) | frozenset(known.providers.next)


@lru_cache(maxsize=2)
def known_names(catalogue: Catalogue) -> Known:
    models, accelerators, providers = Tree(), Tree(), Tree()
    makers = lexicon().makers
    heads: dict[str, set[str]] = {}
    for name in catalogue.model_names:
        tail = name.rpartition("/")[2]
        for form in {name, tail}:
            _plant(models, form, name)
        head, *rest = [one.norm for one in tokens(tail) if not one.joins] or [""]
        if head.isalpha() and len(head) > 1:
            heads.setdefault(head, set()).update(rest)
        if head in makers and rest and rest[0].isalpha():
            # 'NVIDIA-Nemotron-3-Super'
            heads.setdefault(rest[0], set()).update(rest[1:])
    heads |= {word: set() for word in _nicknames(catalogue.model_names) - heads.keys()}
    for name in (*catalogue.accelerator_names, *catalogue.card_numbers):
        _plant(accelerators, name, name)
        if not _is_of_another(name) or looked_up(catalogue, "accelerator", _bare(name))[3] is None:
            _plant(accelerators, _bare(name), name)
        plain = name.lower().replace("-", " ").split()
        while (
            len(plain) > 1
            and (plain[0] in makers or plain[0] in lexicon().lines or plain[0] == "aws")
            and (any(map(str.isalpha, plain[1][:1])) or len(plain) > 2)
        ):
            plain = plain[1:]
            alone = plain[0] not in lexicon().lines and (plain[0][-1].isdigit() or len(plain[0]) > 2)
            if len(plain) > 1 or alone:
                _plant(accelerators, " ".join(plain), name)
    for machine in lexicon().machines:
        _plant(accelerators, machine, machine)
    for provider in catalogue.providers:
        _plant(providers, provider, provider)
    places = Tree()
    for place in place_names():
        _plant(places, place, place)
    instances = {one.name.lower(): one for one in catalogue.instances}
    instances |= {name.removeprefix("standard_"): one for name, one in instances.items()}
    series: dict[str, list[Instance]] = {}
    devices = {word for name in catalogue.accelerator_names for word in name.lower().replace("-", " ").split()}
    for name, machine in instances.items():
        for at in (at for at, sign in enumerate(name) if sign in "-."):
            if name[:at] not in devices:  # the H100 of Scaleway's H100-1-80G
                series.setdefault(name[:at], []).append(machine)
    followed = {head: frozenset(rest) for head, rest in heads.items()}
    return Known(models, followed, accelerators, instances, series, providers, places)


# No nickname has so few letters.
_SHORT = 3


def _nicknames(names: Sequence[str]) -> set[str]:
    """Words that alone tell models of one series apart: the 'Scout' and 'Maverick' of Llama 4."""
    series: dict[tuple[str, ...], set[str]] = {}
    for name in names:
        words = [token for token in tokens(name.rpartition("/")[2]) if not token.joins]
        for at in range(2, len(words) - 1):
            if words[at].kind == "word" and words[at - 1].kind == "number" and is_size(words, at + 1):
                series.setdefault(tuple(token.norm for token in words[:at]), set()).add(words[at].norm)
    told = {word for siblings in series.values() if len(siblings) > 1 for word in siblings if len(word) > _SHORT}
    return {word for word in told if word in plain_words() or not lexicon().at(tokens(word), 0)}


def _is_of_another(name: str) -> bool:
    """Whether a word behind a card's number makes it another card than that number alone: an RTX 4060 is no Ti."""
    behind = name[len(_bare(name)) :].replace("-", " ").split()
    return bool(behind) and behind[0].isalpha() and behind[0].lower() not in ("pcie", "nvl", "oam", "sxm")


def _bare(name: str) -> str:
    """A card's name up to its number: 'H100' of 'H100 SXM5 80GB'."""
    last = next((one.end for one in tokens(name) if one.kind == "number"), len(name))
    letters = last
    while letters < len(name) and name[letters].isalpha():
        letters += 1
    return name[:letters]


def _plant(tree: Tree, name: str, leaf: str) -> None:
    for token in tokens(name):
        if not token.joins and token.text not in "()":
            tree = tree.next.setdefault(token.norm, Tree())
    tree.leaf = tree.leaf or leaf


def walked(tree: Tree, text: Sequence[Glyphs], start: int) -> Iterator[tuple[int, str]]:
    """(Token behind, name) of every name of the tree that begins at a token, the shortest first. Letters and the digits
    behind them have to touch or be joined."""
    at, last = start, start
    while at < len(text):
        token = text[at]
        if at > start and (token.joins or token.text == ":") and not token.space:
            at += 1
            continue
        short = text[last].kind == "word" and len(text[last].norm) <= 2
        if at > start and token.space and short and token.kind == "number" and len(text[last].norm) == 1:
            return
        if token.norm == "x" and at > start and (token.space or _counts_behind(text, at)):
            # 'A100 x 8' and 'a100x8' count cards that are no A100X.
            return
        plural = is_plural(text, at)
        found = tree.next.get(token.norm) or (
            tree.next.get(token.norm.removesuffix("s")) if at > start and token.kind == "word" else None
        )
        if found is None and plural and at > start:
            # '4 H100s NVL'
            at += 1
            continue
        if found is None:
            return
        tree, last, at = found, at, at + 1
        if tree.leaf:
            yield at, tree.leaf


def _counts_behind(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a number is written to a token."""
    return at + 1 < len(text) and text[at + 1].kind == "number" and not text[at + 1].space


def said_of(whole: str, text: Sequence[Glyphs], start: int, end: int) -> str:
    """The words of tokens, with digits for numbers that were said in words, and names of other scripts in Latin."""
    here = text[start:end]
    if all(whole[token.start : token.end] == token.text and token.text.isascii() for token in here):
        return whole[here[0].start : here[-1].end]
    words = [token.text if token.text.isascii() else token.norm for token in here]
    return "".join(f" {word}" if token.space else word for token, word in zip(here, words, strict=True)).strip()


def is_size(text: Sequence[Glyphs], at: int) -> bool:
    """Whether '8b', '70B' or '8x7b' begins at a token."""
    if at + 1 >= len(text) or text[at].kind != "number" or text[at + 1].space:
        return False
    behind = text[at + 1].norm
    if behind in ("b", "m"):
        return True
    return behind == "x" and at + 3 < len(text) and text[at + 2].kind == "number" and text[at + 3].norm == "b"


def is_of_data(text: Sequence[Glyphs], at: int) -> bool:
    """Whether what looks like a size is one of data: '100B tokens', not the '8B' of 'Llama 8B tokens per second'."""
    ends = [word.end for word in lexicon().at(text, at + 2) if _is_tokens(word)] if is_size(text, at) else []
    rate = any(sense.name == "per" for end in ends for word in lexicon().at(text, end) for sense in word.all("does"))
    return bool(ends) and not rate


def _is_tokens(word: Phrase) -> bool:
    return any(sense.name == "tokens" for sense in word.all("unit"))


def counts(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a number counts what stands behind it instead of being a version: '2 gpus', '4x'."""
    if at + 1 >= len(text):
        return False
    following = text[at + 1]
    if following.norm in ("x", "×", "*", "%", "$"):
        return True
    if is_size(text, at + 1):
        return False
    unit = any(word.get("unit") or word.get("scale") for word in lexicon().at(text, at + 1))
    card = following.kind == "word" and at + 2 < len(text) and text[at + 2].kind == "number" and not text[at + 2].space
    # 'Gemma 4 E4B' is no four of anything.
    return unit or (card and not is_size(text, at + 2))


@lru_cache(maxsize=4096)
def looked_up(catalogue: Catalogue, kind: str, said: str) -> tuple[str | None, str | None, tuple[str, ...], str | None]:
    """(Id, note, what it may mean where that is several, the problem where it is none)."""
    look = catalogue.find_model if kind == "model" else catalogue.find_accelerator
    try:
        id, note = look(said)
    except PlanError as error:
        valid = tuple(str(one) for one in error.valid or ())
        return (None, None, valid, None) if "ambiguous" in error.problem else (None, None, valid, error.problem)
    return id, note, (), None


def runs_on(text: Sequence[Glyphs], end: int) -> bool:
    """Whether letters or digits go on, other than a plural s or a count's x: 'a100k', 'l4b'."""
    if end >= len(text) or text[end].space:
        return False
    return text[end].kind in ("word", "number") and text[end].norm not in (*_PLURAL, "x", "gpu", "gpus")


# '4090s', German '3090er'.
_PLURAL = ("s", "es", "er", "ern")


def is_plural(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a token is the glued ending of several: '4090s', '3090er'."""
    return at < len(text) and text[at].norm in _PLURAL and not text[at].space


def goes_on(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a name goes on with a number, or behind a hyphen: 'Hermes 3', 'SuperBrain-X'."""
    token = text[at]
    hyphened = text[at - 1].text == "-" and not token.space
    return token.kind == "number" or (token.text == "-" and not token.space) or (token.kind == "word" and hyphened)


def is_strange(text: Sequence[Glyphs], at: int, known: Known) -> bool:
    """Whether neither the lexicon nor the catalogues have a word."""
    token = text[at]
    if token.kind != "word" or token.norm in plain_words() or token.norm in known.heads or token.norm == "x":
        return False
    if any(True for _ in walked(known.accelerators, text, at)):
        return False
    return not lexicon().at(text, at) or _is_serial(text, at)


def _is_serial(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a letter and a number in one are a name: 'Z9000', 'X9', not 'r16' or 'h100k'."""
    token = text[at]
    if len(token.norm) > 1 or at + 1 >= len(text) or text[at + 1].kind != "number" or text[at + 1].space:
        return False
    return (len(text[at + 1].norm) > 2 or token.text.isupper()) and not _ends_number(text, at + 2)


def _ends_number(text: Sequence[Glyphs], end: int) -> bool:
    """Whether a unit or a scale is written to a number: 'h100k', 'r256x'."""
    return end < len(text) and not text[end].space and text[end].kind == "word"


@cache
def tails() -> frozenset[str]:
    return lexicon().tails


@cache
def makers() -> frozenset[str]:
    return lexicon().makers
