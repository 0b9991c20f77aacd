"""Numbers as people say them, with scale, unit and what they are counted per: `1.5T tokens`, `half a trillion`, `2,50
€/h`, `16枚`, `two more nodes`, `2, 4 or 8 GPUs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent.offline.language.lexicon import Lexicon, Phrase, Quantity, Sense
from agent.offline.language.tokens import Glyphs, digits
from knowledge.figures import length_in_tokens

# Letters that are a scale or a unit only where they touch their number: 8B, 4k, 36h.
_TOUCHING = frozenset("kmbtgdhswp")
# Short units that are names of fields where they stand apart: '3ep', not 'ep 3'.
_GLUED = frozenset(["ep", "n"])
_MONEY = ("usd", "eur", "gbp", "chf", "money")
_COUNTED = ("devices", "nodes", "users", "samples", "requests", "epochs", "steps", "tokens")


# What has a length: "how many concurrent 32k sessions".
_OF_LENGTHS = ("users", "requests", "samples")
# Words of the longest name of a field.
_LONGEST_NAME = 6
# Seconds of the shortest time that devices are counted by.
_HOUR = 3600
# Scales of parameters.
_SIZES = ("b", "bn", "billion", "t")


@dataclass(frozen=True)
class Unit:
    """A dimension of units.yaml and how many base units one is; tokens [start, end)."""

    name: str
    size: float
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
        return self.scale in _SIZES

    @property
    def length(self) -> float:
        """The value as a length in tokens: k and M are binary where the size is a power of two."""
        if self.scale in ("ki", "mi"):
            return self.value
        if self.scale in ("k", "m"):
            return length_in_tokens(self.digits, self.scale)
        return self.value


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

    def sense(self, at: int, kind: str) -> tuple[Sense, int] | None:
        """(The sense, the token behind it) of the longest form at a token that has it."""
        for word in self.words.get(at, ()):
            if sense := word.get(kind):
                return sense, word.end
        return None

    def does(self, at: int, *names: str) -> int | None:
        """The token behind an operator that stands at a token, or None."""
        for word in self.words.get(at, ()):
            if any(sense.name in names for sense in word.all("does")):
                return word.end
        return None

    def has_unit(self, at: int, *names: str) -> bool:
        """Whether a word at a token is a unit of one of these dimensions."""
        return any(sense.name in names for word in self.words.get(at, ()) for sense in word.all("unit"))

    def field(self, at: int) -> bool:
        """Whether the longest form at a token names a field, a value or an operator."""
        words = self.words.get(at)
        return bool(words) and any(words[0].get(kind) for kind in ("field", "does", "value"))


def amounts(found: Found) -> list[Amount]:
    """Every number of a text in order. Numbers inside names are left to the names."""
    read: list[Amount] = []
    at = 0
    while at < len(found.text):
        if at in found.names:
            at = found.names[at]
            continue
        amount = None if at in found.inside or _glued(found, at) or _worded(found, at) else _amount(found, at)
        if amount is None:
            at += 1
            continue
        read.append(amount)
        at = max(amount.end, at + 1)
    return _joined(found, read)


def _worded(found: Found, at: int) -> bool:
    """Whether a number begins words of their own: '3D parallelism', '2x'."""
    if found.text[at].kind != "number":
        return False
    return any(word.end > at + 2 and (word.get("asked") or word.get("does")) for word in found.words.get(at, ()))


def _glued(found: Found, at: int) -> bool:
    """Whether a number is a part of a word that names no field: 'p95', 'gpt5', 'coder-16k'; not 'tp8' or 'zero-3'."""
    if found.text[at].kind != "number" or found.text[at].space or at == 0:
        return False
    before = at - 1
    while before > 0 and found.text[before].text in ("-", "_") and not found.text[before].space:
        before -= 1
    word = found.text[before]
    if word.kind != "word" or word.norm in ("x", "us") or (before != at - 1 and word.space and len(word.norm) < 2):
        return False
    for start in range(max(before - 4, 0), before + 1):
        for one in found.words.get(start, ()):
            if one.end == before + 1 and (
                one.get("field") or one.get("unit") or one.get("does") or one.get("stop") or one.get("scale")
            ):
                return False
    return True


def _amount(found: Found, start: int) -> Amount | None:
    money = _unit(found, start, money=True) if found.text[start].kind in ("sign", "word") else None
    at = money[-1].end if money else start
    number = _number(found, at)
    if number is None:
        return None
    value, end = number
    if (
        start
        and found.does(start - 1, "per")
        and not (start > 1 and found.text[start - 2].norm == "w")
        and not found.sense(start - 1, "recurs")
        and found.text[start - 1].norm not in ("a", "an", "each", "every", "в", "на", "за", "p")
        and value >= 1
    ):
        counted = start > 1 and (found.text[start - 2].kind == "number" or found.sense(start - 2, "scale"))
        if not counted and (_scale(found, end) or _unit(found, end)):
            # 'Per 1M tokens' is what something is counted per.
            return None
    if (
        found.text[at].kind != "number"
        and value == 1
        and not (_unit(found, _behind(found, end)) or _counts_name(found, end) or _is_lone(found, at, end))
    ):
        return None
    if start and _minus(found.text, start) and end - at == 1:
        value, start = -value, start - 1
    shown, scale, end = value, "", end
    if behind := _scale(found, end):
        scale, factor, end = behind
        value *= factor
    amount = Amount(value, start, end, end, shown, scale)
    if money:
        amount = replace(amount, units=tuple(money))
    else:
        units = _unit(found, _behind(found, end))
        if scale in ("k", "ki") and any(unit.name in _OF_LENGTHS for unit in units) and _is_asked_for(found, start):
            units = [Unit("tokens", 1.0, end, end)]
        if rate := next((unit for unit in units if unit.name == "rate"), None):
            requests = replace(rate, name="requests")
            return replace(amount, units=(requests,), per=(replace(rate, name="time"),), end=rate.end)
        if not units and _is_labelled(found, start):
            # 'Tokens = 2B'
            units = _unit(found, start - 2)
        if units:
            if found.text[at].kind == "number" and _dotted(found.text[at].norm) and value == shown != int(shown):
                # Of what is counted there are no fractions: '12.500 ejemplos'.
                amount = replace(amount, value=value * 1000, digits=shown * 1000) if _whole(units) else amount
            amount = replace(amount, units=tuple(units), end=max(unit.end for unit in units))
        elif not (amount.is_size or of_a_field(found, at, value)) and (
            _counts_name(found, end) or _behind_name(found, start)
        ):
            amount = replace(amount, names=True)
    amount = _in_device_hours(found, amount, at) or _per(found, amount)
    if amount.unit(*_MONEY) and not amount.per and _dotted(found.text[at].norm) and amount.value < 1000:
        # '8.000 Dollar'
        return replace(amount, value=round(amount.value * 1000), digits=amount.digits * 1000)
    return amount


def _is_lone(heard: Found, at: int, end: int) -> bool:
    """Whether a 'one' counts what was spoken of, since nothing stands behind it: 'what if I only had one?'"""
    last = end >= len(heard.text) or heard.text[end].ends_clause
    return last and at > 0 and heard.text[at - 1].norm in heard.lexicon.lone


def _number(found: Found, at: int) -> tuple[float, int] | None:
    """(Value, token behind) of digits, of a number in words, or of a part of a scale ('half a trillion')."""
    if at >= len(found.text):
        return None
    token = found.text[at]
    if token.kind == "number":
        value, end = digits(token.norm), at + 1
        if _dotted(token.norm) and _long_scale(found):
            value *= 1000
        while _thousands(found, end) and value == int(value):
            value, end = value * 1000 + digits(found.text[end].norm), end + 1
        if decimal := _decimal(found, at):
            value, end = decimal
        return value, end
    if part := found.sense(at, "fraction"):
        sense, end = part
        # 半分 is a half, no half minute.
        behind = end + (found.text[end].text == "-") if end < len(found.text) else end
        spoken = token.kind == "word" and any(unit.name == "time" for unit in _unit(found, behind))
        counted = found.sense(behind, "scale") or spoken
        return (sense.value, end) if counted and found.text[behind].kind != "sign" else None
    if token.norm in found.lexicon.articles and _is_span(found, at):
        return 1.0, at + 1
    if (word := found.sense(at, "number")) is None or found.words[at][0].get("asked") or _is_stop(found, at):
        return None
    value, end = word[0].value, word[1]
    while (more := found.sense(end, "number")) and (
        value >= 20 > more[0].value or more[0].value in (100.0, 1000.0) or value in (100, 200, 500)
    ):
        value = value * more[0].value if more[0].value in (100.0, 1000.0) and value < 100 else value + more[0].value
        end = more[1]
    return value, end


def _is_asked_for(heard: Found, start: int) -> bool:
    """Whether the thing behind a number is asked for, so that the number only says which."""
    return any(
        word.end <= start and sense.value == "focus" and sense.name == "size"
        for at in range(max(start - _LONGEST_NAME, 0), start)
        for word in heard.words.get(at, ())
        if start - word.end <= 1
        for sense in word.all("asked")
    )


def _is_stop(found: Found, at: int) -> bool:
    """Whether a number begins a longer word without content: the 一 of 一下."""
    longest = found.words[at][0]
    stop = longest.get("number") is None and longest.get("stop") is not None
    return stop and not _unit(found, longest.end)


def _is_labelled(found: Found, start: int) -> bool:
    """Whether a number stands behind a label that begins a line or a clause."""
    if start < 2 or found.text[start - 1].text not in ("=", ":"):
        return False
    return start == 2 or found.text[start - 3].ends_clause or found.text[start - 3].text in ("-", "*", "|", "•")


def _whole(units: Sequence[Unit]) -> bool:
    """Whether a unit counts things that come whole."""
    return any(unit.name in _COUNTED for unit in units)


def _dotted(norm: str) -> bool:
    """Whether a number may be thousands with a dot: '50.000'."""
    whole, dot, rest = norm.partition(".")
    return bool(dot) and len(rest) == 3 and 1 <= len(whole) <= 3 and whole != "0"


def _long_scale(found: Found) -> bool:
    """Whether the words are of a language whose billion is a million millions, and whose thousands have a dot."""
    return sum(one.norm in found.lexicon.long_scale for one in found.text) > 1


def _is_span(found: Found, at: int) -> bool:
    """Whether 'a' counts a stretch of time that one has: 'in a week', 'we have a day'; not 'tokens a day'."""
    long = any(unit.name == "time" and unit.size >= 86400 for unit in _unit(found, at + 1))
    before = found.words.get(at - 1, ()) if at else ()
    return long and any(sense.name == "deadline_h" for word in before for sense in word.all("field"))


def _thousands(found: Found, at: int) -> bool:
    """Whether a group of three digits goes on: '200 000 samples'."""
    text = found.text
    if at + 1 >= len(text) or text[at].kind != "number" or len(text[at].text) != 3 or not text[at].text.isdigit():
        return False
    before = text[at - 1]
    plain = before.text.isdigit() and len(before.text) <= 3 and text[at].start - before.end == 1
    return (
        plain
        and (bool(found.sense(at + 1, "unit") or found.sense(at + 1, "scale")) or _thousands(found, at + 1))
        and at not in found.names
    )


def _decimal(found: Found, at: int) -> tuple[float, int] | None:
    """'1,5' as 1.5 where a scale, a unit or a currency stands behind it."""
    text = found.text
    if at + 2 >= len(text) or text[at + 1].text != "," or text[at + 2].kind != "number":
        return None
    if text[at + 1].space or text[at + 2].space or len(text[at + 2].norm) > 2 or "." in text[at].norm:
        return None
    goes_on = (at + 3 < len(text) and text[at + 3].text == ",") or (
        at > 0 and text[at - 1].text == "," and not text[at].space
    )
    if goes_on or not (found.sense(at + 3, "scale") or found.sense(at + 3, "unit")):
        return None
    return float(f"{text[at].norm}.{text[at + 2].norm}"), at + 3


def _minus(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a minus stands right before: ' -8', not '4-8' or 'bf16 - 8'."""
    sign = text[at - 1]
    if sign.text not in ("-", "−", "–") or text[at].space:
        return False
    return sign.space and (at < 2 or text[at - 2].kind != "number")


