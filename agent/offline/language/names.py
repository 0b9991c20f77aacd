"""Names of models, accelerators, rentable machines, providers and files in a text, and what the catalogues say of
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from agent.offline.catalogue import Catalogue, Instance
from agent.offline.language.lexicon import lexicon, plain_words
from agent.offline.language.tokens import Glyphs, tokens
from estimator.errors import PlanError
from knowledge.machines.offered import cores_of
from knowledge.prices.energy import place_names

_FILES = (
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".sh",
    ".sbatch",
    ".py",
    ".log",
    ".gguf",
    ".safetensors",
    ".txt",
    ".md",
    ".csv",
)
_MOST_WORDS = 9
_MOST_GLUED = 24
_GIGABYTES = ("gb", "g", "gib", "gi")
# (Id, note, what it may mean where that is several, the problem where it is none).
_Looked = tuple[str | None, str | None, tuple[str, ...], str | None]


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
class _Tree:
    next: dict[str, _Tree] = field(default_factory=dict)
    leaf: str | None = None


@dataclass(frozen=True)
class _Known:
    """The catalogues' names as trees of words, by kind."""

    models: _Tree
    heads: dict[str, frozenset[str]]
    accelerators: _Tree
    instances: dict[str, Instance]
    providers: _Tree
    places: _Tree


def names(text: Sequence[Glyphs], whole: str, catalogue: Catalogue) -> list[Name]:
    """Names in the order of the text; none overlap, longer ones win."""
    known = _known(catalogue)
    found = list(_paths(text, whole))
    taken = {at for name in found for at in range(name.start, name.end)}
    at = 0
    while at < len(text):
        name = None if at in taken else _at(text, at, known, catalogue, whole)
        if name and not any(one in taken for one in range(name.start, name.end)):
            found.append(name)
            taken.update(range(name.start, name.end))
            at = name.end
        else:
            at += 1
    return sorted(found, key=lambda name: name.start)


def head_words(catalogue: Catalogue) -> frozenset[str]:
    """First words of models and every word of accelerators: no slips of the finger."""
    known = _known(catalogue)
    return frozenset(known.heads) | frozenset(known.accelerators.next) | frozenset(known.providers.next)


@lru_cache(maxsize=2)
def _known(catalogue: Catalogue) -> _Known:
    models, accelerators, providers = _Tree(), _Tree(), _Tree()
    makers = lexicon().makers
    heads: dict[str, set[str]] = {}
    for name in catalogue.model_names:
        tail = name.rpartition("/")[2]
        for form in {name, tail}:
            _plant(models, form, name)
        head, *rest = [one.norm for one in tokens(tail) if not one.joins] or [""]
        if head.isalpha() and len(head) > 1:
            heads.setdefault(head, set()).update(rest)
    for name in (*catalogue.accelerator_names, *catalogue.card_numbers):
        _plant(accelerators, name, name)
        _plant(accelerators, _bare(name), name)
        plain = name.lower().replace("-", " ").split()
        while (
            len(plain) > 1
            and (plain[0] in makers or plain[0] in ("rtx", "tpu", "aws"))
            and any(map(str.isalpha, plain[1][:1]))
        ):
            plain = plain[1:]
            if len(plain) > 1 or plain[0][-1].isdigit() or len(plain[0]) > 2:
                _plant(accelerators, " ".join(plain), name)
    for provider in catalogue.providers:
        _plant(providers, provider, provider)
    places = _Tree()
    for place in place_names():
        _plant(places, place, place)
    instances = {one.name.lower(): one for one in catalogue.instances}
    instances |= {name.removeprefix("standard_"): one for name, one in instances.items()}
    return _Known(
        models, {head: frozenset(rest) for head, rest in heads.items()}, accelerators, instances, providers, places
    )


def _bare(name: str) -> str:
    """A card's name up to its number: 'H100' of 'H100 SXM5 80GB'."""
    last = next((one.end for one in tokens(name) if one.kind == "number"), len(name))
    letters = last
    while letters < len(name) and name[letters].isalpha():
        letters += 1
    return name[:letters]


def _plant(tree: _Tree, name: str, leaf: str) -> None:
    for token in tokens(name):
        if not token.joins and token.text not in "()":
            tree = tree.next.setdefault(token.norm, _Tree())
    tree.leaf = tree.leaf or leaf


