"""Which field each number fills: every number with every field has a cost, and the cheapest whole reading wins.

A cost is made of the unit, the nearest name of the field, and how usual the value is for it. Order does not matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent.offline.language.applied import is_worked_on
from agent.offline.language.cheapest import cheapest
from agent.offline.language.lexicon import Quantity
from agent.offline.language.measures import DAY_S, Amount, Found, Named, Unit
from agent.offline.language.rows import Row, counts_copies

UNREAD = 2.8
_NEVER = 99.0
_FAR = 7
# A field that is named before each of many numbers fills as many of them at the most.
_MOST_TIMES = 6
_AGAIN = 1.1
# What it costs a number without a unit that it counts something unknown.
_STRANGER = 2.5
# What it costs less that it is said to be for them.
_SERVED = -2.0
# What it costs that what it counts are texts, which a model is to do something with.
_TEXTS = 0.5
# From so many on what nobody knows is a data set, and what that costs.
_MANY, _A_DATA_SET = 500, 1.6
# What it costs that only a part of a field's name is meant.
_INNER = 2.3
# What it costs that a field's name is a small word beside a number without unit.
_WEAK = 2.0
_MOST_ROWS = 48
# Devices that are counted apart, beside two.
_MOST_DEVICES = 6
# From here on a share without a sign is one in percent; between that and 1 it is none.
_LEAST_PERCENT = 5
# Numbers in millions that are so large are tokens to train on.
_MILLIONS, _LARGE = ("m", "million", "t", "trillion"), 1e7
_LIMITS = ("at_most", "at_least")
# What rates are counted per.
_RATES = ("time", "tokens", "kwh", "watts")
# What is counted has its noun: a number alone is no number of devices.
_MINUTE_S = 60
_OF_DEVICES = ("usable_gib", "reserve_gib", "vram")
# What a number before a layout with a sign between them may say, and what that costs.
_COPIES = {"replicas": 0.1, "dp": 1.5}
# Tokens between a machine and the size of its RAM.
_NEAR_RAM = 4
_COUNTED = {"devices", "device_hours", "nodes", "racks", "layers", "time", "epochs", "steps", "samples", "requests"}


@dataclass(frozen=True)
class Filled:
    """A field with the values that were said of it, in its own unit; `name` is the span of its name, if one stood
    there."""

    field: str
    values: tuple[float, ...]
    row: Row
    cost: float
    name: tuple[int, int] | None = None
    refused: bool = False
    """Whether a word that refuses the number stands between it and the name: 'micro batch not 1 but 8'."""

    @property
    def ranged(self) -> bool:
        """Whether the values are the ends of a range: '1..8'."""
        return len(self.values) == 2 and self.row.amounts[-1].before == "to"


def single(filled: Sequence[Filled], *fields: str) -> list[Filled]:
    """Numbers of one value that fill one of these fields."""
    return [number for number in filled if number.field in fields and len(number.values) == 1]


def assigned(
    found: Found, read: Sequence[Row], mode: str | None, likely: dict[str, float]
) -> tuple[list[Filled], list[Row]]:
    """(What each number fills, the numbers that fill nothing). `mode` is training or serving, or None where that is
    open; `likely` lowers (or raises) the cost of fields by what is known otherwise."""
    filled: list[Filled] = []
    left: list[Row] = []
    named = _outside(found, found.fields, read)
    # The users of 'two users' name no other number.
    owner = {at: row for row in read for amount in row.amounts for at in range(amount.number, amount.end)}
    for at in range(0, len(read), _MOST_ROWS):
        part = read[at : at + _MOST_ROWS]
        costs = [
            _costs(found, row, [one for one in named if owner.get(one.start, row) is row], mode, likely) for row in part
        ]
        names = sorted({name for each in costs for name in each})
        # Each device that is named may be counted.
        names += ["count"] * min(sum(row.amounts[-1].names for row in part[2:]), _MOST_DEVICES)
        times = _times_named(named, part)
        table = [
            [each.get(name, (_NEVER,))[0] for name in names]
            + [each.get(name, (_NEVER,))[0] + _AGAIN for _ in range(times - 1) for name in names]
            + [UNREAD if index == other else _NEVER for other in range(len(part))]
            for index, each in enumerate(costs)
        ]
        for index, column in enumerate(cheapest(table)):
            row = part[index]
            if column >= times * len(names) or table[index][column] >= UNREAD:
                left.append(row)
                continue
            name = names[column % len(names)]
            cost, span = costs[index][name]
            quantity = found.lexicon.quantities[name]
            values = tuple(value_of(quantity, amount, row.amounts[-1]) for amount in row.amounts)
            filled.append(Filled(name, values, row, cost, span))
    return filled, left


def _times_named(named: Sequence[Named], rows: Sequence[Row]) -> int:
    """How many numbers one field may fill: two, or as often as one is named right before a number ('tp 4, tp 8 or tp
    16')."""
    starts = {row.start for row in rows}
    often = Counter(field for field, _ in {(one.field, one.end) for one in named if one.end in starts})
    return min(max([2, *often.values()]), _MOST_TIMES)


def _outside(found: Found, named: Sequence[Named], read: Sequence[Row]) -> list[Named]:
    """Names of fields without single letters that are the scale or the unit of a number: the B of 70B, the G of 96G."""
    inside = {at for row in read for amount in row.amounts for at in range(amount.start, amount.end)}
    return [
        one
        for one in named
        if (one.start not in inside or one.end > one.start + 1 or len(found.text[one.start].norm) > 1)
        and not _is_the_same(found, one)
    ]


def _is_the_same(heard: Found, named: Named) -> bool:
    """Whether a field is said to stay: 'at 1024 with the same batch', but not 'same but micro batch 4'."""
    near = any(heard.does(at, "same") for at in range(max(named.start - 2, 0), named.start))
    return near and not heard.does(named.start - 1, "contrast")


_Cost = tuple[float, tuple[int, int] | None]


def _costs(
    found: Found, row: Row, named: Sequence[Named], mode: str | None, likely: dict[str, float]
) -> dict[str, _Cost]:
    """{Field: (cost, where its name stands)} of the fields that the row may fill."""
    near = _near(found, row, named)
    strange = _STRANGER if counts_stranger(found, row) else 0.0
    worked = (strange or row.amounts[-1].unit("samples", "requests")) and is_worked_on(found, row.start)
    costs: dict[str, _Cost] = {}
    beside = is_beside_devices(found, row)
    for name, quantity in found.lexicon.quantities.items():
        if (quantity.mode and mode and quantity.mode != mode) or (beside and name in _OF_DEVICES):
            continue
        cost = _cost(quantity, row, near.get(name))
        if cost is not None:
            # '25 nurses' are served where they are whom it is for.
            people = strange and "users" in quantity.of and _is_for(found, row)
            counted = _SERVED if people or (name == "requests" and worked) else strange
            costs[name] = cost[0] + quantity.rare + likely.get(name, 0.0) + counted, cost[1]
    if strange and mode == "training" and min(amount.value for amount in row.amounts) >= _MANY:
        # '12k recipes'
        costs["dataset_samples"] = min(costs.get("dataset_samples", (_NEVER, None)), (_A_DATA_SET, None))
    if worked and strange and mode == "serving":
        costs["requests"] = _TEXTS, None
    spans = [span for _, span in costs.values() if span]
    return {name: (cost + _INNER * _is_inner(span, spans), span) for name, (cost, span) in costs.items()}


def is_beside_devices(found: Found, row: Row) -> bool:
    """Whether a size is one of host memory or of a disk: '64 GB DDR5', '8 GB of system RAM left'."""
    if not row.amounts[-1].unit("bytes"):
        return False
    behind = [token.norm for token in found.text[row.end : row.end + 2]]
    # 'Host has only 128GB ram'
    of_machine = any(found.has_unit(at, "nodes") for at in range(max(row.start - _NEAR_RAM, 0), row.start))
    return any(word in found.lexicon.beside_devices for word in behind) or (of_machine and "ram" in behind)


def _near(found: Found, row: Row, named: Sequence[Named]) -> dict[str, tuple[float, tuple[int, int]]]:
    """{Field: (how far its nearest name stands, where)} of the fields that are named about a row."""
    near: dict[str, tuple[float, tuple[int, int]]] = {}
    bare, labelled = row.bare, any(name.end == row.start for name in named)
    if counts_copies(found, row.amounts[-1].number):
        return {name: (cost, (row.start, row.start)) for name, cost in _COPIES.items()}
    for one in named:
        if one.end < row.start - 3 * _FAR or one.start > row.end + 3 * _FAR:
            continue
        if bare and found.does(one.start, *_LIMITS) == one.end:
            # 'At most 3 widgets' is no money, 'tp at least 4' no efficiency.
            continue
        if bare and (_is_out_of_place(found, row, one) or (labelled and _is_of_the_next(found, row, one))):
            continue
        distance = _distance(found, row, one)
        if bare and _is_weak(found, one):
            distance += _WEAK
        if distance < near.get(one.field, (_NEVER,))[0]:
            near[one.field] = distance, (one.start, one.end)
    if row.amounts[-1].unit("time") and any(unit.name == "tokens" for unit in row.amounts[-1].per):
        near["tpot_slo_ms"] = 0.1, (row.start, row.start)
    for name, quantity in found.lexicon.quantities.items():
        if quantity.after and _behind(found, row, quantity.after):
            near[name] = min(near.get(name, (_NEVER, (row.start, row.end))), (0.1, (row.start, row.start)))
    return near


def _is_of_the_next(heard: Found, row: Row, named: Named) -> bool:
    """Whether a name right behind a number stands right before another one, which it names: 'seq 8192 bs 2'."""
    return named.start == row.end and named.end < len(heard.text) and heard.text[named.end].kind == "number"


def _is_out_of_place(found: Found, row: Row, named: Named) -> bool:
    """Whether a preposition is no name of a number without unit: it stands right before what it counts ('on 8'), and
    'in' and 'out' of tokens right behind ('800 in, 200 out') or each before its own ('in 800 out 200')."""
    if found.does(named.start, "back") and found.sense(named.end, "onto"):
        # 'Back to all eight'
        return True
    of_next = named.end < len(found.text) and found.text[named.end].kind == "number"
    if of_next and any(found.text[at].ends_clause for at in range(row.end, named.start)):
        # 'To eight, tp 4'
        return True
    word = found.text[named.start]
    if named.end != named.start + 1 or word.norm not in found.lexicon.placing | {"out"}:
        return False
    label = row.start - named.end if found.text[row.start - 1].text in "=:" else 0
    before = named.end == row.start or label == 1
    if not found.lexicon.quantities[named.field].length:
        return not before
    if any(found.sense(named.end, kind) for kind in ("month", "day", "when")):
        # 'Traffic will be 50 in December'
        return True
    pair = any(each.norm in ("in", "out") for each in found.text[row.end : row.end + 3])
    pair |= any(each.norm in ("in", "out") for each in found.text[max(named.start - 4, 0) : named.start])
    return not (named.start == row.end or label == 1 or (before and pair))


def _is_weak(found: Found, named: Named) -> bool:
    """Whether a name of what is counted in money or time is a small word: 'we have 16' is no budget."""
    quantity = found.lexicon.quantities[named.field]
    small = any(word.end == named.end and word.get("stop") for word in found.words.get(named.start, ()))
    return small and quantity.per is None and bool({"usd", "time"} & set(quantity.of))


def counts_stranger(found: Found, row: Row) -> bool:
    """Whether a word stands behind a number that nothing is known about: it is what the number counts."""
    last, at = row.amounts[-1], row.end
    if last.units or last.names or last.is_size or at >= len(found.text):
        return False
    return found.text[at].kind == "word" and not (at in found.words or at in found.names)


def _is_for(found: Found, row: Row) -> bool:
    """Whether a number stands behind 'for' or 'for about'."""
    before = found.text[max(row.start - 2, 0) : row.start]
    return any(token.norm in found.lexicon.meant_for for token in before)


def _is_inner(span: tuple[int, int] | None, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a field's name ends a longer one that the row may be of: 'utilization' of 'memory utilization'."""
    return span is not None and any(other[0] < span[0] and span[1] == other[1] for other in spans)


def _behind(found: Found, row: Row, unit: str) -> bool:
    """Whether the row stands right behind something counted in a unit: '40k dialogues of 600 tokens'."""
    for at in range(row.start - 1, max(row.start - 6, -1), -1):
        token = found.text[at]
        if token.kind == "number" or (token.ends_clause and token.text not in "(~,"):
            return False
        if any(sense.name == unit for word in found.words.get(at, ()) for sense in word.all("unit")):
            return True
    return False


def _cost(quantity: Quantity, row: Row, near: tuple[float, tuple[int, int]] | None) -> _Cost | None:
    """(What it costs that the row fills the field, where the field's name stands), or None where it cannot."""
    last = row.amounts[-1]
    if near is None and quantity.alone is None and not last.per:
        return None  # Nothing says so: neither a name nor what it is counted per.
    if _counted_otherwise(quantity, last, near is not None):
        return None
    if last.value != int(last.value) and None in quantity.of and any(unit.name == "devices" for unit in last.per):
        # '2,99 per GPU' is a price, no batch.
        return None
    told = [unit.name for unit in last.per if unit.name not in _RATES]
    of_rate = quantity.per is None or any(unit.name == quantity.per for unit in last.per)
    if told and of_rate and quantity.each in told and (_units(quantity, last) or not last.units):
        return (near[0] if near else 0.4) - 0.3 + strange(quantity, row), near[1] if near else None
    units = _units(quantity, last)
    if quantity.per in told and units:
        return 0.1 + strange(quantity, row), None
    counted = not quantity.length and any(unit.name in _COUNTED for unit in last.units)
    as_name = near is not None and any(_names(near[1], unit, counted) for unit in last.units)
    if (last.names or last.units) and not (units or as_name or (last.names and "devices" in quantity.of)):
        return None
    if last.names or last.units:
        cost = 0.0 if units or last.names else 0.2
    else:
        cost = 0.0 if None in quantity.of else quantity.bare
    if near is None:
        return _alone(quantity, row, cost)
    if last.scale and not last.units and _COUNTED & set(quantity.of):
        cost += 3.0
    plain = None in quantity.of and not quantity.length and not (last.units or last.names)
    # 'at 8k, micro batch 4': thousands are lengths before they are batches.
    cost += 1.5 if plain and last.scale in ("k", "ki") and quantity.usual[1] < 1e5 else 0.0
    named = cost + near[0] + strange(quantity, row)
    alone = _alone(quantity, row, cost)
    return alone if alone and alone[0] < named else (named, near[1])


def _names(name: tuple[int, int], unit: Unit, counted: bool) -> bool:
    """Whether what seems to be a number's unit is a part of a field's name: the 'gpu' of '0.9 gpu util'."""
    longer = name[1] - name[0] > unit.end - unit.start
    return name[0] <= unit.start < name[1] and (longer or not counted)


def _counted_otherwise(quantity: Quantity, last: Amount, named: bool) -> bool:
    """Whether what an amount is counted per is nothing that the field is counted per. `named`: its name stands near."""
    if not last.per:
        return bool(quantity.per) and (quantity.per == "time" or not named)
    per = [unit.name for unit in last.per]
    if quantity.per:
        # 'sample' or 'user' may stand elsewhere: '500 tokens each'. A price by the month is none by the hour.
        each = [unit.size for unit in last.per if unit.name == "time"] if quantity.per == "time" else []
        monthly = quantity.per_one == 3600 and any(size > 3600 for size in each) and not named
        hourly = quantity.per_one > 3600 and any(size <= DAY_S for size in each)
        # '3k a month' are no requests.
        monthly |= quantity.per_one == 1 and not last.units and any(size > DAY_S for size in each)
        # 'Each card does 6200 tokens/s' is no length.
        timed = "time" in per and quantity.per != "time"
        return (quantity.per not in per and (quantity.per == "time" or not named)) or monthly or hourly or timed
    if set(per) & set(_RATES) and quantity.name != "seen" and not (last.unit("time") and "time" not in per):
        return True
    told = [name for name in per if name not in _RATES]
    return (
        bool(told)
        and quantity.each is None
        and "requests" not in told
        and (
            not named or "steps" in told or ("devices" in told and "samples" in quantity.of and quantity.name != "seen")
        )
    )


def _alone(quantity: Quantity, row: Row, cost: float) -> _Cost | None:
    """The cost of a row that no name of the field stands near."""
    last = row.amounts[-1]
    bare = row.bare
    if quantity.alone is None or (quantity.scale and (last.scale not in quantity.scale or last.units)):
        return None
    if bare and _COUNTED & set(quantity.of) and None not in quantity.of:
        return None
    if quantity.each and any(unit.name == "time" and unit.size > _MINUTE_S for unit in last.per):
        # '1M tokens a day' are nobody's reading.
        return None
    if bare and not quantity.scale and not (quantity.per and last.per):
        cost += _unnamed(quantity, last)
    return cost + quantity.alone + strange(quantity, row), None


def _unnamed(quantity: Quantity, amount: Amount) -> float:
    """What a number costs that has neither a unit nor the name of its field: little where it is written as a length."""
    if quantity.length:
        return 0.3 if amount.scale in ("k", "ki") else 0.9 if _is_power(amount.value) and amount.value >= 512 else 2.6
    # 'LoRA on 500M'
    return 0.4 if quantity.name == "dataset_tokens" and amount.scale in _MILLIONS and amount.value >= _LARGE else 2.2


def _is_power(value: float) -> bool:
    return value == int(value) and value > 0 and not int(value) & (int(value) - 1)


def _units(quantity: Quantity, amount: Amount) -> list[Unit]:
    return [unit for unit in amount.units if unit.name in quantity.of]


def strange(quantity: Quantity, row: Row) -> float:
    """How unusual the row's values are for a field."""
    low, high = quantity.usual
    worst = 0.0
    for amount in row.amounts:
        value = value_of(quantity, amount, row.amounts[-1])
        if value <= 0 and low > 0:
            worst = max(worst, 1.0)
        elif value < 1 and "devices" in quantity.of:
            # '0.9 gpu' counts none.
            worst = max(worst, UNREAD)
        elif value < low:
            worst = max(worst, 0.5 + 1.1 * math.log10(low / value) if value > 0 else 1.0)
        elif value > high:
            worst = max(worst, 0.5 + 1.1 * math.log10(value / high))
    return worst


def value_of(quantity: Quantity, amount: Amount, last: Amount) -> float:
    """An amount in the field's own unit; the unit is its own or that of the last of its row."""
    units = _units(quantity, amount) or _units(quantity, last)
    value = amount.length if quantity.length else amount.value
    size = units[0].size / quantity.one if units else 1.0
    if quantity.per and (pers := [unit for unit in (amount.per or last.per) if unit.name == quantity.per]):
        size *= quantity.per_one / pers[0].size
    if not units and "percent" in quantity.of and value >= _LEAST_PERCENT and quantity.usual[1] <= 1:
        size = 0.01
    if size == 1.0:
        return value
    exact = value * size
    if "tokens" in quantity.of and size != int(size) and not quantity.per:
        # Of words there are no parts of tokens.
        return round(exact)
    return round(exact, 9) if abs(exact) < 1e6 else exact


def _is_of_unit(amount: Amount, named: Named) -> bool:
    """Whether a field's name is the amount's own unit ('per token', 'GPUs'), and not a part of a longer one."""
    if not (amount.number <= named.start and named.end <= amount.end):
        return False
    if any(unit.start <= named.start and named.end <= unit.end for unit in amount.per):
        # '4 GB per GPU' says nothing of GPUs.
        return False
    units = [unit for unit in amount.units if unit.start <= named.start and named.end <= unit.end]
    return all(unit.end - unit.start <= named.end - named.start for unit in units)


def _distance(found: Found, row: Row, named: Named) -> float:
    """How far a field's name stands from a number: a quarter a word, more over signs and other numbers."""
    if named.start < row.end and row.start < named.end:
        return 0.0 if any(_is_of_unit(amount, named) for amount in row.amounts) else _NEVER
    before = named.end <= row.start
    between = range(named.end, row.start) if before else range(row.end, named.start)
    if len(between) > 3 * _FAR:
        return _NEVER
    far = (0.0 if before else 0.15) + _between(found, between, before)
    longer = 0.06 * (named.end - named.start)
    return far - longer if far <= 0.25 * _FAR + 1.2 else _NEVER


def _between(found: Found, between: range, before: bool) -> float:
    """What the tokens between a field's name and a number add to how far they are apart."""
    far, at = 0.0, between.start
    while at < between.stop:
        token = found.text[at]
        limit = found.does(at, "at_least", "at_most")
        if limit is not None and limit <= between.stop:
            # 'Leave at least 4 GB'
            at = limit
            continue
        if token.ends_sentence:
            far += 2.5
        elif token.text in ":=":
            far -= 0.1 if before else -1.0
        elif token.ends_clause:
            far += 0.9 if token.text != "(" else 0.3
        elif token.kind == "number":
            far += 1.5
        elif at in found.names:
            far += 0.5
        elif found.does(at, "and") is not None:
            far += 0.8
        elif not token.joins:
            far += 0.2
        at += 1
    return far
