"""What devices cost to buy: of the machines and cards in the price book the one that is taken, and how many at once."""

from __future__ import annotations

from dataclasses import dataclass

from estimator.machine.hardware import Accelerator, Price
from knowledge.prices.book import prices
from knowledge.prices.ownership import ownership_assumptions
from planner.asked.money import OWNED

# Of machines that are used or refurbished, which are taken where nobody sells new ones.
SECOND_HAND = "second-hand"
# Accelerators that go into any machine, one at a time, or are one.
_ALONE = ("PCIe", "SoC")


@dataclass(frozen=True)
class Purchase:
    """A row of the price book as it is bought: `unit` devices at once, which are the most of a node where it is a whole
    machine (`whole`)."""

    price: Price
    unit: int

    @property
    def whole(self) -> bool:
        return self.price.capex_of == "machine"

    @property
    def device_usd(self) -> float:
        """Of one device, with its host where that comes with it."""
        return (self.price.capex_usd or 0.0) / self.price.count

    def per_node(self, device: Accelerator) -> int | None:
        """Devices of a node where the machine has fewer than usual."""
        return self.price.count if self.whole and self.price.count < device.per_node else None

    def joined(self, devices: int, per_node: int) -> bool:
        """Whether a network has to be bought for so many; that within a machine comes with it."""
        return devices > (max(per_node, self.unit) if self.whole else per_node)

    def bought(self, devices: int) -> int:
        """As many as are bought where so many are needed."""
        return -(-devices // self.unit) * self.unit


def purchase(device: Accelerator) -> Purchase | None:
    """The cheapest that is sold new with its host, else second-hand; None where no price is known."""
    host_share = ownership_assumptions()["host_capex_share"].value
    sold = [Purchase(price, _unit(device, price)) for price in prices(device.id, OWNED) if price.capex_usd]

    def place(row: Purchase) -> tuple[bool, float]:
        return row.price.seller == SECOND_HAND, row.device_usd * (1.0 if row.whole else 1.0 + host_share)

    return min(sold, key=place, default=None)


def _unit(device: Accelerator, price: Price) -> int:
    """Modules are bought by the node, cards and small machines one at a time."""
    if price.capex_of == "machine":
        return price.count
    return max(price.count, 1 if device.form_factor in _ALONE else device.per_node)
