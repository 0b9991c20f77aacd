"""What an amount is counted per: '/h', 'per million tokens', '10k daily requests', '每小时60元', '50k GPU-hours'."""

from __future__ import annotations

from dataclasses import replace

from agent.offline.language.measures import (
    COUNTED,
    DAY_S,
    MONEY,
    Amount,
    Found,
    Unit,
    is_dotted,
    number_at,
    scale_at,
    unit_place,
    units_at,
)

# Which ones are counted, before what they are.
_WHICH = ("output", "input", "generated", "gpu", "card", "total")
# What has a price each.
_PAID_BY = ("tokens", "requests", "time", "devices", "nodes")
# Seconds of the shortest time that devices are counted by.
_HOUR = 3600


def in_device_hours(heard: Found, amount: Amount, at: int) -> Amount | None:
    """An amount of devices times their time; its digits begin at a token."""
    if (hours := _device_hours(heard, amount)) is None:
        return None
    thousands = 1000 if is_dotted(heard.text[at].norm) and amount.value < 1000 else 1
    value, digits = round(thousands * amount.value, 9), round(thousands * amount.digits, 9)
    return replace(amount, value=value, digits=digits, units=(hours,), end=hours.end, names=False)


def _device_hours(heard: Found, amount: Amount) -> Unit | None:
    """Devices times their time: '50k GPU-hours', '20,000 H100 days', '10.000 horas de GPU'."""
    if long := next((unit for unit in amount.units if unit.name == "time" and unit.size >= _HOUR), None):
        of = long.end < len(heard.text) and heard.text[long.end].norm in ("of", "de", "d")
        end = behind_device(heard, long.end + 1) if of else None
        # 'Heures GPU'
        end = end or next((unit.end for unit in units_at(heard, long.end) if unit.name == "devices"), None)
        return Unit("device_hours", long.size / _HOUR, long.start, end) if end else None
    devices = amount.unit("devices")
    end = devices.end if devices else None if amount.units else behind_device(heard, unit_place(heard, amount.end))
    if end is None or end >= len(heard.text):
        return None
    at = end + 1 if heard.text[end].text in ("-", "‑") and not heard.text[end].space else end
    units = [unit for unit in units_at(heard, at) if unit.name == "time" and unit.size >= _HOUR]
    return Unit("device_hours", units[0].size / _HOUR, amount.number, units[0].end) if units else None


def behind_device(heard: Found, at: int) -> int | None:
    """The token behind a device that stands at a token, by its kind or its name."""
    if at in heard.counted:
        return heard.names[at]
    return next((unit.end for unit in units_at(heard, at) if unit.name == "devices"), None)


# Before what the next number is counted per: '5万条数据每条约1500 token', '2节点每节点8张'.
_EACH = ("每", "每个", "毎", "each", "各")
# What comes again and again, and of how many words a rhythm is told beside it.
_RECURRING = (*MONEY, "tokens", "samples", "requests")
_BEFORE, _SIGNS = 3, 8


def _in_a(heard: Found, amount: Amount) -> int | None:
    """Where a time begins in which so many come: '3 times in a day', '12 requests in one minute'."""
    at = amount.end
    if not amount.unit("times", "requests") or at >= len(heard.text) or heard.text[at].norm not in ("in", "im", "en"):
        return None
    article = at + 1 < len(heard.text) and heard.text[at + 1].norm in heard.lexicon.articles
    times = [unit.size for unit in units_at(heard, at + 1 + article) if unit.name == "time"]
    return at + 1 + article if max(times, default=DAY_S + 1) <= DAY_S else None


def with_rate(heard: Found, amount: Amount) -> Amount:
    """What the amount is counted per: '/h', 'per million tokens', 'a day'."""
    at = amount.end
    # 'A100' behind a number of them is no 'a hundred'.
    apart = at in heard.names or is_set_apart(heard, at, money=amount.unit(*MONEY) is not None)
    behind = None if apart else heard.does(at, "per") or _in_a(heard, amount)
    if behind is None:
        again = _again(heard, amount)
        behind = max([amount.end, *(unit.end for unit in again if unit.start >= amount.end)])
        return replace(amount, per=tuple(again or _per_before(heard, amount)), end=behind)
    if heard.text[at].norm in ("在", "на", "за", "p") and not (units := units_at(heard, behind)):
        return amount
    if heard.text[at].norm in _EACH and _leads_a_number(heard, behind):
        return amount
    factor = 1.0
    money = amount.unit(*MONEY) is not None or not amount.units
    number = number_at(heard, behind)
    if number and money and (number[0] == 1 or scale_at(heard, number[1])):
        if heard.text[at].text == "/" and not amount.unit(*MONEY) and amount.scale:
            # '4k/1k requests'
            return amount
        behind = number[1]
    elif number and heard.text[behind].kind == "number":
        return amount
    if (scale := scale_at(heard, behind)) and heard.sense(scale[2], "unit"):
        factor, behind = scale[1], scale[2]
    elif (scale := heard.sense(behind, "scale")) and (heard.sense(scale[1], "unit") or scale[0].value == 1e6):
        factor, behind = scale[0].value, scale[1]
    hour = _hour_of_a_device(heard, behind) if money else None
    if not hour and behind < len(heard.text) and heard.text[behind].norm in _WHICH:
        behind = behind + 1 if units_at(heard, behind + 1) else behind
        hour = _hour_of_a_device(heard, behind) if money else None
    if hour:
        behind = hour
        if not amount.units and units_at(heard, behind)[0].name == "time":
            # 'We pay 2.35 per GPU and hour'
            amount = replace(amount, units=(Unit("usd", 1.0, amount.number, amount.number),))
    units = units_at(heard, behind)
    if not units and factor == 1e6:
        units = [Unit("tokens", 1.0, behind - 1, behind)]
    if not units or (amount.unit("devices", "nodes") and units[0].name == "time"):
        # Nothing has so many devices an hour: '8卡 每小时60元'.
        return amount
    amount = _of_a_machine(heard, amount, units[0])
    per = tuple(replace(unit, size=unit.size * factor) for unit in units)
    end = max(unit.end for unit in units)
    again = heard.does(end, "per")
    counted = (*COUNTED, "time") if units[0].name == "watts" else COUNTED
    if again and (more := [unit for unit in units_at(heard, again) if unit.name in counted]):
        # 'Tokens/s/user', '$180 per kW a month'
        return replace(amount, per=(*per, *more), end=max(unit.end for unit in more))
    return replace(amount, per=per, end=end)


