"""Numbers as people write and spell them, scales and units at a token of a text, and what an amount is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.offline.language.lexicon import Lexicon, Phrase, Sense
from agent.offline.language.tokens import Glyphs, digits
from knowledge.figures import length_in_tokens

# Letters that are a scale or a unit only where they touch their number: 8B, 4k, 36h.
_TOUCHING = frozenset("kmbtgdhswpc")
# Short units that are names of fields where they stand apart: '3ep', not 'ep 3'.
_GLUED = frozenset(["ep", "n"])
# Signs between a number and what there are so many of.
TIMES = ("x", "×", "*")
MONEY = ("usd", "eur", "gbp", "chf", "money")
COUNTED = ("devices", "nodes", "users", "samples", "requests", "epochs", "steps", "tokens")
# Words of the longest name of a field.
LONGEST_NAME = 6
DAY_S = 86400
# Times that one word says with their number: half an hour, 이틀, 사흘, a fortnight.
_SPANS_S = (1800, 2 * DAY_S, 3 * DAY_S, 14 * DAY_S)
# Digits between two dots of thousands.
_GROUP = 3
_OFTEN = {"times_double": 2.0, "times_triple": 3.0, "times_quadruple": 4.0}
# What is counted in millions with the letter apart: '80 M tokens'.
_DATA = ("tokens", "samples", "requests", "params")
# Scales of parameters.
SIZES = ("b", "bn", "billion", "t")

# Values whose words may hold a number that counts something, too: 'batch size 1'.
COUNTING = ("scenario", "rollout", "price", "objective")


@dataclass(frozen=True)
class Unit:
    """A dimension of units.yaml and how many base units one is; tokens [start, end)."""

    name: str
    size: float
    start: int
    end: int


@dataclass(frozen=True)
class Named:
    """A field's name in tokens [start, end)."""

    field: str
    start: int
    end: int


@dataclass(frozen=True)
class Amount:
    """A number in tokens [start, end), units included; `number` is where its digits end.

    `value` has its scale applied and is in no unit yet; `digits` and `scale` are as written ("k" of "4k"); `units` are
    those that it may be in, `per` those that it may be counted per. `names`: it counts what is named behind it.
    `before`: what joins it to the amount before ("or", "x", "to", "->", ",", "of"), if anything does.
    """

    value: float
    start: int
    number: int
    end: int
    digits: float
    scale: str = ""
    units: tuple[Unit, ...] = ()
    per: tuple[Unit, ...] = ()
    names: bool = False
    before: str = ""

    def unit(self, *names: str) -> Unit | None:
        return next((unit for unit in self.units if unit.name in names), None)

    @property
    def is_size(self) -> bool:
        """Whether it is written like a model's size, which counts no devices: the '8b' of '8b h100'."""
        return self.scale in SIZES

    @property
    def length(self) -> float:
        """The value as a length in tokens: k and M are binary where the size is a power of two."""
        if self.scale in ("ki", "mi"):
            return self.value
        if self.scale in ("k", "m"):
            return length_in_tokens(self.digits, self.scale)
        return self.value


def _is_whole(word: Phrase) -> bool:
    """Whether a word says a value that no number in it is apart from."""
    value = word.get("value")
    return value is not None and value.name not in COUNTING


