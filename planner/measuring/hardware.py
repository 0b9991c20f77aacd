"""measure_hardware: what this machine's devices reach, beside what the catalogue says, kept as a row of one's own."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from knowledge.machines.catalogue import find_accelerator
from knowledge.own.files import read_text
from launchers.pieces import File, Rendered
from launchers.writing import write
from measure.logs.benchmark import MEASURED
from measure.run.following import LOG, Sensor, Watch, last_lines, run_to_end, sampled, sensors
from planner.files.below import inside_root
from planner.measuring.here import MachineDescription, MachineQuestion, describe_machine
from planner.measuring.profile import MeasuredFigures, Profile, kept, profile_of
from planner.measuring.training import torch_environment
from planner.plots import Plot, Series
from planner.result import Result

PROGRAM, SETTINGS, COLLECTIVES = "hardware.py", "settings.json", "collectives.json"
_SOURCE = Path(__file__).parents[2] / "measure/run/programs/hardware.py"
_TARGET = "benchmark"
_MOST_BYTES = 4 * 2**20
_TERA = 1e12
# Load of a machine, as a part of its processors, above which others take of what is measured.
_BUSY = 0.5
# What is not over so long after its time is ended.
_GRACE_S = 5.0
_LEAST_REDUCED = 2**24
_INTENSITIES = tuple(2.0**power for power in range(-2, 13))
_ELEMENT_BYTES = {"fp32": 4.0, "tf32": 4.0, "fp8": 1.0, "int8": 1.0}


class HardwareTiming(BaseModel):
    model_config = ConfigDict(extra="forbid")
    seconds: float = Field(45.0, ge=1, le=3600, description="Until all is measured, PyTorch's own start included.")
    device: Literal["auto", "cuda", "mps", "cpu"] = Field("auto", description="What PyTorch computes on.")
    processes: int | None = Field(None, ge=1, le=64, description="For collectives; one a device, or 2 on a CPU.")
    keep: bool | None = Field(
        None, description="Whether it becomes an accelerator of one's own; unless said, where the machine was quiet."
    )


class MeasuredRate(Result):
    part: str = Field(description="matmul, memory, attention, host link, peer, collective or disk.")
    what: str = Field(description="Type, operation or direction.")
    size: str = Field(description="Rows x columns x depth, length, or bytes.")
    seconds: float
    rate: float = Field(description="FLOP/s of products and attention, else bytes/s.")
    catalogue: float | None = Field(description="The catalogue's peak of this.")
    share: float | None = Field(description="Of that peak.")


class OwnProfile(Result):
    id: str = Field(description="The name that plans have for it.")
    file: str | None = Field(description="Where it was written; null where nothing was.")
    fields: dict[str, Any]
    why: list[str] = Field(description="How each was found.")


class HardwareMeasurement(Result):
    folder: str
    device: str
    accelerator: str | None = Field(description="The catalogue's id of it.")
    best: list[MeasuredRate] = Field(description="The best of each part and kind.")
    rates: list[MeasuredRate] = Field(description="All of them.")
    power_w: float | None = Field(description="Mean of a device meanwhile.")
    lowest_clock_hz: float | None
    highest_temperature_c: float | None
    profile: OwnProfile | None
    plots: list[Plot]
    versions: dict[str, str]
    skipped: list[str] = Field(description="What could not be measured, and why.")
    warnings: list[str]


class _Rate(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    part: str
    what: str
    amount: float = Field(gt=0)
    seconds: float = Field(gt=0)
    shape: tuple[int, int, int] | None = None
    length: int | None = None
    size: int | None = None
    carried: float | None = None
    processes: int | None = None

    @property
    def rate(self) -> float:
        """Of collectives what one device's links carry."""
        return self.amount / self.seconds * (1.0 if self.carried is None else self.carried)


class _About(BaseModel):
    kind: str
    name: str | None = None
    memory_bytes: float | None = None
    versions: dict[str, str] = {}


class _File(BaseModel):
    about: _About
    rates: list[_Rate]
    skipped: list[str]


