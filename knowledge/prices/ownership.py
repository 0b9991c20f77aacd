"""What owning machines, spot instances and stored checkpoints cost beside the price of devices; sources beside each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from knowledge.data_files import document
from knowledge.prices.energy import Fact


@cache
def ownership_assumptions() -> dict[str, Fact]:
    """years, utilisation, host_capex_share, network_capex_share, colocation_usd_per_kw_month, maintenance_share,
    staff_usd_per_person_year, devices_per_person and socket_kw."""
    table = document("ownership.yaml")
    return {name: Fact(**row) for name, row in table.items() if name != "resale"}


def years_kept() -> Fact:
    """Years of use, where nobody says for how long machines are bought."""
    return ownership_assumptions()["years"]


def resale_share(years: float) -> Fact:
    """What accelerators of that age sell for, as a share of their price; what is sold within a year is used all the
    same."""
    table = document("ownership.yaml")["resale"]
    return Fact(float(np.interp(max(1.0, years), table["years"], table["share"])), table["source"])


@cache
def interruption_assumptions() -> dict[str, Fact]:
    """Of spot instances: monthly_share (of instances that are taken away), restart_minutes, save_gb_per_s_per_node."""
    return {name: Fact(**row) for name, row in document("interruptions.yaml").items()}


@cache
def storage_price(provider: str) -> Fact | None:
    """USD per GB and month of a provider's object storage; None where it is not known."""
    row = document("storage.yaml")["storage"].get(provider)
    return None if row is None else Fact(**row)


@dataclass(frozen=True)
class TransferPrice:
    """USD per GB that leaves a cloud for the internet, beyond `free_gb` of a month."""

    usd_per_gb: float
    free_gb: float
    source: str


@cache
def transfer_price(provider: str) -> TransferPrice | None:
    """None where it is not known."""
    row = document("storage.yaml")["transfer"].get(provider)
    return None if row is None else TransferPrice(row["value"], row["free_gb"], row["source"])