def _walk(tree: _Tree, text: Sequence[Glyphs], start: int) -> Iterator[tuple[int, str]]:
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
        plural = token.norm == "s" and not token.space
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


def _at(text: Sequence[Glyphs], at: int, known: _Known, catalogue: Catalogue, whole: str) -> Name | None:
    if text[at].kind == "sign":
        return None
    touches = at > 0 and not text[at].space and text[at - 1].kind == "word" and text[at - 1].norm not in ("x",)
    if touches:
        return None
    return (
        _instance(text, at, known, whole)
        or _model(text, at, known, catalogue, whole)
        or _accelerator(text, at, known, catalogue, whole)
        or _provider(text, at, known, whole)
        or _place(text, at, known, whole)
    )


def _said(whole: str, text: Sequence[Glyphs], start: int, end: int) -> str:
    return whole[text[start].start : text[end - 1].end]


# Models


def _model(text: Sequence[Glyphs], at: int, known: _Known, catalogue: Catalogue, whole: str) -> Name | None:
    exact = max(_walk(known.models, text, at), default=None)
    head = text[at].norm
    if head not in known.heads:
        if exact and not _ends_glued(text, exact[0]) and _bears(text, at, exact[0]):
            return _looked_up(text, at, exact[0], exact[1], catalogue, whole)
        return _unknown_model(text, at, known, catalogue, whole)
    end = max(_extent(text, at, known.heads[head]), exact[0] if exact else at + 1)
    sized = any(_is_size(text, one) for one in range(at, end))
    if not sized and end == at + 1 and (head in plain_words() or len(head) < 4 or _of_a_program(text, end)):
        return None
    turned = None
    start = at
    if not sized and at >= 2 and _is_size(text, at - 2) and at - 1 < len(text) and text[at].space:
        turned, start = f"{_said(whole, text, at, end)} {_said(whole, text, at - 2, at)}", at - 2
    for stop in range(end, at, -1):
        if sized and not any(_is_size(text, one) for one in range(at, stop)):
            break
        if stop < end and any(one.kind == "number" and not one.space for one in text[stop:end]):
            # 'gpt-5' is no 'gpt'.
            return _looked_up(text, start, end, _said(whole, text, at, end), catalogue, whole)
        if text[stop - 1].joins or (
            stop < len(text) and not text[stop].space and text[stop].kind != "sign" and stop != end
        ):
            continue
        name = _looked_up(text, start, stop, turned or _said(whole, text, at, stop), catalogue, whole)
        if name.id or (name.options and not name.problem):
            ordinary = head in plain_words() and stop == at + 1 and not sized
            return None if ordinary else name
        if turned:
            break
    if sized and (head not in plain_words() or any(text[one].joins for one in range(at + 1, end))):
        return _looked_up(text, start, end, turned or _said(whole, text, at, end), catalogue, whole)
    return None


def _ends_glued(text: Sequence[Glyphs], end: int) -> bool:
    return end < len(text) and not text[end].space and text[end].kind in ("word", "number")


def _bears(text: Sequence[Glyphs], start: int, end: int) -> bool:
    """Whether a short alias ('R1', 'V3', '70b') is more than a letter and a digit that happen to stand together."""
    first = text[start]
    return first.text[:1].isupper() or len(first.norm) > 1 or end - start > 2


def _of_a_program(text: Sequence[Glyphs], end: int) -> bool:
    following = text[end].norm if end < len(text) else ""
    behind = text[end + 1].norm if end + 1 < len(text) and text[end].joins else following
    return behind in ("factory", "cpp", "board", "format", "trainer", "server")


def _is_size(text: Sequence[Glyphs], at: int) -> bool:
    """Whether '8b', '70B' or '8x7b' begins at a token."""
    if at + 1 >= len(text) or text[at].kind != "number" or text[at + 1].space:
        return False
    behind = text[at + 1].norm
    if behind in ("b", "m"):
        return True
    return behind == "x" and at + 3 < len(text) and text[at + 2].kind == "number" and text[at + 3].norm == "b"


