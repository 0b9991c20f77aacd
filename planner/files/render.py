"""File tools: launch files of a plan, as text or on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path

from pydantic import BaseModel, Field

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.own.files import is_gone, working_folder
from launchers.choice import usual_targets
from launchers.pieces import Rendered
from launchers.predictions import ServingPrediction, TrainingPrediction
from launchers.render import render
from launchers.site import Site
from launchers.targets import target_descriptions
from launchers.writing import write
from planner.estimates import PlanEstimate, warnings_of
from planner.files.expressible import expressible
from planner.requests import EitherRequest
from planner.result import Assumption
from planner.results import RenderedConfigs, RenderedFile, WrittenConfigs, WrittenFile
from planner.serving import planned as serving
from planner.serving.planned import Served
from planner.training.memory import memory_of
from planner.training.planned import Planned, time_of


class SiteArguments(BaseModel):
    """What the user may say of the place where a run starts."""

    partition: str | None = Field(None, description="Slurm partition.")
    account: str | None = Field(None, description="Slurm account.")
    image: str | None = Field(None, description="Container image to run in, e.g. nvcr.io/nvidia/pytorch:25.10-py3.")
    namespace: str | None = Field(None, description="Kubernetes namespace.")
    queue: str | None = Field(None, description="Kueue queue of the Kubernetes cluster.")
    dataset: str | None = Field(None, description="Name or path of the data as the training program takes it.")
    time_limit_h: float | None = Field(None, gt=0, description="Time limit of the job, instead of the deadline.")

    def site(self) -> Site:
        return Site(**{field.name: getattr(self, field.name) for field in fields(Site)})


class RenderRequest(SiteArguments, EitherRequest):
    targets: list[str] | None = Field(
        None,
        min_length=1,
        description="What to write; by default the usual program of the plan's framework or engine, and Slurm. "
        f"Of: {', '.join(target_descriptions())}.",
    )


class WriteRequest(RenderRequest):
    folder: str | None = Field(None, description="Where to write; ./runs/<name of the plan> by default.")
    overwrite: bool = Field(False, description="Replace files that exist with other contents.")


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


_LONGEST_PART = 255  # bytes, of most file systems
_root: ContextVar[Path | None] = ContextVar("root", default=None)


@contextmanager
def writing_below(root: Path) -> Iterator[None]:
    """Tools that run inside write below `root` (absolute, links followed) instead of the working folder."""
    token = _root.set(root)
    try:
        yield
    finally:
        _root.reset(token)


def written_below() -> Path | None:
    """The root that `writing_below` set; None for the working folder."""
    return _root.get()


def inside_root(folder: str, field: str = "folder") -> Path:
    """The folder or file asked for, which has to lie below the root of what may be written once links are followed.

    It is relative where the root is the working folder. Raises PlanError.
    """
    root = _root.get()
    if root is None and is_gone():
        raise PlanError(field, f"the working folder {working_folder()} was deleted; go to one that is there")
    base, shown = root or Path.cwd().resolve(), repr(folder if len(folder) <= 60 else folder[:57] + "...")
    try:
        if len(folder) > 1000 or any(len(os.fsencode(part)) > _LONGEST_PART for part in Path(folder).parts):
            raise ValueError
        inside = not folder.startswith("~") and (base / folder).resolve().is_relative_to(base)
    except (OSError, ValueError):
        raise PlanError(field, f"{shown} cannot be the name of a folder", ["e.g. runs/my-plan"]) from None
    if not inside:
        raise PlanError(field, f"{shown} is outside the working folder", ["a folder below it, e.g. runs/my-plan"])
    return base / folder if root else Path(folder)
