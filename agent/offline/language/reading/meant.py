"""What numbers turn out to be, beside their units and names: prices, groups, failures, budgets, loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.offline.language.applied import is_made
from agent.offline.language.asking import asks, sentences
from agent.offline.language.assign import Filled, value_of
from agent.offline.language.devices import Devices
from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import DAY_S, MONEY, Amount
from agent.offline.language.mentions import SERVING, Mentions
from agent.offline.language.reading.groups import as_groups, as_prompts, generates, is_each
from agent.offline.language.reading.mode import comes_in, per_second
from agent.offline.language.reading.observed import has_sense, is_observed, senses_at
from agent.offline.language.rows import Row
from estimator.plan.calendar import DAY_H
from estimator.units import GIB
from knowledge.machines.catalogue import find_accelerator
from planner.partial import get
from planner.requests import ALL_PATHS

# Reinforcement learning's own quantities, hardly ever meant of other runs.
_ROLLOUTS = ("group_size", "response_len", "prompt_len", "engine_share")
# What is said of hardware that is bought.
_CAPEX = "capex_usd_per_device"
_BARE_MONEY = ("budget_usd", "more_usd")
_OF_OWNERS = ("years", _CAPEX)
# How far what is sold as so many GB may be from what a table says.
SAME_MEMORY = 0.08
# What may as well be what was measured, and how many words before it say so.
_MEASURED = ("token_rate", "user_rate", "load", "ttft_slo_ms", "tpot_slo_ms", "e2e_limit_s")
_NEAR = 3
_OF_AN_API, _PAID_FOR = "usd_per_million", ("input_len", "output_len", "prefix_hit")
_PRICE, _BUDGET = "usd_per_device_hour", "budget_usd"
# From here on thousands behind a device are what it costs: '8 H100 at 30k each', not 'at 4k each'.
_DEAR_USD = 10_000
_MONTH_S = 30 * DAY_S
_PAID = (_PRICE, _BUDGET, "usd_per_month")
# Tokens between a price and the time that it is for.
_BY_PRICE = 3


def as_meant(
    read: Mentions, filled: list[Filled], left: list[Row], plan: Mapping[str, Any]
) -> tuple[list[Filled], list[Row]]:
    """The numbers as what they turn out to be beside each other, and those that fill nothing: without what is only told
    of, a card's memory, requests, groups, prices and shares as what they are."""
    filled, left = _as_spent(read, filled, left)
    filled, left = _without_told(read, filled, left)
    filled = _as_bills(read, _of_each_copy(read, _as_requests([_as_its_memory(read, number) for number in filled])))
    if generates(read, plan):
        filled, left = as_groups(read, filled, left)
        filled = as_prompts(filled)
    return [_as_busy(number) for number in _as_prices(read, filled)], left


def paid_once(read: Mentions, left: Sequence[Row]) -> list[Filled]:
    """Of the numbers that fill nothing those that are what a machine or device costs to buy."""
    return [Filled(_CAPEX, (row.amounts[0].value,), row, 0.5) for row in left if _is_paid_once(read, row)]


def _without_told(read: Mentions, filled: list[Filled], left: list[Row]) -> tuple[list[Filled], list[Row]]:
    """The numbers without those that are only told of: what was measured, what lasts, how often machines fail."""
    seen = [
        value
        for value in filled
        # '20k chats a day' come, whoever gets them.
        if value.field in _MEASURED and not comes_in(value.row) and is_observed(read, value.row)
    ]
    filled, left = [value for value in filled if value not in seen], [*left, *(value.row for value in seen)]
    filled = [_as_failures(read, value) for value in filled]
    broken = [row for row in left if _tells_failures(read, row)]
    filled += [
        Filled("interruptions_per_day", (per_second(row.amounts[0], DAY_S) * DAY_S,), row, 0.5) for row in broken
    ]
    left = [row for row in left if row not in broken]
    lasting = [each for each in filled if any(of(read, each) for of in _OF_NO_LIMIT)]
    # What a price is asked by is used in asking it.
    unread = [each.row for each in lasting if not _is_billed(read, each) or is_reserved_for(read, each.row)]
    return [number for number in filled if number not in lasting], [*left, *unread]