def _extent(text: Sequence[Glyphs], start: int, known: frozenset[str]) -> int:
    """Where a model name that begins with a family's word ends."""
    at = end = start + 1
    sized = False
    while at < len(text) and at - start < 2 * _MOST_WORDS:
        token = text[at]
        joined = False
        while at < len(text) and (text[at].joins or text[at].text == ":") and not text[at].space:
            joined, at = True, at + 1
        if at >= len(text) or (joined and text[at].space):
            break
        token = text[at]
        if token.kind == "number":
            if _is_size(text, at):
                if sized and token.space and not joined:
                    break
                sized = True
                at += 4 if text[at + 1].norm == "x" else 2
                end = at
                continue
            near = joined or not token.space
            version = token.norm in known or _is_size(text, at + 1)
            if not near and (not version or _counts(text, at)):
                break
            at += 1
            end = at
            continue
        if token.kind != "word":
            break
        following = text[at + 1] if at + 1 < len(text) else None
        versioned = bool(following and following.kind == "number" and not following.space)
        glued = versioned and joined and not token.space
        if token.norm not in known and not (versioned and token.norm in ("v", "a", "e")) and not glued:
            break
        if token.space and not joined and token.norm in ("a", "v", "e", "it", "base", "with", "on") and not versioned:
            break
        at += 1
        end = at
    return end


