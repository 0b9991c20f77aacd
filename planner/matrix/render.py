"""render_matrix and benchmark_matrix: models under strategies on platforms, as runs that one script starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pydantic import ConfigDict, Field

from estimator.errors import PlanError
from estimator.plan.schema import Framework
from estimator.search.strategies import CUSTOM, STRATEGIES
from knowledge.machines.catalogue import find_accelerator
from launchers.launch.names import slug
from launchers.matrix import RESULT, SCHEDULERS, Cell, matrix_files, refusal
from launchers.pieces import Rendered
from launchers.site import Site
from launchers.writing import write
from measure.history.scores import Estimate
from measure.run.matrix import FORMAT, CellResult
from planner.compare.rows import training_figures
from planner.files.render import SiteArguments, inside_root, model_id, prediction_of
from planner.layouts.strategies import (
    MOST_ROWS,
    Applied,
    Choice,
    StrategiesRequest,
    applied,
    common_assumptions,
    strategy_name,
    union_evidence,
)
from planner.result import Assumption, Evidence, Result
from planner.results import RenderedFile, WrittenFile
from planner.training.planned import Planned, warnings_of

# Optimizer steps of a cell where the plan says nothing of its length: enough for a steady step time after warm-up.
_STEPS = 50
_LENGTHS = ("steps", "dataset_tokens", "dataset_samples")
_MOST_COOLDOWN_S = 3600.0


class PlatformSettings(SiteArguments):
    """What differs on one platform."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    framework: Framework | None = Field(None, description="Training framework there.")


class MatrixRequest(SiteArguments, StrategiesRequest):
    custom_layouts: dict[str, dict[str, Any]] | None = Field(
        None, description="More strategies, layouts of your own by name: {tp4: {tp: 4}}; strategies may then be []."
    )
    platforms: dict[str, PlatformSettings] | None = Field(
        None,
        description="By accelerator what differs there: framework, partition, account, image, namespace, queue, "
        "dataset, time_limit_h.",
    )
    scheduler: str = Field("slurm", description=f"What runs a cell and waits for its end: {', '.join(SCHEDULERS)}.")
    cooldown_s: float = Field(20.0, ge=0, le=_MOST_COOLDOWN_S, description="Pause between two cells.")

    def _data(self) -> dict[str, Any]:
        """The plan's data; a run of no stated length is a short one, as it is there to be measured."""
        data = super()._data()
        workload = data.get("workload", {})
        if isinstance(workload, dict) and not any(workload.get(name) for name in _LENGTHS):
            return data | {"workload": workload | {"steps": _STEPS}}
        return data


class WriteMatrixRequest(MatrixRequest):
    folder: str | None = Field(None, description="Where to write; ./runs/<name of the plan>-matrix by default.")
    overwrite: bool = Field(False, description="Replace files that exist with other contents.")


class CellFigures(Result):
    """What is predicted of a cell, under the names that results have; ends are of 80 % intervals."""

    step_s: float
    step_low_s: float
    step_high_s: float
    tokens_per_s_per_device: float
    tokens_low_per_s_per_device: float
    tokens_high_per_s_per_device: float
    peak_bytes: float = Field(description="Of the fullest device, all that it shows.")
    peak_low_bytes: float
    peak_high_bytes: float
    peak_bytes_by_kind: dict[str, float] = Field(description="As torch's counters would show it.")
    capacity_bytes: float
    communication_s: float
    model_tflops_per_device: float
    mfu: float
    usd_per_million_tokens: float | None
    bottleneck: str


class MatrixCell(Result):
    """One run; what a plan would say is null where there is no layout."""

    id: str = Field(description="Its folder in the matrix.")
    model: str
    platform: str
    strategy: str
    framework: str | None = None
    devices: int | None = None
    layout: dict[str, Any] | None = None
    summary: str | None = None
    micro_batch: int | None = None
    grad_accum: int | None = None
    global_batch: int | None = None
    seq_len: int | None = None
    precision: str | None = None
    fits: bool = False
    passed_over: list[str] = Field(
        default=[], description="Why layouts that might have been better were not taken: no launch file can say them."
    )
    predicted: CellFigures | None = None
    runs: bool = Field(description="Whether the script runs it.")
    skip_reason: str | None
    targets: list[str] = Field(description="Of its launch files.")
    command: str | None = Field(description="Runs it from its folder, and waits.")
    plan: str | None = Field(description="File with its complete plan.")
    result: str | None = Field(description="File for what is measured of it.")


