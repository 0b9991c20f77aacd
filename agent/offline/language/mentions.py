"""A text as typed mentions: its tokens, the words of the field in it, the names, the numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from agent.offline.catalogue import Catalogue
from agent.offline.language.amounts import amounts
from agent.offline.language.asking import past, telling
from agent.offline.language.lexicon import Phrase, Sense, in_latin, lexicon, mended, together, unlike_english
from agent.offline.language.measures import COUNTING, TIMES, Found
from agent.offline.language.names import Name, head_words, names
from agent.offline.language.rows import Row, rows
from agent.offline.language.spoken import in_digits
from agent.offline.language.tokens import Glyphs, tokens
from planner.requests import ALL_PATHS, ONLY_SERVING, ONLY_TRAINING

TRAINING, SERVING = "training", "serving"
# What a value may hold inside its own words: 'full fine-tuning' says the method and the stage.
_NESTED = {("method", "stage")}
# Tokens between the cache and its type.
_NEAR = 4
# Weights in so many bits, which of a training are another thing's.
_IN_4_BITS, _IN_8_BITS = ("weight_dtype", "int4"), ("weight_dtype", "int8")
# Groups of asked.yaml that questions and orders mean, not what is told beside them.
_OF_QUESTIONS = ("focus", "wish", "goal")
# Groups that nothing asks for that was only pasted.
_OF_PROSE = ("target", "catalogue", "topic", "of_answer", "scaling")


@dataclass(frozen=True)
class Value:
    """A value of a field that was said, in tokens [start, end). The same words may say several: `sense` is one."""

    start: int
    end: int
    field: str
    value: object

    @property
    def mode(self) -> str | None:
        return mode_of_field(self.field)


def _of_either(one: Value) -> list[Value]:
    """A value, and what it is of a training: weights in 4 bits are those of a base that adapters are trained on."""
    return [one, replace(one, field="method", value="qlora")] if (one.field, one.value) == _IN_4_BITS else [one]


def values_of(name: str) -> frozenset[object]:
    """What a field of words may be."""
    return lexicon().values.get(name, frozenset())


def mode_of_field(name: str) -> str | None:
    """Training or serving, for fields that only one of them has."""
    quantity = lexicon().quantities.get(name)
    if quantity and quantity.mode:
        return quantity.mode
    if ALL_PATHS.get(name, "").startswith("workload.lora."):
        return TRAINING
    return SERVING if name in ONLY_SERVING else TRAINING if name in ONLY_TRAINING else None


def _says_its_field(found: Found, value: Value) -> bool:
    """Whether the words of a value say what it is of, too: 'fp8 weights'."""
    return any(word.end < value.end and word.all("value") for word in found.words[value.start])


@dataclass(frozen=True)
class Mentions:
    """What stands in a text, before any of it is decided."""

    text: str
    tokens: Sequence[Glyphs]
    names: Sequence[Name]
    found: Found
    ends: int | None = None
    """Where what was pasted as data begins, in characters."""

    @cached_property
    def rows(self) -> list[Row]:
        return rows(self.found, amounts(self.found))

    @cached_property
    def courtesies(self) -> frozenset[int]:
        """Tokens that are said for manners or while thinking."""
        longest = [(at, words[0]) for at, words in self.found.words.items() if words[0].get("courtesy")]
        return frozenset(
            step for at, word in longest if not self._is_judgement(at, word) for step in range(at, word.end)
        )

    def _is_judgement(self, at: int, word: Phrase) -> bool:
        """Whether a word for manners says how something is: 'is that ok?', not 'ok, and on 8?'."""
        judges = any(sense.value == "judged" for sense in word.all("asked"))
        # 'Too expensive, what are my options?' asks for what costs less.
        asks = any(sense.name == "cheaper" for sense in word.all("asked")) and self._asks_for_ways()
        return asks or (judges and at > 0 and not self.tokens[at - 1].ends_clause)

    def _asks_for_ways(self) -> bool:
        return any(sense.name == "advise" for words in self.found.words.values() for sense in words[0].all("asked"))

    @cached_property
    def values(self) -> list[Value]:
        """Values in the order of the text; of words inside longer ones only what those do not say."""
        inside = self.named_tokens
        said: list[Value] = []
        for at in sorted(self.found.words):
            if at in inside:
                continue
            for word in self.found.words[at]:
                for sense in word.all("value"):
                    one = Value(at, word.end, sense.name, sense.value)
                    if (not sense.weak or self._ends_here(word.end)) and not any(
                        _covers(other, one) for other in said[-8:]
                    ):
                        said += _of_either(one)
        whole = self._shared(self._of_what_is_named(self._on_a_base(said)))
        told = {at for value in whole if value.field == "offload" for at in range(value.start, value.end)}
        hosted = [value for value in self._hosted if not told.intersection(range(value.start, value.end))]
        return whole + hosted + self.networks + self._tower

    @cached_property
    def _hosted(self) -> list[Value]:
        """What is put into the host's memory, whatever it is done by: 'if the optimizer goes to cpu', 'keep the
        activations in system RAM'."""
        hosted: list[Value] = []
        for at, end, name, _ in self._asking[_FIGURES]:
            part, place = _HOSTED.get(name), end
            while part and place < min(end + _TO_THE_HOST, len(self.tokens)) and self.found.sense(place, "stop"):
                place += 1
            host = place < len(self.tokens) and (self.tokens[place].norm in _HOSTS or self._names_host(place))
            if part and place > end and host:
                hosted.append(Value(at, place + 1, "offload", part))
        return hosted

    def _names_host(self, at: int) -> bool:
        """Whether words name the memory of a host."""
        words = self.found.words.get(at, ())
        return any(sense.name == _HOST_MEMORY for word in words for sense in word.all("asked"))

    @cached_property
    def _tower(self) -> list[Value]:
        """Whether the part of a model that sees is trained, by the nearest word of what is done with it."""
        states = self.asked_at("done_with_it")
        towers: list[Value] = []
        for at, end, _ in self.asked_at("part"):
            near = [(min(abs(start - end), abs(at - behind)), start, behind, name) for start, behind, name in states]
            for far, start, behind, name in sorted(near)[:1]:
                first, last = min(at, start), max(end, behind)
                if far < _NEAR and not any(token.ends_clause for token in self.tokens[first:last]):
                    towers.append(Value(first, last, "vision", name))
        return towers

    def _on_a_base(self, said: list[Value]) -> list[Value]:
        """'LoRA with a base in int4' as one method."""
        if self.does("or", "versus", "compare", "refuse_right", "refuse_left") or not (
            {("method", "lora"), _IN_4_BITS} <= {(one.field, one.value) for one in said}
        ):
            return said
        said = [one for one in said if (one.field, one.value) != _IN_4_BITS]
        return [replace(one, value="qlora") if (one.field, one.value) == ("method", "lora") else one for one in said]

    def _of_what_is_named(self, said: list[Value]) -> list[Value]:
        """'Cache KV en fp8', 'the optimizer would be in 8 bits': of the cache, or the optimizer, that is named a few
        tokens before a format, that is the format."""
        named = {end: name for _, end, name in self.asked_at("figure")}

        def meant(one: Value) -> Value:
            before = range(one.start, max(one.start - _NEAR, 0), -1)
            stop = next((at for at in before if at in named or self.tokens[at - 1].ends_clause), 0)
            what = named.get(stop, "")
            if what.endswith("kv_cache") and one.value in values_of("kv_dtype"):
                return replace(one, field="kv_dtype")
            of_states = what.endswith("optimizer") and (one.field, one.value) == _IN_8_BITS
            return replace(one, field="optimizer", value="adamw_8bit") if of_states else one

        both = [replace(one, field="kv_dtype") for one in said if self._is_of_weights_and_cache(one, named)]
        return list(dict.fromkeys([*map(meant, said), *both]))

    def _is_of_weights_and_cache(self, value: Value, named: Mapping[int, str]) -> bool:
        """Whether a format is said to be for both: 'fp8 for the weights and the cache'."""
        if value.field != "weight_dtype" or value.value not in values_of("kv_dtype"):
            return False
        ends = next((at for at in range(value.end, len(self.tokens)) if self.tokens[at].ends_clause), len(self.tokens))
        behind = [named.get(at, "") for at in range(value.end, min(value.end + 2 * _NEAR, ends) + 1)]
        return any(name.endswith("weights") for name in behind) and any(name.endswith("kv_cache") for name in behind)

    def _shared(self, said: list[Value]) -> list[Value]:
        """'FP8 or bf16 KV cache': what is joined to a value of a field is of that field, too, where it can be."""
        found, starting = list(said), defaultdict(list)
        for one in said:
            starting[one.start].append(one)
        for index, one in enumerate(found):
            after = next((other for other in starting.get(one.end + 1, ()) if other.field != one.field), None)
            if after is None or not self.found.does(one.end, "or", "and", "versus"):
                continue
            if _says_its_field(self.found, one) or not _says_its_field(self.found, after):
                # 'fp8 weights and fp8 KV cache'
                continue
            if one.value in values_of(after.field) and after.end - after.start > one.end - one.start:
                found[index] = Value(one.start, one.end, after.field, one.value)
        return list(dict.fromkeys(found))

    @cached_property
    def named_tokens(self) -> frozenset[int]:
        return frozenset(at for start, end in self.found.names.items() for at in range(start, end))

    def asked(self, group: str) -> list[str]:
        """What is asked for by the words of a group of asked.yaml, in the order of the text."""
        return list(dict.fromkeys(name for _, _, name in self.asked_at(group)))

    def asked_at(self, group: str) -> list[tuple[int, int, str]]:
        """(Token, token behind, name) of what is asked for by the words of a group of asked.yaml."""
        if group not in self._asked_at:
            self._asked_at[group] = self._longest(self._heard_as_asked(group))
        return self._asked_at[group]

    def said_at(self, group: str) -> list[tuple[int, int, str]]:
        """As `asked_at`, also in sentences that only tell: 'the cheaper one. How much a month?'"""
        aside = self.named_tokens | self.asides
        return [(at, end, name) for at, end, name, _ in self._asking[group] if at not in aside]

    @cached_property
    def _asked_at(self) -> dict[str, list[tuple[int, int, str]]]:
        return {}

    def _heard_as_asked(self, group: str) -> Iterator[tuple[int, int, str]]:
        for at, end, name, place in self._asking[group]:
            if at in self.named_tokens or at in self.asides or self._in_limit(at, end):
                continue
            if (group in _OF_QUESTIONS and at in self.telling) or (at in self.data and group in _OF_PROSE):
                continue
            # The max of 'max_seq_length: 8192' asks for no limit.
            if name == "most" and (self._than or at in self._labels):
                continue
            # The host of 'host memory' is no verb, the kv of 'kv heads' no cache, 'save every 500 steps' no file.
            if place and (group in ("mode", "figure") or (name == "write" and self._names_a_field(at))):
                continue
            # 'At 5 qps', '300 requests/min', 'in 3 days', 'time limit 2 days': units of numbers and the names of their
            # fields ask for nothing.
            if group != "focus" or not (at in self._inside_rows or at in self._inside_labels):
                yield at, end, name

    @staticmethod
    def _longest(hits: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
        """Hits but those that a longer one holds."""
        found = list(hits)
        shortest = min((end - start for start, end, _ in found), default=0)
        wide = [(start, end) for start, end, _ in found if end - start > shortest]
        return [
            one
            for one in found
            if not any(start <= one[0] and one[1] <= end and end - start > one[1] - one[0] for start, end in wide)
        ]

    @cached_property
    def _inside_rows(self) -> frozenset[int]:
        """Tokens of amounts behind their first."""
        return frozenset(at for row in self.rows for at in range(row.start + 1, row.end))

    @cached_property
    def _labels(self) -> dict[int, int]:
        """{Token: the token behind} of several words that name the field of the number right behind them."""
        words = (word for row in self.rows for word in self.found.before(row.start) if word[1].all("field"))
        return {start: word.end for start, word in words if word.end > start + 1}

    @cached_property
    def _inside_labels(self) -> frozenset[int]:
        """Tokens behind the first of such words."""
        return frozenset(at for start, end in self._labels.items() for at in range(start + 1, end))

    def _names_a_field(self, at: int) -> bool:
        """Whether the longest words at a token name a field."""
        return any(sense.kind == "field" for sense in self.found.words[at][0].senses)

    def says(self, kind: str) -> bool:
        """Whether any words of the text have a sense of a kind."""
        return any(self.found.sense(at, kind) for at in range(len(self.tokens)))

    @cached_property
    def networks(self) -> list[Value]:
        return list(_networks(self))

    @cached_property
    def _asking(self) -> defaultdict[str, list[tuple[int, int, str, int]]]:
        """(Token, token behind, name, place among the words there) of what is asked for, by its group."""
        hits: defaultdict[str, list[tuple[int, int, str, int]]] = defaultdict(list)
        for at in sorted(self.found.words):
            for place, word in enumerate(self.found.words[at]):
                for sense in word.all("asked"):
                    hits[str(sense.value)].append((at, word.end, sense.name, place))
        return hits

    @cached_property
    def _operators(self) -> defaultdict[str, set[int]]:
        """Tokens where each operator stands."""
        hits: defaultdict[str, set[int]] = defaultdict(set)
        for at, words in self.found.words.items():
            for word in words:
                for sense in word.all("does"):
                    hits[sense.name].add(at)
        hits["versus"].update(self._than)
        return hits

    @cached_property
    def _than(self) -> list[int]:
        """Tokens of a 'than' between two things, apart from its comparative: 'how much longer does DoRA take than
        LoRA?'."""
        inside = {at for start, words in self.found.words.items() for at in range(start + 1, words[0].end)}
        return [
            at
            for at, token in enumerate(self.tokens)
            if token.norm in _THAN and at not in inside and self._is_thing(at + 1)
        ]

    def _is_thing(self, at: int) -> bool:
        """Whether a device, a model or a value stands at a token, or behind small words there."""
        while at < len(self.tokens) and at not in self.found.names and self.found.sense(at, "stop"):
            at += 1
        return at in self.found.names or self.found.sense(at, "value") is not None

    @cached_property
    def telling(self) -> frozenset[int]:
        """Tokens of sentences that only tell, beside a question."""
        return telling(self.found) | self.data

    @cached_property
    def data(self) -> frozenset[int]:
        """Tokens of what was pasted: it asks for nothing."""
        return frozenset(at for at, token in enumerate(self.tokens) if self.ends and token.start > self.ends)

    @cached_property
    def limits(self) -> list[tuple[int, int, str]]:
        """(Token, token behind, operator) of 'at most', 'or less', 'no less than'."""
        return [
            (at, word.end, sense.name)
            for at in sorted(self.found.words)
            for word in self.found.words[at][:1]
            for sense in word.all("does")
            if sense.name in ("at_most", "at_least") and at not in self.named_tokens
        ]

    def _in_limit(self, start: int, end: int) -> bool:
        """Whether words are a part of a limit's: the 'least' of 'at least'."""
        limits = [(at, behind) for at, behind, _ in self.limits if at <= start and end <= behind]
        # 'Höchstens 50 ms' and 'max $20k' ask for no most.
        numbered = (end < len(self.tokens) and self.tokens[end].kind == "number") or end in self._row_starts
        return any(behind - at > end - start or numbered for at, behind in limits)

    @cached_property
    def _row_starts(self) -> frozenset[int]:
        return frozenset(row.start for row in self.rows)

    def does(self, *operators: str) -> list[int]:
        """Tokens where an operator stands."""
        stands = set[int]().union(*(self._operators[name] for name in operators))
        return sorted(stands - self.named_tokens)

    def senses(self, left: frozenset[int] = frozenset()) -> list[Sense]:
        """What the words mean, but those of names, of manners and of the tokens `left`."""
        left = self.named_tokens | self.asides | left
        return [sense for at, words in self.found.words.items() if at not in left for sense in words[0].senses]

    def told(self) -> list[Sense]:
        """What the words of sentences mean that only tell."""
        return [sense for at, words in self.found.words.items() if at in self.telling for sense in words[0].senses]

    @cached_property
    def asides(self) -> frozenset[int]:
        """Courtesies beside something else; where there is nothing else, they are what is said."""
        words = {at for at, token in enumerate(self.tokens) if token.kind != "sign"}
        return self.courtesies if words - self.courtesies else frozenset()

    def said(self, start: int, end: int) -> str:
        return self.text[self.tokens[start].start : self.tokens[min(end, len(self.tokens)) - 1].end]

    def span(self, start: int, end: int) -> tuple[int, int]:
        return self.tokens[start].start, self.tokens[min(end, len(self.tokens)) - 1].end

    def of(self, *kinds: str) -> list[Name]:
        return [name for name in self.names if name.kind in kinds]

    def now(self, *kinds: str) -> list[Name]:
        """Names that are not only told of."""
        return [name for name in self.of(*kinds) if name.start not in self.past]

    @cached_property
    def past(self) -> frozenset[int]:
        """Tokens of sentences about earlier runs, or about what others say."""
        return past(self.found)

    def _ends_here(self, at: int) -> bool:
        """Whether no other word of content stands behind: the end, a sign, a number, a name, a small word."""
        if at >= len(self.tokens) or at in self.found.names:
            return True
        token = self.tokens[at]
        if token.kind in ("sign", "number"):
            return not token.joins or token.space
        words = self.found.words.get(at)
        if words is None:
            return False
        kinds = {sense.kind for sense in words[0].senses}
        return bool(kinds & {"stop", "does", "number", "value"})


def _covers(outer: Value, inner: Value) -> bool:
    """Whether words inside others say no more than those do."""
    if outer.start <= inner.start and inner.end <= outer.end and (outer.start, outer.end) != (inner.start, inner.end):
        return (outer.field, inner.field) not in _NESTED
    return outer.start < inner.start < outer.end < inner.end


# Units of what only a deployment has.
_OF_SERVING, _OF_TRAINING = ("users", "rate"), ("epochs",)
# Parts of a device's memory that a host may hold, as plans call them; how many small words stand between both.
_HOSTED = {"memory.components.optimizer": "optimizer", "memory.components.activations": "activations"}
_FIGURES, _HOSTS, _HOST_MEMORY, _TO_THE_HOST = "figure", ("cpu", "cpus", "host"), "memory.host.per_node_bytes", 5
# Generations of InfiniBand; what is said of other things than networks, too.
_GENERATIONS, _ALSO_OF_OTHERS = ("ndr", "hdr", "edr", "xdr"), ("tcp", "eth", "gbe")
_ASKED_OF_SERVING = ("latency", "best", "latency.ttft_s", "latency.tpot_s", "memory.components.kv_cache",
                     "assistant", "home", "concurrency", "users")  # fmt: skip
_THAN = ("than", "als")
_OF_EITHER = ("stop", "at_once")


def shows(read: Mentions, mode: str, beside: Sequence[str] = ()) -> bool:
    """Whether a word of a text is of this kind of work alone, of those that are not of a field `beside`."""
    behind = 0
    for at, words in sorted(read.found.words.items()):
        if at < behind or at in read.named_tokens:
            continue
        behind = words[0].end
        senses = [sense for sense in words[0].senses if sense.value != "target" and sense.kind not in _OF_EITHER]
        if {_kind_of(sense) for sense in senses} == {mode} and not all(sense.name in beside for sense in senses):
            return True
    return False


def _kind_of(sense: Sense) -> str | None:
    """Training or serving, where a sense is of one of them alone."""
    if sense.kind == "asked":
        return sense.name if sense.value == "mode" else SERVING if sense.name in _ASKED_OF_SERVING else None
    if sense.kind in ("value", "field"):
        return mode_of_field(sense.name)
    if sense.kind != "unit":
        return None
    return SERVING if sense.name in _OF_SERVING else TRAINING if sense.name in _OF_TRAINING else None


def _networks(read: Mentions) -> Iterator[Value]:
    """Networks between nodes, with what is told of their speed: '100 Gbit RoCE', 'InfiniBand NDR', '25GbE', 'over
    RoCE'."""
    behind = 0
    for at in sorted(read.found.words):
        kind = _network_kind(read, at)
        if kind is None or at < behind or at in read.named_tokens:
            continue
        end = read.found.words[at][0].end
        if glued := _lanes(read, end):
            name, start, behind = f"{kind}-{glued[0]}", at, glued[1]
        else:
            name, start, behind = _with_its_speed(read, kind, at, end)
        if name != kind or kind == "efa" or read.tokens[at].norm not in _ALSO_OF_OTHERS:
            yield Value(start, behind, "interconnect", name)


def _network_kind(read: Mentions, at: int) -> str | None:
    words = read.found.words.get(at, ())
    return next((sense.name for word in words for sense in word.all("asked") if sense.value == "network"), None)


def _with_its_speed(read: Mentions, kind: str, at: int, end: int) -> tuple[str, int, int]:
    """(Name, token, token behind) of a network with the speed and the number of its links that stand beside it."""
    text = read.tokens
    before, after = max(at - 5, 0), min(end + 3, len(text))
    before = next((place for place in range(at, before, -1) if text[place - 1].ends_clause), before)
    after = next((place for place in range(end, after) if text[place].ends_clause), after)
    around = (*range(before, at), *range(end, after))
    speeds = [place for place in around if text[place].kind == "number" and _is_speed(read, place)][:1]
    generations = [place for place in around if text[place].norm in _GENERATIONS][:1]
    start = min(at, *speeds) if speeds else at
    behind = max([end, *(place + 1 for place in generations)])
    name = "-".join((kind, *(text[place].norm for place in (*generations, *speeds))))
    if speeds and start >= 2 and text[start - 1].norm in TIMES:
        # '8x400Gb/s': how many of a link there are.
        return f"{name}x{text[start - 2].norm}", start - 2, behind
    return name, start, behind


def _lanes(read: Mentions, at: int) -> tuple[str, int] | None:
    """('400x8', token behind) of what a hyphen joins to a network's name: 'roce-400x8'."""
    text = read.tokens[at : at + 4]
    if len(text) < 4 or text[0].text != "-" or any(token.space for token in text) or text[2].norm != "x":
        return None
    numbers = text[1].kind == text[3].kind == "number"
    return (f"{text[1].norm}x{text[3].norm}", at + 4) if numbers else None


def _is_speed(read: Mentions, at: int) -> bool:
    units = [sense for word in read.found.words.get(at + 1, ()) for sense in word.all("unit")]
    return any(sense.name == "gbps" or (sense.name == "bytes" and sense.value == 1e9) for sense in units)


def mentions(text: str, catalogue: Catalogue, data: str = "") -> Mentions:
    """What stands in a text, and in the data that were pasted beside it."""
    said = len(text)
    text = f"{text}\n{data}" if data else text
    read = together(mended(in_digits(in_latin(unlike_english(tokens(text))), catalogue), head_words(catalogue)))
    named = names(read, text, catalogue)
    spans: Mapping[int, int] = {name.start: name.end for name in named}
    counted = frozenset(name.start for name in named if name.kind in ("accelerator", "instance"))
    found = Found(read, lexicon().words(read), spans, counted, lexicon())
    first = Mentions(text, read, named, found)
    inside = frozenset(at for one in first.values if one.field not in COUNTING for at in range(one.start, one.end))
    # 'k8s' is no eight seconds.
    inside |= {at for start, end, _ in first.asked_at("target") for at in range(start, end)}
    return Mentions(text, read, named, replace(found, inside=inside), said)
