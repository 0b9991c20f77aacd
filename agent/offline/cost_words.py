"""How a run is paid for, as estimate_cost's own arguments: spot, reserved, owned, a price of one's own, a region."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from agent.offline.numbers import amount
from agent.offline.page import Page
from knowledge.data_files import rows

_OWNED = (
    r"\b(?:we|i) (?:already |have )?(?:own|bought)\b|\b(?:bought|owned) by us\b|\bown(?:ed|ing)\b|\bon-?prem\w*\b|"
    r"\b(?:our |my |an? |their )?own (?:cluster|hardware|gpus?|machines?|servers?|"
    r"data ?cent\w+)\b|\b(?:tco|total cost of ownership|capex)\b|\bbuy(?:ing)?\b(?=[^.?!]*\b(?:or|vs|versus|instead "
    r"of|than)\b"
    r"[^.?!]*\brent)|\brent(?:ing)?\b(?=[^.?!]*\b(?:or|vs|versus|than)\b[^.?!]*\bbuy)|\bif (?:we|i) (?:buy|bought)\b|"
    r"\b(?:we|i)(?:'d|'ll| would| could| might| will) buy\b|"
    r"\bpurchas\w+ (?:the )?(?:hardware|gpus?)\b"
)
_SPOT = r"\b(?:spot|preemptible|pre-emptible|interruptible)\b(?:[- ](?:instances?|prices?|pricing|market|vms?|gpus?))?"
_RESERVED = (
    r"\breserv(?:ed|ation)\b(?:[- ](?:instances?|prices?|capacity))?|\bcommitted[- ]use\b|\bsavings plan\b|"
    r"\b(?:\d|one|three)[- ]years? (?:commit\w*|reserv\w+)"
)
_ON_DEMAND = r"\bon[- ]demand\b|\b(?:list|full|regular) prices?\b"
# What shows that the words are a question about money, not only about whose machines they are.
ASKS = (
    r"\b(?:tco|total cost of ownership|capex|co2|carbon|emissions?|footprint|[kmg]wh|energy|electricity|power bill|"
    r"spot|owning|reserv(?:ed|ation)|on[- ]demand|per epoch|per step|preemptible|interruptible)\b|\b(?:buy|"
    r"rent)\w*\b[^.?!]*\b(?:or|vs|than)\b"
)


# A number behind a dollar sign too.
_PLAIN = r"(?<![\w.-])(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))(?![\d,]*\d)"
_SCALE = r"(?:\s?(?:k|m|thousand|million)\b)?"


def _rule(pattern: str) -> str:
    return pattern.replace("A_", f"({_PLAIN}{_SCALE})").replace("F_", f"({_PLAIN})")


_CURRENCY = r"(?:\$|usd ?)?\s*"
_UNIT = r"\s*(?:\$|usd|dollars?)?\s*"
_HOURLY = (
    r"(?:an? |per |/ ?)(?:gpu|card|chip|device|accelerator|[\ue001]+)[- /]?(?:and )?(?:an? |per |/ ?)?"
    r"h(?:(?:ou)?rs?)?\b"
)
_OF_ONE = (
    r"(?:(?:/|per |for (?:an? |each |one )|an? |each )\s?(?:gpu|card|chip|device|accelerator|(?=[\ue001]))|"
    r"(?:each|apiece|a piece)\b)"
)
# (rule, argument, what the number is multiplied with)
_NUMBERS: tuple[tuple[str, str, float], ...] = (
    (_rule(rf"{_CURRENCY}F_{_UNIT}(?:/|per|a)\s*kwh\b"), "usd_per_kwh", 1.0),
    (_rule(r"F_\s*(?:ct|cents?|c)\s*(?:/|per|a)\s*kwh\b"), "usd_per_kwh", 0.01),
    (_rule(r"\bpue\s*(?:of|=|:|is)?\s*F_"), "pue", 1.0),
    (_rule(r"\b(?:over|in|for|written off (?:over|in)|amorti[sz]ed? (?:over|in)|depreciat\w+ (?:over|"
    r"in))\s+F_\s*years?\b"), "years", 1.0),
    (_rule(r"F_[- ]years? (?:depreciation|amorti[sz]ation|write-?off|life(?:time)?)"), "years", 1.0),
    (_rule(r"F_[- ]y(?:ea)?rs?\b"), "years", 1.0),
    (_rule(r"F_\s?%\s*(?:off|discount|rebate|cheaper|reduction)\b"), "reserved_discount", 0.01),
    (_rule(r"\bdiscount (?:of |is )?F_\s?%"), "reserved_discount", 0.01),
    (_rule(r"F_\s*(?:interruptions?|preemptions?)\s*(?:/|per|a)\s*day"), "interruptions_per_day", 1.0),
    (_rule(r"\b(?:interruptions?|preemptions?|interrupted|preempted|killed|evicted|reclaimed)"
           r"(?: [a-z]+){0,3} F_\s*(?:times |x )?(?:/|per|a)"
           r"\s*day\b"), "interruptions_per_day", 1.0),
    (_rule(r"\brestarts? (?:take|takes|in|of)\s*(?:about )?F_\s*min\w*"), "restart_minutes", 1.0),
    (_rule(r"F_ min\w* to (?:come back|restart|resume|recover|get (?:going|back))\b"), "restart_minutes", 1.0),
    (_rule(r"\bcheckpoint(?:s|ing)? every\s*F_\s*min\w*"), "checkpoint_interval_minutes", 1.0),
    (_rule(rf"(?:\b(?:i|we) pay |\b(?:at|for) )?(?<!\$)(?<!\$ )F_{_UNIT}(?:/|per |an? )\s?h(?:ou)?rs?\b\s*{_OF_ONE}"),
     "usd_per_device_hour", 1.0),
    (_rule(rf"(?:\b(?:i|we) pay |\b(?:at|for) )?{_CURRENCY}F_{_UNIT}{_HOURLY}"), "usd_per_device_hour", 1.0),
)  # fmt: skip
_CAPEX = (
    _rule(r"\b(?:each (?:one )?(?:costs?|was|is)|costs? (?:us|me)|bought (?:them )?(?:for|at)|paid|pay(?:ing)?|"
    r"capex (?:is |of )?)"
          rf"\s*(?:us |me )?(?:(?:about|roughly|around|some) )?{_CURRENCY}A_{_UNIT}"
          r"(?:each|apiece|per (?:gpu|card|device)|a piece)?"),
    _rule(rf"{_CURRENCY}A_{_UNIT}(?:each|apiece|a piece|per (?:gpu|card|device)|a (?:gpu|card))(?!\s*(?:/|per|"
    rf"an?)?\s*-?h)"),
)  # fmt: skip
_USED = _rule(
    r"F_\s?%\s*(?:utili[sz]ation|utili[sz]ed|busy|used)\b|\butili[sz]ation (?:of )?F_\s?%|"
    r"\bbusy (?:only |just |about |around |roughly |~ ?)*F_\s?%(?: of the time)?|"
    r"\b(?:busy|used|running|in use)(?: \w+)?(?: about| only| around)? (?P<half>half) (?:of )?the time\b"
)
_MOST = re.compile(
    r"(?:\b(?:max(?:imum)?|at most|under|below|less than|up to|(?:no|nothing|not) (?:more than|over|above)|"
    rf"budget(?: of| is)?|limit(?: of)?)\s*)?\$\s?({_PLAIN})\s*"
    r"(?:/|per|an?)\s*h(?:(?:ou)?r)?\b(?!\s*(?:/|per|a)\s*(?:gpu|card|device))(?:\s*(?:max(?:imum)?|at most|in "
    r"total|total))?",
    re.IGNORECASE,
)
_HOURLY_MOST = re.compile(
    rf"\bhourly (?:spend\w*|budget|costs?|rate|bill|limit)(?: \w+){{0,5}}? \$?\s?({_PLAIN})", re.IGNORECASE
)
_CAPPED = re.compile(r"max|most|under|below|less|up to|more|over|above|budget|limit|total", re.IGNORECASE)
_IN = re.compile(r"\b(?:(?i:in|from|region|located in))\s+(?:(?i:the) )?([A-Za-z][A-Za-z0-9. -]{1,28}[A-Za-z0-9])")
# 'Sweden instead', 'and Norway?'
_PLACE_INSTEAD = re.compile(
    r"^\W*(?:(?:and|or|ok|no|what about|how about|make (?:it|that))\W+)?([a-z][a-z. -]{2,24}?)"
    r"(?:\W+(?:instead|then))?\W*$",
    re.IGNORECASE,
)


def read_pricing(page: Page, recommends: bool) -> dict[str, Any]:
    """estimate_cost's arguments that the text gives; their words are blanked. `recommends`: a dollar amount an hour is
    a limit on the whole cluster then, not the price of a device."""
    found: dict[str, Any] = {}
    text = page.rest
    owned = bool(re.search(_OWNED, text, re.IGNORECASE))
    if owned:
        found["price"] = "owned"
        for rule in _CAPEX:
            for match in page.find(rule):
                value = amount(match[1])
                if value and value >= 500 and "capex_usd_per_device" not in found:
                    found["capex_usd_per_device"] = value
                    page.take(match.start(), match.end())
    for match in page.find(_USED) if owned or re.search(r"\bbusy\b", text, re.IGNORECASE) else ():
        percent = 50.0 if match["half"] else amount(next(g for g in match.groups() if g)) or 0
        found["utilisation"] = percent / 100
        page.take(match.start(), match.end())
    for rule, name, factor in _NUMBERS:
        if name == "years" and not owned:
            continue
        for match in page.find(rule):
            value = amount(match[1] if not match[1].startswith(".") else f"0{match[1]}")
            if value is not None:
                found[name] = round(value * factor, 10)
                page.take(match.start(), match.end())
    for match in page.find(_HOURLY_MOST):
        found["max_usd_per_hour"] = amount(match[1])
        page.take(match.start(), match.end())
    for match in page.find(_MOST):
        if recommends or _CAPPED.search(match[0]):
            found["max_usd_per_hour"] = amount(match[1])
            page.take(match.start(), match.end())
    for pattern, price in ((_SPOT, "spot"), (_RESERVED, "reserved"), (_ON_DEMAND, "on_demand")):
        if match := re.search(pattern, page.rest, re.IGNORECASE):
            page.take(match.start(), match.end())
            found.setdefault("price", price)
    if "reserved_discount" in found:
        found["price"] = "reserved"
    if region := _region(page):
        found["region"] = region
    return found


def _region(page: Page) -> str | None:
    for match in re.finditer(r"\b[a-z]{2,12}(?:-[a-z]+)+-?\d[a-z]?\b", page.rest):
        if match[0].lower() in _regions():
            page.take(match.start(), match.end())
            return match[0].lower()
    if (match := _PLACE_INSTEAD.search(page.rest)) and (place := _regions().get(match[1].lower())):
        page.take(match.start(1), match.end(1))
        return place
    for match in page.find(_IN):
        words = match[1].split()
        for size in range(min(3, len(words)), 0, -1):
            name = " ".join(words[:size]).rstrip(".,")
            if place := _regions().get(name.lower()):
                page.take(match.start(1), match.start(1) + len(name))
                return place
    return None


@cache
def _regions() -> dict[str, str]:
    """Countries and cloud regions that electricity and prices are known of, in lower case."""

    found: dict[str, str] = {}
    for row in rows("grids.csv"):
        found[row["place"].lower()] = row["place"]
        for other in filter(None, row["also"].split("|")):
            if len(other) > 2 or other in ("US", "UK"):
                found[other.lower()] = row["place"]
    for row in rows("cloud_regions.csv"):
        found[row["region"].lower()] = row["region"]
    for word in ("us", "it", "no", "to", "total", "georgia", "world"):
        found.pop(word, None)
    return found
