"""How a run is paid for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent.offline.language.asking import asks
from agent.offline.language.assign import Filled, single
from agent.offline.language.devices import is_machine
from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import DAY_S
from agent.offline.language.reading.currencies import NEAR_DOLLARS
from agent.offline.language.reading.meant import is_reserved_for
from estimator.money.ownership import HOURS_PER_YEAR
from knowledge.machines.catalogue import find_accelerator
from planner.asked.money import CostTerms
from planner.partial import get

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

# What is said of prices, by the terms that a cost is estimated with.
_PRICES = ("more_usd", "usd_per_node_hour", *CostTerms.model_fields)
_RATES = ("usd_per_device_hour", "usd_per_node_hour")
_OWNED = ("capex_usd_per_device", "usd_per_kwh", "pue", "years")
# Tokens between a price and what it is paid for, and what hardly any device costs an hour.
_NEAR, _DEAR_USD = 5, 6.0
# Reservations from so long on are those of three years.
_LONG_TERM_S = 2 * 365 * DAY_S
# From here on a mean time between failures is that of one device: a cluster of some fails more often.
_OF_ONE_DEVICE_H = 2_000.0
# Numbers of devices that are looked at.
_MOST = 8
_IN_WORDS = {"eur": "euros", "gbp": "pounds", "chf": "Swiss francs"}


def pricing_of(page: Page) -> dict[str, Any]:
    """How a run is paid for, as estimate_cost takes it."""
    found: dict[str, Any] = {}
    for one in page.filled if not _of_several_devices(page) else ():
        if one.field in _PRICES and one.row.start not in page.refused.things:
            said = page.read.said(one.row.start, one.row.end)
            found[one.field] = one.values[-1]
            if devices := _paid_for(page, one):
                found[one.field] = round(one.values[-1] / devices, 6)
                page.assumed.append(f"{said!r} taken as the price of all {devices}")
            elif devices := _bought_with(page, one):
                found[one.field] = round(one.values[-1] / devices, 2)
                page.assumed.append(f"{said!r} taken as the price of a machine of {devices}")
            unit = one.row.amounts[-1].unit(*NEAR_DOLLARS)
            if unit and (rate := page.worth.get(unit.name)):
                page.assumed.append(f"{said!r} taken at your {rate:.6g} dollars")
            elif unit:
                page.assumed.append(f"{said!r} taken as US dollars one for one: no exchange rate is known here")
    for one in page.read.senses():
        if one.kind == "unit" and one.name in NEAR_DOLLARS and not (page.worth or _has_amount(page, one.name)):
            page.assumed.append(f"no amount is given in {_IN_WORDS[one.name]}: prices here are in US dollars, and no "
                                "exchange rate is known")  # fmt: skip
            break
    for code, worth in page.worth.items():
        found["currency"] = f"{code.upper()}={worth:.6g}"
    found |= _share_of_time(page) | _failures(page)
    spoken = {*found, *(value.field for value in page.kept), *page.topic.get("pricing", {})}
    if not {*_OWNED, "price"} & spoken and not page.asks_money and not page.use_h:
        # 'GPU utilization is 35%' is no part of a price.
        page.left += [number.row for number in page.filled if number.field == "utilisation"]
        found.pop("utilisation", None)
    if page.use_h:
        found.setdefault("utilisation", page.use_h / HOURS_PER_YEAR)
    found |= _price(page, found)
    found = found or _of_ones_own(page)
    told = page.read.asked("focus") or page.kept or page.filled or page.read.of("model", "accelerator")
    places = page.read.of("place") if told or not asks(page.read.found, []) else ()
    if places:
        # 'What is the weather in Paris?' is about no run.
        found["region"] = ", ".join(dict.fromkeys(str(name.id) for name in places))
    providers = [str(name.id) for name in page.read.of("provider") if name.start not in page.refused.things]
    if len(providers) > 1:
        found["providers"] = list(dict.fromkeys(providers))
    return found


def _failures(page: Page) -> dict[str, float]:
    """How often something fails, said as the time between: of one device where it is long, else of all together."""
    for hours in page.values("mtbf_h")[-1:]:
        if hours >= _OF_ONE_DEVICE_H:
            return {"device_hours_between_failures": hours}
        page.assumed.append(f"{hours:g} hours between failures taken as those of the whole run")
        return {"interruptions_per_day": 24.0 / hours}
    return {}


def _are_ones_own(page: Page) -> bool:
    """Whether devices are named as those that a person has: 'our 4 A100s'."""
    tokens = page.read.tokens
    starts = [max(device.name.start - _NEAR, 0) for device in page.devices]
    near = (range(start, device.name.start) for start, device in zip(starts, page.devices, strict=True))
    return any(tokens[at].norm in lexicon().of_ones_own for span in near for at in span)


def _of_ones_own(page: Page) -> dict[str, Any]:
    """How what a person has is paid for, where no more is said of that."""
    if _are_at_home(page):
        return {"price": "owned"}
    if page.asks_money and _are_ones_own(page):
        page.assumed.append("priced as if rented: say 'owned', or your price per kWh, for what your own devices cost")
    return {}


def _are_at_home(page: Page) -> bool:
    """Whether what a person has is what people have at home, which nobody rents out to them: 'my 4090', 'I have two
    3090s', 'a Mac Studio at home'."""
    devices = [find_accelerator(str(device.name.id)).value for device in page.devices if device.name.id]
    have = any(page.read.found.sense(at, "owns") for at in range(len(page.read.tokens)))
    mine = have or _are_ones_own(page) or "home" in page.read.asked("whose")
    return mine and bool(devices) and all(device.personal for device in devices)