def _scale(found: Found, at: int) -> tuple[str, float, int] | None:
    """(As written, factor, token behind)."""
    read = found.sense(at, "scale")
    if read is None:
        return None
    token = found.text[at]
    if len(token.norm) <= 2 and token.norm[0] in _TOUCHING and token.space and token.norm not in ("bn", "tn", "mn"):
        return None
    if token.norm == "m" and found.sense(at + 1, "unit") is None and _is_minutes(found, at):
        return None
    sense, end = read
    name, factor = token.norm, sense.value
    if name == "billion" and _long_scale(found):
        factor = 1e12
    if name in ("ki", "mi"):
        factor = 1024.0 if name == "ki" else 1024.0**2
    if (
        (more := found.sense(end, "scale"))
        and found.text[end].kind in ("word", "single")
        and len(found.text[end].norm) > 1
    ):
        factor, end = factor * more[0].value, more[1]
    return name, factor, end


def _is_minutes(found: Found, at: int) -> bool:
    return at >= 3 and found.text[at - 2].norm in ("h", "hr")


def _behind(found: Found, at: int) -> int:
    """Where a unit may begin behind a number: past a hyphen, 'x', or one word that says which ones are counted."""
    text = found.text
    if at + 1 < len(text) and text[at].text == "." and text[at - 1].kind == "word" and found.sense(at + 1, "unit"):
        return at + 1
    if at < len(text) and text[at].text in ("-", "_", "‑") and at + 1 < len(text) and not text[at].space:
        return at + 1
    if found.sense(at, "unit"):
        return at
    stop = at
    for _ in range(2):
        if stop + 1 >= len(text) or text[stop].kind not in ("word", "single") or stop in found.names:
            break
        changes = found.does(stop, "plus", "minus")
        if found.field(stop) and not changes and text[stop].norm not in ("of", "gpu"):
            break
        words = found.words.get(stop)
        stop = changes or (words[0].end if words else stop + 1)
        if any(unit.name in _COUNTED for unit in _unit(found, stop)):
            return stop
    return at


