"""Assumptions behind energy and carbon figures, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from knowledge.data_files import document


@dataclass(frozen=True)
class Fact:
    value: float
    source: str


@cache
def energy_assumptions() -> dict[str, Fact]:
    """`host_share` (power besides the devices, as a share of theirs), `pue` and `kg_co2_per_kwh`."""
    return {name: Fact(**row) for name, row in document("energy.yaml").items()}
