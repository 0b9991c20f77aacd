"""render_benchmark and benchmark_result: a training plan as a run with synthetic data, and what was measured of it
beside what was predicted. `measure_training` runs it here, or hands it to a scheduler and waits."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from estimator.errors import PlanError
from estimator.plan.schema import Plan, merge
from knowledge.machines.catalogue import find_accelerator
from knowledge.own.files import parsed, read_text
from launchers.launch.names import last_part, slug
from launchers.pieces import File, Rendered
from launchers.writing import write
from measure.history.scores import Estimate
from measure.logs.benchmark import PREDICTED, BenchmarkFile, read_benchmark, steps_of
from measure.run.following import LOG, Watch, last_lines, run_to_end, sampled
from measure.run.matrix import CellResult, cell_result, result_text
from planner.asked.files import SiteArguments
from planner.files.below import inside_root
from planner.measuring.here import here
from planner.measuring.program import TARGET, Timing, benchmark_files, command_of, scaled, stand_ins
from planner.partial import get
from planner.requests import HERE, PlanRequest
from planner.result import Assumption, Result
from planner.results import RenderedFile
from planner.training.planned import Planned, plan_training, throughput_of, time_of, warnings_of

RESULT = "result.json"
_ACCELERATOR, _COUNT, _PER_NODE = "cluster.accelerator", "cluster.count", "cluster.per_node"
_MOST_BYTES = 16 * 2**20
# Schedulers of runs that write into the folder that they were started from.
_HERE = ("none", "slurm", "compose")
_TO_FILL = "SET_ME"
# How long a benchmark may take whose batch nobody named.
_PATIENCE_S = 300.0


class BenchmarkRequest(SiteArguments, PlanRequest):
    layers: int | None = Field(None, ge=1, le=4096, description="Layers of the model to run; all unless given.")
    warmup_steps: int = Field(2, ge=0, le=1000, description="Steps after the first that do not count.")
    measured_steps: int = Field(10, ge=1, le=10_000, description="Steps that count, in each repeat.")
    repeats: int = Field(3, ge=1, le=100, description="How often these are timed.")
    cooldown_s: float = Field(2.0, ge=0, le=3600, description="Pause between two repeats.")
    profile: bool = Field(False, description="Write a trace of one more step (trace.json, for Perfetto).")
    device: Literal["auto", "cuda", "mps", "cpu"] = Field("auto", description="What PyTorch computes on.")
    threads: int | None = Field(None, ge=1, le=1024, description="Threads of each process on a CPU.")
    scheduler: str = Field("none", description="none runs it here; slurm, ssh … as those of a matrix.")

    def timing(self) -> Timing:
        return Timing(
            warmup=self.warmup_steps,
            steps=self.measured_steps,
            repeats=self.repeats,
            cooldown_s=self.cooldown_s,
            profile=self.profile,
            device=self.device,
            threads=self.threads,
        )

    def _data(self) -> dict[str, Any]:
        """The plan's data: of this machine's devices where it says so or names none, and pretraining unless it says."""
        data = super()._data()
        if get(data, _ACCELERATOR) in (None, HERE):
            kind, devices = here()
            count = get(data, _COUNT) or devices
            data = merge(data, {_ACCELERATOR: kind, _COUNT: count})
        if self.scheduler == "none" and get(data, _PER_NODE) is None and _is_cpu(get(data, _ACCELERATOR)):
            # Processes of one machine, each with its part of the processors.
            data = merge(data, {_PER_NODE: get(data, _COUNT) or 1})
        workload = data.setdefault("workload", {})
        if isinstance(workload, dict):
            workload.setdefault("stage", "pretrain")
        return data


class Forecast(BaseModel):
    """predicted.json: what is kept beside a benchmark, so that it is compared with what was predicted before it ran.
    Triples are a figure and the ends of its interval."""

    architecture: str
    parameters: int
    accelerator: str
    devices: int = Field(gt=0)
    tokens_per_step: float = Field(gt=0)
    step: tuple[float, float, float]
    mfu: float
    peak: tuple[float, float, float]
    peak_by_counter: dict[str, float]
    note: str | None = None
    stand_ins: list[str] = []


class RenderedBenchmark(Result):
    plan: dict[str, Any]
    files: list[RenderedFile]
    launch_command: str
    needs_from_user: list[str]
    predicted_step_s: float
    predicted_peak_bytes: float
    fits: bool
    assumptions: list[Assumption]
    warnings: list[str]


class BenchmarkFolder(BaseModel):
    model_config = ConfigDict(extra="forbid")
    folder: str = Field(description="Of a benchmark that was run.")


class BenchmarkFigure(Result):
    """One figure beside its prediction."""

    figure: str = Field(description="step_s, tokens_per_s_per_device, mfu or peak_bytes.")
    measured: float
    predicted: float | None
    low: float | None = Field(description="Of the prediction's 80 % interval.")
    high: float | None
    error: float | None = Field(description="Predicted over measured, less one.")
    covered: bool | None = Field(description="Whether the interval holds what was measured.")


class TrainingMeasurement(Result):
    folder: str
    outcome: Literal["ran", "oom", "failed"]
    model: str
    devices: int
    ran_on: str | None = Field(description="As PyTorch names the device.")
    figures: list[BenchmarkFigure]
    repeats: int
    steps: int
    step_low_s: float | None = Field(description="The fastest repeat's.")
    step_high_s: float | None = Field(description="The slowest repeat's.")
    startup_s: float | None = Field(description="Until the model stood; no part of a step.")
    first_step_s: float | None = Field(description="With compiling and allocation; no part of the others.")
    allocated_bytes: float | None
    reserved_bytes: float | None
    resident_bytes: float | None = Field(description="Of the largest process in host memory.")
    power_w: float | None = Field(description="Mean of one device while steps counted.")
    lowest_clock_hz: float | None
    highest_temperature_c: float | None
    first_loss: float | None
    last_loss: float | None
    versions: dict[str, str]
    problem: str | None
    warnings: list[str]


def render_benchmark(request: BenchmarkRequest) -> RenderedBenchmark:
    """Render a benchmark of a training plan."""
    planned, rendered, _ = _made(request)
    return RenderedBenchmark(
        plan=planned.complete_plan,
        files=[RenderedFile(path=file.path, target=file.target, text=file.text) for file in rendered.files],
        launch_command=rendered.launch_command,
        needs_from_user=list(rendered.needs_from_user),
        predicted_step_s=time_of(planned).step_s,
        predicted_peak_bytes=float(planned.estimates.memory.total[planned.index]),
        fits=planned.fits,
        assumptions=planned.assumptions,
        warnings=[*rendered.warnings, *warnings_of(planned)],
    )


def benchmark_result(request: BenchmarkFolder) -> TrainingMeasurement:
    """What was measured of a benchmark."""
    return result_of(inside_root(request.folder))


def measure_training(
    request: BenchmarkRequest,
    folder: str | None = None,
    watch: Watch = lambda event: None,
    environment: Mapping[str, str] | None = None,
) -> TrainingMeasurement:
    """Runs a plan's benchmark to its end in a folder of its own, and says what was measured.

    A folder that holds the same benchmark and its result is read, and nothing is run again. Raises PlanError.
    """
    planned, rendered, note = _made(request)
    place = inside_root(folder or f"runs/measured/{_name(planned)}")
    write(replace(rendered, files=_unfilled(rendered.files, place)), place, overwrite=False)
    if read_benchmark(place) is None:
        steps = request.timing().all_steps
        watch({"event": "planned", "steps": steps, "seconds": steps * time_of(planned).step_s, "note": note})
        if environment is None and request.scheduler == "none":
            environment = torch_environment()
        elsewhere = request.scheduler not in _HERE
        command = command_of(request.scheduler, rendered)
        code = run_to_end(place, command, watch, environment=environment, elsewhere=elsewhere)
        measured = read_benchmark(place)
        if measured is None:
            ending = last_lines(place)
            problem = f"the run ended with {code} and measured nothing: {ending} (more in {place / LOG})"
            raise PlanError("measure training", problem)
        before = _before(place)
        cell = cell_result(measured, before.tokens_per_step, before.devices)
        # As a matrix reads it.
        write(Rendered((File(RESULT, TARGET, result_text(cell)),), "", ()), place, overwrite=True)
    return result_of(place)


def _unfilled(files: Sequence[File], place: Path) -> tuple[File, ...]:
    """Without those that are there and that a person fills in: hosts, a partition."""
    return tuple(file for file in files if _TO_FILL not in file.text or not (place / file.path).exists())


def torch_environment() -> dict[str, str]:
    """Our own environment with the programs of the Python that runs us first: torchrun stands beside it. Raises
    PlanError where there is none."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if shutil.which("torchrun", path=path) is None:
        raise PlanError("PyTorch", "is needed to measure, and there is no torchrun here", ["pip install torch"])
    return {**os.environ, "PATH": path}


