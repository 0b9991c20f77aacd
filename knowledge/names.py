"""Finding what a person means by the name of a model or an accelerator, without ever guessing a number.

A name is read as words, numbers and marks (what was done to a model, and how it is held). Exact names come first. Then
the words must be the same (one slip of the finger in a word is forgiven and said) and every number given must be there
unchanged. What a name leaves out costs: of the entries that remain the cheapest is meant, where all are one
architecture or the size was given; the newest version of those that cost the same. Anything else is an error that lists
the candidates: a silent substitute would be a wrong answer. A match says its score, and what came second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Generic, TypeVar

from estimator.errors import PlanError

T = TypeVar("T")
_LONGEST = 200
_SHOWN, _SHOWN_OTHERS = 6, 3
_ALIKE = 60
"""Similarity (0 to 100) from which a name without a word in common is worth suggesting."""
_SHOWN_WHEN_AMBIGUOUS, _REMEMBERED = 12, 4096

# What a name leaves open or an entry lacks, in units of one number that was not said. Chosen so that a tuning word is
# never dropped while an entry has it, and a format is dropped before a tuning word.
_NUMBER_UNSAID, _WORD_UNSAID, _MARK_UNSAID, _PLAIN_UNSAID = 1.0, 1.0, 1.0, 0.25
_MARK_LACKING, _FORMAT_LACKING = 2.0, 0.5
# What another owner made of it in that format: more than to take the original as held so.
_ANOTHERS = 0.75
_ONE_SCALE = 1.05
"""Sizes that differ by less are one size."""
_AGAIN = "'"
"""Behind a number that was said before, so that a set of numbers tells 3.1 and 3.1 from 3.1."""
PLAIN = "base"
"""The mark of an untuned model: people leave it out."""
_UNTOLD = frozenset({PLAIN, "instruct"})
"""Marks that need no word where an entry lacks them: it is the only one, or it is tuned anyway."""
_VERSION = re.compile(r"1?\d(?:\.\d+)?")
# Scores of the ways in which a name can be read; each unit of cost takes a tenth.
_EXACT, _BY_WORDS, _BY_HABIT, _NEWEST, _SLIP, _PER_COST = 1.0, 0.95, 0.8, 0.7, 0.15, 0.1


class UnknownName(PlanError):
    """A name that nothing in a catalogue is called, and that is not refused by what it is."""


@dataclass(frozen=True)
class Match(Generic[T]):
    """What a name stands for; `note` is the sentence to tell the user when something was assumed.

    `score` is 1 for an exact name and falls with what had to be assumed; `runner_up` is the id that came second.
    `lacking` are marks that were said and the entry does not have. `devices` is how many the name itself stands for:
    those of a rented machine or of a slice.
    """

    value: T
    note: str | None = None
    score: float = _EXACT
    runner_up: str | None = None
    lacking: frozenset[str] = frozenset()
    devices: int | None = None


@dataclass(frozen=True)
class Form:
    """One way to write an entry's name: `words` that must all be said, `numbers` that may be left out (one said before
    has a ' behind it), `marks` that tell apart what is otherwise the same; `formats` are those of the marks that say
    how weights are held, `implied` those that the kind of name says and no word of it. `owner` is whose it is, where
    the name says that before a slash. `versions` are words with the small plain number that stands right behind."""

    words: frozenset[str]
    numbers: frozenset[str]
    marks: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset()
    owner: str = ""
    implied: frozenset[str] = frozenset()
    versions: frozenset[tuple[str, str]] = frozenset()

    def is_other_version(self, other: Form) -> bool:
        """Whether a word of both has another version there: Hermes 3 is no Hermes-2-Pro-Llama-3."""
        theirs = {word for word, _ in other.versions}
        return any(word in theirs and (word, version) not in other.versions for word, version in self.versions)


@dataclass(frozen=True)
class NamedEntry:
    """A thing that can be named. `names` are exact names; `readings` are vague names that are taken to mean it.

    `attributes` are tokens that may be said or left out (memory size, form factor). `base` is the id of what it is a
    copy of ('' for itself). Without `names` it is found by its id alone. `makers` are words for who made it, `scale`
    how large it is: things of one scale differ by their version alone. `sizes` are numbers for its scale that its names
    do not have and people say.
    """

    id: str
    label: str
    names: tuple[str, ...]
    readings: tuple[str, ...] = ()
    attributes: frozenset[str] = field(default_factory=frozenset)
    base: str = ""
    makers: frozenset[str] = frozenset()
    scale: float = 0.0
    sizes: frozenset[str] = frozenset()
    whole: tuple[str, ...] = ()
    """Exact names whose parts say nothing."""


@dataclass(frozen=True)
class Language:
    """How names of one kind are read: `read` makes a Form of a name, `words` the plain words of it. `size` is a pattern
    of numbers that settle which thing is meant, so that only its version is open; `sized` what a number without its
    unit means among others. `others` says of words what they name instead: a name with one of them is refused. `short`
    is what is written for a word before its number."""

    read: Callable[[str], Form]
    words: Callable[[str], frozenset[str]] = lambda name: frozenset()
    size: str = ""
    sized: Callable[[str, frozenset[str]], str | None] = lambda number, numbers: None
    others: Mapping[str, str] = field(default_factory=dict)
    short: Mapping[str, str] = field(default_factory=dict)


def _quoted(name: str) -> str:
    """As it was written, without a bracket that is one alone: 'A100 (80gb'."""
    words = name if name.count("(") == name.count(")") else re.sub(r"[()]", " ", name)
    return repr(" ".join(words.split()))


@dataclass(frozen=True)
class _Candidate:
    entry: NamedEntry
    form: Form
    cost: float
    unsaid: frozenset[str]
    shortened: bool = False

    @property
    def architecture(self) -> str:
        return self.entry.base or self.entry.id

    def rank(self, wanted: Form) -> tuple[float, bool]:
        """By cost, then the form that says the same."""
        return self.cost, not self.says(wanted)

    def says(self, wanted: Form) -> bool:
        """Whether words and numbers are those of the form, and what else its entry has."""
        more = self.entry.attributes - self.form.words - self.form.numbers
        return (self.form.words, self.form.numbers) == (wanted.words - more, wanted.numbers - more)

    @property
    def version(self) -> tuple[float, ...]:
        """The plain numbers that were left out, the largest first."""
        numbers = [float(number) for number in self.unsaid if re.fullmatch(r"\d+(\.\d+)?", number)]
        return tuple(sorted(numbers, reverse=True))


class NameCatalogue:
    """The names of one kind of thing, ready for look-up."""

    def __init__(self, entries: Sequence[NamedEntry], language: Language, kind: str, place: str, command: str) -> None:
        self.entries = {entry.id: entry for entry in entries}
        self.language = language
        self.read = language.read
        self.kind = kind
        self.place = place
        self.command = command
        self._size = re.compile(language.size) if language.size else None
        self._exact = {name.casefold(): entry.id for entry in reversed(entries)
                       for name in (*entry.names, *entry.whole, entry.id)}  # fmt: skip
        self._exact |= {entry.id.casefold(): entry.id for entry in entries}
        self._read_forms: dict[str, list[Form]] = {}
        self.find = lru_cache(_REMEMBERED)(self._find)

    def exact(self, name: str) -> str | None:
        """The id behind an exact name, in any case."""
        return self._exact.get(name.strip().casefold())

    def _find(self, name: str) -> Match[str]:
        """The id that `name` means. Raises PlanError (ambiguous, or unknown with the nearest names)."""
        if id := self.exact(name):
            return Match(id)
        shown = name if len(name) <= 60 else name[:57] + "..."
        if not name.strip():
            raise PlanError(self.place, f"the name of the {self.kind} is needed", list(self.entries)[:_SHOWN])
        if len(name) > _LONGEST:
            raise PlanError(self.place, f"{shown!r} is too long for a name")
        wanted = self.read(name)
        self._refuse_others(wanted, self.language.words(name), shown)
        for form in dict.fromkeys((wanted, self._of_memory(wanted))):
            if match := self._read(form, shown, elsewhere="/" in name or form != wanted):
                return match
        readings = [match for form in self._corrections(wanted) if (match := self._read(form, shown, True, _SLIP))]
        if len({match.value for match in readings}) == 1:
            return readings[0]
        wider = self._wider(wanted)
        if len(wider) > 1:
            raise self._ambiguous(shown, wider)
        self._refuse_others(wanted, self.language.words(name.replace("/", " ")), shown)
        near = self._nearest(wanted, name)
        raise UnknownName(self.place, f"there is no {self.kind} {shown!r} in the catalogue{self._how(near)}", near)

    @cached_property
    def forms(self) -> list[tuple[NamedEntry, list[Form]]]:
        """How the entries are written, without those that have no name but their id."""
        return [(entry, self._forms_of(entry)) for entry in self.entries.values() if entry.names]

    @cached_property
    def tokens(self) -> frozenset[str]:
        """Every word and number that an entry is called by or may have beside its name."""
        held = (form.words | form.numbers | entry.attributes for entry, forms in self.forms for form in forms)
        return frozenset(token for tokens in held for token in tokens)

    @cached_property
    def _attributes(self) -> frozenset[str]:
        return frozenset(token for entry in self.entries.values() for token in entry.attributes)

    @cached_property
    def _words(self) -> frozenset[str]:
        """Every word of a name, or that stands beside one."""
        words = {word for _, forms in self.forms for form in forms for word in form.words}
        return frozenset(words | {word for word in self._attributes if word.isalpha()})

    def _forms_of(self, entry: NamedEntry) -> list[Form]:
        if entry.id not in self._read_forms:
            self._read_forms[entry.id] = [self.read(name) for name in dict.fromkeys((*entry.names, entry.id))]
        return self._read_forms[entry.id]

    @cached_property
    def _texts(self) -> list[tuple[NamedEntry, str]]:
        """The names of the entries in lower case, in which the words of their forms stand as they are."""
        named = (entry for entry in self.entries.values() if entry.names)
        texts = [(entry, " ".join((*entry.names, entry.id)).casefold().replace("+", " plus ")) for entry in named]
        for short, word in self.language.short.items():
            begins = re.compile(rf"(?<![a-z0-9]){short}v?\d")
            texts = [(entry, f"{text} {word}" if begins.search(text) else text) for entry, text in texts]
        return texts

    def _like(self, wanted: Form) -> Iterator[tuple[NamedEntry, Form]]:
        """Forms of the entries whose names hold all words and the digits of all numbers, and of all that have
        attributes: few need to be read."""
        parts = [*wanted.words, *(digits for number in wanted.numbers for digits in re.findall(r"\d+", number))]
        for entry, text in self._texts:
            if entry.attributes or entry.sizes or all(part in text for part in parts):
                yield from ((entry, form) for form in self._forms_of(entry))

    @cached_property
    def _by_habit(self) -> dict[tuple[frozenset[str], frozenset[str]], NamedEntry]:
        pairs = ((self.read(name), entry) for entry in self.entries.values() for name in entry.readings)
        return {(form.words, form.numbers): entry for form, entry in pairs}

    def _habit(self, wanted: Form) -> NamedEntry | None:
        """What a vague name is taken to mean, with attributes of that said or not."""
        if entry := self._by_habit.get((wanted.words, wanted.numbers)):
            return entry
        tokens = wanted.words | wanted.numbers
        fitting = (
            entry
            for (words, numbers), entry in self._by_habit.items()
            if tokens & entry.attributes
            and (words, numbers) == (wanted.words - entry.attributes, wanted.numbers - entry.attributes)
        )
        return next(fitting, None)

    def _refuse_others(self, wanted: Form, words: frozenset[str], shown: str) -> None:
        """Raises PlanError where the name has all words of what is refused; a version as it was read: 3 is no 3.5."""
        others, tokens = self.language.others, wanted.words | wanted.numbers

        def is_named(phrase: str) -> bool:
            return all(part in tokens or (part in words and not part.isdecimal()) for part in phrase.split())

        phrase = next((phrase for phrase in sorted(others) if is_named(phrase)), None)
        if phrase is None:
            return
        named = form_of(phrase.split())
        if not any(named.words <= form.words and named.numbers <= form.numbers for _, form in self._like(named)):
            raise PlanError(self.place, f"{shown!r} {others[phrase]}", self._nearest(self.read(shown), shown))

    def _how(self, near: Sequence[str]) -> str:
        """Where no name is near: how to see those that there are, and to add one."""
        command = f"shardwise {self.command}"
        return "" if near else f", and none like it: `{command} WORD` lists them, `{command} add` adds your own"

    def _read(self, wanted: Form, shown: str, elsewhere: bool, slip: float = 0.0) -> Match[str] | None:
        """The entry that this form means; None where there is none. Raises PlanError where there are several.

        `elsewhere`: the name differs from the entry's in more than punctuation, so say how it was read.
        """
        candidates = self._candidates(wanted)
        whole = [candidate for candidate in candidates if candidate.says(wanted)]
        habit = self._habit(wanted)
        if not whole and habit:
            others = [id for id in self._kin(wanted) if id != habit.id]
            return self._match(habit, wanted, shown, others, _BY_HABIT - slip)
        if not candidates:
            return None
        best, way = self._best(whole if whole and self._size is None else candidates, wanted, shown)
        lacks = wanted.marks - best.form.marks
        shares = {c.entry.id: c.architecture == best.architecture for c in candidates if c.entry.id != best.entry.id}
        # Copies of one architecture are told apart by marks: where these are as said, only others are worth a word.
        others = [id for id, is_copy in shares.items() if best.cost or not is_copy]
        if not (elsewhere or best.unsaid or best.shortened or lacks - _UNTOLD or others):
            return Match(best.entry.id, None, _BY_WORDS, next(iter(shares), None), lacks)
        return self._match(best.entry, wanted, shown, others, way - slip - _PER_COST * best.cost, lacks)

    def _best(self, candidates: list[_Candidate], wanted: Form, shown: str) -> tuple[_Candidate, float]:
        """The candidate that is meant, and the score of the way in which it was found."""
        if self._size is None and len(candidates) > 1:
            raise self._ambiguous(shown, [candidate.entry.id for candidate in candidates])
        cheapest = [candidate for candidate in candidates if candidate.cost == candidates[0].cost]
        bases = {candidate.architecture for candidate in cheapest}
        if len(bases) == 1 and (candidates[0].cost < _NUMBER_UNSAID or self._settled(candidates, wanted)):
            return max(cheapest, key=lambda candidate: candidate.version), _BY_WORDS
        if self._settled(candidates, wanted):
            newest = max(candidate.version for candidate in cheapest)
            latest = [candidate for candidate in cheapest if candidate.version == newest]
            if len({candidate.architecture for candidate in latest}) == 1:
                return latest[0], _NEWEST
            if len({(candidate.form.words, candidate.form.numbers) for candidate in latest}) == 1:
                return min(latest, key=_unusual), _NEWEST
        raise self._ambiguous(shown, list(dict.fromkeys(c.entry.id for c in candidates)))

    def _settled(self, candidates: list[_Candidate], wanted: Form) -> bool:
        """Whether what is left open is no other thing: one architecture, one scale, or the size was said."""
        sized = self._size is not None and any(self._size.fullmatch(number) for number in wanted.numbers)
        scales = [candidate.entry.scale for candidate in candidates]
        alike = min(scales, default=0.0) > 0 and max(scales) <= _ONE_SCALE * min(scales)
        return sized or alike or len({candidate.architecture for candidate in candidates}) == 1

    def _match(
        self, entry: NamedEntry, wanted: Form, shown: str, others: Sequence[str], score: float,
        lacks: frozenset[str] = frozenset(),
    ) -> Match[str]:  # fmt: skip
        also = f" (also: {', '.join(others[:_SHOWN_OTHERS])})" if others else ""
        tuning = sorted(lacks - wanted.formats - _UNTOLD)
        unknown = f"; no checkpoint of it called {', '.join(tuning)} is known" if tuning else ""
        sentence = f"{_quoted(shown)} read as {entry.label}{also}{unknown}"
        return Match(entry.id, sentence, max(score, 0.0), next(iter(others), None), lacks)

    def _ambiguous(self, shown: str, ids: list[str]) -> PlanError:
        return PlanError(self.place, f"{shown!r} is ambiguous: it could be any of these", ids[:_SHOWN_WHEN_AMBIGUOUS])

    def _candidates(self, wanted: Form) -> list[_Candidate]:
        """Entries that have exactly the words said and every number said; where there are none, those that have them
        without words for their maker, with numbers whose unit was left out, or with words that were. Who says whose a
        model is says its name whole: IFM/K2-Think is no Kimi."""
        if candidates := self._having(wanted):
            return candidates
        if self._size is None:
            return []
        makers = {word for entry in self.entries.values() for word in entry.makers} & wanted.words
        plain = replace(wanted, words=wanted.words - makers)
        if makers and plain.words and (candidates := [e for e in self._having(plain) if makers <= e.entry.makers]):
            return candidates
        for ways in ({"units": True}, *([{"words": True}] if not wanted.owner else [])):
            if wanted.words and (candidates := self._having(wanted, **ways)):
                return candidates
            if plain.words and (candidates := [e for e in self._having(plain, **ways) if makers <= e.entry.makers]):
                return candidates
        # A number that only one architecture has needs no word: 8x22b.
        alone = [] if wanted.words else self._having(wanted, words=True)
        return alone if len({candidate.architecture for candidate in alone}) == 1 else []

    def _of_memory(self, wanted: Form) -> Form:
        """The same with GB behind a number that is a memory size of some device: 'a100 80'."""
        numbers = [f"{number}gb" if f"{number}gb" in self._attributes else number for number in wanted.numbers]
        return replace(wanted, numbers=frozenset(numbers))

    def _having(self, wanted: Form, *, units: bool = False, words: bool = False) -> list[_Candidate]:
        """Entries with what was said, the cheapest way to write each, in order. `units`, `words`: these may have been
        left out."""
        sized = self._size is None or any(self._size.fullmatch(number) for number in wanted.numbers)
        if not wanted.words and not (sized and wanted.numbers):
            return []
        cheapest: dict[str, _Candidate] = {}
        for entry, form in self._like(wanted):
            words_said = wanted.words - entry.attributes
            numbers = wanted.numbers - entry.attributes - (entry.sizes - form.numbers)
            if units:
                numbers = frozenset(self.language.sized(number, form.numbers) or number for number in numbers)
            more = form.words - entry.attributes - words_said
            if (
                (words and not numbers and len(words_said) == 1 and len(more) > 1)
                or not words_said <= form.words
                or (more and not words)
                or not numbers <= form.numbers
                or not (words_said or numbers)
                or wanted.is_other_version(form)
            ):
                continue
            unsaid = form.numbers - numbers - entry.attributes
            if entry.base and self._leaves_its_own(entry, more, unsaid):
                continue
            if self._size is None and unsaid and not numbers:
                continue  # devices are told by their numbers: 'super' is none
            left = len(unsaid - self._optional(entry)) if sized else len(unsaid)
            cost = left * _NUMBER_UNSAID + len(more) * _WORD_UNSAID + _mark_cost(wanted, form)
            cost += _ANOTHERS * (bool(entry.base) and self._is_anothers(entry, form, wanted))
            candidate = _Candidate(entry, form, cost, unsaid, bool(more))
            if entry.id not in cheapest or candidate.rank(wanted) < cheapest[entry.id].rank(wanted):
                cheapest[entry.id] = candidate
        return sorted(cheapest.values(), key=lambda candidate: candidate.cost)

    def _optional(self, copy: NamedEntry) -> frozenset[str]:
        """Numbers that names of its base have or leave out, so that a copy's may: the 0.1 of Mixtral-8x22B-v0.1."""
        written = self._forms_of(self.entries[copy.base]) if copy.base else []
        more = [full.numbers - short.numbers for full in written for short in written if full.words == short.words]
        return frozenset(number for numbers in more if len(numbers) == 1 for number in numbers)

    def _leaves_its_own(self, copy: NamedEntry, words: frozenset[str], numbers: frozenset[str]) -> bool:
        """Whether what was not said of a copy is what tells it from its base, or, of somebody else's, its size."""
        base = self.entries[copy.base]
        is_foreign = copy.id.partition("/")[0].casefold() != base.id.partition("/")[0].casefold()
        if is_foreign and self._size and any(self._size.fullmatch(number) for number in numbers):
            return True
        return bool(words) and not any(words <= form.words for form in self._forms_of(base))

    def _is_anothers(self, copy: NamedEntry, form: Form, wanted: Form) -> bool:
        """Whether a copy in another format is neither its maker's nor of the owner who was said: theirs may differ."""
        owner = copy.id.partition("/")[0].casefold()
        makers = {self.entries[copy.base].id.partition("/")[0].casefold(), wanted.owner}
        return bool(wanted.owner and form.formats) and owner not in makers

    def _wider(self, wanted: Form) -> list[str]:
        """Ids that have the words said and more, and every number said; copies of others left out."""
        if not wanted.words and (self._size is not None or not wanted.numbers):
            return []
        return [
            entry.id
            for entry, forms in self.forms
            if not entry.base
            and any(
                wanted.words - entry.attributes <= form.words and wanted.numbers - entry.attributes <= form.numbers
                for form in forms
            )
        ]

    def _kin(self, wanted: Form) -> list[str]:
        """Ids whose numbers begin with those said, whatever their words: what a vague name could also mean."""

        def could_be(entry: NamedEntry, form: Form) -> bool:
            tokens = form.numbers | form.words | entry.attributes
            return all(any(token.startswith(part) for token in tokens) for part in wanted.numbers | wanted.words)

        parts = wanted.words | wanted.numbers
        near = (e for e, text in self._texts if not e.base and (e.attributes or all(part in text for part in parts)))
        return [entry.id for entry in near if any(could_be(entry, form) for form in self._forms_of(entry))]

    def _corrections(self, wanted: Form) -> list[Form]:
        """The form with two of its words as the one known word that they make, in either order; or with its one unknown
        word replaced by the two known words that it is made of, or by each known word that is a single slip away. A
        name with its owner is copied, and has no slips: GSAI-ML/LLaDA is no Llama."""
        if wanted.owner:
            return []
        known = self._words
        if pairs := [pair for pair in permutations(wanted.words, 2) if "".join(pair) in known]:
            return [replace(wanted, words=wanted.words - set(pair) | {"".join(pair)}) for pair in pairs]
        unknown = [word for word in wanted.words if word not in known]
        if len(unknown) != 1 or len(unknown[0]) < 3:
            return []
        rest = wanted.words - {unknown[0]}
        joined = [(unknown[0][:cut], unknown[0][cut:]) for cut in range(2, len(unknown[0]))]
        if pairs := [pair for pair in joined if any(form.words.issuperset(pair) for _, f in self.forms for form in f)]:
            return [replace(wanted, words=rest | set(pair)) for pair in pairs]
        close = [word for word in sorted(known) if _one_slip(unknown[0], word)]
        return [replace(wanted, words=rest | {word}) for word in close]

    def _nearest(self, wanted: Form, name: str) -> list[str]:
        """Names that have a word in common with this one, or are written much like it; numbers alone make none near."""
        from rapidfuzz import fuzz

        folded = name.casefold()
        plain = set(folded.split())

        def likeness(entry: NamedEntry, forms: list[Form]) -> float:
            words = max(len(wanted.words & (form.words | entry.attributes)) for form in forms)
            numbers = max(len(wanted.numbers & (form.numbers | entry.attributes)) for form in forms)
            alike = max(fuzz.ratio(folded, text.casefold()) for text in (*entry.names, entry.id))
            words += bool(plain & entry.makers)
            return 100 * (words + numbers) + alike if words or alike >= _ALIKE else 0.0

        scores = {entry.id: likeness(entry, forms) for entry, forms in self.forms if not entry.base}
        return [id for id in sorted(scores, key=lambda id: -scores[id])[:_SHOWN] if scores[id]]


