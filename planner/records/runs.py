"""The measured runs that estimates are checked on: what was measured of each, and what is estimated of it."""

from __future__ import annotations

from pydantic import Field

from measure.history.nearest import FILES, File, compared_run, plan_of_run, rows_of_file
from planner.explain.results import MeasuredFigure
from planner.result import Result


class ShippedRun(Result):
    id: str
    file: File
    place: int = Field(description="Its row in the file.")
    model: str
    platform: str
    software: str = Field(description="Framework or engine, with its version.")
    measured: dict[str, float] = Field(description="By the keys of figures.")
    doubt: str = Field(description="Why it is not scored; empty where it is.")
    source: str
    reference: str
    settings: dict[str, str] = Field(description="What its source says of it.")


_KEYS = {"tokens_per_s_per_device": 1.0, "mfu": 1.0, "step_s": 1.0, "peak_bytes": 1.0, "ttft_ms": 1e-3, "tpot_ms": 1e-3}
_OUTPUT = "output_tokens_per_s"
_ABOUT = ("id", "source", "source_ref", "doubt", "tags")


def shipped_runs() -> list[ShippedRun]:
    """All of them, in file order; nothing is estimated."""
    return [_run(row, file, place) for file in FILES for place, row in enumerate(rows_of_file(file))]


def _run(row: dict[str, str], file: File, place: int) -> ShippedRun:
    software = " ".join(filter(None, (row.get("framework") or row.get("engine"), row.get("software_version"))))
    measured = {
        key.replace("_ms", "_s"): float(row[key]) * unit for key, unit in _KEYS.items() if _is_number(row.get(key, ""))
    }
    if _is_number(row.get(_OUTPUT, "")):
        measured[_OUTPUT] = float(row[_OUTPUT])
    return ShippedRun(
        id=row["id"],
        file=file,
        place=place,
        model=row.get("model", ""),
        platform=f"{row.get('devices', '1')} x {row.get('accelerator', '')}",
        software=software,
        measured=measured,
        doubt=row.get("doubt", ""),
        source=row["source"],
        reference=row.get("source_ref", ""),
        settings={name: value for name, value in row.items() if name not in (*_ABOUT, *_KEYS, _OUTPUT)},
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def compared(run: ShippedRun) -> list[MeasuredFigure]:
    """What was measured beside what is estimated; empty where the two cannot be compared."""
    figures = compared_run(run.place, run.file)
    return [
        MeasuredFigure(name=row.name, unit=row.unit, measured=row.measured, estimated=row.estimated, error=row.error)
        for row in figures
    ]


def plan_of(run: ShippedRun) -> dict[str, object] | None:
    """The plan that was run, where one can be made of what is known."""
    plan = plan_of_run(run.place, run.file)
    return None if plan is None else plan.given()