def measure_hardware(
    question: HardwareTiming,
    folder: str | None = None,
    watch: Watch = lambda event: None,
    environment: Mapping[str, str] | None = None,
    sensor: Sensor | None = sensors,
) -> HardwareMeasurement:
    """Measures this machine in a folder of its own. Raises PlanError where there is no PyTorch."""
    environment = environment or torch_environment()
    machine = describe_machine(MachineQuestion(torch=False))
    place = inside_root(folder or f"runs/measured/{datetime.now(UTC):%Y%m%d-%H%M%S}-hardware")
    processes = _processes(question, machine)
    ends_at = time.time() + question.seconds
    settings = {"seconds": question.seconds, "device": question.device, "processes": processes, "ends_at": ends_at}
    files = (
        File(PROGRAM, _TARGET, _SOURCE.read_text(encoding="utf-8")),
        File(SETTINGS, _TARGET, json.dumps(settings, indent=1) + "\n"),
    )
    write(Rendered(files, "", ()), place, overwrite=True)
    command = _command(processes, int(machine.host.threads), environment)
    code = run_to_end(place, command, watch, sensor, environment, question.seconds + _GRACE_S)
    if not (place / MEASURED).exists():
        problem = f"nothing was measured: {last_lines(place)} (more in {place / LOG})"
        raise PlanError("measure hardware", problem)
    told = result_of(place, machine, question.keep)
    if code is None:
        late = (
            f"it was ended after {question.seconds + _GRACE_S:.3g} s, before all was measured: --seconds gives it more"
        )
        told = told.model_copy(update={"warnings": [*told.warnings, late]})
    return told


def _processes(question: HardwareTiming, machine: MachineDescription) -> int:
    """Those that measure what they reach together."""
    if question.processes:
        return question.processes
    return len(machine.devices) if machine.devices and question.device != "cpu" else 2


