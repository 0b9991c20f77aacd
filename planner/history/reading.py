"""read_run: a log, a tracker's folder or a pasted log as a run, beside what is estimated of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan, merge
from measure.history.run import MeasuredRun
from measure.logs.reading import read, read_text
from planner.asked.runs import ReadRequest
from planner.files.below import inside_root
from planner.history.rating import rated
from planner.history.results import RunRating, RunReading
from planner.plots import Plot, Series
from planner.requests import EitherRequest

_NEEDED = ("model", "cluster.accelerator", "cluster.count", "workload.seq_len", "workload.global_batch")
_PLOTTED = (
    ("step_s", "Step time", "s"),
    ("loss", "Loss", ""),
    ("learning_rate", "Learning rate", ""),
    ("gradient_norm", "Gradient norm", ""),
    ("tokens_per_s_per_device", "Tokens per second and device", "tokens/s"),
    ("tflops_per_device", "TFLOP/s per device", "TFLOP/s"),
)
_GIB = 2.0**30
_STEP = "step_s"
_FIGURES = ("tokens_per_s_per_device", "step_s", "tflops_per_device", "mfu", "peak_bytes")
_POINTS = 200


def read_run(request: ReadRequest) -> RunReading:
    """Read a run, and rate it where its plan is known."""
    if request.text is not None:
        return reading_of([read_text(request.text)], plan_told(request))
    if not request.path:
        raise PlanError("path", "is required: a log, or the folder of a tracker", ["runs/train.log"])
    return read_at(inside_root(request.path), request)


def read_at(path: Path, request: ReadRequest) -> RunReading:
    """The run at a path, wherever that is."""
    return reading_of(read(path), plan_told(request))


def plan_told(request: ReadRequest) -> dict[str, Any]:
    """What the request says of the plan, each value of its field's own type. Raises PlanError."""
    data = request.plan or {}
    for flat, path in request.paths.items():
        value = getattr(request, flat, None)
        if flat in request.model_fields_set and value is not None:
            data = merge(data, {path: value})
    told = EitherRequest.model_validate({"plan": {"model": "any"} | data}).to_plan().given()
    return {name: value for name, value in told.items() if name in data}


def reading_of(runs: Sequence[MeasuredRun], over: dict[str, Any] | None = None) -> RunReading:
    """The first of the runs, with what is said over its plan."""
    run = runs[0]
    if over:
        run = _under(run, merge(run.plan, over))
    trains = run.kind == "training"
    missing = [path for path in _NEEDED if run.planned(path) is None] if trains else []
    rating, findings = _rating(run) if trains and not missing else (None, [])
    figures = run.figures
    step_low, step_high = run.spread.get(_STEP, (None, None))
    losses = [value for value in run.series.column("loss") if value is not None]
    return RunReading(
        id=run.id,
        name=run.name,
        kind=run.kind,
        source=run.source,
        date=run.date,
        outcome=run.outcome,
        plan=run.plan,
        software=run.software,
        step_low_s=step_low,
        step_high_s=step_high,
        steps=run.steps,
        start_s=run.start_s,
        **{name: figures.get(name) for name in _FIGURES},
        peak_kind=run.peak_kind,
        last_loss=losses[-1] if losses else None,
        figures=figures,
        missing=missing,
        rating=rating,
        plots=plots_of(run),
        findings=[*run.findings, *findings],
        tags=run.tags,
        note=run.note,
        runs=len(runs),
    )


def _under(run: MeasuredRun, plan: dict[str, Any]) -> MeasuredRun:
    """The run of a plan that is told, with what does not belong to its steps."""
    known = run.model_copy(update={"plan": plan})
    anew = known.contradiction if known.tokens_of_a_step != run.tokens_of_a_step else None
    return known.model_copy(update={"findings": [*run.findings, anew]}) if anew else known


def _rating(run: MeasuredRun) -> tuple[RunRating | None, list[str]]:
    """None, and why, for a plan that cannot be estimated."""
    try:
        return rated(run, Plan.parse(run.plan)), []
    except PlanError as error:
        return None, [f"it cannot be rated: {error}"]


def plots_of(run: MeasuredRun) -> list[Plot]:
    """The series of a run, a picture each."""
    series = run.series.thinned(_POINTS)
    steps: list[float | str] = [float(step) for step in series.step]
    plots = [
        Plot(title=title, kind="line", x_label="step", y_label=unit or title.lower(),
             series=[Series(name=title, x=steps, y=series.column(name))])
        for name, title, unit in _PLOTTED
        if getattr(series, name) and len(steps) > 1
    ]  # fmt: skip
    if series.memory_bytes and len(steps) > 1:
        memory = [None if value is None else value / _GIB for value in series.memory_bytes]
        plots.append(
            Plot(title="Memory per device", kind="line", x_label="step", y_label="GiB",
                 series=[Series(name="memory", x=steps, y=memory)])
        )  # fmt: skip
    return plots