def _as_its_memory(read: Mentions, number: Filled) -> Filled:
    """A size right behind a card that has as much: '4 x A10G (24GB each)'."""
    if number.field not in ("reserve_gib", "host_gib"):
        return number
    near = range(number.row.start - _NEAR, number.row.start + 1)
    cards = [find_accelerator(str(name.id)).value for name in read.of("accelerator") if name.id and name.end in near]
    own = any(abs(number.values[-1] * GIB / card.memory_bytes - 1) < SAME_MEMORY for card in cards)
    return replace(number, field="vram") if own else number


def _as_prices(read: Mentions, filled: Sequence[Filled]) -> list[Filled]:
    """The numbers with those that tell what a machine costs, where machines are bought, and without the 'one' that they
    tell it of: 'One box is 420k', '4 DGX H200 at 420k each'."""
    owned = _is_owned(read)
    prices = [number for number in filled if _is_its_price(read, number) and (owned or _behind_a_device(read, number))]
    # 'Is a 5090 for $2,400 worth it against renting one?'
    prices += [number for number in filled if owned and _may_buy(number) and _is_of_a_device(read, number)]
    machines = [number for number in filled if number.field == "nodes" and number.values == (1,)]
    told = [*prices, *(machine for machine in machines if _leads_to(machine, prices))]
    paid = (replace(price, field=_CAPEX, values=(price.row.amounts[-1].value,)) for price in prices)
    return [*(number for number in filled if number not in told), *paid]


def _as_busy(number: Filled) -> Filled:
    """A share of the time that devices stand idle as that in which they work."""
    if number.field != "idle_share":
        return number
    return replace(number, field="utilisation", values=tuple(round(1 - value, 9) for value in number.values))


def _is_paid_once(read: Mentions, row: Row) -> bool:
    """Whether a row is money a machine or device, of no time, where they are bought: '$250k per node'."""
    amount = row.amounts[-1]
    each = bool(amount.per) and {unit.name for unit in amount.per} <= {"nodes", "devices"}
    return each and amount.unit(*MONEY) is not None and _is_owned(read)


def _is_owned(read: Mentions) -> bool:
    owned = (value.field == "price" and value.value == "owned" for value in read.values)
    return "buying" in read.asked("topic") or any(owned)


def _leads_to(number: Filled, others: Sequence[Filled]) -> bool:
    return any(number.row.end == other.row.start - 1 for other in others)


def _is_its_price(read: Mentions, number: Filled) -> bool:
    """Whether thousands of nothing that is said stand behind a machine and 'is' or 'costs', or before 'each'."""
    amount, start, end = number.row.amounts[-1], number.row.start, number.row.end
    if amount.units or amount.names or amount.scale not in ("k", "m") or start < 2 or number.name:
        return False
    told = read.tokens[start - 1].norm in read.found.lexicon.amounting or _CAPEX in read.found.fields_before(start)
    named = start - 1 in {name.end for name in read.of("accelerator", "instance")}
    machine = named or read.found.ends_unit(start - 1, "nodes", "devices")
    return (told and machine) or is_each(read, end)


def _behind_a_device(read: Mentions, number: Filled) -> bool:
    """Whether a number stands behind a device and 'at': the 30k of '8 H100 at 30k each'."""
    at = number.row.start - 1
    dear = number.row.amounts[-1].value >= _DEAR_USD
    return dear and read.tokens[at].norm in read.found.lexicon.priced_at and at in read.found.names.values()


