"""A model or an accelerator of the catalogue, and the catalogue's lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from knowledge import figures
from pages.answers.asked import named_figures
from pages.blocks import Block, Prose
from pages.results.basis import notes
from pages.results.facts import device_facts, model_facts, prices
from pages.results.records import rows
from planner.results import HardwareDescription, ModelDescription

if TYPE_CHECKING:
    from planner.records.catalogue import CatalogueList

_MOST_OFFERS = 6


def model(facts: ModelDescription, asked: Sequence[str] = ()) -> list[Block]:
    """`asked` are the figures that were named."""
    text = f"**{facts.id}** has {figures.whole(facts.parameters)} parameters"
    if facts.active_parameters != facts.parameters:
        text += f", of which {figures.whole(facts.active_parameters)} work on each token"
    return [Prose(f"{named_figures([facts], asked)} {text}.".strip()), *model_facts(facts), *_notes(facts)]


def device(facts: HardwareDescription, providers: Sequence[str]) -> list[Block]:
    """`providers` are those whose prices were asked for; the cheapest of all where none was named."""
    priced = [(offer.usd_per_hour, offer) for offer in facts.prices if offer.usd_per_hour is not None]
    offers = [offer for _, offer in sorted(priced, key=lambda pair: pair[0])]
    known = [offer for offer in offers if not providers or offer.provider in providers]
    unknown = f"No price of {' or '.join(providers)} is known for it." if providers and not known else ""
    return [
        Prose(f"**{facts.name}** (`{facts.id}`), {facts.vendor} {facts.family}."),
        *device_facts(facts),
        Prose(unknown),
        *prices(known[:_MOST_OFFERS], "Prices of an instance"),
        *_notes(facts),
    ]


def _notes(facts: ModelDescription | HardwareDescription) -> list[Block]:
    return notes("", list(dict.fromkeys([*(item.why for item in facts.assumptions), *facts.notes])))


def catalogue(found: CatalogueList) -> list[Block]:
    shown = len(found.hardware) + len(found.models) + len(found.prices)
    if not shown:
        return [
            Prose(
                "**The catalogue has none of that name.** `shardwise models` and `shardwise hardware` list everything."
            )
        ]
    part = f", of which these are {shown}" if shown < found.total else ""
    return [Prose(f"**{found.total} in the catalogue**{part}:"), *rows(found)]
