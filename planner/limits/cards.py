"""Which devices are tried for the smallest that holds a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby

from estimator.machine.hardware import Accelerator
from knowledge.figures import gib
from knowledge.machines.catalogue import accelerators
from knowledge.prices.book import prices
from planner.result import Assumption

# Makers of cards that one can put into a machine; what is soldered beside a processor is sold as a whole machine.
_MAKERS = ("NVIDIA", "AMD", "Intel")
_NO_CARDS = ("SoC", "socket", "Superchip", "APU SH5")
SCOPE = Assumption(
    field="accelerator",
    value="cards",
    why="cards of NVIDIA, AMD and Intel that are sold, by their memory; name an accelerator for another",
)


def cards() -> list[Accelerator]:
    """By memory, the least first; of the same those that have a price, and the newest, before others."""
    sold = {price.accelerator for price in prices()}
    sizes = [
        card
        for card in accelerators()
        if card.vendor in _MAKERS and card.form_factor not in _NO_CARDS and not card.announced
        if card.id in sold or card.personal
    ]
    return sorted(sizes, key=lambda card: (card.memory_bytes, card.id not in sold, -(card.year or 0), card.id))


@dataclass(frozen=True)
class Smallest:
    """The first card by memory that holds a plan (None: none does), the others as large that do, and the largest of
    those that do not."""

    card: Accelerator | None
    alike: list[str] = field(default_factory=list)
    below: Accelerator | None = None

    @property
    def why(self) -> str:
        if self.below is None:
            return "it fits on the smallest card that is known"
        return f"it does not fit on cards with {gib(self.below.memory_bytes)}, such as {self.below.id}"


def smallest(fits: Callable[[str], bool]) -> Smallest:
    """The smallest card, asked of `fits` by id."""
    below: Accelerator | None = None
    for _, group in groupby(cards(), key=lambda card: card.memory_bytes):
        same = list(group)
        if holding := [card for card in same if fits(card.id)]:
            return Smallest(holding[0], [card.id for card in holding[1:]], below)
        below = same[0]
    return Smallest(None, [], below)