def _may_buy(number: Filled) -> bool:
    """Whether a number is money, or thousands of nothing that is said as large as what machines cost."""
    amount = number.row.amounts[-1]
    bare = not (amount.units or amount.names or number.name) and amount.scale in ("k", "m")
    return number.field == _BUDGET or (bare and amount.value >= _DEAR_USD)


def _is_of_a_device(read: Mentions, number: Filled) -> bool:
    """Whether a number stands right behind a device or machine and 'for' or 'at'."""
    at = number.row.start - 1
    placed = read.tokens[at].norm in read.found.lexicon.priced_at | read.found.lexicon.meant_for
    return at > 0 and placed and (at in read.found.names.values() or read.found.ends_unit(at, "nodes", "devices"))


def _as_requests(filled: Sequence[Filled]) -> list[Filled]:
    """'20k prompts of 2k tokens': of two lengths of a prompt the one that counts prompts is how many there are."""
    lengths = [number for number in filled if number.field == "input_len"]
    counts = [
        number for number in lengths if number.row.amounts[-1].unit("requests") and not number.row.amounts[-1].per
    ]
    counts = counts if len(counts) < len(lengths) else []
    return [replace(number, field="requests") if number in counts else number for number in filled]


def _of_each_copy(read: Mentions, filled: Sequence[Filled]) -> list[Filled]:
    """'2 replicas of 4 GPUs': devices right behind a number of copies are those of each."""
    behind = {number.name[1] for number in filled if number.field == "replicas" and number.name}
    of = {at + 1 for at in behind if at < len(read.tokens) and read.tokens[at].norm in read.found.lexicon.apiece}
    each = (number.field == "count" and number.row.start in of for number in filled)
    return [replace(number, field="tp") if copy else number for number, copy in zip(filled, each, strict=True)]


def _has_lasted(read: Mentions, time: Filled) -> bool:
    """Whether a time is told of as one that has gone by: 'I have been at it for three days'."""
    start = time.row.start
    if time.field != "deadline_h":
        return False
    sentence = next(token for token in sentences(read.tokens) if start in token)
    return start in read.telling and any(read.found.sense(at, "lasted") for at in sentence)


def _recurs(read: Mentions, time: Filled) -> bool:
    """Whether a time comes again and again: 'every 9 days', '1-2 hours in the evening', 'two hours a day'."""
    if time.field != "deadline_h":
        return False
    amount, start, end = time.row.amounts[-1], time.row.start, time.row.end
    before = (read.found.sense(at, "recurs") for at in range(max(start - 3, 0), start))
    hours = any(unit.name == "time" for unit in amount.per)
    behind = any(has_sense(read, at, "clock") for at in range(end, min(end + 3, len(read.tokens))))
    return any(each is not None and each[1] >= start - 1 for each in before) or hours or behind


def _as_failures(read: Mentions, time: Filled) -> Filled:
    """'A node fails every 9 days' as interruptions a day."""
    if not _recurs(read, time):
        return time
    if not _fails(read, time.row):
        return time
    return replace(time, field="interruptions_per_day", values=(24 / time.values[-1],))


def peak(read: Mentions, rows: list[Row]) -> list[Row]:
    """The numbers with the highest alone of several rates at which requests come: '1 rps at night, 14 by day'."""
    rates = [row for row in rows if comes_in(row) and per_second(row.amounts[-1])]
    if len(rates) < 2 or read.does("or", "versus", "compare", "correct", "contrast", "swap"):
        return rows
    peak = max(rates, key=lambda row: per_second(row.amounts[-1]))
    return [row for row in rows if row is peak or row not in rates]


def of_each(read: Mentions, named: list[Devices], left: list[Row]) -> tuple[list[Devices], list[Row]]:
    """(Devices that are named without numbers as so many of each, the rest of the numbers): 'L40S, A100 or H200, four
    of each'."""
    if len(named) < 2 or any(device.count or device.nodes for device in named):
        return named, left
    words = read.found.lexicon.of_each
    for row in left:
        number = row.amounts[-1]
        each = any(token.norm in words for token in read.tokens[row.end : row.end + 2])
        if each and not number.units and number.value == int(number.value) > 0:
            return [replace(device, count=int(number.value)) for device in named], [one for one in left if one != row]
    return named, left