def _unit(found: Found, at: int, money: bool = False) -> list[Unit]:
    if _is_iteration(found.text, at):
        return [Unit("steps", 1.0, at, at + 1)]
    word = next((word for word in found.words.get(at, ()) if word.get("unit")), None)
    if word is None or at in found.names:
        return []
    token = found.text[at]
    longest = found.words[at][0]
    if longest.end > word.end and longest.get("value"):
        # 'pp 16 sequence parallel': no sixteen sequences.
        return []
    alone = word.end == at + 1 and len(token.norm) == 1 and token.kind == "word"
    behind = found.text[word.end] if word.end < len(found.text) else None
    if alone and behind and behind.kind == "number" and not behind.space:
        # '8 H100': no hours.
        return []
    if token.space and token.norm in _GLUED:
        return []
    if alone and token.space and token.norm in _TOUCHING and not money and token.norm not in "hds":
        return []
    senses = word.all("unit")
    if money:
        senses = [sense for sense in senses if sense.name in _MONEY and sense.value == 1]
    return [Unit(sense.name, sense.value, at, word.end) for sense in senses]


def _is_iteration(text: Sequence[Glyphs], at: int) -> bool:
    """Whether 'it' is one of tqdm's: '2.3 s/it', '1.4it/s'."""
    if at >= len(text) or text[at].norm != "it" or not at:
        return False
    rate = at + 1 < len(text) and text[at + 1].text == "/"
    return text[at - 1].text == "/" or (rate and text[at - 1].kind == "number")


