"""A price of one's own, said in words: 'a node of 8 H200 at NordCloud is 24.80 USD an hour, add that'."""

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
_PROVIDER = re.compile(r"\b(?:at|from|by|with|on|of) ((?:[A-Z][\w.&-]*)(?: [A-Z][\w.&-]*)?)(?=[\s,.;:!?]|$)")


def own_price(page: Page, catalogue: Catalogue) -> dict[str, Any] | None:
    """add_price's arguments, where provider, device and price are all said; else None."""
    price = _HOURLY.search(page.rest)
    slots, questions, devices = read_hardware(page, catalogue, None)
    provider = _PROVIDER.search(page.rest)
    if not (price and provider and len(devices) == 1) or questions:
        return None
    counted = next((slot.value for slot in slots if isinstance(slot, Slot) and slot.path == "cluster.count"), 1)
    count = 1 if price["each"] else counted
    device = devices[0].id
    return {
        "provider": provider[1].rstrip("."),
        "instance": f"{count} x {device}",
        "accelerator": device,
        "count": count,
        "usd_per_hour": amount(price[1]),
    }
