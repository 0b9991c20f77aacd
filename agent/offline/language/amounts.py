"""Numbers as people say them, with scale, unit and what they are counted per: `1.5T tokens`, `half a trillion`, `2,50
€/h`, `16枚`, `two more nodes`, `2, 4 or 8 GPUs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.offline.language.lexicon import Phrase, Quantity
from agent.offline.language.measures import (
    COUNTED,
    DAY_S,
    LONGEST_NAME,
    MONEY,
    TIMES,
    Amount,
    Found,
    Unit,
    is_dotted,
    is_minus,
    number_at,
    often,
    over_at,
    scale_at,
    unit_place,
    units_at,
)
from agent.offline.language.rates import in_device_hours, is_set_apart, with_rate
from agent.offline.language.tokens import Glyphs

# What stands between a number and the name of what it counts.
_BEFORE_NAMES = ("x", "×", "*", "-", "of", "the", "的", "の", "'", '"', "“", "„")
# 'Per' where it stands behind what it is of.
_PER_BEHIND = ("당", "あ")
# What something may be for, and is hardly counted per.
_PURPOSES = ("users", "steps", "epochs", "devices", "nodes")
# What has a length: "how many concurrent 32k sessions".
_OF_LENGTHS = ("users", "requests", "samples")
_LENGTHS = ("prompt_len", "input_len")
# Tokens before 'of them' within which what it points at is named.
_SPOKEN_OF = 24
# Devices that a run may have, of which nothing else is said.
_FEW = 1024


def amounts(heard: Found) -> list[Amount]:
    """Every number of a text in order. Numbers inside names are left to the names."""
    read: list[Amount] = []
    told_off = _told_off(heard)
    at = 0
    while at < len(heard.text):
        if at in heard.names:
            at = heard.names[at]
            continue
        amount = (
            None
            if at in heard.inside or at in told_off or _glued(heard, at) or _worded(heard, at)
            else _amount(heard, at)
        )
        if amount is None:
            at += 1
            continue
        read.append(amount)
        at = max(amount.end, at + 1)
    return _joined(heard, read)


def _told_off(heard: Found) -> frozenset[int]:
    """The numbers that only count what is said, 'one, does it fit, two, how long does it take', and the 'one' of 'how
    much is it for one month?'."""
    monthly = {
        at
        for start, words in heard.words.items()
        for word in words
        if any(sense.name == "usd_per_month" for sense in word.all("asked"))
        for at in range(start, word.end)
    }
    counters: list[int] = []
    for at, token in enumerate(heard.text):
        opens = token.kind == "word" and (at == 0 or heard.text[at - 1].ends_clause)
        word = heard.sense(at, "number") if opens else None
        ends = word is not None and word[1] < len(heard.text) and heard.text[word[1]].text in (",", ":")
        if word and ends and word[0].value == len(counters) + 1:
            counters.append(at)
    return frozenset(monthly.union(counters if len(counters) > 1 else ()))


def _worded(heard: Found, at: int) -> bool:
    """Whether a number begins words of their own: '3D parallelism', '2x', '1日' before a number."""
    rhythm = heard.sense(at, "rhythm")
    if rhythm and rhythm[1] < len(heard.text) and heard.text[rhythm[1]].kind == "number":
        return True
    if heard.text[at].kind != "number":
        return False
    return any(word.end > at + 2 and (word.get("asked") or word.get("does")) for word in heard.words.get(at, ()))


def _glued(heard: Found, at: int) -> bool:
    """Whether a number is a part of a word that names no field: 'p95', 'gpt5', 'coder-16k'; not 'tp8' or 'zero-3'."""
    if heard.text[at].kind != "number" or at == 0:
        return False
    if heard.text[at].space:
        return _is_version(heard, at) or _numbers_a_stranger(heard, at)
    before = at - 1
    while before > 0 and heard.text[before].text in ("-", "_") and not heard.text[before].space:
        before -= 1
    word = heard.text[before]
    if word.kind != "word" or word.norm in ("x", "us") or (before != at - 1 and word.space and len(word.norm) < 2):
        return False
    for start in range(max(before - 4, 0), before + 1):
        for one in heard.words.get(start, ()):
            if one.end == before + 1 and (
                one.get("field") or one.get("unit") or one.get("does") or one.get("stop") or one.get("scale")
            ):
                return False
    return True


