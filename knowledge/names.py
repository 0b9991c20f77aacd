"""Finding what a person means by the name of a model or an accelerator, without ever guessing a number.

A name is read as words and numbers. Exact names come first. Then the words must be the same (one slip of the finger in
a word is forgiven and said), every number given must be there unchanged, and numbers left out are filled only when one
candidate remains. Anything else is an error that lists the candidates: a silent substitute would be a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from estimator.errors import PlanError

T = TypeVar("T")
_LONGEST = 200
_SHOWN = 6
_SHOWN_AT_LEAST = 3
_ALIKE = 60
"""Similarity (0 to 100, and 100 more for each word in common) from which a name is worth suggesting."""
_SHOWN_WHEN_AMBIGUOUS = 12


@dataclass(frozen=True)
class Match(Generic[T]):
    """What a name stands for; `note` is the sentence to tell the user when something was assumed."""

    value: T
    note: str | None = None


@dataclass(frozen=True)
class Form:
    """One way to write an entry's name: `words` that must all be said, `numbers` that may be left out."""

    words: frozenset[str]
    numbers: frozenset[str]


@dataclass(frozen=True)
class NamedEntry:
    """A thing that can be named. `names` are exact names; `readings` are vague names that are taken to mean it.

    `attributes` are tokens that may be said or left out (memory size, form factor).
    """

    id: str
    label: str
    names: tuple[str, ...]
    readings: tuple[str, ...] = ()
    attributes: frozenset[str] = field(default_factory=frozenset)


