"""How often machines fail and spot instances are taken away, as published: data/failures.csv."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cache

from knowledge.data_files import number, rows
from knowledge.prices.energy import Fact

BETWEEN_INTERRUPTIONS = "device-hours between interruptions"
SPOT_SHARE = "share interrupted in a month"
ALL_KINDS = "all"
# The middle of "over 20 %", the last of the bands of the Spot Instance Advisor, were it as wide as the one below.
_LAST_BAND = 0.225


@dataclass(frozen=True)
class FailureRate:
    """A published figure of a `system`: `low` to `high` of a `unit` (alike where one figure was given, None where only
    the other is known), of which `count` events it rests on, over `period`. `accelerator` is '' where it was not said,
    or is none of the catalogue's."""

    system: str
    accelerator: str
    devices: int | None
    kind: str
    metric: str
    low: float | None
    high: float | None
    unit: str
    count: float | None
    period: str
    date: str
    source: str
    notes: str


@dataclass(frozen=True)
class InterruptionRate:
    """Device-hours between two interruptions of whatever kind: the median of the clusters that published theirs, and
    the values that a tenth of them are below and above."""

    device_hours: float
    low_device_hours: float
    high_device_hours: float
    source: str


@cache
def interruption_rate() -> InterruptionRate:
    published = [row for row in failures(BETWEEN_INTERRUPTIONS) if row.kind == ALL_KINDS]
    values = [statistics.geometric_mean([row.low, row.high]) for row in published if row.low and row.high]
    deciles = statistics.quantiles(values, n=10, method="inclusive")
    names = ", ".join(row.system for row in published)
    source = f"the median of {len(values)} clusters, which are at {deciles[0]:,.0f} to {deciles[-1]:,.0f}: {names}"
    return InterruptionRate(statistics.median(values), deciles[0], deciles[-1], source)


@cache
def spot_share(provider: str, instance: str) -> Fact | None:
    """Part of a provider's spot instances of a kind that are taken away within a month, the mean over regions; None
    where it is not known."""
    regions = [row for row in failures(SPOT_SHARE) if row.system.startswith(f"{provider} spot {instance} ")]
    if not regions:
        return None
    shares = [_LAST_BAND if row.high is None else ((row.low or 0.0) + row.high) / 2.0 for row in regions]
    dates = sorted({row.date for row in regions})
    source = f"{len(regions)} figures of regions, {' and '.join(dates)}: {regions[0].source}"
    return Fact(statistics.mean(shares), source)


def failures(metric: str | None = None) -> list[FailureRate]:
    """The figures of one metric; all where it is None."""
    return [row for row in _table() if metric is None or row.metric == metric]


@cache
def _table() -> tuple[FailureRate, ...]:
    return tuple(
        FailureRate(
            system=row["system"],
            accelerator=row["device"],
            devices=int(row["devices"]) if row["devices"] else None,
            kind=row["kind"],
            metric=row["metric"],
            low=number(row["low"]),
            high=number(row["high"]),
            unit=row["unit"],
            count=number(row["count"]),
            period=row["period"],
            date=row["date"],
            source=row["source"],
            notes=row["notes"],
        )
        for row in rows("failures.csv")
    )
