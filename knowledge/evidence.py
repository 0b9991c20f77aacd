"""What the figures of an estimate rest on: by part of the model, which measurements its numbers were fitted on."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from estimator.machine.hardware import Accelerator, Machine
from estimator.machine.matmul import Kind
from estimator.model.architecture import Block
from estimator.plan.calibration import DeviceFactors
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.job import Job
from knowledge.data_files import FOLDER, document, rows
from knowledge.engines import kernels_of, version_numbers
from knowledge.fitted.decode import decode_evidence
from knowledge.fitted.training import surface_rows, timed_family, timed_framework, weighed_as
from knowledge.machines.catalogue import accelerators
from knowledge.machines.networks import link_kind, timings_behind
from knowledge.own.calibration import own_factors

DEFAULT = "default"


@dataclass(frozen=True)
class Backing:
    """The measurements behind one part of the model.

    `measured` names what was measured, `default` where nothing like it was, and `stands_for` what that stands in for.
    `runs` are whole runs of training or serving, `points` timings of single operators, `error` the median miss on
    these as a fraction. `borrowed` says from where numbers were taken over. `versions` are those of the runs that name
    one.
    """

    part: str
    measured: str
    stands_for: str | None = None
    runs: int = 0
    points: int = 0
    error: float | None = None
    borrowed: str | None = None
    sources: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


def time_backing(job: Job) -> list[Backing]:
    """The parts of a step's time: framework, device, matmuls, attention or scans, and links."""
    device, blocks = job.calibration.device, job.architecture.blocks
    kernels = _cores(device, blocks, job.training.attention != "eager")
    matmul = _matmul(job.machine.accelerator, job.matmul_kind, trains=True)
    return [*_own(job), _framework(job), _device(job), matmul, *kernels, *_links(job.machine)]


def _own(job: Job) -> Iterator[Backing]:
    """The user's own runs, where factors were fitted to them."""
    family, framework = job.calibration.device.family, job.framework.name
    own = own_factors(family)
    if own and (runs := own.runs.get(framework)):
        yield Backing("own", f"{framework} on {family} devices", runs=runs, sources=(f"your own runs, {own.date}",))


def serving_backing(job: ServingJob) -> list[Backing]:
    """The parts of serving's time: engine, device, matmuls, attention over the cache and of prompts, experts, links."""
    accelerator = job.machine.accelerator
    family = kernels_of(accelerator.family)
    kin = family if family != accelerator.family else ""
    matmuls = [_matmul(accelerator, kind, kin) for kind in dict.fromkeys((job.kernel.kind, *_expert_kinds(job)))]
    kernels = _cores(job.device, job.architecture.blocks, True)
    return [_engine(job), _serving_device(job), *matmuls, *_cache_kernels(job), *kernels, *_links(job.machine)]


def cache_backing(job: ServingJob) -> Backing:
    """Sizes of caches that engines printed, against which the rules of their memory were checked."""
    sources = _printed(job.engine.name)
    if not sources:
        return Backing("cache_room", DEFAULT, job.engine.name)
    return Backing("cache_room", job.engine.name, runs=len(sources), sources=_most_first(Counter(sources)))


def memory_backing(job: Job) -> Backing:
    """Peaks that were read of the framework's runs, or of those of its kin."""
    measured = weighed_as(job.framework.name)
    sources, versions = _named("memory.csv", measured)
    runs = job.calibration.framework.memory_runs
    return Backing("memory", measured, _other(job.framework.name, measured), runs, sources=sources, versions=versions)


def _expert_kinds(job: ServingJob) -> tuple[Kind, ...]:
    return (job.expert_matmul.kind,) if job.architecture.is_moe else ()


def _engine(job: ServingJob) -> Backing:
    name = job.engine.name
    if not job.factors.engine_measured:
        return Backing("engine", DEFAULT, name)
    sources, versions = _named("serving.csv", name)
    return Backing("engine", name, runs=job.factors.runs, sources=sources, versions=versions)


def _serving_device(job: ServingJob) -> Backing:
    family = job.machine.accelerator.family
    if not job.factors.device_measured:
        return Backing("device", DEFAULT, family)
    return Backing("device", family, runs=_runs_on(family), sources=_sources_on(family, "serving.csv"))


def _cache_kernels(job: ServingJob) -> Iterator[Backing]:
    """Attention of a step over the cache, and grouped matmuls of experts."""
    accelerator, blocks = job.machine.accelerator, job.architecture.blocks
    family, held = kernels_of(accelerator.family), "fp8" if job.kv_bytes < 2.0 else "bf16"
    for mixer in dict.fromkeys(block.mixer for block in blocks if block.mixer in ("attention", "mla")):
        points, borrowed = decode_evidence(family, "mla" if mixer == "mla" else "attention", held, accelerator.timed_as)
        name = f"{mixer} over a {held} cache on {family} devices"
        yield Backing("cache", name, points=points, borrowed=borrowed or None)


@cache
def _printed(engine: str) -> tuple[str, ...]:
    """The source of each size of a cache that the engine printed."""
    return tuple(row["source"] for row in rows("../measurements/kv_capacity.csv") if row["engine"] == engine)


def _framework(job: Job) -> Backing:
    measured, runs = timed_framework(job.framework.name)
    sources, versions = _named("training.csv", measured)
    return Backing(
        part="framework",
        measured=measured,
        stands_for=_other(job.framework.name, measured),
        runs=runs,
        sources=sources,
        versions=versions,
    )


def _device(job: Job) -> Backing:
    node = job.calibration.node
    measured, runs = timed_family(node)
    sources = _sources_on(measured) or _sources_on(job.calibration.device.family)
    return Backing("device", measured, _other(node, measured), runs, sources=sources)


