"""How often machines fail and spot instances are taken away, as published: data/failures.csv."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from knowledge.data_files import rows

BETWEEN_INTERRUPTIONS = "device-hours between interruptions"
SPOT_SHARE = "share interrupted in a month"


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
            low=float(row["low"]) if row["low"] else None,
            high=float(row["high"]) if row["high"] else None,
            unit=row["unit"],
            count=float(row["count"]) if row["count"] else None,
            period=row["period"],
            date=row["date"],
            source=row["source"],
            notes=row["notes"],
        )
        for row in rows("failures.csv")
    )
