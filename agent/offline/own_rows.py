"""Prices and devices of one's own, said in words: 'our price for 8 H200 at NordCloud is 24.80 USD an hour, add that to
the price book', 'add my card: a 4090 with 48 GiB, call it 4090-48g'."""

from __future__ import annotations

import re
from typing import Any

from agent.offline.catalogue import Catalogue
from agent.offline.hardware_words import read_hardware
from agent.offline.numbers import amount
from agent.offline.page import Page
from agent.offline.slots import Slot

_HOURLY = re.compile(
    r"(?:\$\s?|usd\s?)?(\d[\d,]*(?:\.\d+)?)\s?(?:\$|usd|dollars?)?\s?(?:an|per|/|a)\s?h(?:ou)?r?\b"
    r"(?P<each> (?:each|per (?:gpu|card|device)))?",
    re.IGNORECASE,
)
_COMPANY = r"([A-Z][\w.&-]*(?: [A-Z][\w.&-]*)?)"
_PROVIDER = re.compile(
    rf"\b(?:at|from|by|with|on|of|[Pp]rovider:?) {_COMPANY}(?=[\s,.;:!?]|$)|"
    rf"(?<![\w.] )(?<!^){_COMPANY} (?:has|have|rents?|offers?|charges?|sells?)\b"
)
_INSTANCE = re.compile(
    r"\b(?:instance|machine|box|node|server)(?: type)?:? (?:is |called |named |(?:that )?they call )?"
    r"([A-Za-z][\w.-]*[-.\d](?:[\w.-]*\w)?)"
)
_NAME = re.compile(r"\b(?:call|name)(?:d| it| that| this)? [\"'`]?([\w.-]*\w)", re.IGNORECASE)
_MEMORY = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?gi?b\b(?!\s?/)", re.IGNORECASE)


def own_price(page: Page, catalogue: Catalogue) -> dict[str, Any] | None:
    """add_price's arguments, where provider, device and price are all said; else None."""
    price = _HOURLY.search(page.rest)
    slots, questions, devices = read_hardware(page, catalogue, None)
    provider = _PROVIDER.search(page.rest)
    if not (price and provider and len(devices) == 1) or questions:
        return None
    counted = next((slot.value for slot in slots if isinstance(slot, Slot) and slot.path == "cluster.count"), 1)
    count = 1 if price["each"] else counted
    device, instance = devices[0].id, _INSTANCE.search(page.text)
    return {
        "provider": (provider[1] or provider[2]).rstrip("."),
        "instance": instance[1] if instance else f"{count} x {device}",
        "accelerator": device,
        "count": count,
        "usd_per_hour": amount(price[1]),
    }


def own_device(page: Page, catalogue: Catalogue) -> dict[str, Any] | None:
    """add_hardware's arguments, where its name, a device that it is like and its memory are all said; else None."""
    name, memory = _NAME.search(page.text), _MEMORY.search(page.rest)
    _, questions, devices = read_hardware(page, catalogue, None)
    if not (name and memory and len(devices) == 1) or questions:
        return None
    return {"id": name[1], "like": devices[0].id, "memory_gib": amount(memory[1])}