def priced(
    read: Mentions, filled: Sequence[Filled], left: Sequence[Row], topic: Mapping[str, Any]
) -> tuple[list[Filled], list[Row]]:
    """The numbers with those that are prices of a device or an API, and the rest."""
    paid = bool({_PRICE, "price"} & {*(topic.get("pricing") or {})})
    of_apis = _joined_prices(read, filled, left)
    filled, left = [*filled, *of_apis], [row for row in left if row not in [number.row for number in of_apis]]
    prices = [row for row in left if _is_price(read, row, paid)]
    named = (_OF_AN_API if _is_of_an_api(read, row) else _PRICE for row in prices)
    told = [Filled(name, (row.amounts[0].value,), row, 0.5) for name, row in zip(named, prices, strict=True)]
    return [*filled, *told], [row for row in left if row not in prices]


def _joined_prices(read: Mentions, filled: Sequence[Filled], left: Sequence[Row]) -> list[Filled]:
    """Money beside the price of an API that says what it is of, and is paid per as many: '$0.60 in and $0.80 out per
    million'."""
    paid = [number.row for number in filled if number.field == _OF_AN_API]
    named = {name.start for name in read.found.fields if name.field in _PAID_FOR}
    found: list[Filled] = []
    for row in left:
        amount = row.amounts[-1]
        money, per = amount.unit("usd"), {unit.name for unit in amount.per}
        near = any(0 < max(other.start - row.end, row.start - other.end) <= _NEAR for other in paid)
        if money and per <= {"tokens"} and row.end in named and near:
            found.append(Filled(_OF_AN_API, (amount.value * money.size,), row, 0.5))
    return found


def _is_price(read: Mentions, row: Row, paid: bool) -> bool:
    """Whether a number with a decimal point is what a device costs an hour: right behind one ('24 MI300X at 1.95'), or
    where what is `paid` was spoken of ('versus renting the same at 3.10')."""
    (number, *more) = row.amounts
    low, high = read.found.lexicon.quantities[_PRICE].usual
    if more or number.units or number.scale or not low <= number.value <= high:
        return False
    if number.per:
        # '2,99 per GPU'
        return number.value != int(number.value) and all(unit.name == "devices" for unit in number.per)
    at = row.start - 1
    written = {token.text for token in read.tokens[row.start : row.end]} | {*read.tokens[row.start].norm}
    if at < 0 or not written & {".", ","}:
        return False
    placed = read.tokens[at].text in ",@" or read.tokens[at].norm in read.found.lexicon.placing
    if read.tokens[at].norm in read.found.lexicon.priced_at:
        behind = (at - step in read.found.names.values() for step in range(_NEAR))
        return paid or "rent" in read.asked("wish") or _is_of_an_api(read, row) or any(behind)
    device = next((start for start, end in read.found.names.items() if end == at - placed + 1), None)
    counted = device is not None and device in read.found.counted and device > 0
    return counted and read.tokens[int(device or 0) - 1].kind == "number"


def _is_of_an_api(read: Mentions, row: Row) -> bool:
    """Whether a price stands behind an API: 'against an API at 0.90'."""
    return any(read.found.is_asked(at, "bought") for at in range(max(row.start - _NEAR, 0), row.start))