def _numbers_a_stranger(heard: Found, at: int) -> bool:
    """Whether a number says which of what nobody knows is meant: 'reviewer 2 wants CO2'."""
    before, behind = heard.text[at - 1], heard.words.get(at + 1, ())
    stranger = (
        before.kind == "word" and before.norm.isascii() and not (heard.words.get(at - 1) or at - 1 in heard.names)
    )
    verb = bool(behind) and behind[0].get("stop") is None and any(word.get("wants") for word in behind)
    return stranger and before.text.islower() and heard.text[at].norm in "123456789" and verb


def _is_version(heard: Found, at: int) -> bool:
    """Whether a number with one decimal stands behind a name that nobody knows, and counts nothing: 'ABCI 3.0'."""
    whole, dot, rest = heard.text[at].norm.partition(".")
    before = heard.text[at - 1]
    stranger = before.kind == "word" and before.text[:1].isupper() and not heard.words.get(at - 1)
    counts = heard.sense(at + 1, "unit") or heard.sense(at + 1, "scale") or heard.does(at + 1, "per")
    return bool(dot) and len(whole) < 3 and len(rest) == 1 and stranger and not counts


def _amount(heard: Found, start: int) -> Amount | None:
    money = units_at(heard, start, money=True) if heard.text[start].kind in ("sign", "word") else None
    at = money[-1].end if money else start
    number = number_at(heard, at)
    if number is None:
        return None
    value, end = number
    if (
        start
        and heard.does(start - 1, "per")
        and not is_set_apart(heard, start - 1)
        and not (start > 1 and heard.text[start - 2].norm == "w")
        and not (heard.sense(start - 1, "recurs") and not _of_tokens(heard, end))
        and heard.text[start - 1].norm not in ("a", "an", "each", "every", "в", "на", "за", "p", *_PER_BEHIND)
        and value >= 1
    ):
        counted = start > 1 and (heard.text[start - 2].kind == "number" or heard.sense(start - 2, "scale"))
        # 'Mit je 1000 Tokens'
        counted = counted or (start > 1 and heard.text[start - 2].norm in heard.lexicon.apiece)
        if not (counted or _is_purpose(heard, value, end)) and (scale_at(heard, end) or units_at(heard, end)):
            # 'Per 1M tokens' is what something is counted per.
            return None
    if (
        heard.text[at].kind != "number"
        and value in (1, 1000)
        and not (units_at(heard, unit_place(heard, end)) or _counts_name(heard, end) or _is_lone(heard, at, end))
    ):
        return None
    if start and is_minus(heard.text, start) and end - at == 1:
        value, start = -value, start - 1
    shown, scale, end = value, "", end
    if behind := scale_at(heard, end):
        scale, factor, end = behind
        value *= factor
    amount = Amount(value, start, end, end, shown, scale)
    if often(heard, at):
        return with_rate(heard, replace(amount, units=(Unit("times", 1.0, at, end),)))
    amount = replace(amount, units=tuple(money)) if money else _counted(heard, amount, at)
    lone = amount.value == 1 and amount.units and heard.does(amount.end, "per")
    if lone and heard.text[amount.end].norm in _PER_BEHIND:
        # '1トークンあたり', '1장당': what something is counted per.
        return None
    if not amount.per:
        amount = in_device_hours(heard, amount, at) or with_rate(heard, amount)
    if amount.unit(*MONEY) and _is_of_long(amount) and is_dotted(heard.text[at].norm) and amount.value < 1000:
        # '8.000 Dollar'
        return replace(amount, value=round(amount.value * 1000), digits=amount.digits * 1000)
    return amount


def _is_purpose(heard: Found, value: float, end: int) -> bool:
    """Whether 'per' before a number is 'for': 'per 20 utenti', 'por 10.000 passos', 'per 5 richieste al secondo', 'per
    20mila esempi': nothing is counted per so odd a number."""
    scale = scale_at(heard, end)
    units = units_at(heard, scale[2] if scale else end)
    if value not in (1, 10, 100, 1000) and any(unit.name == "samples" for unit in units):
        return True
    units = units_at(heard, end)
    behind = heard.does(max((unit.end for unit in units), default=end), "per")
    rate = behind is not None and any(unit.name == "time" for unit in units_at(heard, behind))
    return any(unit.name in _PURPOSES or (unit.name == "requests" and rate) for unit in units)


def _are_at_once(heard: Found, start: int, end: int) -> bool:
    """Whether what is counted is told to be there at a time, right behind it, or right before: 同時100リクエスト."""
    near = range(max(start - LONGEST_NAME, 0), start)
    before = any(word.end == start for at in near for word in heard.words.get(at, ()) if word.get("at_once"))
    # '200 of them write at the same time'
    reach = 3 if end > 0 and heard.sense(end - 1, "them") else 2
    return before or any(heard.sense(at, "at_once") for at in range(end, min(end + reach, len(heard.text))))


