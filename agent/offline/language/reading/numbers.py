"""The edits of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from agent.offline.form import BESIDE, Edit, Need
from agent.offline.language.assign import Filled, value_of
from agent.offline.language.calendar import Window
from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import DAY_S
from agent.offline.language.mentions import Mentions, mode_of_field
from agent.offline.language.reading.currencies import NEAR_DOLLARS, in_dollars
from agent.offline.language.reading.demand import token_rate
from agent.offline.language.reading.page import Page
from agent.offline.language.reading.things import named_span
from agent.offline.language.relative import differences
from estimator.plan.calendar import DAY_H, WEEK_D
from planner.partial import get
from planner.requests import ALL_PATHS

_BYTES_PER_TOKEN = 4
# Words between credits and the day on which they end: 'of AWS credits until'.
_BESIDE = 4
# Up to this cost the words beside a number say which field it fills.
_SURELY = 0.7
# Fields that are limits from above; loads, which may be said either way.
_LIMITED = ("deadline_h", "budget_usd", "ttft_slo_ms", "tpot_slo_ms", "max_context", "max_batch", "max_batched_tokens")
# Before a unit of time that something comes again in: 'im Monat'.
_EVERY = frozenset(["im", "al", "par", "each", "every", "monthly", "each", "pro", "je", "cada", "por"])
_COMING = ("request_rate", "load")
_LOADS = ("concurrency", "request_rate", "requests", "reserve_gib", "load", "token_rate")
# What is asked about in the place of a quantity that is no field of a plan.
_NAMED = {"nodes": "count", "batch": "global_batch", "length": "input_len"}
_IDIOMS = ("lora_rank", "dp", "batch", "group_size")
_WHOLE = ("count", "per_node", "nodes", "tp", "pp", "cp", "ep", "etp", "dp", "vpp", "zero_stage", "micro_batch",
          "global_batch", "batch", "group_size", "lora_rank", "accumulation", "steps", "concurrency", "seq_len",
          "input_len", "output_len", "response_len", "max_batch", "speculative_tokens", "requests", "max_context",
          "max_batched_tokens", "shard_group", "recompute_block", "replicas", "length", "prompt_len",
          "prefix_tokens")  # fmt: skip


# What is said of one field as another: each user's rate, text, a month's money, a speed to reckon with.
AS_OTHERS = ("user_rate", "text_bytes", "usd_per_month", "assumed_mfu", "mtbf_h")


def of_numbers(page: Page) -> list[tuple[int, list[Edit]]]:
    counted = any(device.count or device.nodes for device in page.devices)
    edits: list[tuple[int, list[Edit]]] = []
    in_dollars(page)
    busy = _busy(page)
    changed = differences(page, page.filled)
    page.filled = [_as_money(page, number, changed) for number in (*page.filled, *_for_power(page))]
    told = bool(page.values("dataset_tokens"))
    for one in _surest(page, page.filled):
        if (told and one.field == "text_bytes") or _is_price(page, one):
            continue
        if one.field not in (*ALL_PATHS, *BESIDE, *AS_OTHERS) or (
            one.field == "count" and counted and one.row.amounts[-1].names
        ):
            continue
        span = page.read.span(one.row.start, one.row.end)
        if (word := page.refused.things.get(named_span(one)[0])) is not None and not _is_new(page, one, word):
            if named_span(one)[0] < one.row.start:
                drops = word in lexicon().letting_go
                refused = None if drops else as_number(one.field, one.values[-1])
                edits.append((one.row.start, [Edit(one.field, "drop" if drops else "refuse", refused, span)]))
            continue
        value = one.values[-1]
        if (problem := _impossible(one.field, value)) and (
            one.field in _IDIOMS or _is_a_factor(page.read, one) or not _is_bound(page.read, one)
        ):
            page.left = [*page.left, one.row]
            continue
        if problem:
            path = ALL_PATHS.get(_NAMED.get(one.field, one.field), one.field)
            said = page.read.said(one.row.start, one.row.end)
            page.needs.append(Need(path, f"{said!r} {problem}: what is meant?"))
            continue
        if one.row.start in changed:
            sign = -1 if changed[one.row.start] == "minus" else 1
            edits.append((one.row.start, [Edit(one.field, "plus", sign * as_number(one.field, value), span)]))
            continue
        edits.append(
            (one.row.start, _shared_out(page, one) or [_credits_end(page, one) or _set(page, one, value, span)])
        )
    page.needs += _of_other_money(page)
    page.needs += [
        Need(ALL_PATHS[name], f"nothing is known about {page.read.said(value.start, value.end)}: which {name} is it?")
        for value in page.read.values
        if (name := value.field.removeprefix("unknown_")) != value.field and mode_of_field(name) == page.mode
    ]
    if (until := page.until) and not page.values("deadline_h"):
        hours, start, end = until
        page.left = [row for row in page.left if not start <= row.start < end]
        span = page.read.span(start, end)
        credits = page.values("credits_usd") or get(page.plan, "goal.credits_usd")
        if credits and _is_of_credits(page, start):
            day = page.now + timedelta(hours=hours - 0.1)  # A day is until it has passed.
            edits.append((start, [Edit("credits_end", "set", f"{day:%Y-%m-%d}", span)]))
        else:
            note = f"{page.read.said(start, end)!r} taken as {hours:g} hours from now"
            edits.append((start, [Edit("deadline_h", "set", hours, span, note)]))
    if busy:
        return _while_busy(page, *busy, edits)
    return _in_window(page, page.free, edits) if page.free else edits


def _shared_out(page: Page, hours: Filled) -> list[Edit]:
    """Device-hours of every day, week or month as the hours of a day of so many devices: '3,200 H100 hours per
    month'."""
    read, end = page.read, hours.row.end
    behind = read.found.does(end, "per") or (end + 1 if end < len(read.tokens) and _counts_one(read, end) else None)
    each_s = _unit_of_time(read, behind) if behind and hours.field == "budget_device_hours" else None
    device = next((name.id for name in read.of("accelerator")), None) or get(page.plan, "cluster.accelerator")
    if behind is None or each_s is None or device is None:
        return []
    counts = [int(value) for value in page.values("count")] or [get(page.plan, "cluster.count")]
    count = counts[-1] or page.catalogue.per_node(str(device))
    daily, span = hours.values[-1] * DAY_S / each_s / count, read.span(hours.row.start, behind + 1)
    note = f"{read.said(hours.row.start, behind + 1)!r} taken as {min(daily, DAY_H):.3g} hours a day of {count}"
    devices = Edit("count", "set", count, span, note)
    return [devices, *([Edit("hours_per_day", "set", round(daily, 2), span, note)] if daily < DAY_H else [])]


