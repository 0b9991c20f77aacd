"""What the figures of an estimate rest on: by part of the model, which measurements its numbers were fitted on."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from estimator.job import Job
from knowledge.calibration import surface_rows, timed_family, timed_framework, weighed_as
from knowledge.data_files import FOLDER, document, rows
from knowledge.hardware import accelerators
from knowledge.networks import link_kind, timings_behind

DEFAULT = "default"


@dataclass(frozen=True)
class Backing:
    """The measurements behind one part of the model.

    `measured` names what was measured, `default` where nothing like it was, and `stands_for` what that stands in for.
    `runs` are whole training runs, `points` timings of single operators, `error` the median miss on these as a
    fraction. `borrowed` says from where numbers were taken over. `versions` are those of the runs that name one.
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
    return [_framework(job), _device(job), _matmul(job), *_cores(job), *_links(job)]


def memory_backing(job: Job) -> Backing:
    """Peaks that were read of the framework's runs, or of those of its kin."""
    measured = weighed_as(job.framework.name)
    sources, versions = _named("memory.csv", measured)
    runs = job.calibration.framework.memory_runs
    return Backing("memory", measured, _other(job.framework.name, measured), runs, sources=sources, versions=versions)


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
    family = job.calibration.device.family
    measured, runs = timed_family(family)
    return Backing("device", measured, _other(family, measured), runs, sources=_sources_on(measured))


def _matmul(job: Job) -> Backing:
    """The surface of the blocks' matmuls; its error is that of as many rows as training has."""
    accelerator, kind = job.machine.accelerator, job.matmul_kind
    name, kinds = surface_rows(accelerator.id)
    row = kinds[kind]
    return Backing(
        part="matmul",
        measured=f"{kind} matmuls on {name}",
        stands_for=accelerator.id if name == DEFAULT else None,
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


def _cores(job: Job) -> Iterator[Backing]:
    """The attention kernel, where there is one, and the scans of the model's other mixers."""
    device, blocks = job.calibration.device, job.architecture.blocks
    kernels: list[tuple[str, str, Any]] = []
    attends = any(block.heads and block.mixer in ("attention", "mla") for block in blocks)
    # Eager attention is matmuls and passes through memory.
    if attends and job.training.attention != "eager":
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


def _links(job: Job) -> Iterator[Backing]:
    """Links between a node's devices and between nodes, where the run has any."""
    accelerator = job.machine.accelerator
    kind, _ = link_kind(accelerator)
    inside, outside = timings_behind(kind)
    if job.machine.count > 1:
        other = accelerator.scaleup_link if kind == DEFAULT else None
        yield Backing("scaleup", kind, other, points=inside, sources=_collectives().get(kind, ()))
    if job.machine.nodes > 1:
        yield Backing("network", "networks between nodes", points=outside, sources=_collectives()[""])


def _other(asked: str, measured: str) -> str | None:
    return asked if asked != measured else None


class _Run(NamedTuple):
    """Who measured what on which software; an empty text where the source does not say."""

    framework: str
    accelerator: str
    source: str
    software_version: str


@cache
def _runs(file: str) -> list[_Run]:
    """The runs of a measurements' file that count."""
    with (FOLDER.parent / "measurements" / file).open(encoding="utf-8", newline="") as text:
        # Rows are wide, and a dict for each would take most of the time.
        lines = csv.reader(text)
        header = next(lines)
        model, doubt = header.index("model"), header.index("doubt")
        told = [header.index(name) for name in _Run._fields]
        return [_Run(*(line[cell] for cell in told)) for line in lines if line[model] and not line[doubt]]


@cache
def _named(file: str, framework: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sources of a framework's measured runs, and the versions that they name, those of most runs first."""
    found = [run for run in _runs(file) if run.framework == framework]
    versions = Counter(run.software_version for run in found if run.software_version)
    return _most_first(Counter(run.source for run in found)), _most_first(versions)


@cache
def _sources_on(family: str) -> tuple[str, ...]:
    """The sources of the timed runs on a family's devices."""
    on_family = {device.id for device in accelerators() if device.family == family}
    return _most_first(Counter(run.source for run in _runs("training.csv") if run.accelerator in on_family))


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
    return {kind: _most_first(found) for kind, found in counts.items()}
