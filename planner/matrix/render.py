"""render_matrix and benchmark_matrix: models under strategies on platforms, as runs that one script starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pydantic import ConfigDict, Field

from estimator.errors import PlanError
from estimator.plan.schema import Framework, Inference, Plan
from estimator.search.strategies import CUSTOM, STRATEGIES, USUAL, communication_seconds
from knowledge.machines.catalogue import find_accelerator
from launchers.launch.names import slug
from launchers.matrix import NO_SCHEDULER, RESULT, SCHEDULERS, Cell, matrix_files, refusal
from launchers.pieces import Rendered
from launchers.site import Site
from launchers.writing import write
from measure.history.scores import Estimate
from measure.run.matrix import FORMAT, CellResult
from planner.asked.files import RunArguments
from planner.compare.rows import TrainingFigures, training_figures
from planner.estimates import common_assumptions
from planner.evidence import union_evidence
from planner.files.below import inside_root
from planner.files.render import model_id, training_prediction
from planner.layouts.strategies import (
    MOST_ROWS,
    Applied,
    StrategiesRequest,
    StrategyChoice,
    applied,
    strategy_name,
)
from planner.matrix.serving import ServedFigures, meanings, served, ways
from planner.result import Assumption, Evidence, Result
from planner.results import RenderedFile, WrittenFile
from planner.serving.warnings import warnings_of as serving_warnings
from planner.training.planned import Planned, throughput_of, time_of, warnings_of

# Optimizer steps of a cell where the plan says nothing of its length: enough for a steady step time after warm-up.
_STEPS = 50
_LENGTHS = ("steps", "dataset_tokens", "dataset_samples")
_MOST_COOLDOWN_S = 3600.0


class PlatformSettings(RunArguments):
    """What differs on one platform."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    framework: Framework | None = Field(None, description="Training framework there.")


class MatrixRequest(RunArguments, StrategiesRequest):
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
        if (
            isinstance(workload, dict)
            and workload.get("kind") != "inference"
            and not any(workload.get(name) for name in _LENGTHS)
        ):
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
    engine: str | None = None
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
    predicted: CellFigures | ServedFigures | None = None
    runs: bool = Field(description="Whether the script runs it.")
    skip_reason: str | None
    targets: list[str] = Field(description="Of its launch files.")
    command: str | None = Field(description="Runs it from its folder, and waits.")
    plan: str | None = Field(description="File with its complete plan.")
    result: str | None = Field(description="File for what is measured of it.")


class BenchmarkMatrix(Result):
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


class RenderedMatrix(BenchmarkMatrix):
    files: list[RenderedFile]


class WrittenMatrix(BenchmarkMatrix):
    folder: str
    files: list[WrittenFile]


@dataclass(frozen=True)
class _MatrixFiles:
    """A matrix with its files and what its results share."""

    rendered: Rendered
    name: str
    shared: BenchmarkMatrix


def render_matrix(request: MatrixRequest) -> RenderedMatrix:
    """Render a benchmark matrix."""
    made = _matrix(request)
    files = [RenderedFile(path=file.path, target=file.target, text=file.text) for file in made.rendered.files]
    return RenderedMatrix(**dict(made.shared), files=files)


def benchmark_matrix(request: WriteMatrixRequest) -> WrittenMatrix:
    """Write a benchmark matrix."""
    made = _matrix(request)
    folder = inside_root(request.folder or f"runs/{made.name}")
    written = write(made.rendered, folder, overwrite=request.overwrite)
    files = [WrittenFile(path=file.path, target=file.target, bytes=file.bytes) for file in written]
    return WrittenMatrix(**dict(made.shared), folder=str(folder), files=files)


def _matrix(request: MatrixRequest) -> _MatrixFiles:
    settings = _settings(request)
    if isinstance((base := request.to_plan()).workload, Inference):
        return _serving_matrix(request, base, settings)
    sets = list(_applied(request, settings))
    base, strategies = sets[0].base, {name: words for applied in sets for name, words in applied.strategies.items()}
    choices = [choice for applied_set in sets for group in applied_set.groups for choice in group]
    choices.sort(key=lambda choice: list(strategies).index(choice.strategy))
    _refuse_others(settings, choices)
    cells = [_cell(choice, request, settings.get(choice.accelerator)) for choice in choices]
    identical_in = {model: names for applied in sets for model, names in applied.identical_in.items()}
    rendered, rows = _files(request, base, cells, request.scheduler, (strategies, identical_in))
    shown = [choice.outcome for choice in choices if isinstance(choice.outcome, Planned)]
    shared = BenchmarkMatrix(
        plan=base.model_dump(mode="json"),
        cells=[MatrixCell(**row) for row in rows],
        strategies=strategies,
        identical_in=identical_in,
        launch_command=rendered.launch_command,
        needs_from_user=list(rendered.needs_from_user),
        assumptions=[*_own_assumptions(request), *common_assumptions(shown)],
        warnings=list(dict.fromkeys(text for planned in shown for text in warnings_of(planned))),
        evidence=union_evidence(planned.job for planned in shown),
    )
    return _MatrixFiles(rendered, _name(base), shared)


