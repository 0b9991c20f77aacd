"""What a benchmark measured: its file read, and its steps as one figure with its spread."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from estimator.errors import PlanError
from knowledge.own.files import read_text
from measure.run.following import MEASURED
from measure.run.matrix import CellResult

_MOST_BYTES = 64 * 2**20


class BenchmarkFile(BaseModel):
    """measured.json of a benchmark; fields that a later program adds are passed over."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    outcome: str = Field(pattern="^(ran|oom)$")
    repeats: list[list[float]] = []
    losses: list[float] = []
    startup_s: float | None = None
    first_step_s: float | None = None
    allocated_bytes: float | None = None
    reserved_bytes: float | None = None
    resident_bytes: float | None = None
    parameters: int | None = None
    device: str | None = None
    device_name: str | None = None
    processes: int | None = None
    problem: str | None = None
    versions: dict[str, str] = {}


@dataclass(frozen=True)
class TimedSteps:
    """Seconds of a step: the median of the repeats' medians, and the least and most of these."""

    seconds: float
    low_s: float
    high_s: float
    repeats: int
    steps: int

    @property
    def spread(self) -> float:
        """Most over least of the repeats, less one."""
        return self.high_s / self.low_s - 1.0


def read_benchmark(folder: Path) -> BenchmarkFile | None:
    """None where nothing was measured there yet. Raises PlanError for a file that is none of ours."""
    path = folder / MEASURED
    if not path.exists():
        return None
    try:
        return BenchmarkFile.model_validate(json.loads(read_text(path, "folder", _MOST_BYTES)))
    except (ValueError, ValidationError, RecursionError):
        raise PlanError("folder", f"{path} is not what a benchmark of ours writes") from None


def steps_of(repeats: Sequence[Sequence[float]]) -> TimedSteps | None:
    """A median, as one slow step of another program's doing is not the run's."""
    medians = [median(times) for times in repeats if times and all(math.isfinite(time) and time > 0 for time in times)]
    if not medians:
        return None
    count = sum(len(times) for times in repeats)
    return TimedSteps(median(medians), min(medians), max(medians), len(medians), count)


def cell_result(measured: BenchmarkFile, tokens_per_step: float, devices: int) -> CellResult:
    """The same as a matrix's cell has it."""
    steps = steps_of(measured.repeats)
    facts: dict[str, Any] = {"outcome": "failed" if measured.outcome == "ran" and steps is None else measured.outcome}
    if steps is not None:
        facts |= {
            "step_s": steps.seconds,
            "tokens_per_s_per_device": tokens_per_step / devices / steps.seconds,
            "steps": steps.steps,
        }
    if measured.allocated_bytes:
        facts |= {"peak_bytes": measured.allocated_bytes, "peak_kind": "allocated"}
    elif measured.reserved_bytes:
        facts |= {"peak_bytes": measured.reserved_bytes, "peak_kind": "reserved"}
    day = datetime.now(UTC).date().isoformat()
    return CellResult(**facts, date=day, versions=measured.versions, note="synthetic data, by Shardwise's own program")


def result_text(result: CellResult) -> str:
    data: Mapping[str, Any] = result.model_dump(mode="json", exclude_none=True)
    return json.dumps(data, indent=1) + "\n"