def _is_sort(heard: Found, at: int) -> bool:
    """Whether a word at a token says what a checkpoint is made for."""
    return at < len(heard.text) and heard.text[at].norm in heard.lexicon.makings


def _counted(heard: Found, amount: Amount, at: int) -> Amount:
    """An amount with the units that it may be in, or what is named that it counts; its digits begin at a token."""
    if amount.scale == "b" and _is_sort(heard, amount.end):
        # 'A 70b chat'
        return amount
    start, end = amount.start, amount.end
    units = [unit for unit in units_at(heard, unit_place(heard, end)) if not _labels_another(heard, unit)]
    if _behind_name(heard, start) and not any(unit.name in ("devices", "nodes") for unit in units):
        # 'A100 x 128 prompts of 4096'
        return replace(amount, names=True)
    thousands = amount.scale in ("k", "ki")
    each = thousands and end < len(heard.text) and heard.text[end].norm in heard.lexicon.apiece
    if (each and _are_counted_before(heard, start)) or (
        thousands
        and (_is_asked_for(heard, start) or heard.ends_unit(start, "users"))
        and any(unit.name in _OF_LENGTHS for unit in units)
    ):
        units = [Unit("tokens", 1.0, end, end)]
    units = _pointed_at(heard, start, units, few=not amount.scale and amount.value <= _FEW)
    if 0 < amount.value < 1 and units and all(unit.name == "devices" for unit in units):
        # '0.5 of the GPU' is a share of one.
        return amount
    if rate := next((unit for unit in units if unit.name == "rate"), None):
        requests = replace(rate, name="requests")
        return replace(amount, units=(requests,), per=(replace(rate, name="time"),), end=rate.end)
    if not units and _is_labelled(heard, start):
        # 'Tokens = 2B'
        units = units_at(heard, start - 2)
    if not units and end < len(heard.text) and heard.text[end].norm in heard.lexicon.counters:
        # '샘플 5만 개': what is counted stands before its number.
        named = range(max(start - LONGEST_NAME, 0), start)
        units = [unit for at in named for unit in units_at(heard, at) if unit.end == start and unit.name in COUNTED]
        units = [replace(unit, start=end, end=end + 1) for unit in units]
    if thousands and any(unit.name == "requests" and _is_one_length(heard, unit) for unit in units):
        # '1k prompt 8k answer'
        units = [replace(units[0], name="tokens", end=units[0].start)]
    if any(unit.name == "requests" for unit in units) and _are_at_once(heard, start, units[0].end):
        # '40 appels en même temps'
        units = [replace(units[0], name="users")]
    if units and all(unit.name == "times" for unit in units) and _counts_name(heard, units[0].end):
        # '8 mal B200'
        return replace(amount, names=True)
    if units:
        if heard.text[at].kind == "number" and is_dotted(heard.text[at].norm) and amount.value == amount.digits < 1000:
            # Of what is counted there are no fractions: '12.500 ejemplos', '10.000 Anfragen'.
            amount = (
                replace(amount, value=amount.value * 1000, digits=amount.digits * 1000) if _whole(units) else amount
            )
        over, end = over_at(heard, behind := max(unit.end for unit in units))
        if over and units_at(heard, end):
            # 'Zwei Tage und eine halbe Woche'
            over, end = 0.0, behind
        return _of_a_name(heard, replace(amount, value=amount.value + over, units=tuple(units), end=end))
    named = _counts_name(heard, end) or _behind_name(heard, start)
    return replace(amount, names=named and not (amount.is_size or of_a_field(heard, at, amount.value)))


def _pointed_at(heard: Found, start: int, units: list[Unit], few: bool) -> list[Unit]:
    """The units with the devices of 'of them' as what was spoken of last before the number: 'samples, 25k of them'; of
    a `few` as devices wherever any is named. No devices come a day, or are there at a time."""
    if not any(unit.name == "devices" and heard.sense(unit.start, "them") for unit in units):
        return units
    end = units[0].end
    each = heard.does(end, "per")
    come = _are_at_once(heard, start, end) or any(unit.name == "time" for unit in units_at(heard, each or end))
    before = range(start - 1, max(start - _SPOKEN_OF, 0) - 1, -1)
    if few and not come and any(at in heard.counted for at in before):
        # '$1.65 per A100 by contract. 24 of them'
        return units
    for at in before:
        spoken_of = [unit for unit in units_at(heard, at) if unit.name in COUNTED]
        if not come and (at in heard.counted or any(unit.name in ("devices", "nodes") for unit in spoken_of)):
            return units
        if any(unit.name in _OF_LENGTHS for unit in spoken_of):
            return [replace(unit, start=units[0].start, end=end) for unit in spoken_of]
    return [replace(units[0], name="users")] if _are_at_once(heard, start, end) else units