def _as_bills(read: Mentions, filled: list[Filled]) -> list[Filled]:
    """The numbers with what an API costs by the month as its price, where it is said for how many requests of how many
    tokens, or else as what may be spent, not as a device's price: 'we pay OpenAI 9k a month for 2M requests of 900
    tokens in and 100 out'. The requests are those of that month."""
    bill = next((number for number in filled if number.field in _PAID and _is_a_bill(read, number.row)), None)
    if bill is None:
        return filled
    (amount, *_), tokens = bill.row.amounts, [n.values[-1] for n in filled if n.field in ("input_len", "output_len")]
    usd = value_of(lexicon().quantities["usd_per_month"], amount, amount)
    requests = next((number for number in filled if number.field == "requests"), None)
    kept = [number for number in filled if number not in (bill, requests)]
    told = replace(bill, field="usd_per_month", values=(usd,))
    if requests is None:
        return [*kept, told]
    number = requests.values[-1]
    if len(tokens) > 1:
        told = replace(bill, field=_OF_AN_API, values=(round(usd / number / sum(tokens) * 1e6, 6),))
    return [*kept, replace(requests, field="request_rate", values=(round(number / _MONTH_S, 9),)), told]


def _is_a_bill(read: Mentions, row: Row) -> bool:
    """Whether what is paid by the month is paid to those who sell models by the token."""
    sentence = next(tokens for tokens in sentences(read.tokens) if row.start in tokens)
    monthly = any(unit.name == "time" and unit.size == _MONTH_S for unit in row.amounts[-1].per)
    return monthly and any(read.found.is_asked(at, "bought") for at in sentence)


def _fails(read: Mentions, row: Row) -> bool:
    """Whether the sentence of a number tells of something that fails."""
    sentence = next(token for token in sentences(read.tokens) if row.start in token)
    return any(read.found.sense(at, "fails") for at in sentence)


def _tells_failures(read: Mentions, row: Row) -> bool:
    """'They get reclaimed about 3 times a day'"""
    (amount, *more) = row.amounts
    return not more and bool(amount.unit("times") and per_second(amount, DAY_S)) and _fails(read, row)


def _is_all_of(read: Mentions, number: Filled) -> bool:
    """Whether a number only says how many there are: 'all three of them'."""
    if number.field not in ("count", "nodes") or not read.found.sense(_unit_of(number), "them"):
        return False
    return any(
        (read.found.does(at, "all_before") or 0) > number.row.start
        for at in range(max(number.row.start - 1, 0), number.row.start + 1)
    )


def _unit_of(number: Filled) -> int:
    units = number.row.amounts[-1].units
    return units[0].start if units else number.row.end


def _is_told(read: Mentions, number: Filled) -> bool:
    """Whether money or a time is only told of, without a word that makes it a limit: 'got two 3090s for 1,400 bucks'.
    Money that no hardware and no bill is beside is what somebody has."""
    at = number.row.start
    if number.field not in ("budget_usd", "deadline_h") or number.name or at not in read.telling:
        return False
    sentence = next(token for token in sentences(read.tokens) if at in token)
    if number.field == "budget_usd":
        machines = any(read.found.has_unit(step, "nodes") for step in sentence)
        named = any(name.start in sentence for name in read.of("accelerator", "instance"))
        billed = bool(number.row.amounts[-1].per) or any(read.found.is_asked(step, "bought") for step in sentence)
        return machines or named or billed
    # 'We have them for ten days' says how long; '$12k and two weeks' is what somebody has.
    paid = {row.end for row in read.rows if row.amounts[-1].unit(*MONEY)}
    if read.found.does(at - 1, "and") == at and at - 1 in paid:
        return False
    bounded = at > 0 and any(sense.kind == "stop" for sense in senses_at(read, at - 1))
    return not (bounded or any(read.found.sense(step, "owns") for step in sentence))


def _broke_off(read: Mentions, steps: Filled) -> bool:
    """Whether steps are told of as those that a run got through: 'OOM after about 20 steps'."""
    start = steps.row.start
    behind = any(read.found.sense(at, "behind") for at in range(max(start - 2, 0), start))
    if steps.field not in ("steps", "epochs") or not behind:
        return False
    sentence = next(token for token in sentences(read.tokens) if start in token)
    ran = start in read.telling or start in read.past
    return ran or any(at in sentence and name == "fit" for at, _, name in read.asked_at("focus"))