def _made(request: BenchmarkRequest) -> tuple[Planned, Rendered, str | None]:
    """(The plan, its files, what was made smaller of it)."""
    asked = scaled(request.to_plan(), request.layers)
    planned, note = _shortened(_planned(asked), asked, request.timing().all_steps)
    rendered = benchmark_files(planned, request.timing(), request.scheduler, request.site())
    plain = stand_ins(planned)
    before = forecast(planned).model_copy(update={"note": note, "stand_ins": plain})
    files = (*rendered.files, File(PREDICTED, TARGET, before.model_dump_json(indent=1) + "\n"))
    warnings = (*rendered.warnings, *([note] if note else []), *plain)
    return planned, Rendered(files, rendered.launch_command, rendered.needs_from_user, warnings), note


def _is_cpu(accelerator: Any) -> bool:
    try:
        return isinstance(accelerator, str) and find_accelerator(accelerator).value.family == "CPU"
    except PlanError:
        return False


def _shortened(planned: Planned, asked: Plan, steps: int) -> tuple[Planned, str | None]:
    """The plan with so few sequences a step that `steps` of them take minutes, where none were asked for, and the words
    for it: what a sequence takes is measured as well by few of them."""
    plan, settled = planned.plan, planned.settled_plan
    usual, replicas = settled.training.global_batch, settled.layout.dp or 1
    if usual is None or asked.training.global_batch is not None:
        return planned, None
    micro = settled.training.micro_batch or 1
    passes = max(1, usual // (micro * replicas))
    pass_s = time_of(planned).step_s / passes
    most = _PATIENCE_S / steps / pass_s
    if most >= passes:
        return planned, None
    if most < 1.0 and asked.training.micro_batch is None:
        micro = max(1, int(micro * most))
    batch = micro * replicas * max(1, int(most))
    layout = {f"layout.{name}": getattr(settled.layout, name) for name in ("zero_stage", "recompute", "dp", "tp")}
    shorter = plan_training(
        plan.patch({**layout, "workload.global_batch": batch, "workload.micro_batch": micro,
                    "workload.framework": settled.training.framework})
    )  # fmt: skip
    return shorter, f"a step is of {batch:,} sequences, for a benchmark of minutes: {usual:,} are usual"


def _planned(plan: Plan) -> Planned:
    """The plan as the program can run it: what is left open becomes what it has, by FSDP2 or DDP where their behaviour
    is known of the devices. Raises PlanError."""
    plan = plan.patch({f"layout.{name}": 1 for name in ("pp", "cp", "ep") if getattr(plan.layout, name) is None})
    planned = plan_training(plan)
    changes = _runnable(plan, planned)
    stage = changes.get("layout.zero_stage", planned.plan.layout.zero_stage) or 0
    if plan.training.framework == "auto":
        with suppress(PlanError):
            named = plan.patch({**changes, "workload.framework": "fsdp2" if stage >= 2 else "ddp"})
            planned = plan_training(named)
            # What is best of another framework may be what the program has not.
            plan, changes = named, _runnable(named, planned)
    return plan_training(plan.patch(changes)) if changes else planned


def _runnable(plan: Plan, planned: Planned) -> dict[str, Any]:
    """What of a chosen layout is left open and becomes what the program has instead."""
    row, changes = planned.plan.layout, dict[str, Any]()
    if plan.layout.zero_stage is None and row.zero_stage == 1:
        changes["layout.zero_stage"] = 2
    if plan.layout.recompute is None and row.recompute == "selective":
        changes["layout.recompute"] = "full"
    return changes


def _name(planned: Planned) -> str:
    at = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return f"{at}-{slug(last_part(planned.job.architecture.id)) or 'model'}"


def forecast(planned: Planned) -> Forecast:
    """What was predicted of a plan."""
    estimates, index = planned.estimates, planned.index
    step, peak = time_of(planned), Estimate(estimates, index)
    memory = (estimates.memory.total[index], estimates.low_bytes[index], estimates.high_bytes[index])
    return Forecast(
        architecture=planned.job.architecture.id,
        parameters=planned.job.architecture.parameters,
        accelerator=planned.job.machine.accelerator.id,
        devices=planned.job.machine.count,
        tokens_per_step=planned.job.tokens_per_step,
        step=(step.step_s, step.low_s, step.high_s),
        mfu=throughput_of(planned).mfu,
        peak=(float(memory[0]), float(memory[1]), float(memory[2])),
        peak_by_counter={kind: peak.peak_bytes(kind) for kind in ("allocated", "reserved")},
    )


def result_of(folder: Path) -> TrainingMeasurement:
    """The folder's benchmark beside its prediction. Raises PlanError."""
    measured = read_benchmark(folder)
    if measured is None:
        raise PlanError("folder", f"no benchmark was run in {folder}", ["a folder of measure training"])
    before = _before(folder)
    cell = cell_result(measured, before.tokens_per_step, before.devices)
    steps, sensed = steps_of(measured.repeats), sampled(folder)
    return TrainingMeasurement(
        folder=str(folder),
        outcome=cell.outcome,
        model=before.architecture,
        devices=before.devices,
        ran_on=measured.device_name,
        figures=_figures(cell, before),
        repeats=steps.repeats if steps else 0,
        steps=steps.steps if steps else 0,
        step_low_s=steps and steps.low_s,
        step_high_s=steps and steps.high_s,
        startup_s=measured.startup_s,
        first_step_s=measured.first_step_s,
        allocated_bytes=measured.allocated_bytes,
        reserved_bytes=measured.reserved_bytes,
        resident_bytes=measured.resident_bytes,
        power_w=sensed.watts,
        lowest_clock_hz=sensed.hertz,
        highest_temperature_c=sensed.celsius,
        first_loss=measured.losses[0] if measured.losses else None,
        last_loss=measured.losses[-1] if measured.losses else None,
        versions=measured.versions,
        problem=measured.problem,
        warnings=_doubts(measured, before),
    )


def _before(folder: Path) -> Forecast:
    try:
        return Forecast.model_validate_json(read_text(folder / PREDICTED, "folder", _MOST_BYTES))
    except ValidationError:
        raise PlanError("folder", f"{folder / PREDICTED} is not what a benchmark of ours writes") from None


def _figures(cell: CellResult, before: Forecast) -> list[BenchmarkFigure]:
    if cell.outcome != "ran" or cell.step_s is None:
        return []
    value, low, high = before.step
    rows = [_figure("step_s", cell.step_s, value, low, high)]
    amounts = {"tokens_per_s_per_device": before.tokens_per_step / before.devices, "mfu": before.mfu * value}
    for name, amount in amounts.items():
        rows.append(_figure(name, amount / cell.step_s, amount / value, amount / high, amount / low))
    if cell.peak_bytes:
        whole, least, most = before.peak
        factor = before.peak_by_counter.get(cell.peak_kind, whole) / whole
        rows.append(_figure("peak_bytes", cell.peak_bytes, whole * factor, least * factor, most * factor))
    return rows


def _figure(name: str, measured: float, value: float, low: float, high: float) -> BenchmarkFigure:
    return BenchmarkFigure(
        figure=name,
        measured=measured,
        predicted=value,
        low=low,
        high=high,
        error=value / measured - 1.0,
        covered=low <= measured <= high,
    )


def _doubts(measured: BenchmarkFile, before: Forecast) -> list[str]:
    """What keeps prediction and measurement from being of the same thing."""
    lines: list[str] = []
    counted, known = measured.parameters, before.parameters
    if counted and measured.device and abs(counted / known - 1.0) > 0.01 and counted < known * 1.5:
        lines.append(f"the program's model has {counted:,} parameters, the plan's {known:,}")
    planned_cpu = find_accelerator(before.accelerator).value.family == "CPU"
    if measured.device == "cpu" and not planned_cpu:
        lines.append(f"it ran on a processor, and the plan is for {before.accelerator}: they are not to be compared")
    if planned_cpu and measured.device == "cpu" and before.devices > 1:
        lines.append(
            f"{before.devices} processes share a machine's processors, and each is predicted as if it had its own"
        )
    lines += [*([before.note] if before.note else []), *before.stand_ins]
    steps = steps_of(measured.repeats)
    if steps and steps.spread > 0.1:
        lines.append(f"the slowest repeat took {steps.spread:.0%} longer than the fastest: the machine was not quiet")
    return lines


def plan_of(folder: Path) -> Plan:
    """The plan of a benchmark's folder."""
    return Plan.parse(parsed(read_text(folder / "plan.json", "folder"), "folder"))