class NameCatalogue:
    """The names of one kind of thing, ready for look-up; `tokens` splits a name into words and numbers."""

    def __init__(
        self, entries: Sequence[NamedEntry], tokens: Callable[[str], list[str]], kind: str, place: str
    ) -> None:
        self.entries = {entry.id: entry for entry in entries}
        self.tokens = tokens
        self.kind = kind
        self.place = place
        self._exact = {name.casefold(): entry.id for entry in entries for name in (*entry.names, entry.id)}
        self._forms: list[tuple[NamedEntry, list[Form]]] | None = None

    def exact(self, name: str) -> str | None:
        """The id behind an exact name, in any case."""
        return self._exact.get(name.strip().casefold())

    def find(self, name: str) -> Match[str]:
        """The id that `name` means. Raises PlanError (ambiguous, or unknown with the nearest names)."""
        if id := self.exact(name):
            return Match(id)
        shown = name if len(name) <= 60 else name[:57] + "..."
        if not name.strip():
            raise PlanError(self.place, f"a {self.kind} name is needed", self._some())
        if len(name) > _LONGEST:
            raise PlanError(self.place, f"{shown!r} is too long for a {self.kind} name")
        tokens = self.tokens(name)
        if match := self._read(_form(tokens), shown, elsewhere="/" in name):
            return match
        readings = [match for words in self._corrections(tokens) if (match := self._read(_form(words), shown, True))]
        if len({match.value for match in readings}) == 1:
            return readings[0]
        wider = self._candidates(_form(tokens), with_more_words=True)
        if len(wider) > 1:
            raise self._ambiguous(shown, wider)
        near = self._nearest(tokens, name)
        raise PlanError(self.place, f"there is no {self.kind} {shown!r} in the catalogue", near)

    @property
    def forms(self) -> list[tuple[NamedEntry, list[Form]]]:
        if self._forms is None:
            self._forms = [(e, [_form(self.tokens(n)) for n in (*e.names, e.id)]) for e in self.entries.values()]
        return self._forms

    def _read(self, form: Form, shown: str, elsewhere: bool) -> Match[str] | None:
        """The entry with exactly this form; else the one it is a vague name of; else the only one that completes it.

        `elsewhere`: the name differs from the entry's in more than punctuation, so say how it was read.
        """
        same = [entry for entry, forms in self.forms if form in forms]
        if not same:
            readings = [e for e in self.entries.values() if form in [_form(self.tokens(name)) for name in e.readings]]
            if readings:
                return self._found(readings[0], shown, self._kin(form))
            same = [self.entries[id] for id in self._candidates(form)]
            elsewhere = True
        if len(same) > 1:
            ids = [entry.id for entry in same]
            raise PlanError(
                self.place, f"{shown!r} is ambiguous: it could be any of these", ids[:_SHOWN_WHEN_AMBIGUOUS]
            )
        if not same:
            return None
        others = [id for id in self._candidates(form) if id != same[0].id]
        return self._found(same[0], shown, others) if elsewhere or others else Match(same[0].id)

    def _found(self, entry: NamedEntry, shown: str, others: Iterable[str]) -> Match[str]:
        rest = [id for id in others if id != entry.id]
        also = f" (also: {', '.join(rest[:_SHOWN])})" if rest else ""
        return Match(entry.id, f"{shown!r} read as {entry.label}{also}")

    def _ambiguous(self, shown: str, ids: list[str]) -> PlanError:
        return PlanError(self.place, f"{shown!r} is ambiguous: it could be any of these", ids[:_SHOWN_WHEN_AMBIGUOUS])

    def _candidates(self, wanted: Form, with_more_words: bool = False) -> list[str]:
        """Ids that have exactly the words said (or more) and every number said; those that leave least unsaid first."""
        scored: dict[str, int] = {}
        for entry, forms in self.forms:
            words, numbers = wanted.words - entry.attributes, wanted.numbers - entry.attributes
            unsaid = [
                len(form.numbers - numbers - entry.attributes)
                for form in forms
                if (form.words - entry.attributes == words or (with_more_words and words <= form.words))
                and numbers <= form.numbers
                and (words or numbers)
            ]
            if unsaid:
                scored[entry.id] = min(unsaid)
        return sorted(scored, key=lambda id: scored[id])

    def _kin(self, wanted: Form) -> list[str]:
        """Ids whose numbers begin with those said, whatever their words: what a vague name could also mean."""

        def could_be(entry: NamedEntry, form: Form) -> bool:
            tokens = form.numbers | form.words | entry.attributes
            return all(any(token.startswith(part) for token in tokens) for part in wanted.numbers | wanted.words)

        return [entry.id for entry, forms in self.forms if any(could_be(entry, form) for form in forms)]

    def _corrections(self, tokens: list[str]) -> list[list[str]]:
        """The tokens with their one unknown word replaced by each known word that is a single slip away."""
        known = {word for _, forms in self.forms for form in forms for word in form.words}
        known |= {word for entry in self.entries.values() for word in entry.attributes if word.isalpha()}
        unknown = [i for i, token in enumerate(tokens) if token.isalpha() and token not in known]
        if len(unknown) != 1 or len(tokens[unknown[0]]) < 3:
            return []
        at = unknown[0]
        close = [word for word in sorted(known) if _one_slip(tokens[at], word)]
        return [[*tokens[:at], word, *tokens[at + 1 :]] for word in close]

    def _nearest(self, tokens: list[str], name: str) -> list[str]:
        from rapidfuzz import fuzz

        wanted = set(tokens)

        def score(entry: NamedEntry, forms: list[Form]) -> float:
            shared = max(len(wanted & (form.words | form.numbers | entry.attributes)) for form in forms)
            return 100 * shared + max(fuzz.ratio(name.casefold(), text.casefold()) for text in (*entry.names, entry.id))

        scores = {entry.id: score(entry, forms) for entry, forms in self.forms}
        ranked = sorted(scores, key=lambda id: -scores[id])[:_SHOWN]
        return [id for i, id in enumerate(ranked) if i < _SHOWN_AT_LEAST or scores[id] >= _ALIKE]

    def _some(self) -> list[str]:
        return list(self.entries)[:_SHOWN]


def model_tokens(name: str) -> list[str]:
    """'Meta-Llama-3.1-8B-Instruct' -> ['llama', '3.1', '8b']: words and numbers without makers' and tuning words."""
    text = name.casefold().replace("+", " plus ")
    if "/" in text:
        text = text.rpartition("/")[2]
    text = re.sub(r"(?<=\d)_(?=\d)", ".", text)
    text = re.sub(r"(?<=\d)\s+(billion|b)\b", "b", text)
    text = re.sub(r"\b(\d+)b(\d)\b", r"\1.\2b", text)
    result = []
    for piece in re.findall(r"[a-z0-9.]+|[^\W\d_a-z]+", text):
        if piece not in _MODEL_NOISE:
            result += _pieces(piece.strip("."))
    return [token for token in result if token and token not in _MODEL_NOISE]