@dataclass(frozen=True)
class Found:
    """What is known of a text while numbers are looked for: its tokens, the words of the lexicon by their first token,
    and the names in it (token → end)."""

    text: Sequence[Glyphs]
    words: Mapping[int, Sequence[Phrase]]
    names: Mapping[int, int]
    counted: frozenset[int]
    lexicon: Lexicon
    inside: frozenset[int] = frozenset()
    """Tokens of words that say a value ('fp8', '4-bit'): no numbers of their own."""

    @cached_property
    def fields(self) -> list[Named]:
        """Every name of a field in the text, outside names of things."""
        inside = {at for start, end in self.names.items() for at in range(start, end)}
        named: list[Named] = []
        for at, words in self.words.items():
            if at in inside:
                continue
            said = max((word.end for word in words if _is_whole(word) or word.get("onto")), default=0)
            for word in words:
                method = word.get("value")
                if method and method.name == "method" and not self._is_number(word.end):
                    # 'LoRA 32', but not 'we have 4, does LoRA help?'
                    continue
                # 'sequence parallel' names no sequence, 'more like 140M' nothing more.
                named += [Named(sense.name, at, word.end) for sense in word.all("field") if word.end >= said]
        return named

    def _is_number(self, at: int) -> bool:
        return at < len(self.text) and self.text[at].kind == "number"

    @cached_property
    def behind_names(self) -> frozenset[int]:
        """Tokens inside a name or right behind it."""
        return frozenset(at for start, end in self.names.items() for at in range(start + 1, end + 1))

    @cached_property
    def long_scale(self) -> bool:
        """Whether the words are of a language whose billion is a million millions, and whose thousands have a dot."""
        return sum(token.norm in self.lexicon.long_scale for token in self.text) > 1

    @cached_property
    def decimal_comma(self) -> bool:
        """Whether decimals have a comma: in such a language, or where one is written so, '0,24 €/kWh, PUE 1,35'."""
        parts = zip(self.text, self.text[1:], self.text[2:], strict=False)
        return self.long_scale or any(
            whole.norm == "0" and sign.text == "," and part.kind == "number" and not (sign.space or part.space)
            for whole, sign, part in parts
        )

    def sense(self, at: int, kind: str) -> tuple[Sense, int] | None:
        """(The sense, the token behind it) of the longest form at a token that has it."""
        for word in self.words.get(at, ()):
            if sense := word.get(kind):
                return sense, word.end
        return None

    def does(self, at: int, *names: str) -> int | None:
        """The token behind an operator that stands at a token, or None."""
        for word in self.words.get(at, ()):
            for sense in word.senses:
                if sense.kind == "does" and sense.name in names:
                    return word.end
        return None

    def has_unit(self, at: int, *names: str) -> bool:
        """Whether a word at a token is a unit of one of these dimensions."""
        for word in self.words.get(at, ()):
            for sense in word.senses:
                if sense.kind == "unit" and sense.name in names:
                    return True
        return False

    def is_asked(self, at: int, name: str) -> bool:
        """Whether a word at a token asks for something."""
        return any(sense.name == name for word in self.words.get(at, ()) for sense in word.all("asked"))

    def ends_unit(self, at: int, *names: str) -> bool:
        """Whether a unit of one of these dimensions ends right before a token."""
        starts = range(max(at - LONGEST_NAME, 0), at)
        words = (word for start in starts for word in self.words.get(start, ()) if word.end == at)
        return any(sense.name in names for word in words for sense in word.all("unit"))

    def before(self, at: int) -> list[tuple[int, Phrase]]:
        """The words right before a token, an equals sign, colon or hyphen apart, that may name its field: 'rank 16',
        'seq=2048', 'zero-2'. The 'b' of 'llama-3.1-70b 512 h100' and of '13b 8 a100' names none."""
        if at in self.behind_names or self._ends_a_size(at - (at > 0 and self.text[at - 1].text == ":")):
            return []
        hyphened = at > 0 and self.text[at - 1].text in "-_" and not (self.text[at].space or self.text[at - 1].space)
        end = at - 1 if at > 0 and (hyphened or self.text[at - 1].text in "=:") else at
        starts = range(max(end - LONGEST_NAME, 0), end)
        return [(start, word) for start in starts for word in self.words.get(start, ()) if word.end == end]

    def fields_before(self, at: int) -> list[str]:
        """The fields that the words right before a token name."""
        words = [word for _, word in self.before(at) if not word.get("stop")]
        return [sense.name for word in words for sense in word.all("field")]

    def _ends_a_size(self, at: int) -> bool:
        """Whether a scale that is written to its number stands before a token: '13b 8 a100'."""
        glued = 1 < at < len(self.text) and not self.text[at - 1].space and self.text[at - 2].kind == "number"
        return glued and (self.text[at].space or self.text[at].text == ":") and self.sense(at - 1, "scale") is not None

    def field(self, at: int) -> bool:
        """Whether the longest form at a token names a field, a value or an operator."""
        words = self.words.get(at)
        return bool(words) and any(words[0].get(kind) for kind in ("field", "does", "value"))