def _counts_one(read: Mentions, at: int) -> bool:
    return read.tokens[at].norm in read.found.lexicon.articles | _EVERY


def _unit_of_time(read: Mentions, at: int) -> float | None:
    """The seconds of a unit of time from a day on that stands at a token."""
    units = (sense for word in read.found.words.get(at, ()) for sense in word.all("unit"))
    return next((float(unit.value) for unit in units if unit.name == "time" and float(unit.value) >= DAY_S), None)


def _is_price(page: Page, one: Filled) -> bool:
    """Whether it is asked what a million tokens cost: their price, not that of a job of them."""
    return one.field == "total_tokens" and one.values == (1e6,) and "cost" in page.read.asked("focus")


def _busy(page: Page) -> tuple[float, int, int] | None:
    """(Hours, token where it begins, token behind) of the part of a day in which requests come, whose numbers are
    taken from the page: 'office hours', 'between 9 and 5', 'over 10 hours'."""
    if not any(_comes(number) for number in page.filled):
        return None
    spread = next(
        (number for number in page.filled if number.field == "deadline_h" and number.values[-1] <= DAY_H), None
    )
    told = (page.free.hours or DAY_H, page.free.start, page.free.end) if page.free else page.busy
    if spread and not page.busy:
        told = spread.values[-1], spread.row.start, spread.row.end
    if told:
        page.filled = [number for number in page.filled if not told[1] <= number.row.start < told[2]]
        page.left = [row for row in page.left if not told[1] <= row.start < told[2]]
    return told


def _comes(number: Filled) -> bool:
    """Whether a number is one of requests in a time."""
    return number.field in _COMING and any(unit.name == "time" for unit in number.row.amounts[-1].per)