def _serving_matrix(request: MatrixRequest, base: Plan, settings: Mapping[str, PlatformSettings]) -> _MatrixFiles:
    """The same of a served model; its cells run on the machine itself where nothing else is said."""
    layouts = _custom_layouts(request)
    sets = ways(base, request.strategies, layouts)
    models, platforms = request.models or [base.model], request.accelerators or [base.cluster.accelerator]
    if len(sets) * len(models) * len(platforms) > MOST_ROWS:
        raise PlanError("models", "that would be too many cells", [f"up to {MOST_ROWS} cells"])
    names = [str(model) for model in models if isinstance(model, str)]
    devices = [find_accelerator(name).value.id for name in platforms if name]
    if len(names) < len(models) or len(devices) < len(platforms):
        raise PlanError("accelerators", "name the models and the platforms of the matrix", ["models", "accelerators"])
    if other := next((name for name in settings if name not in devices), None):
        raise PlanError("platforms", f"{other} is no platform of the matrix", devices)
    made = list(served(base, names, devices, sets, {name: _site(request, settings.get(name)) for name in devices}))
    scheduler = request.scheduler if "scheduler" in request.model_fields_set else NO_SCHEDULER
    strategies = meanings(sets)
    rendered, rows = _files(request, base, [cell for cell, _ in made], scheduler, (strategies, {}))
    shown = [outcome for _, outcome in made if outcome is not None]
    shared = BenchmarkMatrix(
        plan=base.model_dump(mode="json"),
        cells=[MatrixCell(**row) for row in rows],
        strategies=strategies,
        identical_in={},
        launch_command=rendered.launch_command,
        needs_from_user=list(rendered.needs_from_user),
        assumptions=common_assumptions(shown),
        warnings=list(dict.fromkeys(text for outcome in shown for text in serving_warnings(outcome))),
        evidence=union_evidence(outcome.job for outcome in shown),
    )
    return _MatrixFiles(rendered, _name(base), shared)


def _files(
    request: MatrixRequest, base: Plan, cells: Sequence[Cell], scheduler: str,
    words: tuple[Mapping[str, str], Mapping[str, list[str]]],
) -> tuple[Rendered, list[dict[str, Any]]]:  # fmt: skip
    """`words` are of the strategies, and by model what is the same on all platforms."""
    head: dict[str, Any] = {
        "format": FORMAT,
        "name": base.name,
        "made_by": f"Shardwise {version('shardwise')}",
        "plan": base.given(),
        "strategies": words[0],
        "identical_in": words[1],
        "cooldown_s": request.cooldown_s,
        "results": {
            "file": RESULT,
            "without_it": "matrix_results reads the programs' own logs: run.log, slurm-*.out, logs/*.log, *.json",
            "schema": CellResult.model_json_schema(),
        },
    }
    return matrix_files(cells, scheduler, request.cooldown_s, head)


def _name(base: Plan) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", base.name or "").strip(".-")
    return f"{name}-matrix" if name else "matrix"


def _settings(request: MatrixRequest) -> dict[str, PlatformSettings]:
    """The settings of single platforms by accelerator id. Raises PlanError for an accelerator that is not known."""
    by_accelerator: dict[str, PlatformSettings] = {}
    for name, settings in (request.platforms or {}).items():
        try:
            by_accelerator[find_accelerator(name).value.id] = settings
        except PlanError as error:
            raise PlanError("platforms", error.problem, error.valid) from None
    return by_accelerator


def _refuse_others(settings: Mapping[str, PlatformSettings], choices: Sequence[StrategyChoice]) -> None:
    """Raises PlanError for settings of an accelerator that the matrix has not."""
    platforms = list(dict.fromkeys(choice.accelerator for choice in choices))
    if other := next((name for name in settings if name not in platforms), None):
        raise PlanError("platforms", f"{other} is no platform of the matrix", platforms)