def _pieces(piece: str) -> list[str]:
    """'qwen2.5' -> qwen, 2.5; 'v3' -> 3; '8x7b', '70b' and 'a3b' stay whole."""
    if re.fullmatch(r"a\d+(\.\d+)?b", piece) or not (match := re.fullmatch(r"([a-z]+?)(\d[a-z0-9.]*)", piece)):
        return [part for part in re.split(r"(?<=[a-z])\.|\.(?=[a-z])", piece) if part]
    head, rest = match.groups()
    return [rest] if head == "v" else [head, rest]


_MODEL_NOISE = frozenset({
    "meta", "hf", "instruct", "chat", "it", "pt", "base", "model", "llm", "bf16", "fp16", "fp8", "int4", "int8", "4bit",
    "8bit", "awq", "gptq", "gguf", "mlx", "the", "nvfp4", "mxfp4", "mxfp8",
})  # fmt: skip
"""Words that do not change the architecture: tuning, number format, articles."""


def accelerator_tokens(name: str) -> list[str]:
    """'NVIDIA A100-SXM4-80GB' -> ['a100', 'sxm', '80gb']; 'gaudi3' -> ['gaudi', '3']."""
    text = name.casefold()
    text = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:gib|gb|g)\b", r"\1gb", text)
    text = re.sub(r"(?<=\d)(?=(sxm|pcie|nvl)\d?\b)", " ", text)
    text = re.sub(r"\bmi[\s_-]+(?=\d)", "mi", text)
    text = re.sub(r"\b([a-z]{5,}|rtx|gtx|tpu)(?=v?\d)", r"\1 ", text)
    tokens = [_looked_alike(token) for token in re.findall(r"[a-z0-9.+]+|[^\W\d_a-z]+", text)]
    return [token for token in (_ACCELERATOR_SAME.get(t, t) for t in tokens) if token not in _ACCELERATOR_NOISE]


def _looked_alike(token: str) -> str:
    """'h1oo' -> 'h100': the letter o among digits is a zero that was mistyped."""
    if re.fullmatch(r"[a-z]*\d[\do]*", token):
        return re.sub(r"(?<=\d)o+", lambda match: "0" * len(match[0]), token)
    return token


_ACCELERATOR_NOISE = frozenset({
    "nvidia", "amd", "intel", "google", "aws", "amazon", "cerebras", "apple", "tesla", "geforce", "instinct", "radeon",
    "rtx", "tpu", "gpu", "gpus", "card", "chip", "chips", "tensor", "core", "data", "center", "accelerator", "oam",
    "superchip", "hopper", "the",
})  # fmt: skip
_ACCELERATOR_SAME = {
    "sxm2": "sxm", "sxm3": "sxm", "sxm4": "sxm", "sxm5": "sxm", "sxm6": "sxm", "hgx": "sxm", "dgx": "sxm",
}  # fmt: skip


def _form(tokens: Iterable[str]) -> Form:
    words, numbers = set(), set()
    for token in tokens:
        (words if token.isalpha() else numbers).add(token)
    return Form(frozenset(words), frozenset(numbers))


def _one_slip(typed: str, word: str) -> bool:
    """One letter wrong, missing, too many, or two neighbours swapped (in words of three letters or more)."""
    if len(word) < 3 or abs(len(typed) - len(word)) > 1 or typed == word:
        return False
    if len(typed) == len(word):
        wrong = [i for i, (a, b) in enumerate(zip(typed, word, strict=True)) if a != b]
        swapped = len(wrong) == 2 and wrong[1] == wrong[0] + 1 and typed[wrong[0]] == word[wrong[1]]
        return len(wrong) == 1 or (swapped and typed[wrong[1]] == word[wrong[0]])
    short, long = sorted((typed, word), key=len)
    return any(long[:i] + long[i + 1 :] == short for i in range(len(long)))