def number_at(heard: Found, at: int) -> tuple[float, int] | None:
    """(Value, token behind) of a number with what is said over it: 'two and a half days', '2 1/2 days'."""
    if (number := _whole_at(heard, at)) is None:
        return None
    value, end = number
    over, behind = over_at(heard, end)
    counts = over and (heard.sense(behind, "unit") or heard.sense(behind, "scale"))
    return (value + over, behind) if counts else (value, end)


def over_at(heard: Found, at: int) -> tuple[float, int]:
    """(The part that is said over a number, the token behind it): 'and a half', '1/2'; (0, `at`) where none is."""
    if part_over := heard.sense(at, "part_over"):
        sense, end = part_over
        return sense.value, end
    part = heard.text[at : at + _PART]
    glued = len(part) == _PART and part[0].space and not (part[1].space or part[2].space)
    if not (glued and part[1].norm == "/" and part[0].norm.isdigit() and part[2].norm.isdigit()):
        return 0.0, at
    above, below = int(part[0].norm), int(part[2].norm)
    return (above / below, at + _PART) if 0 < above < below < _MOST_PARTS else (0.0, at)


# Tokens of a fraction in digits, '1/2', and the finest that is said over a number.
_PART, _MOST_PARTS = 3, 10


def _whole_at(heard: Found, at: int) -> tuple[float, int] | None:
    """(Value, token behind) of digits, of a number in words, or of a part of a scale ('half a trillion')."""
    if at >= len(heard.text):
        return None
    token = heard.text[at]
    if times := often(heard, at):
        return times
    if token.kind == "number":
        value, end = digits(token.norm), at + 1
        if millions := _dotted_millions(heard.text, at):
            return millions
        if is_dotted(token.norm) and heard.long_scale:
            value *= 1000
        while _thousands(heard, end) and value == int(value):
            value, end = value * 1000 + digits(heard.text[end].norm), end + 1
        if decimal := _decimal(heard, at):
            value, end = decimal
        return value, end
    if part := heard.sense(at, "fraction"):
        sense, end = part
        # 半分 is a half, no half minute.
        behind = end + (heard.text[end].text == "-") if end < len(heard.text) else end
        spoken = token.kind == "word" and any(unit.name == "time" for unit in units_at(heard, behind))
        counted = heard.sense(behind, "scale") or spoken
        return (sense.value, end) if counted and heard.text[behind].kind != "sign" else None
    if any(unit.name == "time" and unit.size in _SPANS_S for unit in units_at(heard, at)):
        # 'Every half hour', 이틀: two days
        return 1.0, at
    if token.norm in heard.lexicon.articles and _is_span(heard, at):
        return 1.0, at + 1
    if (word := heard.sense(at, "number")) is None or _says_else(heard, at, word[1]):
        return None
    value, end = word[0].value, word[1]
    while (more := heard.sense(end, "number")) and (
        value >= 20 > more[0].value or more[0].value in (100.0, 1000.0) or value in (100, 200, 500)
    ):
        value = value * more[0].value if more[0].value in (100.0, 1000.0) and value < 100 else value + more[0].value
        end = more[1]
    return value, end


def often(heard: Found, at: int) -> tuple[float, int] | None:
    """(How often, token behind) of a word for how often something comes in a time: 'twice a day'."""
    for name, times in _OFTEN.items():
        end = heard.does(at, name)
        each = heard.does(end, "per") if end else None
        if end and each and any(unit.name == "time" for unit in units_at(heard, each)):
            return times, end
    return None


def _says_else(heard: Found, at: int, end: int) -> bool:
    """Whether a number is asked about, or begins a longer word without content: the 一 of 一下; not the 네 of 네 장."""
    longest = heard.words[at][0]
    if longest.get("asked") and not (longest.end == end and units_at(heard, end)):
        return True
    stop = longest.get("number") is None and longest.get("stop") is not None
    return stop and not units_at(heard, longest.end)


def is_dotted(norm: str) -> bool:
    """Whether a number may be thousands with a dot: '50.000'."""
    whole, dot, rest = norm.partition(".")
    return bool(dot) and len(rest) == 3 and 1 <= len(whole) <= 3 and whole != "0"