def _counts(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a number counts what stands behind it instead of being a version: '2 gpus', '4x'."""
    if at + 1 >= len(text):
        return False
    following = text[at + 1]
    if following.norm in ("x", "×", "*", "%", "$"):
        return True
    if _is_size(text, at + 1):
        return False
    unit = any(word.get("unit") or word.get("scale") for word in lexicon().at(text, at + 1))
    card = following.kind == "word" and at + 2 < len(text) and text[at + 2].kind == "number" and not text[at + 2].space
    return unit or card


def _looked_up(text: Sequence[Glyphs], start: int, end: int, said: str, catalogue: Catalogue, whole: str) -> Name:
    shown = _said(whole, text, start, end)
    sized = any(_is_size(text, one) for one in range(start, end))
    id, note, options, problem = _found(catalogue, "model", said)
    return Name("model", start, end, shown, id, note, options, problem, sized=sized)


@lru_cache(maxsize=4096)
def _found(catalogue: Catalogue, kind: str, said: str) -> tuple[str | None, str | None, tuple[str, ...], str | None]:
    """(Id, note, what it may mean where that is several, the problem where it is none)."""
    look = catalogue.find_model if kind == "model" else catalogue.find_accelerator
    try:
        id, note = look(said)
    except PlanError as error:
        valid = tuple(str(one) for one in error.valid or ())
        return (None, None, valid, None) if "ambiguous" in error.problem else (None, None, valid, error.problem)
    return id, note, (), None


def _unknown_model(text: Sequence[Glyphs], at: int, known: _Known, catalogue: Catalogue, whole: str) -> Name | None:
    """What is written like a model of no known family: 'SuperLM-13B', 'org/Name-7B', 'Hermes 3 8B'."""
    token = text[at]
    if token.kind != "word" or len(token.norm) < 3:
        return None
    if end := _strange_model(text, at, known):
        return _looked_up(text, at, end, _said(whole, text, at, end), catalogue, whole)
    at_size = at + 1
    while (
        at_size < min(len(text), at + _MOST_GLUED)
        and not text[at_size].space
        and (text[at_size].joins or text[at_size].kind == "word")
    ):
        at_size += 1
    glued = at_size > at + 1 and text[at_size - 1].text in "-_"
    if not glued or not _is_size(text, at_size) or text[at_size].space or text[at_size + 1].norm != "b":
        return None
    if token.norm in plain_words() or lexicon().at(text, at):
        return None
    end = at_size + 2
    while end < len(text) and not text[end].space and (text[end].joins or text[end].kind in ("word", "number")):
        end += 1
    end -= text[end - 1].joins
    return _looked_up(text, at, end, _said(whole, text, at, end), catalogue, whole)


def _strange_model(text: Sequence[Glyphs], at: int, known: _Known) -> int | None:
    """Where words that nobody knows end together with the size that is said of them."""
    if len(text[at].norm) < 4:
        return None
    end = at
    while end < len(text) and (_is_strange(text, end, known) or (end > at and _goes_on(text, end))):
        if _is_size(text, end):
            return end + 2 if text[end + 1].norm == "b" else None
        end += 1
    return None


# Accelerators


def _accelerator(text: Sequence[Glyphs], at: int, known: _Known, catalogue: Catalogue, whole: str) -> Name | None:
    ends = [end for end, _ in _walk(known.accelerators, text, at)]
    ends = [end for end in ends if not _runs_on(text, end) or (len(text[end].norm) > 1 and text[end].norm in _tails())]
    if not ends:
        return _unknown_accelerator(text, at, known, catalogue, whole)
    if text[at].kind == "number" and not _is_card(text, at, max(ends)):
        return None
    stop, said, looked = _card(text, at, max(ends), catalogue, max(_walk(known.accelerators, text, at))[1])
    cores, stop = _slice(text, looked[0], stop)
    if cores is None and looked[3] is None and (more := _memory_behind(text, stop, said, catalogue)):
        stop, looked = more
    start, box = at, False
    if looked[3] is None and (lead := _memory_before(text, at)):
        fuller = _found(catalogue, "accelerator", f"{said} {lead[1]}gb")
        if fuller[3] is None:
            start, looked = lead[0], fuller
    while start and text[start - 1].norm in _makers() and text[start].space:
        box |= text[start - 1].norm in ("dgx", "hgx")
        start -= 1
    stop += stop < len(text) and text[stop].norm == "s" and not text[stop].space
    return Name("accelerator", start, stop, _said(whole, text, start, stop), *looked, box=box, count=cores)


def _card(text: Sequence[Glyphs], start: int, least: int, catalogue: Catalogue, name: str) -> tuple[int, str, _Looked]:
    """(Token behind, its words, what the catalogue says) of a card: the longest name that it knows, at least up to
    `least`, which the catalogue calls `name`."""
    end = _tail(text, least)
    for stop in range(end, least - 1, -1):
        said = _card_text(text, start, stop)
        looked = _found(catalogue, "accelerator", said)
        if looked[3] is None:
            return stop, said, looked
    return least, name, _found(catalogue, "accelerator", name)


def _memory_behind(text: Sequence[Glyphs], end: int, said: str, catalogue: Catalogue) -> tuple[int, _Looked] | None:
    """(Token behind, the card) of 'A100-80' and 'A100 40': a number that is a memory of the card that is named."""
    at = end + (end < len(text) and text[end].text == "-")
    if at >= len(text) or text[at].kind != "number" or not text[at].norm.isdigit():
        return None
    plural = at + 1 < len(text) and text[at + 1].norm == "s" and not text[at + 1].space
    if _counts(text, at) and not plural:
        return None
    found = _found(catalogue, "accelerator", f"{said} {text[at].norm}gb")
    fits = found[3] is None and f"{text[at].norm}gb" in (found[0] or "".join(found[2][:1]))
    return (at + 1 + plural, found) if fits else None


def _slice(text: Sequence[Glyphs], id: str | None, end: int) -> tuple[int | None, int]:
    """(Chips, token behind) of 'v5p-128'."""
    if not (id or "").startswith("tpu") or end + 1 >= len(text) or text[end].text != "-" or text[end].space:
        return None, end
    number = text[end + 1]
    if number.kind != "number" or number.space or "." in number.norm:
        return None, end
    return max(int(number.norm) // cores_of(str(id)), 1), end + 2


def _runs_on(text: Sequence[Glyphs], end: int) -> bool:
    """Whether letters or digits go on, other than a plural s or a count's x: 'a100k', 'l4b'."""
    if end >= len(text) or text[end].space:
        return False
    return text[end].kind in ("word", "number") and text[end].norm not in ("s", "x", "es", "gpu", "gpus")


def _is_card(text: Sequence[Glyphs], at: int, end: int) -> bool:
    """Whether a number alone is a card's name: '4090', '2x3090', 'my 5090', not '4090 tokens'."""
    norm = text[at].norm
    if end > at + 1 or (at > 1 and text[at - 1].norm in ("x", "×") and text[at - 2].kind == "number"):
        return True
    if at and text[at - 1].text in "$€£=.:/":
        return False
    plural = at + 1 < len(text) and text[at + 1].norm == "s" and not text[at + 1].space
    for word in lexicon().at(text, at + 1) if not plural else ():
        if any(sense.name != "devices" for sense in word.all("unit")) or word.get("scale"):
            return False
        if any(sense.name in ("seq_len", "input_len", "output_len") for sense in word.all("field")):
            return False
    return len(norm) == 4 and norm[0] in "2345" and norm[1] == "0" and norm[2] in "6789" and norm[3] == "0"


def _tail(text: Sequence[Glyphs], end: int) -> int:
    """Where the words behind a card's name end that say which one it is: 'SXM5 80GB', 'NVL72', '(80GB)'."""
    at = end
    while at < len(text) and at - end < 6:
        token = text[at]
        if (token.joins and not token.space) or token.text in "()":
            at += 1
            continue
        memory = (
            token.kind == "number" and at + 1 < len(text) and text[at + 1].norm in _GIGABYTES and not text[at + 1].space
        )
        if (token.norm in _tails() and (len(token.norm) > 1 or not token.space)) or (
            token.kind == "number" and not token.space and at > end - 1 and text[at - 1].kind == "word"
        ):
            at, end = at + 1, at + 1
        elif memory:
            at, end = at + 2, at + 2
            end += end < len(text) and text[end].text == ")"
            at = end
        else:
            break
    return end


def _card_text(text: Sequence[Glyphs], start: int, end: int) -> str:
    """The words of a card's name, with a space where one was written, and before a word that says which: '3080Ti'."""
    parts: list[str] = []
    for at in range(start, end):
        token = text[at]
        if token.text in "()":
            continue
        which = token.norm in _tails() and token.norm not in _GIGABYTES and text[at - 1].kind == "number"
        parts.append(f" {token.text}" if at > start and (token.space or which) else token.text)
    return "".join(parts).strip(" -")


def _memory_before(text: Sequence[Glyphs], at: int) -> tuple[int, str] | None:
    """(Token, gigabytes) of '80GB A100'."""
    at -= at > 1 and text[at - 1].text == "-"
    if at >= 2 and text[at - 2].kind == "number" and text[at - 1].norm in _GIGABYTES and not text[at - 1].space:
        return at - 2, text[at - 2].norm
    return None


def _unknown_accelerator(
    text: Sequence[Glyphs], at: int, known: _Known, catalogue: Catalogue, whole: str
) -> Name | None:
    """What is written like a card that the catalogue does not have: 'H300', 'RTX 6090', '8 Zorg Z900 cards'."""
    if end := _strange_card(text, at, known):
        said = _card_text(text, at, end)
        return Name("accelerator", at, end, _said(whole, text, at, end), *_found(catalogue, "accelerator", said))
    token = text[at]
    if token.kind != "word" or at + 1 >= len(text):
        return None
    number = text[at + 1]
    family = token.norm in ("rtx", "gtx", "rx", "titan", "gh", "gb", "mi", "tpu", "quadro", "tesla", "geforce")
    counts = at > 0 and text[at - 1].kind == "number" and token.space and len(number.norm) < 4
    letter = token.norm in ("a", "b", "h", "l", "v", "p") and (token.text.isupper() or counts)
    if number.kind != "number" or "." in number.norm or len(number.norm) < 2 or len(number.norm) > 4:
        return None
    if not (family or (letter and not number.space)) or (token.norm in ("gb", "mi") and number.space):
        return None
    end = at + 2
    if _runs_on(text, end) and text[end].norm in ("b", "k", "m"):
        return None
    end = _tail(text, end)
    said = _card_text(text, at, end)
    id, note, options, problem = _found(catalogue, "accelerator", said)
    return Name("accelerator", at, end, _said(whole, text, at, end), id, note, options, problem)


def _strange_card(text: Sequence[Glyphs], at: int, known: _Known) -> int | None:
    """Where words that nobody knows end that stand for a card: they are counted or follow a maker's name, are written
    as letters and digits in one, or stand before a word such as 'cards'; two of the three."""
    before = text[at - 1] if at else None
    counted = before is not None and before.kind == "number" and before.norm.isdigit() and text[at].space
    end, glued = at, False
    while end < len(text) and (_is_strange(text, end, known) or (end > at and text[end].kind == "number")):
        glued |= end > at and text[end].kind == "number" and not text[end].space
        end += 1
    if end == at or (text[end - 1].kind == "number" and end == at + 1):
        return None
    devices = any(sense.name == "devices" for word in lexicon().at(text, end) for sense in word.all("unit"))
    told = counted or (before is not None and before.norm in _makers())
    return end if told + glued + devices > 1 and (devices or len(text[end - 1].norm) > 1) else None


def _goes_on(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a name goes on with a number, or behind a hyphen: 'Hermes 3', 'SuperBrain-X'."""
    token = text[at]
    hyphened = text[at - 1].text == "-" and not token.space
    return token.kind == "number" or (token.text == "-" and not token.space) or (token.kind == "word" and hyphened)


def _is_strange(text: Sequence[Glyphs], at: int, known: _Known) -> bool:
    """Whether neither the lexicon nor the catalogues have a word."""
    token = text[at]
    if token.kind != "word" or token.norm in plain_words() or token.norm in known.heads or token.norm == "x":
        return False
    if any(True for _ in _walk(known.accelerators, text, at)):
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


# Machines, providers, files


def _instance(text: Sequence[Glyphs], at: int, known: _Known, whole: str) -> Name | None:
    """A rentable machine by its name, which is one run of characters without white space."""
    end = at + 1
    while (
        end < min(len(text), at + _MOST_GLUED)
        and not text[end].space
        and (text[end].kind in ("word", "number") or text[end].joins)
    ):
        end += 1
    for stop in range(end, at + 1, -1):
        if one := known.instances.get(_said(whole, text, at, stop).lower()):
            return Name("instance", at, stop, _said(whole, text, at, stop), one.accelerator, instance=one)
    return None


def _provider(text: Sequence[Glyphs], at: int, known: _Known, whole: str) -> Name | None:
    found = max(_walk(known.providers, text, at), default=None)
    aliases = (
        (word.end, one.name) for word in lexicon().at(text, at) for one in word.all("asked") if one.value == "provider"
    )
    end, id = found or next(aliases, (at, None))
    if id is None or _runs_on(text, end) or text[at].norm == "owned":
        return None
    common = end == at + 1 and text[at].norm in plain_words()
    placed = at > 0 and text[at - 1].norm in (
        "on",
        "at",
        "from",
        "via",
        "with",
        "using",
        "or",
        "and",
        "vs",
        "than",
        "of",
        ",",
        "/",
        "in",
        "auf",
        "bei",
        "en",
        "chez",
        "sur",
    )
    if (
        common
        and not (text[at].text[:1].isupper() and (placed or at == 0))
        and not (placed and text[at].norm not in ("google", "one", "prime", "apple", "intel"))
    ):
        return None
    return Name("provider", at, end, _said(whole, text, at, end), id)


def _place(text: Sequence[Glyphs], at: int, known: _Known, whole: str) -> Name | None:
    """A country, a state or a cloud region, where the words say that something is in it."""
    found = max(_walk(known.places, text, at), default=None)
    if found is None or _runs_on(text, found[0]):
        return None
    behind = text[at - 1].norm if at else ""
    region = "-" in _said(whole, text, at, found[0]) and any(one.kind == "number" for one in text[at : found[0]])
    if not region and (len(text[at].norm) < 4 or (text[at].text[:1].islower() and behind not in ("in", "en", "em"))):
        return None
    return Name("place", at, found[0], _said(whole, text, at, found[0]), found[1])


def _paths(text: Sequence[Glyphs], whole: str) -> Iterator[Name]:
    """Files and folders: '/data/cfg.json', './runs', 'config.json', '~/model'."""
    at = 0
    while at < len(text):
        end = at + 1
        while end < len(text) and not text[end].space and text[end].text not in "\n,;()\"'`":
            end += 1
        chunk = _said(whole, text, at, end).rstrip(".?!:")
        stop = end
        while stop > at + 1 and text[stop - 1].end > text[at].start + len(chunk):
            stop -= 1
        rooted = chunk.startswith(("/", "./", "../", "~/")) and len(chunk) > 2 and any(one.isalpha() for one in chunk)
        if rooted or (chunk.lower().endswith(_FILES) and len(chunk) > 5 and not chunk.startswith("-")):
            yield Name("path", at, stop, chunk)
        at = max(end, at + 1)


@cache
def _tails() -> frozenset[str]:
    return lexicon().tails


@cache
def _makers() -> frozenset[str]:
    return lexicon().makers