class Matrix(Result):
    plan: dict[str, Any] = Field(description="The plan that the cells share.")
    cells: list[MatrixCell]
    strategies: dict[str, str] = Field(description="What each strategy makes small.")
    identical_in: dict[str, list[str]] = Field(
        description="By model, the layout fields that truly_identical has the same on all platforms."
    )
    launch_command: str
    needs_from_user: list[str]
    assumptions: list[Assumption]
    warnings: list[str]
    evidence: list[Evidence]


class RenderedMatrix(Matrix):
    files: list[RenderedFile]


class WrittenMatrix(Matrix):
    folder: str
    files: list[WrittenFile]


@dataclass(frozen=True)
class _Set:
    """A matrix with its files and what its results share."""

    rendered: Rendered
    name: str
    shared: dict[str, Any]


def render_matrix(request: MatrixRequest) -> RenderedMatrix:
    """Render a benchmark matrix."""
    made = _matrix(request)
    files = [RenderedFile(path=file.path, target=file.target, text=file.text) for file in made.rendered.files]
    return RenderedMatrix(**made.shared, files=files)


def benchmark_matrix(request: WriteMatrixRequest) -> WrittenMatrix:
    """Write a benchmark matrix."""
    made = _matrix(request)
    folder = inside_root(request.folder or f"runs/{made.name}")
    written = write(made.rendered, folder, overwrite=request.overwrite)
    files = [WrittenFile(path=file.path, target=file.target, bytes=file.bytes) for file in written]
    return WrittenMatrix(**made.shared, folder=str(folder), files=files)


def _matrix(request: MatrixRequest) -> _Set:
    settings = _settings(request)
    found = list(_applied(request, settings))
    base, strategies = found[0].base, {name: words for one in found for name, words in one.strategies.items()}
    choices = [choice for one in found for group in one.groups for choice in group]
    choices.sort(key=lambda choice: list(strategies).index(choice.strategy))
    _refuse_others(settings, choices)
    cells = [_cell(choice, request, settings.get(choice.accelerator)) for choice in choices]
    head: dict[str, Any] = {
        "format": FORMAT,
        "name": base.name,
        "made_by": f"Shardwise {version('shardwise')}",
        "plan": base.given(),
        "strategies": strategies,
        "identical_in": {model: names for one in found for model, names in one.identical_in.items()},
        "cooldown_s": request.cooldown_s,
        "results": {
            "file": RESULT,
            "without_it": "matrix_results reads the programs' own logs: run.log, slurm-*.out, logs/*.log",
            "schema": CellResult.model_json_schema(),
        },
    }
    rendered, rows = matrix_files(cells, request.scheduler, request.cooldown_s, head)
    shown = [choice.found for choice in choices if isinstance(choice.found, Planned)]
    shared = {
        "plan": base.model_dump(mode="json"),
        "cells": [MatrixCell(**row) for row in rows],
        "strategies": strategies,
        "identical_in": head["identical_in"],
        "launch_command": rendered.launch_command,
        "needs_from_user": list(rendered.needs_from_user),
        "assumptions": [*_own_assumptions(request), *common_assumptions(shown)],
        "warnings": list(dict.fromkeys(text for found in shown for text in warnings_of(found))),
        "evidence": union_evidence(shown),
    }
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", base.name or "").strip(".-")
    return _Set(rendered, f"{name}-matrix" if name else "matrix", shared)


def _settings(request: MatrixRequest) -> dict[str, PlatformSettings]:
    """The settings of single platforms by accelerator id. Raises PlanError for an accelerator that is not known."""
    found: dict[str, PlatformSettings] = {}
    for name, settings in (request.platforms or {}).items():
        try:
            found[find_accelerator(name).value.id] = settings
        except PlanError as error:
            raise PlanError("platforms", error.problem, error.valid) from None
    return found


def _refuse_others(settings: Mapping[str, PlatformSettings], choices: Sequence[Choice]) -> None:
    """Raises PlanError for settings of an accelerator that the matrix has not."""
    platforms = list(dict.fromkeys(choice.accelerator for choice in choices))
    if other := next((name for name in settings if name not in platforms), None):
        raise PlanError("platforms", f"{other} is no platform of the matrix", platforms)


