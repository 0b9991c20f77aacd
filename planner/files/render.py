"""File tools: launch files of a plan, as text or on disk."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from estimator.plan.schema import Plan
from launchers.choice import usual_targets
from launchers.pieces import Rendered
from launchers.predictions import ServingPrediction, TrainingPrediction
from launchers.render import render
from launchers.writing import write
from planner.asked.files import RenderRequest, WriteRequest
from planner.estimates import PlanEstimate, warnings_of
from planner.files.below import inside_root
from planner.files.expressible import expressible
from planner.result import Assumption
from planner.results import RenderedConfigs, RenderedFile, WrittenConfigs, WrittenFile
from planner.serving import planned as serving
from planner.serving.planned import Served
from planner.training.memory import memory_of
from planner.training.planned import Planned, time_of


@dataclass(frozen=True)
class _LaunchFiles:
    """The files of a plan with its estimate, its name, and what was assumed."""

    rendered: Rendered
    estimate: PlanEstimate
    name: str
    assumptions: list[Assumption]


def _rendered(request: RenderRequest) -> _LaunchFiles:
    expressed = expressible(request.to_plan(), lambda estimate: _render(estimate, request))
    estimate = expressed.estimate
    job, plan = estimate.job, estimate.plan
    what = plan.inference.engine if isinstance(estimate, Served) else plan.training.method
    return _LaunchFiles(
        rendered=expressed.rendered,
        estimate=estimate,
        name=plan.name or f"{job.architecture.id.split('/')[-1]}-{what}",
        assumptions=[*expressed.changes, *estimate.assumptions],
    )


def _render(estimate: PlanEstimate, request: RenderRequest) -> Rendered:
    plan = estimate.plan if isinstance(estimate, Served) else estimate.settled_plan
    prediction = serving_prediction(estimate) if isinstance(estimate, Served) else training_prediction(estimate)
    name = model_id(plan, estimate.job.architecture.id)
    return render(plan, request.targets or usual_targets(plan), prediction, name, request.site())


def _warnings(made: _LaunchFiles) -> list[str]:
    """What stands against starting the files comes first."""
    return list(dict.fromkeys([*made.rendered.warnings, *warnings_of(made.estimate)]))


def training_prediction(planned: Planned) -> TrainingPrediction:
    """What the estimate of a training plan says, for the headings of its files."""
    memory, step = memory_of(planned), time_of(planned)
    return TrainingPrediction(
        memory_bytes=memory.per_device_bytes,
        memory_low_bytes=memory.low_bytes,
        memory_high_bytes=memory.high_bytes,
        capacity_bytes=memory.capacity_bytes,
        step_s=step.step_s,
        step_low_s=step.low_s,
        step_high_s=step.high_s,
        host_bytes=memory.host.per_node_bytes,
    )


def serving_prediction(served: Served) -> ServingPrediction:
    """The same of a serving plan."""
    memory, latency = serving.memory_of(served), serving.latency_of(served)
    return ServingPrediction(
        memory_bytes=memory.per_device_bytes,
        capacity_bytes=memory.capacity_bytes,
        fits=memory.fits,
        ttft_s=latency.ttft_s,
        ttft_low_s=latency.ttft_low_s,
        ttft_high_s=latency.ttft_high_s,
        tpot_s=latency.tpot_s,
        tpot_low_s=latency.tpot_low_s,
        tpot_high_s=latency.tpot_high_s,
        output_tokens_per_s=serving.throughput_of(served).output_tokens_per_s,
        max_concurrency=memory.max_concurrency,
    )


def model_id(plan: Plan, known: str) -> str | None:
    """What loaders take: the id `known` to the catalogue, the folder of a model on disk, None for one given inline."""
    model = plan.model
    if not isinstance(model, str):
        return None
    path = os.path.expanduser(model)
    if os.path.isfile(path):
        return os.path.dirname(model) or "."
    return model if os.path.isdir(path) else known


def render_configs(request: RenderRequest) -> RenderedConfigs:
    """Render launch files."""
    made = _rendered(request)
    return RenderedConfigs(
        plan=made.estimate.complete_plan,
        assumptions=made.assumptions,
        files=[RenderedFile(path=file.path, target=file.target, text=file.text) for file in made.rendered.files],
        launch_command=made.rendered.launch_command,
        needs_from_user=list(made.rendered.needs_from_user),
        warnings=_warnings(made),
    )


def write_configs(request: WriteRequest) -> WrittenConfigs:
    """Write launch files."""
    made = _rendered(request)
    folder = inside_root(request.folder or f"runs/{re.sub(r'[^A-Za-z0-9._-]+', '-', made.name).strip('.-') or 'plan'}")
    written = write(made.rendered, folder, overwrite=request.overwrite)
    return WrittenConfigs(
        plan=made.estimate.complete_plan,
        assumptions=made.assumptions,
        folder=str(folder),
        files=[WrittenFile(path=file.path, target=file.target, bytes=file.bytes) for file in written],
        launch_command=made.rendered.launch_command,
        needs_from_user=list(made.rendered.needs_from_user),
        warnings=_warnings(made),
    )
