"""The folder of a benchmark of ours: plan.json, what was predicted, and measured.json, which the program leaves."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.machines.catalogue import find_accelerator
from knowledge.own.files import read_text
from knowledge.own.mappings import json_value
from measure.history.run import MeasuredRun, StepSeries, quartiles

MEASURED, PLAN, PREDICTED = "measured.json", "plan.json", "predicted.json"
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
    if not os.path.exists(path):
        return None
    try:
        return BenchmarkFile.model_validate(_json(path))
    except ValidationError:
        raise PlanError("folder", f"{path} is not what a benchmark of ours writes") from None


def steps_of(repeats: Sequence[Sequence[float]]) -> TimedSteps | None:
    """A median, as one slow step of another program's doing is not the run's."""
    medians = [median(times) for times in repeats if times and all(math.isfinite(time) and time > 0 for time in times)]
    if not medians:
        return None
    count = sum(len(times) for times in repeats)
    return TimedSteps(median(medians), min(medians), max(medians), len(medians), count)


def is_run(folder: Path) -> bool:
    return os.path.isfile(folder / MEASURED) and os.path.isfile(folder / PLAN)


def read(folder: Path) -> MeasuredRun | None:
    """The run of a benchmark's folder; None where nothing was measured. Raises PlanError."""
    measured = read_benchmark(folder)
    if measured is None:
        return None
    plan, findings = Plan.parse(_json(folder / PLAN)), [measured.problem[:400]] if measured.problem else []
    elsewhere = measured.device == "cpu" and not _is_processor(plan.cluster.accelerator)
    if elsewhere:
        findings.append(f"it ran on a processor, and its plan is for {plan.cluster.accelerator}: no run of that")
    steps = steps_of(measured.repeats)
    times = [seconds for repeat in measured.repeats for seconds in repeat]
    figures, spread = dict[str, float](), dict[str, tuple[float, float]]()
    training, devices = plan.training, plan.cluster.count
    if steps:
        figures["step_s"] = steps.seconds
        low, _, high = quartiles(times)
        spread["step_s"] = low, high
        if training.seq_len and training.global_batch and devices:
            figures["tokens_per_s_per_device"] = training.seq_len * training.global_batch / devices / steps.seconds
    peak = measured.allocated_bytes or measured.reserved_bytes
    if peak:
        figures["peak_bytes"] = peak
    losses = measured.losses if len(measured.losses) == len(times) else []
    return MeasuredRun(
        source=f"benchmark {folder.name}"[:400],
        plan=_told(plan, elsewhere),
        outcome="oom" if measured.outcome == "oom" else "ran" if steps else "failed",
        figures=figures,
        spread=spread,
        predicted=_predicted(folder / PREDICTED),
        peak_kind="allocated" if measured.allocated_bytes else "reserved" if peak else "unknown",
        steps=steps and steps.steps,
        start_s=measured.startup_s,
        software=measured.versions,
        findings=findings,
        series=StepSeries(step=list(range(1, len(times) + 1)), step_s=list(times), loss=list(losses)).thinned(),
    )


def _is_processor(accelerator: str | None) -> bool:
    try:
        return accelerator is not None and find_accelerator(accelerator).value.family == "CPU"
    except PlanError:
        return False


def _told(plan: Plan, elsewhere: bool) -> dict[str, Any]:
    """The plan, without the devices that it did not run on."""
    if elsewhere:
        plan = plan.model_copy(update={"cluster": plan.cluster.model_copy(update={"accelerator": None})})
    return plan.model_dump(mode="json", exclude_none=True)


def _predicted(path: Path) -> dict[str, float]:
    """What was estimated before it ran; nothing where that cannot be read."""
    try:
        data = _json(path)
        values = {"step_s": data["step"][0], "peak_bytes": data["peak"][0], "mfu": data["mfu"]}
        return {name: float(value) for name, value in values.items()}
    except (PlanError, KeyError, TypeError, ValueError, IndexError):
        return {}


def _json(path: Path) -> Any:
    text = read_text(path, "folder", _MOST_BYTES)
    try:
        return json_value(text)
    except ValueError:
        raise PlanError("folder", f"{path} is not JSON") from None