def _is_billed(read: Mentions, time: Filled) -> bool:
    """Whether a time is what a price is for: 'a 3-year reservation', '한 달 비용', 'on 24 hours'."""
    if time.field != "deadline_h":
        return False
    start, end = time.row.start, time.row.end
    whole_day = time.values == (DAY_H,) and time.row.amounts[-1].digits == DAY_H and not time.name
    bounded = any(limit_end == start for _, limit_end, _ in read.limits)
    beside = {at for at, _, name in read.asked_at("focus") if name == "cost"} & {start - 1, end}
    month = time.row.amounts[-1].value == 1 and bool(beside)
    return not bounded and (whole_day or month or is_reserved_for(read, time.row))


def is_reserved_for(read: Mentions, row: Row) -> bool:
    """Whether a time stands beside words that devices are reserved."""
    reserved = [value for value in read.values if value.field == "price" and str(value.value).startswith("reserved")]
    return any(value.start - _BY_PRICE <= row.end and row.start <= value.end + _BY_PRICE for value in reserved)


def _is_of_others(read: Mentions, hours: Filled) -> bool:
    """Whether device-hours are those that others say they took, or after which one fails."""
    if hours.field != "budget_device_hours":
        return False
    at = hours.row.start
    sentence = next(token for token in sentences(read.tokens) if at in token)
    heard = any(read.found.sense(step, "hearsay") for step in sentence)
    ran = any(read.found.sense(step, "ran") for step in range(sentence.start, at))
    return at in read.past or heard or ran or _fails(read, hours.row)


def _is_that_fails(read: Mentions, number: Filled) -> bool:
    """Whether one device or machine is told of as what fails: 'one GPU dies every two days'."""
    of_one = number.field in ("count", "nodes") and number.values == (1.0,)
    return of_one and any(read.found.sense(at, "fails") for at in range(number.row.end, number.row.end + 2))


def _is_for_rollouts(read: Mentions, number: Filled) -> bool:
    """Whether a number is of what generates, not of what is generated: 'put 12 on rollouts'."""
    end = number.row.end
    apart = number.field == "group_size" and number.name is not None and number.name[0] == end + 1
    return apart and (read.found.sense(end, "over") is not None or read.tokens[end].norm in read.found.lexicon.placing)


# Why a number that seems to be a limit or a count is none.
_OF_NO_LIMIT = (
    _is_for_rollouts,
    _is_that_fails,
    _has_lasted,
    _broke_off,
    _is_told,
    _recurs,
    _is_all_of,
    _is_billed,
    _is_of_others,
)


def _are_apart(read: Mentions, first: Amount, last: Amount) -> bool:
    """Whether a stroke between spaces stands between numbers of which one has a name of its own: 'out 256 / 2k in'."""
    spaced = read.tokens[first.end].space and read.tokens[last.start].space
    return spaced and bool(read.found.field(last.end) or read.found.fields_before(first.start))


def in_and_out(read: Mentions, rows: Sequence[Row]) -> tuple[list[Filled], list[Row]]:
    """'1k/200' as tokens in and out, and the rest of the numbers."""
    found: list[Filled] = []
    rest: list[Row] = []
    for row in rows:
        last = row.amounts[-1]
        first = rest[-1].amounts[-1] if rest and len(rest[-1].amounts) == len(row.amounts) == 1 else None
        # '4k/1k requests'
        of_load = ("requests", "users") if first and first.scale and last.scale else ("requests",)
        counted = any(unit.name not in of_load for unit in last.units)
        bare = not (counted or last.names or last.per) and first and not (first.units or first.names)
        paired = first and bare and last.before == "/" and not (first.is_size or _are_apart(read, first, last))
        if first and paired and min(first.value, last.value) >= 16:
            rest.pop()
            found.append(Filled("input_len", (first.length,), Row((first,)), 0.5))
            found.append(Filled("output_len", (last.length,), row, 0.5))
            continue
        rest.append(row)
    return found, rest