def _dotted_millions(text: Sequence[Glyphs], at: int) -> tuple[float, int] | None:
    """(Value, token behind) of digits in three groups or more with dots: '2.000.000'."""
    written, end = text[at].norm, at + 1
    while end + 1 < len(text) and text[end].text == "." and not (text[end].space or text[end + 1].space):
        if not (text[end + 1].text.isdigit() and len(text[end + 1].text) == _GROUP):
            break
        written, end = f"{written}.{text[end + 1].text}", end + 2
    if end == at + 1 or not is_dotted(text[at].norm):
        return None
    return float(written.replace(".", "")), end


def _is_span(heard: Found, at: int) -> bool:
    """Whether 'a' counts a stretch of time that one has: 'in a week', 'under a second'; not 'tokens a day'."""
    counted = units_at(heard, at + 1)
    if counted and any(heard.sense(counted[0].end, kind) for kind in ("part_over", "later", "sooner")):
        return True
    times = [unit.size for unit in counted if unit.name == "time"]
    before = heard.words.get(at - 1, ()) if at else ()
    if times and any(heard.does(start, "at_most") == at for start in range(max(at - LONGEST_NAME, 0), at)):
        return True
    return max(times, default=0) >= DAY_S and any(
        sense.name == "deadline_h" for word in before for sense in word.all("field")
    )


def _thousands(heard: Found, at: int) -> bool:
    """Whether a group of three digits goes on: '200 000 samples'."""
    text = heard.text
    if at + 1 >= len(text) or text[at].kind != "number" or len(text[at].text) != 3 or not text[at].text.isdigit():
        return False
    before = text[at - 1]
    plain = before.text.isdigit() and len(before.text) <= 3 and text[at].start - before.end == 1
    if not plain or at in heard.names or not text[at + 1].space or _is_taken(heard, at - 1):
        # 'A100 x 4 500M tokens', 'micro-batch 1 128 B200'
        return False
    if at + 1 in heard.counted and at - 1 not in heard.inside:
        # '16 384 H100'
        return True
    return bool(heard.sense(at + 1, "unit") or heard.sense(at + 1, "scale")) or _thousands(heard, at + 1)


def _is_taken(heard: Found, at: int) -> bool:
    """Whether a number belongs to what stands before it, a device that it counts or a field, where another counts the
    device behind: 'budget 5 000 €' is one number."""
    counts = at + 2 in heard.counted or heard.has_unit(at + 2, "devices", "nodes")
    return (at > 0 and heard.text[at - 1].norm in TIMES) or (counts and bool(heard.fields_before(at)))


def _decimal(heard: Found, at: int) -> tuple[float, int] | None:
    """'1,5' as 1.5 where a scale, a unit or a currency stands behind it."""
    text = heard.text
    if at + 2 >= len(text) or text[at + 1].text != "," or text[at + 2].kind != "number":
        return None
    if text[at + 1].space or text[at + 2].space or len(text[at + 2].norm) > 2 or "." in text[at].norm:
        return None
    goes_on = (at + 3 < len(text) and text[at + 3].text == ",") or (
        at > 0 and text[at - 1].text == "," and not text[at].space
    )
    if text[at].norm == "0" and not goes_on:
        return float(f"0.{text[at + 2].norm}"), at + 3
    # '1,05' is no list; 'à 2,99 ?' is said where prices have a comma.
    hundredths = len(text[at + 2].norm) > 1 and (text[at + 2].norm[0] == "0" or heard.decimal_comma)
    counted = heard.sense(at + 3, "scale") or heard.sense(at + 3, "unit") or heard.does(at + 3, "per")
    if goes_on or not (hundredths or counted):
        return None
    return float(f"{text[at].norm}.{text[at + 2].norm}"), at + 3