def _while_busy(
    page: Page, hours: float, start: int, end: int, edits: list[tuple[int, list[Edit]]]
) -> list[tuple[int, list[Edit]]]:
    """The edits with the requests of a day as they come while they do."""
    daily = {
        page.read.span(number.row.start, number.row.end): f"{hours:g} of 24 hours ({page.read.said(start, end)!r})"
        for number in page.filled
        if _comes(number) and any(unit.name == "time" and unit.size == DAY_S for unit in number.row.amounts[-1].per)
    }

    def while_busy(edit: Edit) -> Edit:
        if edit.field not in _COMING or edit.span not in daily or hours == DAY_H:
            return edit
        rate = round(edit.value * DAY_H / hours, 9)
        return replace(edit, value=rate, note=f"the requests of a day come in {daily[edit.span]}: {rate:.3g} a second")

    return [(at, [while_busy(edit) for edit in each]) for at, each in edits]


def _credits_end(page: Page, number: Filled) -> Edit | None:
    """The day on which credits end that is said as a time from now: 'credits that end in a week'."""
    start = number.row.start
    ends = any(page.read.found.sense(at, "expires") for at in range(max(start - _BESIDE, 0), start))
    credits = page.values("credits_usd") or get(page.plan, "goal.credits_usd")
    if number.field != "deadline_h" or not (ends and credits):
        return None
    day = page.now + timedelta(hours=number.values[-1])
    return Edit("credits_end", "set", f"{day:%Y-%m-%d}", page.read.span(start, number.row.end))


def _is_of_credits(page: Page, start: int) -> bool:
    """Whether a day is the one on which credits end: 'credits that expire on', 'credits until'."""
    amounts = [number.row for number in page.filled if number.field == "credits_usd"]
    between = page.read.tokens[max((row.end for row in amounts if row.end <= start), default=0) : start]
    beside = bool(amounts) and len(between) <= _BESIDE and not any(token.ends_clause for token in between)
    return beside or any(page.read.found.sense(at, "expires") for at in range(max(start - 1, 0), start + 1))


def _in_window(page: Page, free: Window, edits: list[tuple[int, list[Edit]]]) -> list[tuple[int, list[Edit]]]:
    """The edits with the part of every week that machines are free in."""
    due = [edit for _, each in edits for edit in each if edit.field == "deadline_h" and edit.op == "set"]
    if (page.mode == "serving" and not (page.asks_money or page.plan)) or (
        due and all(edit.value <= DAY_H for edit in due)
    ):
        # 'We nightly summarise …, must be through in six hours'
        return edits
    said, span = page.read.said(free.start, free.end), page.read.span(free.start, free.end)
    days = WEEK_D if free.also and get(page.plan, ALL_PATHS["days_per_week"]) else free.days
    parts = [("hours_per_day", free.hours, DAY_H), ("days_per_week", days, WEEK_D)]
    words = [f"{free.hours:g} hours a day"] if free.hours else []
    words += [f"{days} days a week"] if days else []
    note = f"{said!r} taken as {' on '.join(words)}"
    told = [
        Edit(name, "set", value, span, note)
        for name, value, most in parts
        if value and (value != most or get(page.plan, ALL_PATHS[name]))
    ]
    return [*edits, (free.start, told)]


def _as_money(page: Page, number: Filled, changed: Mapping[int, str]) -> Filled:
    """'We could spend $2,000 more' without a budget asks what more money buys, and so does '$500 more' that buys
    something; '8 H100 at $2' tells a price."""
    if number.field == "capex_usd_per_device" and _buys_more(page, number):
        return replace(number, field="more_usd")
    if number.field != "budget_usd":
        return number
    if changed.get(number.row.start) == "plus" and "budget_usd" not in page.known:
        return replace(number, field="more_usd")
    if number.values[-1] < _LEAST_BUDGET_USD and page.devices and not _is_budget(page, number):
        said = page.read.said(number.row.start, number.row.end)
        page.assumed.append(f"{said!r} taken as the price of one device and hour")
        return replace(number, field="usd_per_device_hour")
    return number


def _buys_more(page: Page, number: Filled) -> bool:
    """Whether money that is more than there was does the buying: 'another $500 buy us', '10k more dollars buy'."""
    if number.name is None or number.name[0] < number.row.end:
        return False
    around = range(number.row.start - 1, number.name[0])
    return any(name.field == "more_usd" and name.start in around for name in page.read.found.fields)