def of_a_field(heard: Found, at: int, value: float) -> bool:
    """Whether a number is written to the name of its field ('tp2 a100'), or stands behind one that it is usual for:
    'rank 16 a100', 'seq=2048 rtx 4090'."""
    if any(start < at <= end for start, end in heard.names.items()):
        # The 'b' of 'llama-3.1-70b 512 h100' names no field.
        return False
    glued = at > 0 and not heard.text[at].space and heard.text[at - 1].kind == "word"
    end = at - 1 if at > 0 and heard.text[at - 1].text in "=:" else at
    if at + 1 < len(heard.text) and heard.text[at + 1].norm in ("x", "×", "*"):
        return glued
    return any(
        word.end == end and (glued or _is_usual(heard.lexicon.quantities[sense.name], value))
        for start in range(max(end - _LONGEST_NAME, 0), end)
        for word in heard.words.get(start, ())
        for sense in word.all("field")
    )


def _is_usual(quantity: Quantity, value: float) -> bool:
    plain = quantity.length or None in quantity.of
    return plain and "devices" not in quantity.of and quantity.usual[0] <= value <= quantity.usual[1]


def _counts_name(found: Found, at: int) -> bool:
    """Whether the number counts the device or machine that is named behind it: '8 H100', '4x A100', '2 of the
    4090s'."""
    words = 0
    while at < len(found.text) and words < 3:
        if at in found.counted:
            return True
        token = found.text[at]
        joins = token.norm in ("x", "×", "*", "-", "of", "the", "的", "の", "'", '"', "“", "„")
        if not joins and found.sense(at, "stop"):
            return False
        if not joins and (
            token.kind not in ("word", "single") or at in found.names or found.field(at) or found.sense(at, "unit")
        ):
            return False
        words += not joins
        at += 1
    return False