def is_minus(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a minus stands right before: ' -8', not '4-8' or 'bf16 - 8'."""
    sign = text[at - 1]
    if sign.text not in ("-", "−", "–") or text[at].space:
        return False
    return sign.space and (at < 2 or text[at - 2].kind != "number")


def scale_at(heard: Found, at: int) -> tuple[str, float, int] | None:
    """(As written, factor, token behind)."""
    read = heard.sense(at, "scale")
    if read is None or at in heard.names:
        # The trn of 'four trn1.32xlarge' is no trillion.
        return None
    token = heard.text[at]
    # '80 M de tokens'
    of = at + 1 + (at + 1 < len(heard.text) and heard.text[at + 1].norm in ("de", "of", "d'"))
    counted = token.text in ("M", "B", "K") and heard.has_unit(of, *_DATA)
    apart = token.space and not counted and not units_at(heard, at + 1, money=True)
    if len(token.norm) <= 2 and token.norm[0] in _TOUCHING and apart and token.norm not in ("bn", "tn", "mn"):
        return None
    if token.norm == "m" and heard.sense(at + 1, "unit") is None and _is_minutes(heard, at):
        return None
    sense, end = read
    name, factor = token.norm, sense.value
    if name == "billion" and heard.long_scale:
        factor = 1e12
    if name in ("ki", "mi"):
        factor = 1024.0 if name == "ki" else 1024.0**2
    if (
        (more := heard.sense(end, "scale"))
        and end not in heard.names
        and heard.text[end].kind in ("word", "single")
        and len(heard.text[end].norm) > 1
    ):
        factor, end = factor * more[0].value, more[1]
    return name, factor, end


def _is_minutes(heard: Found, at: int) -> bool:
    return at >= 3 and heard.text[at - 2].norm in ("h", "hr")


def units_at(heard: Found, at: int, money: bool = False) -> list[Unit]:
    if _is_iteration(heard.text, at):
        return [Unit("steps", 1.0, at, at + 1)]
    word = next((word for word in heard.words.get(at, ()) if word.get("unit")), None)
    if word is None or at in heard.names:
        return []
    token = heard.text[at]
    longest = heard.words[at][0]
    if longest.end > word.end and longest.get("value"):
        # 'pp 16 sequence parallel': no sixteen sequences.
        return []
    alone = word.end == at + 1 and len(token.norm) == 1 and token.kind == "word"
    behind = heard.text[word.end] if word.end < len(heard.text) else None
    if alone and behind and behind.kind == "number" and not behind.space:
        # '8 H100': no hours.
        return []
    if token.space and token.norm in _GLUED:
        return []
    if alone and token.space and token.norm in _TOUCHING and not money and token.norm not in "hds":
        return []
    senses = word.all("unit")
    if money:
        senses = [sense for sense in senses if sense.name in MONEY and sense.value == 1]
    return [Unit(sense.name, sense.value, at, word.end) for sense in senses]


def _is_iteration(text: Sequence[Glyphs], at: int) -> bool:
    """Whether 'it' is one of tqdm's: '2.3 s/it', '1.4it/s'."""
    if at >= len(text) or text[at].norm != "it" or not at:
        return False
    rate = at + 1 < len(text) and text[at + 1].text == "/"
    return text[at - 1].text == "/" or (rate and text[at - 1].kind == "number")


def unit_place(heard: Found, at: int) -> int:
    """Where a unit may begin behind a number: past a hyphen, 'x', or one word that says which ones are counted."""
    text = heard.text
    if at + 1 < len(text) and text[at].norm == "." and text[at - 1].kind == "word" and heard.sense(at + 1, "unit"):
        return at + 1
    if at < len(text) and text[at].text in ("-", "_", "‑") and at + 1 < len(text) and not text[at].space:
        return at + 1
    if heard.sense(at, "unit"):
        return at
    named = heard.names.get(at + 1)
    if named and text[at].norm in heard.lexicon.placing and heard.has_unit(named, *MONEY):
        # '5000 in AWS credits', but not '4 on AWS'
        return named
    stop = at
    for _ in range(2):
        if stop + 1 >= len(text) or text[stop].kind not in ("word", "single") or stop in heard.names:
            if stop in heard.names and heard.names[stop] == stop + 1 and heard.has_unit(stop + 1, *MONEY):
                # '40k of GCP credits'
                return stop + 1
            break
        changes = heard.does(stop, "plus", "minus")
        if heard.sense(stop, "number") or text[stop].norm in heard.lexicon.meant_for:
            # '16k for a couple of users'
            break
        if heard.field(stop) and not changes and text[stop].norm not in ("of", "gpu", "out"):
            break
        words = heard.words.get(stop)
        stop = changes or (words[0].end if words else stop + 1)
        if any(unit.name in COUNTED for unit in units_at(heard, stop)):
            return stop
    return at