def _matmul(accelerator: Accelerator, kind: Kind, kin: str = "", trains: bool = False) -> Backing:
    """The surface of the blocks' matmuls; its error is that of as many rows as training and prompts have."""
    name, kinds = surface_rows(accelerator.timed_as, kin, trains)
    row = kinds[kind]
    return Backing(
        part="matmul",
        measured=f"{kind} matmuls on {name}",
        stands_for=accelerator.id if name == DEFAULT or accelerator.like else None,
        points=row["points"],
        error=row["errors"]["many_rows"] / 100.0 if row["points"] else None,
        borrowed=row.get("borrowed"),
        sources=_repositories(row.get("source", "")),
    )


def _repositories(source: str) -> tuple[str, ...]:
    """The repositories of 'accelerator source, accelerator source'."""
    names = [part.split()[-1] for part in source.split(",") if part.strip()]
    return tuple(dict.fromkeys(_repository(name) for name in names))


def _repository(name: str) -> str:
    return _short_names().get(name, name)


@cache
def _short_names() -> dict[str, str]:
    return document("timings.yaml")["sources"]


def _cores(device: DeviceFactors, blocks: Iterable[Block], fused: bool) -> Iterator[Backing]:
    """The attention kernel, where there is one, and the scans of the model's other mixers."""
    blocks = tuple(blocks)
    kernels: list[tuple[str, str, Any]] = []
    attends = any(block.heads and block.mixer in ("attention", "mla") for block in blocks)
    # Eager attention is matmuls and passes through memory.
    if attends and fused:
        kernel = device.attention_kernel
        kernels.append(("attention", f"{kernel.name} on {kernel.family}", kernel))
    scans = dict.fromkeys(block.mixer for block in blocks if block.mixer in device.scans)
    kernels += [("scan", name, device.scans[name]) for name in scans]
    for part, name, kernel in kernels:
        sources = tuple(source.strip() for source in kernel.source.split(";"))
        yield Backing(
            part=part,
            measured=name,
            points=kernel.points,
            error=kernel.error if kernel.points else None,
            borrowed=kernel.source if kernel.borrowed else None,
            sources=() if kernel.borrowed else sources,
        )


def _links(machine: Machine) -> Iterator[Backing]:
    """Links between a node's devices and between nodes, where the run has any."""
    accelerator = machine.accelerator
    kind, _ = link_kind(accelerator)
    inside, outside = timings_behind(kind)
    if machine.count > 1:
        other = accelerator.scaleup_link if kind == DEFAULT else None
        yield Backing("scaleup", kind, other, points=inside, sources=_collectives().get(kind, ()))
    if machine.nodes > 1:
        yield Backing("network", "networks between nodes", points=outside, sources=_collectives()[""])


def _other(asked: str, measured: str) -> str | None:
    return asked if asked != measured else None


class _EvidenceRun(NamedTuple):
    """Who measured what on which software; an empty text where the source does not say."""

    framework: str
    accelerator: str
    source: str
    software_version: str


@cache
def _runs(file: str) -> list[_EvidenceRun]:
    """The runs of a measurements' file that count; an engine stands for the framework of those of serving."""
    software = "engine" if file == "serving.csv" else "framework"
    with (FOLDER.parent / "measurements" / file).open(encoding="utf-8", newline="") as text:
        # Rows are wide, and a dict for each would take most of the time.
        lines = csv.reader(text)
        header = next(lines)
        model, doubt = header.index("model"), header.index("doubt")
        told = [header.index(software if name == "framework" else name) for name in _EvidenceRun._fields]
        return [_EvidenceRun(*(line[cell] for cell in told)) for line in lines if line[model] and not line[doubt]]


@cache
def _named(file: str, framework: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sources of a framework's measured runs, and the versions that they name, those of most runs first."""
    runs = [run for run in _runs(file) if run.framework == framework]
    versions = Counter(run.software_version for run in runs if run.software_version)
    return _most_first(Counter(run.source for run in runs)), _most_first(versions)


@cache
def _sources_on(family: str, file: str = "training.csv") -> tuple[str, ...]:
    """The sources of the timed runs on a family's devices."""
    on_family = _devices_of(family)
    return _most_first(Counter(run.source for run in _runs(file) if run.accelerator in on_family))


@cache
def _runs_on(family: str) -> int:
    """The runs of serving on a family's devices."""
    on_family = _devices_of(family)
    return sum(run.accelerator in on_family for run in _runs("serving.csv"))


@cache
def served_before(engine: str, family: str) -> int:
    """The runs of an engine on a family's devices."""
    on_family = _devices_of(family)
    return sum(run.framework == engine and run.accelerator in on_family for run in _runs("serving.csv"))


@cache
def oldest_served(engine: str) -> str:
    """The version that nine in ten of an engine's measured runs are of or newer; '' where no run names one."""
    runs = [run.software_version for run in _runs("serving.csv") if run.framework == engine and run.software_version]
    return sorted(runs, key=version_numbers)[len(runs) // 10] if runs else ""


def _devices_of(family: str) -> frozenset[str]:
    return frozenset(device.id for device in accelerators() if device.family == family)


def _most_first(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(name for name, _ in counts.most_common())


@cache
def _collectives() -> dict[str, tuple[str, ...]]:
    """By kind of link where its timings come from, those of most timings first; '' for those over several nodes."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    timings = Counter(
        (row["accelerator"], row["interconnect"] != "", row["source"])
        for row in rows("../measurements/collectives.csv")
    )
    devices = {device.id: device for device in accelerators()}
    for (accelerator, outside, source), count in timings.items():
        kind = "" if outside else link_kind(devices[accelerator])[0]
        counts[kind][_repository(source)] += count
    return {kind: _most_first(sources) for kind, sources in counts.items()}