def _in_device_hours(heard: Found, amount: Amount, at: int) -> Amount | None:
    """An amount of devices times their time; its digits begin at a token."""
    if (hours := _device_hours(heard, amount)) is None:
        return None
    thousands = 1000 if _dotted(heard.text[at].norm) and amount.value < 1000 else 1
    value, digits = round(thousands * amount.value, 9), round(thousands * amount.digits, 9)
    return replace(amount, value=value, digits=digits, units=(hours,), end=hours.end, names=False)


def _device_hours(heard: Found, amount: Amount) -> Unit | None:
    """Devices times their time: '50k GPU-hours', '20,000 H100 days', '10.000 horas de GPU'."""
    if long := next((unit for unit in amount.units if unit.name == "time" and unit.size >= _HOUR), None):
        of = long.end < len(heard.text) and heard.text[long.end].norm in ("of", "de", "d")
        end = _behind_device(heard, long.end + 1) if of else None
        return Unit("device_hours", long.size / _HOUR, long.start, end) if end else None
    devices = amount.unit("devices")
    end = devices.end if devices else None if amount.units else _behind_device(heard, _behind(heard, amount.end))
    if end is None or end >= len(heard.text):
        return None
    at = end + 1 if heard.text[end].text in ("-", "‑") and not heard.text[end].space else end
    units = [unit for unit in _unit(heard, at) if unit.name == "time" and unit.size >= _HOUR]
    return Unit("device_hours", units[0].size / _HOUR, amount.number, units[0].end) if units else None


def _behind_device(heard: Found, at: int) -> int | None:
    """The token behind a device that stands at a token, by its kind or its name."""
    if at in heard.counted:
        return heard.names[at]
    return next((unit.end for unit in _unit(heard, at) if unit.name == "devices"), None)


def _behind_name(found: Found, at: int) -> bool:
    """'A100 x4', 'H100 * 8'."""
    if at < 2 or not (found.text[at - 1].norm in ("x", "×", "*") or found.does(at - 1, "times_sign")):
        return False
    return any(start in found.counted and end == at - 1 for start, end in found.names.items())