def _mark_cost(wanted: Form, form: Form) -> float:
    """What marks that were not said, and those that are lacking, cost."""
    cost = sum(_PLAIN_UNSAID if mark == PLAIN else _MARK_UNSAID for mark in form.marks - wanted.marks)
    lacking = wanted.marks - form.marks
    light = wanted.formats | wanted.implied
    return cost + sum(_FORMAT_LACKING if mark in light else _MARK_LACKING for mark in lacking)


def _unusual(candidate: _Candidate) -> tuple[bool, bool, int, str]:
    """What things that are called the same but for their marks are sorted by: in 16 bits, tuned to follow instructions,
    with few marks."""
    marks, held = candidate.form.marks, candidate.form.formats
    return bool(held - {"bf16", "fp16"}), "instruct" not in marks, len(marks), candidate.entry.id


def form_of(tokens: Iterable[str]) -> Form:
    """The tokens as words and numbers, of which one that is said again counts again."""
    words, numbers, versions = set[str](), set[str](), set[tuple[str, str]]()
    before = ""
    for token in tokens:
        if before and _VERSION.fullmatch(token):
            versions.add((before, token))
        before = token if token.isalpha() else ""
        if before:
            words.add(token)
            continue
        while token in numbers:
            token += _AGAIN
        numbers.add(token)
    return Form(frozenset(words), frozenset(numbers), versions=frozenset(versions))


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