def _applied(request: MatrixRequest, settings: Mapping[str, PlatformSettings]) -> Iterator[Applied]:
    """What the named strategies take, then what each custom layout leaves open, under the layout's own name."""
    layouts = _custom_layouts(request)
    _check_size(request, len(layouts))
    frameworks = {name: platform.framework for name, platform in settings.items() if platform.framework}

    def refused(accelerator: str, planned: Planned) -> PlanError | None:
        return refusal(planned.plan, request.scheduler, _site(request, settings.get(accelerator)))

    if request.strategies != [] or not layouts:
        yield applied(request, frameworks, refused)
    for name, sizes in layouts.items():
        asked = request.model_copy(update={"strategies": [CUSTOM], "custom_layout": sizes})
        planned = applied(asked, frameworks)
        groups = [
            [StrategyChoice(choice.model, name, choice.accelerator, choice.outcome) for choice in group]
            for group in planned.groups
        ]
        yield Applied(planned.base, groups, {name: planned.strategies[CUSTOM]}, {})


def _custom_layouts(request: MatrixRequest) -> dict[str, dict[str, Any]]:
    layouts = request.custom_layouts or {}
    names = [slug(name) for name in layouts]
    for name, short in zip(layouts, names, strict=True):
        if not short or strategy_name(short) in STRATEGIES or names.count(short) > 1:
            raise PlanError("custom_layouts", f"{name[:60]!r} cannot be the name of a layout", ["tp4-pp2"])
    return dict(zip(names, layouts.values(), strict=True))


def _check_size(request: MatrixRequest, layouts: int) -> None:
    named = len(USUAL) if request.strategies is None else len(request.strategies)
    platforms = len(request.accelerators) if request.accelerators is not None else 1
    cells = (named + layouts) * platforms * len(request.models or [None])
    if cells > MOST_ROWS:
        raise PlanError("strategies", f"that would be {cells} cells", [f"up to {MOST_ROWS} cells"])


def _cell(choice: StrategyChoice, request: MatrixRequest, settings: PlatformSettings | None) -> Cell:
    outcome = choice.outcome
    if isinstance(outcome, str):
        return Cell(choice.model, choice.accelerator, choice.strategy, None, choice.why, {"fits": False})
    figures = training_figures(outcome, request.usd_per_device_hour)
    names = ("framework", "devices", "layout", "summary", "micro_batch", "grad_accum", "global_batch", "fits")
    facts = {name: getattr(figures, name) for name in names}
    facts["passed_over"] = list(choice.refused)
    facts |= {"seq_len": outcome.job.seq_len, "precision": outcome.job.training.precision}
    facts["predicted"] = _predicted(outcome, figures).model_dump(mode="json")
    return Cell(
        model=choice.model,
        platform=choice.accelerator,
        strategy=choice.strategy,
        plan=outcome.plan,
        why=choice.why,
        facts=facts,
        prediction=training_prediction(outcome),
        model_id=model_id(outcome.plan, outcome.job.architecture.id),
        site=_site(request, settings),
    )


def _predicted(planned: Planned, figures: TrainingFigures) -> CellFigures:
    estimates, index = planned.estimates, planned.index
    score = Estimate(estimates, index)
    per_device = planned.job.tokens_per_step / planned.job.machine.count
    step, speed = time_of(planned), throughput_of(planned)
    return CellFigures(
        step_s=step.step_s,
        step_low_s=step.low_s,
        step_high_s=step.high_s,
        tokens_per_s_per_device=speed.tokens_per_s_per_device,
        tokens_low_per_s_per_device=per_device / step.high_s,
        tokens_high_per_s_per_device=per_device / step.low_s,
        peak_bytes=float(estimates.memory.total[index]),
        peak_low_bytes=float(estimates.low_bytes[index]),
        peak_high_bytes=float(estimates.high_bytes[index]),
        peak_bytes_by_kind={kind: score.peak_bytes(kind) for kind in ("allocated", "reserved")},
        capacity_bytes=planned.job.usable_bytes,
        communication_s=float(communication_seconds(estimates)[index]),
        model_tflops_per_device=speed.model_tflops_per_device,
        mfu=speed.mfu,
        usd_per_million_tokens=figures.usd_per_million_tokens,
        bottleneck=planned.diagnosis.bottleneck,
    )


def _site(request: MatrixRequest, settings: PlatformSettings | None) -> Site:
    """What is said of the place, with what differs on the platform."""
    site = request.site()
    if settings is None:
        return site
    options = {name: value for name, value in vars(settings.site()).items() if value is not None}
    return Site(**(vars(site) | options))


def _own_assumptions(request: MatrixRequest) -> Iterator[Assumption]:
    workload = StrategiesRequest._data(request).get("workload", {})
    if not any(workload.get(name) for name in _LENGTHS):
        yield Assumption(field="workload.steps", value=_STEPS, why="a short run, as it is there to be measured")