def _for_power(page: Page) -> list[Filled]:
    """Cents that nothing is said to cost, where power is spoken of: 'what do they pull from the wall, 30 cents'."""
    quantity = page.read.found.lexicon.quantities[_POWER]
    cents = [row for row in page.left if len(row.amounts) == 1 and row.amounts[0].unit("usd", *NEAR_DOLLARS)]
    if not cents or not any(name.field == _POWER for name in page.read.found.fields):
        return []
    priced = [(row, value_of(quantity, row.amounts[0], row.amounts[0])) for row in cents if not row.amounts[0].per]
    prices = [Filled(_POWER, (value,), row, 1.0) for row, value in priced if value <= quantity.usual[1]]
    page.left = [row for row in page.left if not any(each.row is row for each in prices)]
    return prices


def _surest(page: Page, filled: Sequence[Filled]) -> list[Filled]:
    """The numbers without those of a unit alone where another one has the field's name: '150 employees, at most 15 at a
    time'."""
    filled = _at_once(page, filled)
    named = {one.field for one in filled if one.name and not one.row.amounts[-1].units}
    by_unit = {one.field for one in filled if one.row.amounts[-1].units and not one.name}
    both = {name for name in named & by_unit if name in _LOADS}
    told = [one for one in filled if one.field not in both or not one.row.amounts[-1].units]
    # 'Three candidates for 32 users'
    bare = {one.row.start for one in told if not (one.name or one.row.amounts[-1].units or one.row.amounts[-1].per)}
    counted = {one.field for one in told if one.row.amounts[-1].units} & set(_LOADS)
    return [one for one in told if one.row.start not in bare or one.field not in counted]


# Tokens between a number of people and the word that they are there at once.
_BY = 4


def _at_once(page: Page, filled: Sequence[Filled]) -> list[Filled]:
    """The numbers without those of people of whom fewer are told to be there at a time: '9 Mitarbeiter, höchstens 4
    gleichzeitig', '2,400 employees, at most 150 of them at the same time'."""
    heard, text = page.read.found, page.read.tokens

    def told(number: Filled) -> bool:
        behind = next((at for at in range(number.row.end, len(text)) if text[at].ends_clause), len(text))
        near = range(max(number.row.start - _BY, 0), min(number.row.end + _BY, behind))
        return any(heard.sense(at, "at_once") for at in near if not text[at].ends_clause)

    if any(number.field == "concurrency" for number in filled):
        of_them = [number for number in filled if number.field == "count" and told(number) and not number.name]
        filled = [replace(number, field="concurrency") if number in of_them else number for number in filled]
    people = [number for number in filled if number.field == "concurrency"]
    at_once = [number for number in people if told(number)]
    if len(people) < 2 or not at_once or len(at_once) == len(people):
        return list(filled)
    return [number for number in filled if number not in people or number in at_once]


def _is_a_factor(read: Mentions, number: Filled) -> bool:
    """Whether what seems to count devices says how much faster one is: '1.3x H100'."""
    behind = number.row.amounts[-1].number
    sign = behind < len(read.tokens) and read.tokens[behind].norm in ("x", "×")
    return number.field in ("count", "nodes") and number.values[-1] != int(number.values[-1]) and sign


def _is_bound(read: Mentions, filled: Filled) -> bool:
    """Whether a number is said to be of its field: by the name beside it, or by what it counts."""
    last = filled.row.amounts[-1]
    return last.names or last.unit("devices", "nodes") is not None or _stands_at(read, filled) or filled.cost < _SURELY


def _stands_at(read: Mentions, filled: Filled) -> bool:
    """Whether the name of its field stands right before a number, with no other thought between."""
    sign = read.tokens[filled.row.start - 1]
    apart_ = sign.ends_clause and sign.text not in (":", "(")
    return named_span(filled)[0] < filled.row.start and not apart_


def _is_new(page: Page, one: Filled, word: str) -> bool:
    """Whether a number is what its field is brought to: 'drop zero to 1'."""
    start = one.row.start
    apart_by_word = one.name is not None and one.name[1] == start - 1 and page.read.tokens[start - 1].kind == "word"
    return word in lexicon().letting_go and apart_by_word