def _per(found: Found, amount: Amount) -> Amount:
    """What the amount is counted per: '/h', 'per million tokens', 'a day'."""
    at = amount.end
    behind = found.does(at, "per")
    if behind is None:
        of_rate = amount.unit(*_MONEY, "tokens") is not None
        return replace(amount, per=tuple(_per_before(found, amount.start))) if of_rate else amount
    if found.text[at].norm in ("在", "на", "за", "p") and not (units := _unit(found, behind)):
        return amount
    factor = 1.0
    money = amount.unit(*_MONEY) is not None or not amount.units
    number = _number(found, behind)
    if number and money and (number[0] == 1 or _scale(found, number[1])):
        if found.text[at].text == "/" and not amount.unit(*_MONEY) and amount.scale:
            # '4k/1k requests'
            return amount
        behind = number[1]
    elif number and found.text[behind].kind == "number":
        return amount
    if (scale := _scale(found, behind)) and found.sense(scale[2], "unit"):
        factor, behind = scale[1], scale[2]
    elif (scale := found.sense(behind, "scale")) and (found.sense(scale[1], "unit") or scale[0].value == 1e6):
        factor, behind = scale[0].value, scale[1]
    if behind < len(found.text) and found.text[behind].norm in ("output", "input", "generated", "gpu", "card", "total"):
        behind = behind + 1 if _unit(found, behind + 1) else behind
    if money and (after := _behind_device(found, behind)):
        # 'per H100 hour', '/gpu/h'
        again = found.does(after, "per")
        if _unit(found, after) or (again and _unit(found, again)):
            behind = after if _unit(found, after) else again or after
    units = _unit(found, behind)
    if not units and factor == 1e6:
        units = [Unit("tokens", 1.0, behind - 1, behind)]
    if not units or (amount.unit("devices", "nodes") and units[0].name == "time"):
        # Nothing has so many devices an hour: '8卡 每小时60元'.
        return amount
    per = tuple(replace(unit, size=unit.size * factor) for unit in units)
    end = max(unit.end for unit in units)
    again = found.does(end, "per")
    if again and (more := [unit for unit in _unit(found, again) if unit.name in _COUNTED]):
        # 'Tokens/s/user'
        return replace(amount, per=(*per, *more), end=max(unit.end for unit in more))
    return replace(amount, per=per, end=end)


def _per_before(found: Found, start: int) -> list[Unit]:
    """What money or tokens are counted per where that stands before them: '每小时60元'."""
    for at in range(max(start - 4, 0), start):
        behind = found.does(at, "per")
        if behind and (units := [unit for unit in _unit(found, behind) if unit.end == start and unit.name == "time"]):
            return units
    return []


_TOGETHER = ("or", "versus", "and")


def _joined(found: Found, read: list[Amount]) -> list[Amount]:
    """The amounts with what joins each to the one before."""
    for index in range(1, len(read)):
        first, second = read[index - 1], read[index]
        between = range(first.end, second.start)
        joint = _joint(found, between)
        if not joint and first.names and len(between) <= 6:
            joint = ""
        read[index] = replace(second, before=joint)
    return read


def _joint(found: Found, between: range) -> str:
    text = [found.text[at].norm for at in between]
    if len(text) > 4:
        return ""
    if not text:
        return ","
    if text in (["x"], ["×"], ["*"], ["by"]):
        return "x"
    if text == ["/"]:
        return "/"
    plain = "".join(text)
    if plain in ("->", "→", "=>", "-->"):
        return "->"
    if plain in (
        "..",
        "...",
        "…",
        "to",
        "-",
        "–",
        "through",
        "bis",
        "hasta",
        "a",
        "до",
        "到",
        "至",
        "~",
        "から",
        "에서",
    ):
        return "to"
    if text and all(
        one in (",", "/", "、", ";", "|", "then") or _is_joint(found, between, at) for at, one in enumerate(text)
    ):
        return "or" if any(_does(found, between, at, "or", "versus") for at in range(len(text))) or "/" in text else ","
    return ""


def _is_joint(found: Found, between: range, at: int) -> bool:
    return _does(found, between, at, *_TOGETHER)


def _does(found: Found, between: range, at: int, *names: str) -> bool:
    return found.does(between.start + at, *names) is not None