def _applied(request: MatrixRequest, settings: Mapping[str, PlatformSettings]) -> Iterator[Applied]:
    """What the named strategies take, then what each custom layout leaves open, under the layout's own name."""
    own = _custom_layouts(request)
    _check_size(request, len(own))
    frameworks = {name: one.framework for name, one in settings.items() if one.framework}

    def refused(accelerator: str, found: Planned) -> PlanError | None:
        return refusal(found.plan, request.scheduler, _site(request, settings.get(accelerator)))

    if request.strategies != [] or not own:
        yield applied(request, frameworks, refused)
    for name, sizes in own.items():
        asked = request.model_copy(update={"strategies": [CUSTOM], "custom_layout": sizes})
        found = applied(asked, frameworks)
        groups = [[Choice(one.model, name, one.accelerator, one.found) for one in group] for group in found.groups]
        yield Applied(found.base, groups, {name: found.strategies[CUSTOM]}, {})


def _custom_layouts(request: MatrixRequest) -> dict[str, dict[str, Any]]:
    own = request.custom_layouts or {}
    names = [slug(name) for name in own]
    for name, short in zip(own, names, strict=True):
        if not short or strategy_name(short) in STRATEGIES or names.count(short) > 1:
            raise PlanError("custom_layouts", f"{name[:60]!r} cannot be the name of a layout", ["tp4-pp2"])
    return dict(zip(names, own.values(), strict=True))


def _check_size(request: MatrixRequest, own: int) -> None:
    named = len(STRATEGIES) if request.strategies is None else len(request.strategies)
    platforms = len(request.accelerators) if request.accelerators is not None else 1
    cells = (named + own) * platforms * len(request.models or [None])
    if cells > MOST_ROWS:
        raise PlanError("strategies", f"that would be {cells} cells", [f"up to {MOST_ROWS} cells"])


def _cell(choice: Choice, request: MatrixRequest, settings: PlatformSettings | None) -> Cell:
    found = choice.found
    if isinstance(found, str):
        return Cell(choice.model, choice.accelerator, choice.strategy, None, choice.why, {"fits": False})
    figures = training_figures(found, request.usd_per_device_hour)
    names = ("framework", "devices", "layout", "summary", "micro_batch", "grad_accum", "global_batch", "fits")
    facts = {name: figures[name] for name in names}
    facts["passed_over"] = list(choice.refused)
    facts |= {"seq_len": found.job.seq_len, "precision": found.job.training.precision}
    facts["predicted"] = _predicted(found, figures).model_dump(mode="json")
    return Cell(
        model=choice.model,
        platform=choice.accelerator,
        strategy=choice.strategy,
        plan=found.plan,
        why=choice.why,
        facts=facts,
        prediction=prediction_of(found),
        model_id=model_id(found.plan, found.job.architecture.id),
        site=_site(request, settings),
    )


def _predicted(found: Planned, figures: Mapping[str, Any]) -> CellFigures:
    estimate = Estimate(found.estimates, found.index)
    per_device = found.job.tokens_per_step / found.job.machine.count
    kept = ("step_s", "tokens_per_s_per_device", "capacity_bytes", "communication_s", "model_tflops_per_device")
    kept += ("mfu", "usd_per_million_tokens", "bottleneck")
    return CellFigures(
        step_low_s=figures["low_s"],
        step_high_s=figures["high_s"],
        tokens_low_per_s_per_device=per_device / figures["high_s"],
        tokens_high_per_s_per_device=per_device / figures["low_s"],
        peak_bytes=figures["per_device_bytes"],
        peak_low_bytes=figures["low_bytes"],
        peak_high_bytes=figures["high_bytes"],
        peak_bytes_by_kind={kind: estimate.peak_bytes(kind) for kind in ("allocated", "reserved")},
        **{name: figures[name] for name in kept},
    )


def _site(request: MatrixRequest, settings: PlatformSettings | None) -> Site:
    """What is said of the place, with what differs on the platform."""
    given = request.site()
    if settings is None:
        return given
    own = {name: value for name, value in vars(settings.site()).items() if value is not None}
    return Site(**(vars(given) | own))


def _own_assumptions(request: MatrixRequest) -> Iterator[Assumption]:
    given = StrategiesRequest._data(request).get("workload", {})
    if not any(given.get(name) for name in _LENGTHS):
        yield Assumption(field="workload.steps", value=_STEPS, why="a short run, as it is there to be measured")