def _of_other_money(page: Page) -> list[Need]:
    """Money that is worth too little or too much to be taken for dollars: a budget is asked about, a price is told to
    be left out."""
    foreign = [row for row in (*page.left, *(each.row for each in page.filled)) if row.amounts[-1].unit("money")]
    prices = [row for row in foreign if any(unit.name in ("time", "devices") for unit in row.amounts[-1].per)]
    page.assumed += [
        f"{page.read.said(row.start, row.end)!r}: prices here are in US dollars and no exchange rate is known, so the "
        "price lists are taken instead"
        for row in prices
    ]
    return [
        Need(
            "goal.budget_usd",
            "prices here are in US dollars, and no exchange rate is known: how many are "
            f"{page.read.said(row.start, row.end)}?",
        )
        for row in foreign
        if row not in prices
    ]


_POWER = "usd_per_kwh"
# Nobody has less for a run: a price of a device and hour.
_LEAST_BUDGET_USD = 20.0


def _is_budget(page: Page, number: Filled) -> bool:
    """Whether money is told to be all that there is: 'my budget is $10', 'for under $5'."""
    return number.name is not None or any(end == number.row.start for _, end, _ in page.read.limits)


def _set(page: Page, one: Filled, value: float, span: tuple[int, int]) -> Edit:
    """The edit of a number; of some what the executor needs beside it."""
    name, said = one.field, page.read.said(one.row.start, one.row.end)
    number: Any = as_number(name, value)
    note = _as_said(page, one)
    if name == "user_rate" or (name == "token_rate" and page.values("concurrency") == [1]):
        name, number = "tpot_slo_ms", 1000 / value
        note = f"{value:g} tokens/s for each user read as {number:.4g} ms a token"
    elif name == "assumed_mfu":
        name, number = "overrides", {"mfu": value}
    elif name == "usd_per_month":
        name = "budget_usd"
    elif name == "text_bytes":
        name, number = "dataset_tokens", value / _BYTES_PER_TOKEN
        note = f"{said!r} of text taken as {number:.3g} tokens, at {_BYTES_PER_TOKEN} bytes a token"
    elif name.endswith("_gib") and name != "host_gib" and not _binary(page, one):
        note = f"{said!r} read as {value:g} GiB per device"
    elif unit := one.row.amounts[-1].unit(*NEAR_DOLLARS):
        why = "prices here are in US dollars, and no exchange rate is known"
        why = f"at your {page.worth[unit.name]:.6g} dollars" if unit.name in page.worth else why
        note = f"{said} taken as ${value:,.10g}: {why}"
    elif name == "token_rate":
        number = token_rate(page, one, value)
        note = None
    return Edit(name, "set", number, span, note)


# What a run goes through.
_DATA = ("dataset_tokens", "dataset_samples", "requests", "total_tokens")


def _as_said(page: Page, one: Filled) -> str | None:
    """What is told of 'at least' and 'at most' beside a number of what a plan holds no limit of."""
    start = one.name[0] if one.name and one.name[0] < one.row.start else one.row.start
    numbers = {row.start for row in page.read.rows}
    for at, end, limit in page.read.limits:
        # '1B tokens within 2 days': of the days.
        beside = end in (start, one.row.start) or (at == one.row.end and end not in numbers)
        natural = one.field in _LOADS or (limit == "at_most" and one.field in _LIMITED)
        named = one.name is not None and one.name[0] <= at < one.name[1] and one.field not in _LIMITED
        # '3 epochs over 20k examples'
        passes = [each for each in page.filled if each.field == "epochs" and each.row.end == at]
        goes_over = (bool(passes) and one not in passes) or (
            one.field in _DATA and page.read.found.sense(at, "through")
        )
        if beside and not (natural or named or goes_over):
            words = page.read.said(min(at, one.row.start), max(end, one.row.end))
            return f"{words!r} is read as {as_number(one.field, one.values[-1]):,}: the plan holds no such limit"
    return None


def _binary(page: Page, one: Filled) -> bool:
    """Whether a size is said in GiB."""
    return any("i" in page.read.tokens[unit.start].norm[:2] for unit in one.row.amounts[-1].units)


def _impossible(name: str, value: float) -> str | None:
    if value < 0 or (value == 0 and name not in ("zero_stage", "lora_dropout", "prefix_hit", "acceptance")):
        return "cannot be"
    return "is no whole number" if name in _WHOLE and value != int(value) else None


def as_number(name: str, value: float) -> float | int:
    return int(value) if value == int(value) and (name in _WHOLE or abs(value) < 1e15) else value