def _as_spent(read: Mentions, filled: list[Filled], left: list[Row]) -> tuple[list[Filled], list[Row]]:
    """The numbers with one that counts nothing, beside words of spending, as a budget: 'if we spend only 500'."""
    spends = [at for at in range(len(read.tokens)) if read.found.sense(at, "spends")]
    if not spends or any(number.field == _BUDGET for number in filled):
        return filled, left
    sentence = next(token for token in sentences(read.tokens) if spends[0] in token)
    loose = [*left, *(number.row for number in filled if number.field == "seen" or not number.name)]
    least = lexicon().quantities[_BUDGET].usual[0]
    money = [row for row in loose if row.start in sentence and row.bare and row.amounts[-1].value >= least]
    if not money:
        return filled, left
    budget = Filled(_BUDGET, (money[0].amounts[-1].value,), money[0], 0.5)
    kept = [number for number in filled if number.row is not money[0]]
    return [*kept, budget], [row for row in left if row is not money[0]]


# How far another budget is from the one that there is.
_ANOTHER_BUDGET = 10.0


def as_budget(read: Mentions, filled: Sequence[Filled], plan: Mapping[str, Any]) -> list[Filled]:
    """A number alone that would be a length which the plan has not, as money, where money is all that limits it:
    'what if we had 60k' of $40,000."""
    budget = get(plan, "goal.budget_usd")
    if budget and not asks(read.found, []):
        # 'Boss gave me another 2k'
        filled = [replace(each, field="budget_usd") if each.field == "more_usd" else each for each in filled]
    lengths = [get(plan, ALL_PATHS[name]) for name in ("seq_len", "max_context", "input_len")]
    if not budget or any(lengths):
        return list(filled)
    money: list[Filled] = []
    for number in filled:
        value = number.row.amounts[-1].value
        near = 1 / _ANOTHER_BUDGET <= value / budget <= _ANOTHER_BUDGET
        alone = number.field in ("seq_len", "length") and number.row.bare and not number.name
        money.append(replace(number, field="budget_usd", values=(value,)) if near and alone else number)
    return money


def likely(read: Mentions, plan: Mapping[str, Any], mode: str | None) -> dict[str, float]:
    """What makes a field less (or more) likely than its words say."""
    found: dict[str, float] = dict.fromkeys(_ROLLOUTS, -0.1 if generates(read, plan) else 2.5)
    samples = (plan.get("workload") or {}).get("dataset_samples")
    counted = any(row.amounts[-1].unit("samples", "requests") for row in read.rows)
    if not (samples or counted or any(sense.name == "samples" for sense in read.senses() if sense.kind == "unit")):
        # '8 MI300X at 15k each'
        found["sample_tokens"] = 1.5
    if not any(sense.name == "nodes" for sense in read.senses() if sense.kind == "unit"):
        found["per_node"] = 1.2
    if _is_owned(read):
        found |= dict.fromkeys(_OF_OWNERS, -1.5)
    costs = {at for at, _, name in read.asked_at("focus") if name == "cost"}
    if plan and any(row.bare and row.end in costs for row in read.rows):
        # 'How much would 128k cost?' tells no money.
        found.update(dict.fromkeys(_BARE_MONEY, 1.2))
    # What stands beside a card is the host's; of a machine whose memory is one it is the card's.
    cards = [str(name.id) for name in read.of("accelerator")]
    if cards and not any(card.startswith("apple") for card in cards):
        found["host_gib"] = -0.8
    if mode == SERVING and any(is_made(read.found, row.start) for row in read.rows):
        # 'Generate 100k samples of 1k tokens'
        found["output_len"] = -1.2
    found["model_size"] = 0.6 if any(name.kind == "model" for name in read.names) else 0.0
    return found