def _is_of_long(amount: Amount) -> bool:
    """Whether money is in all, or for longer than a day, of which nobody tells tenths of cents: '40.000 € im Monat'."""
    return all(unit.name == "time" and unit.size > DAY_S for unit in amount.per)


def _of_tokens(heard: Found, end: int) -> bool:
    """Whether tokens stand behind a number: '每百万 token' is what a price is of."""
    scale = scale_at(heard, end)
    return any(unit.name == "tokens" for unit in units_at(heard, scale[2] if scale else end))


def _of_a_name(heard: Found, amount: Amount) -> Amount:
    """Devices that are counted right before their name as what is named: '8张H20'; of '两机16卡H100' there are 16 in
    all."""
    named = amount.end in heard.counted and not heard.text[amount.end].space
    of_nodes = amount.start > 0 and heard.has_unit(amount.start - 1, "nodes")
    return replace(amount, units=(), names=True) if amount.unit("devices") and named and not of_nodes else amount


def _is_lone(heard: Found, at: int, end: int) -> bool:
    """Whether a 'one' counts what was spoken of, since nothing stands behind it: 'what if I only had one?'"""
    last = end >= len(heard.text) or heard.text[end].ends_clause
    return last and at > 0 and heard.text[at - 1].norm in heard.lexicon.lone


def _is_asked_for(heard: Found, start: int) -> bool:
    """Whether the thing behind a number is asked for, so that the number only says which."""
    return any(
        word.end <= start and sense.value == "focus" and sense.name == "size"
        for at in range(max(start - LONGEST_NAME, 0), start)
        for word in heard.words.get(at, ())
        if start - word.end <= 1
        for sense in word.all("asked")
    )


def _is_one_length(heard: Found, unit: Unit) -> bool:
    """Whether one of what has a length stands behind a number of thousands, so that the number is its length."""
    named = any(sense.name in _LENGTHS for word in heard.words.get(unit.start, ()) for sense in word.all("field"))
    return named and heard.text[unit.start].norm.isascii() and not heard.text[unit.end - 1].norm.endswith("s")


def _are_counted_before(heard: Found, start: int) -> bool:
    """Whether it is asked how many there are of what has a length, before a number: 'how many requests at 8k each'."""
    asked = [at for at in range(max(start - _SPOKEN_OF, 0), start) if heard.is_asked(at, "size")]
    return any(heard.has_unit(at, *_OF_LENGTHS) for first in asked[-1:] for at in range(first, start))


def _labels_another(heard: Found, unit: Unit) -> bool:
    """Whether what is counted is the label of the number behind it: 'on a 4090, epochs: 3'; not '30 devs: 4 H100'."""
    end = unit.end
    signed = end + 1 < len(heard.text) and heard.text[end].text in ("=", ":")
    labels = unit.name in COUNTED and signed and heard.text[end + 1].kind == "number"
    return labels and not (_counts_name(heard, end + 2) or units_at(heard, unit_place(heard, end + 2)))


def _is_labelled(heard: Found, start: int) -> bool:
    """Whether a number stands behind a label that begins a line or a clause."""
    if start < 2 or heard.text[start - 1].text not in ("=", ":"):
        return False
    words = heard.words.get(start - 2, ())
    if any(sense.name == heard.text[start - 2].norm for word in words for sense in word.all("field")):
        # 'ep = 64' has the field's own name.
        return False
    return start == 2 or heard.text[start - 3].ends_clause or heard.text[start - 3].text in ("-", "*", "|", "•")


def _whole(units: Sequence[Unit]) -> bool:
    """Whether a unit counts things that come whole."""
    return any(unit.name in COUNTED for unit in units)


def of_a_field(heard: Found, at: int, value: float) -> bool:
    """Whether a number is written to the name of its field ('tp2 a100'), or stands behind one that it is usual for:
    'rank 16 a100', 'seq=2048 rtx 4090'."""
    glued = at > 0 and not heard.text[at].space and heard.text[at - 1].kind == "word"
    if at + 1 < len(heard.text) and heard.text[at + 1].norm in TIMES:
        return glued and bool(heard.before(at))
    return any(
        glued or _is_usual(heard.lexicon.quantities[sense.name], value)
        for start, word in heard.before(at)
        # 'Price out 32 H100': the 'out' of tokens is a small word. 'No recompute 16 H100': a value is said without it.
        if glued or not (word.get("stop") or word.all("value"))
        for sense in word.all("field")
        if not _has_its_number(heard, start, word)
    )