def _command(processes: int, threads: int, environment: Mapping[str, str]) -> str:
    """The Python beside torchrun measures a device; then several processes measure what they reach together."""
    torchrun = shutil.which("torchrun", path=environment.get("PATH")) or "torchrun"
    python = Path(torchrun).with_name("python")
    alone = f"'{python}' {PROGRAM}"
    if processes < 2:
        return alone
    each = max(1, threads // processes)
    together = f"'{torchrun}' --standalone --nproc_per_node {processes} {PROGRAM} collectives"
    return f"rm -f {COLLECTIVES}; {alone} && OMP_NUM_THREADS={each} {together}"


def result_of(folder: Path, machine: MachineDescription, keep: bool | None) -> HardwareMeasurement:
    """What was measured in a folder, beside the catalogue."""
    alone = _read(folder / MEASURED)
    together = _read(folder / COLLECTIVES) if (folder / COLLECTIVES).exists() else None
    computed_on_cpu = alone.about.kind == "cpu"
    known = find_accelerator(machine.accelerator).value if machine.accelerator else None
    if known and computed_on_cpu and machine.devices:
        known = None
    every = [*alone.rates, *(together.rates if together else ())]
    rates = [_shown(rate, known) for rate in every]
    sensed = sampled(folder)
    named = machine.host.processor if computed_on_cpu or not machine.devices else machine.devices[0].name
    name = named or (alone.about.name or "this machine's processor")
    profile = profile_of(machine, known, name, _figures(every, alone.about))
    warnings = list(machine.warnings)
    busy = machine.host.load is not None and machine.host.load > _BUSY * machine.host.threads
    if busy:
        others = f"the machine was busy, {machine.host.load:.3g} programs for {machine.host.threads} processors"
        warnings.append(f"{others}: the figures are lower for it")
    skipped = [*alone.skipped, *(together.skipped if together else ["collectives: the processes measured nothing"])]
    return HardwareMeasurement(
        folder=str(folder),
        device=name,
        accelerator=known and known.id,
        best=best_of(rates),
        rates=rates,
        power_w=sensed.watts,
        lowest_clock_hz=sensed.hertz,
        highest_temperature_c=sensed.celsius,
        profile=_own(profile, not busy if keep is None else keep) if profile else None,
        plots=[roofline(every, rates, known)],
        versions=alone.about.versions,
        skipped=list(dict.fromkeys(skipped)),
        warnings=warnings,
    )


def _read(path: Path) -> _File:
    try:
        return _File.model_validate_json(read_text(path, "folder", _MOST_BYTES))
    except ValidationError:
        raise PlanError("folder", f"{path} is not what measure hardware writes") from None


def _own(profile: Profile, save: bool) -> OwnProfile:
    file = str(kept(profile)) if save else None
    fields = profile.row.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    return OwnProfile(id=profile.row.id, file=file, fields=fields, why=list(profile.why))


def _shown(rate: _Rate, known: Accelerator | None) -> MeasuredRate:
    peak = _peak(rate, known) if known else None
    if rate.shape:
        size = " x ".join(str(side) for side in rate.shape)
    elif rate.length:
        size = f"length {rate.length}"
    else:
        size = f"{(rate.size or rate.amount) / 2**20:.3g} MiB"
    if rate.processes:
        size += f", {rate.processes} processes"
    share = rate.rate / peak if peak else None
    return MeasuredRate(
        part=rate.part, what=rate.what, size=size, seconds=rate.seconds, rate=rate.rate, catalogue=peak, share=share
    )


def _peak(rate: _Rate, known: Accelerator) -> float | None:
    """The catalogue's figure for what was measured; None where it has none."""
    if rate.part in ("matmul", "attention"):
        kind = {"bfloat16": "bf16", "float32": "fp32"}.get(rate.what.split()[0], rate.what.split()[0])
        return known.peak_flops.get(kind)
    peaks = {
        "memory": known.memory_bandwidth,
        "host link": known.host_bandwidth,
        "peer": known.peer_bandwidth or known.host_bandwidth,
        "collective": known.scaleup_bandwidth or None,
    }
    return peaks.get(rate.part)


def best_of(rates: Sequence[MeasuredRate]) -> list[MeasuredRate]:
    """The fastest of each part and kind, in the order in which they came."""
    best: dict[tuple[str, str], MeasuredRate] = {}
    for rate in rates:
        key = rate.part, rate.what
        if key not in best or rate.rate > best[key].rate:
            best[key] = rate
    return list(best.values())


def _figures(every: Sequence[_Rate], about: _About) -> MeasuredFigures:
    """What a profile is made of."""
    copies = [rate.rate for rate in every if rate.part == "memory" and rate.what == "copy"]
    links = [rate.rate for rate in every if rate.part == "host link"]
    reduced = [rate for rate in every if rate.part == "collective" and rate.what == "all-reduce"]
    # A small one is the wait for its start and says nothing of links.
    large = [rate for rate in reduced if rate.amount >= _LEAST_REDUCED]
    largest = max(large, key=lambda rate: rate.amount, default=None)
    return MeasuredFigures(
        products={
            kind: [(rate.shape, rate.seconds) for rate in every if rate.what == kind and rate.shape]
            for kind in dict.fromkeys(rate.what for rate in every if rate.part == "matmul")
        },
        copy_bytes_per_s=max(copies, default=None),
        host_bytes_per_s=min(links, default=None),
        all_reduce=(largest.amount, largest.seconds, largest.processes or 2)
        if largest and about.kind == "cuda"
        else None,
        memory_bytes=about.memory_bytes,
        on_cpu=about.kind == "cpu",
    )


def roofline(every: Sequence[_Rate], rates: Sequence[MeasuredRate], known: Accelerator | None) -> Plot:
    """The rates of products over their FLOP per byte, under the roof that was measured and that of the catalogue."""
    products = [rate for rate in every if rate.shape]
    best = {(rate.part, rate.what): rate.rate for rate in best_of(rates)}
    bandwidth = max((rate for (part, _), rate in best.items() if part == "memory"), default=0.0)
    series: list[Series] = []
    xs: list[float | str] = list(_INTENSITIES)
    top = max((rate.rate for rate in products), default=0.0)
    if top and bandwidth:
        roof = [min(top, x * bandwidth) / _TERA for x in _INTENSITIES]
        series.append(Series(name="measured roof", x=xs, y=list(roof)))
    if known:
        peak = max((known.peak_flops.get(rate.what, 0.0) for rate in products), default=0.0)
        if peak:
            data = [min(peak, x * known.memory_bandwidth) / _TERA for x in _INTENSITIES]
            series.append(Series(name=f"roof of {known.id}", x=xs, y=list(data)))
    for kind in dict.fromkeys(rate.what for rate in products):
        points = sorted((_intensity(rate), rate.rate / _TERA) for rate in products if rate.what == kind)
        series.append(Series(name=kind, x=[x for x, _ in points], y=[y for _, y in points]))
    return Plot(
        title="Roofline", kind="line", x_label="FLOP per byte", y_label="TFLOP/s", series=series, x_log=True, y_log=True
    )


def _intensity(rate: _Rate) -> float:
    """FLOP per byte of a product that moves each operand once; 16-bit operands unless known otherwise."""
    m, n, k = rate.shape or (1, 1, 1)
    return 2.0 * m * n * k / (_ELEMENT_BYTES.get(rate.what, 2.0) * (m * k + k * n + m * n))
