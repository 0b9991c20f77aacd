"""Providers that are named, and those that are to be left out."""

from __future__ import annotations

import re

from agent.offline import vocabulary
from agent.offline.catalogue import Catalogue
from agent.offline.page import Page
from agent.offline.slots import Slot

_COMPARE_PRICES = re.compile(r"\b(?:vs\.?|versus|or|and|than|compare[ds]?|against|cheaper)\b|[,/]", re.I)
# 'Forget Azure'
_FORGOTTEN = re.compile(
    r"\b(?:forget|drop|skip|ditch|exclude|excluding|without|except|no|not|leave out)\s+(?:about )?$", re.I
)


def read_providers(page: Page, catalogue: Catalogue, searching: bool) -> list[Slot]:
    """The providers that are named; in a search for hardware common words are companies, too."""
    rules = [*vocabulary.PROVIDERS]
    for provider in catalogue.providers:
        common = not searching and provider.lower() in ("lambda", "together", "vast", "owned")
        before = vocabulary.PROVIDER_AFTER if common else ""
        rules.append((rf"{before}\b{re.escape(provider.lower())}\b", provider))
    slots: list[Slot] = []
    for pattern, provider in rules:
        for match in page.find(pattern):
            if provider == "owned" or provider not in catalogue.providers:
                continue
            left = _FORGOTTEN.search(page.rest, 0, match.start())
            words = page.take(match.start(), match.end())
            # One that is left is told by its name.
            slots.append(Slot("goal.provider", None if left else provider, provider if left else words))
    if slots and _COMPARE_PRICES.search(page.rest):
        # Beside another provider a common word is the company, too.
        for provider in ("Lambda", "Together", "Vast"):
            for match in page.find(rf"\b{provider}\b"):
                slots.append(Slot("goal.provider", provider, page.take(match.start(), match.end())))
    return slots
