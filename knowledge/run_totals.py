"""Whole training runs as their makers report them: data/run_totals.csv."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from knowledge.data_files import number, rows


@dataclass(frozen=True)
class RunTotal:
    """`parameters`, `active_parameters` and `tokens` are counts; `mfu` and `effective`, the share of the time that
    trained, (low, high) with None where a side was not said; `carbon_t` tonnes of CO2. `accelerator` is '' where it was
    not said, or is none of the catalogue's."""

    model: str
    organization: str
    parameters: float | None
    active_parameters: float | None
    tokens: float | None
    stage: str
    accelerator: str
    devices: int | None
    device_hours: float | None
    days: float | None
    mfu: tuple[float | None, float | None]
    effective: tuple[float | None, float | None]
    carbon_t: float | None
    watts_per_device: float | None
    interruptions: int | None
    date: str
    source: str
    notes: str


@cache
def run_totals() -> tuple[RunTotal, ...]:
    return tuple(
        RunTotal(
            model=row["model"],
            organization=row["organization"],
            parameters=number(row["parameters_b"], 1e9),
            active_parameters=number(row["active_b"], 1e9),
            tokens=number(row["tokens_b"], 1e9),
            stage=row["stage"],
            accelerator=row["device"],
            devices=int(row["devices"]) if row["devices"] else None,
            device_hours=number(row["device_hours"]),
            days=number(row["days"]),
            mfu=(number(row["mfu_low"]), number(row["mfu_high"])),
            effective=(number(row["effective_low"]), number(row["effective_high"])),
            carbon_t=number(row["carbon_t"]),
            watts_per_device=number(row["watts_per_device"]),
            interruptions=int(row["interruptions"]) if row["interruptions"] else None,
            date=row["date"],
            source=row["source"],
            notes=row["notes"],
        )
        for row in rows("run_totals.csv")
    )