def _price(page: Page, terms: Mapping[str, Any]) -> dict[str, str]:
    """Which price a run is paid at, beside the other terms."""
    prices = [str(value.value) for value in page.kept if value.field == "price"]
    # What more money buys is no hardware of one's own, nor is 'our own $2.10 an hour' a machine that is bought.
    if {"more_usd", *_RATES} & {*terms}:
        prices = [price for price in prices if price != "owned"]
    if "reserved" in prices and (spans := _reserved_for(page)):
        prices = ["reserved_3y" if max(spans) >= _LONG_TERM_S else "reserved"]
    if prices:
        return {"price": next((price for price in prices if price == "owned"), prices[0])}
    return {"price": "owned"} if any(name in terms for name in _OWNED) else {}


def _share_of_time(page: Page) -> dict[str, float]:
    """How much of the time devices work, said as a part: 'busy half of the time'."""
    named = [name for name in page.read.found.fields if name.field == "utilisation"]
    for mark in page.marks:
        near = any(name.start - _NEAR <= mark.end and mark.start <= name.end + _NEAR for name in named)
        if near and mark.amount is None and mark.factor < 1:
            page.marks = [other for other in page.marks if other is not mark]
            page.lost = [span for span in page.lost if span != (mark.start, mark.end)]
            return {"utilisation": mark.factor}
    return {}


def _reserved_for(page: Page) -> list[float]:
    """The seconds that devices are reserved for, which stand beside the words; their rows are taken off the page."""
    rows = [row for row in page.left if row.amounts[-1].unit("time") and is_reserved_for(page.read, row)]
    page.left = [row for row in page.left if row not in rows]
    return [row.amounts[-1].value * unit.size for row in rows if (unit := row.amounts[-1].unit("time"))]


def _paid_for(page: Page, price: Filled) -> int | None:
    """How many devices a price by the hour is of, where it is no price of one: '$9,000 a month for the 8xH100 node',
    'our 8xA100 box costs $11 an hour'."""
    start, end = price.row.start, price.row.end
    heard = page.read.found
    if price.field != "usd_per_device_hour" or any(heard.has_unit(at, "devices") for at in range(start, end)):
        return None
    counts = single(page.filled, "count")[:_MOST]
    near = [number for number in counts if min(abs(number.row.start - end), abs(start - number.row.end)) <= _NEAR]
    each = "each" in {token.norm for token in page.read.tokens[start : end + 2]}
    if len(near) != 1 or near[0].values[-1] < 2 or each:
        return None
    behind = range(near[0].row.start, near[0].row.end + _NEAR)
    whole = any(heard.has_unit(at, "nodes") for at in behind)
    return int(near[0].values[-1]) if whole or price.values[-1] > _DEAR_USD else None


def _bought_with(page: Page, price: Filled) -> int | None:
    """How many devices come with what is bought, where that is a machine: 'a box costs $420k', or more than any device
    costs."""
    if price.field != "capex_usd_per_device" or not (page.devices or get(page.plan, "cluster.accelerator")):
        return None
    near = range(max(price.row.start - _NEAR, 0), price.row.end + _NEAR)
    machine = any(page.read.found.has_unit(at, "nodes") for at in near)
    machine |= any(is_machine(page.read, device.name) for device in page.devices)
    if not machine and price.values[-1] <= lexicon().quantities[price.field].usual[1]:
        return None
    device = page.devices[0] if page.devices else None
    each = device.per_node if device else get(page.plan, "cluster.per_node")
    id = str(device.name.id) if device and device.name.id else get(page.plan, "cluster.accelerator")
    return each or find_accelerator(str(id)).value.per_node


def _of_several_devices(page: Page) -> bool:
    """Whether several devices have a price each: what is set side by side is paid at one, so none is used, and that is
    said."""
    rates = [number for number in page.filled if number.field in _RATES]
    several = len(page.devices) > 1 and len({number.values[-1] for number in rates}) > 1
    page.left += [number.row for number in rates if several]
    return several


def _has_amount(page: Page, currency: str) -> bool:
    return any(row.amounts[-1].unit(currency) for row in page.read.rows)