def _of_a_machine(heard: Found, amount: Amount, per: Unit) -> Amount:
    """A number an hour as money where 'a box is' or 'an H100 costs' stands before it: 'a box is 28/h'."""
    at = amount.start
    costs = at > 1 and (heard.text[at - 1].norm in heard.lexicon.amounting or heard.is_asked(at - 1, "cost"))
    machine = costs and (heard.ends_unit(at - 1, "nodes", "devices") or at - 1 in heard.names.values())
    if amount.units or per.size != _HOUR or not machine:
        return amount
    return replace(amount, units=(Unit("usd", 1.0, amount.number, amount.number),))


def is_set_apart(heard: Found, at: int, money: bool = False) -> bool:
    """Whether a stroke between spaces, which sets what is listed apart, stands before a number or a name: 'rank 16 /
    1.5T tokens', '3 epochs / MI300X'. Money is counted so, too: '$2 / 1M tokens', '$3 / H100 / hour'."""
    apart = (
        at + 1 < len(heard.text) and heard.text[at].text == "/" and heard.text[at].space and heard.text[at + 1].space
    )
    if not apart:
        return False
    number = number_at(heard, at + 1)
    other = at + 1 in heard.names or number is not None
    if money:
        end = number[1] if number else at + 1
        other = number is not None and not (scale_at(heard, end) or heard.has_unit(end, *_PAID_BY))
    return other


def _hour_of_a_device(heard: Found, at: int) -> int | None:
    """The token of the unit behind a device: 'H100 hour', 'gpu/h', 'GPU-hour', 'gpu and hour'."""
    after = behind_device(heard, at)
    if after is None or after >= len(heard.text):
        return None
    after += heard.text[after].text in ("-", "‑")
    if units_at(heard, after):
        return after
    again = heard.does(after, "per", "and")
    return again if again and units_at(heard, again) else None


def _leads_a_number(heard: Found, at: int) -> bool:
    """Whether a unit at a token has a number right behind it, or a word such as 'about' between."""
    ends = [unit.end for unit in units_at(heard, at)]
    for end in ends:
        behind = end + 1 if end < len(heard.text) and heard.sense(end, "stop") else end
        if any(at < len(heard.text) and heard.text[at].kind == "number" for at in (end, behind, behind + 1)):
            return True
    return False


def _again(heard: Found, amount: Amount) -> list[Unit]:
    """What is counted per day or month by a word that says so: '10k daily requests', '4 mil consultas diarias',
    '하루 요청 200만 건'."""
    if amount.unit(*_RECURRING) is None:
        return []
    far = _SIGNS if amount.start and heard.text[amount.start - 1].kind == "single" else _BEFORE
    before = range(max(amount.start - far, 0), amount.start)
    for at in (*range(amount.number, min(amount.end + 1, len(heard.text))), *reversed(before)):
        if at in heard.names or (rhythm := heard.sense(at, "rhythm")) is None:
            continue
        told, end = rhythm
        if at < amount.start and not _is_told_before(heard, at, end, amount):
            continue
        return [Unit("time", told.value, at, end)]
    return []


def _is_told_before(heard: Found, at: int, end: int, amount: Amount) -> bool:
    """Whether a rhythm stands before an amount that it is of, in the same clause and not behind another number: 'ten
    requests a day of 700 tokens' are ten a day."""
    end = heard.does(end, "at_least", "at_most") or end
    near = end == amount.start or at == amount.start - 1 or amount.unit("samples", "requests")
    inside = {step for start, stop in heard.names.items() for step in range(start, stop)}
    first = next((step for step in range(at, -1, -1) if heard.text[step].ends_clause or step in inside), -1)
    numbers = any(heard.text[step].kind == "number" for step in range(max(at - 4, first + 1), at))
    split = any(token.ends_clause for token in heard.text[at : amount.start])
    return bool(near) and not (numbers or split)


def _per_before(heard: Found, amount: Amount) -> list[Unit]:
    """What money or tokens are counted per where that stands before them: '每小时60元'."""
    start = amount.start
    if amount.unit(*MONEY, "tokens") is None:
        return []
    for at in range(max(start - 4, 0), start):
        behind = heard.does(at, "per")
        if behind and (
            units := [unit for unit in units_at(heard, behind) if unit.end == start and unit.name == "time"]
        ):
            return units
    return []