def _has_its_number(heard: Found, at: int, word: Phrase) -> bool:
    """Whether a number of no other field stands right before the word of a unit at a token, or one in thousands before
    any: '200 users: 8 H100', '128k ctx 512 H100'."""
    scaled = at > 0 and heard.text[at - 1].norm in ("k", "ki")
    at -= 1 + scaled
    counted = at >= 0 and heard.text[at].kind == "number" and not heard.fields_before(at)
    return counted and (scaled or bool(word.all("unit")))


def _is_usual(quantity: Quantity, value: float) -> bool:
    plain = quantity.length or None in quantity.of
    return plain and "devices" not in quantity.of and quantity.usual[0] <= value <= quantity.usual[1]


def _counts_name(heard: Found, at: int) -> bool:
    """Whether the number counts the device or machine that is named behind it: '8 H100', '4x A100', '2 of the
    4090s'."""
    words = 0
    while at < len(heard.text) and words < 3:
        if at in heard.counted:
            return True
        token = heard.text[at]
        joins = token.norm in _BEFORE_NAMES or token.norm in heard.lexicon.described or _says_how_it_is_had(heard, at)
        if not joins and heard.sense(at, "stop"):
            return False
        if not joins and (
            token.kind not in ("word", "single") or at in heard.names or heard.field(at) or heard.sense(at, "unit")
        ):
            return False
        words += not joins
        at += 1
    return False


def _says_how_it_is_had(heard: Found, at: int) -> bool:
    """'8 reserved H100', '4 on demand A100': a word of its price stands between a device and its number."""
    return any(
        sense.name == "price"
        for start in range(max(at - LONGEST_NAME, 0), at + 1)
        for word in heard.words.get(start, ())
        if word.end > at
        for sense in word.all("value")
    )


def _behind_name(heard: Found, at: int) -> bool:
    """'A100 x4', 'H100 * 8'."""
    if at < 2 or not (heard.text[at - 1].norm in TIMES or heard.does(at - 1, "times_sign")):
        return False
    return any(start in heard.counted and end == at - 1 for start, end in heard.names.items())


_TOGETHER = ("or", "versus", "and")
# Tokens between a word that compares and the first number: 'compare the lora rank 16'.
_COMPARED = 5


def _joined(heard: Found, read: list[Amount]) -> list[Amount]:
    """The amounts with what joins each to the one before."""
    for index in range(1, len(read)):
        first, second = read[index - 1], read[index]
        between = range(first.end, second.start)
        joint = _joint(heard, between)
        if joint == "," and len(between) == 1 and heard.does(first.end, "and") and _is_compared(heard, first):
            joint = "or"
        elif (
            heard.does(first.end, "and") and first.start and heard.text[first.start - 1].norm in heard.lexicon.spanning
        ):
            joint = "to"
        if not joint and first.names and len(between) <= 6:
            joint = ""
        read[index] = replace(second, before=joint)
    return read


def _is_compared(heard: Found, amount: Amount) -> bool:
    """Whether a number is the first of what is compared: 'compare lora rank 16 and 64', 'the difference between ZeRO 2
    and 3'."""
    for at in range(amount.start - 1, max(amount.start - _COMPARED, 0) - 1, -1):
        if heard.text[at].ends_clause or at in heard.names:
            return False
        if heard.does(at, "compare", "versus") is not None:
            return True
    return False


def _is_stuck_to_what_follows(text: Sequence[Glyphs], between: range) -> bool:
    """Whether a word apart from what is before it is written in one with the number behind: 'r16 a32'."""
    last = text[between.stop - 1]
    return last.kind == "word" and text[between.start].space and not text[between.stop].space


def _joint(heard: Found, between: range) -> str:
    text = [heard.text[at].norm for at in between]
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
    if plain in heard.lexicon.ranging and not _is_stuck_to_what_follows(heard.text, between):
        return "to"
    if text and all(
        one in (",", "/", "、", ";", "|", "then") or _is_joint(heard, between, at) for at, one in enumerate(text)
    ):
        return "or" if any(_does(heard, between, at, "or", "versus") for at in range(len(text))) or "/" in text else ","
    return ""


def _is_joint(heard: Found, between: range, at: int) -> bool:
    return _does(heard, between, at, *_TOGETHER)


def _does(heard: Found, between: range, at: int, *names: str) -> bool:
    return heard.does(between.start + at, *names) is not None
