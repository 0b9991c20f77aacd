"""File tools: launch files of a plan, as text or on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from pydantic import Field

import launchers
from estimator.errors import PlanError
from launchers.writing import write
from tools.planning import Planned, complete, memory_of, planned, time_of, warnings_of
from tools.registry import tool
from tools.requests import PlanRequest
from tools.results import RenderedConfigs, RenderedFile, WrittenConfigs, WrittenFile


class RenderRequest(PlanRequest):
    targets: list[str] = Field(
        default_factory=lambda: ["llamafactory", "deepspeed", "slurm"],
        min_length=1,
        description=f"What to write: {', '.join(launchers.TARGETS)}.",
    )


class WriteRequest(RenderRequest):
    folder: str | None = Field(None, description="Where to write; ./runs/<name of the plan> by default.")
    overwrite: bool = Field(False, description="Replace files that exist with other contents.")


def _rendered(request: RenderRequest) -> tuple[Planned, launchers.Rendered]:
    found = planned(request.to_plan())
    memory, step = memory_of(found), time_of(found)
    prediction = launchers.Prediction(
        memory_bytes=memory.per_device_bytes,
        memory_low_bytes=memory.low_bytes,
        memory_high_bytes=memory.high_bytes,
        capacity_bytes=memory.capacity_bytes,
        step_s=step.step_s,
        step_low_s=step.low_s,
        step_high_s=step.high_s,
    )
    return found, launchers.render(found.plan, request.targets, prediction, _model_id(found))


def _model_id(found: Planned) -> str | None:
    """What loaders take: the catalogue's id, the folder of a model on disk, None for one given inline."""
    model = found.job.plan.model
    if not isinstance(model, str):
        return None
    path = os.path.expanduser(model)
    if os.path.isfile(path):
        return os.path.dirname(model) or "."
    return model if os.path.isdir(path) else found.job.architecture.id


@tool(title="Render launch files", read_only=True)
def render_configs(request: RenderRequest) -> RenderedConfigs:
    """Launch files of a training plan as text (LlamaFactory YAML, DeepSpeed JSON, Slurm sbatch), the command that
    starts them, and what the user still has to fill in. Nothing is written to disk."""
    found, rendered = _rendered(request)
    return RenderedConfigs(
        plan=complete(found),
        assumptions=found.assumptions,
        files=[RenderedFile(path=file.path, target=file.target, text=file.text) for file in rendered.files],
        launch_command=rendered.launch_command,
        needs_from_user=list(rendered.needs_from_user),
        warnings=warnings_of(found),
    )


@tool(title="Write launch files", read_only=False, preview="render_configs")
def write_configs(request: WriteRequest) -> WrittenConfigs:
    """Writes the launch files of a training plan into a folder below the working folder, all of them or none. Use it
    only when the user asked for files on disk; existing files are kept unless overwrite is set."""
    found, rendered = _rendered(request)
    folder = _folder(request.folder, found)
    written = write(rendered, folder, overwrite=request.overwrite)
    return WrittenConfigs(
        plan=complete(found),
        assumptions=found.assumptions,
        folder=str(folder),
        files=[WrittenFile(path=file.path, target=file.target, bytes=file.bytes) for file in written],
        launch_command=rendered.launch_command,
        needs_from_user=list(rendered.needs_from_user),
        warnings=warnings_of(found),
    )


def _folder(given: str | None, found: Planned) -> Path:
    if given is None:
        name = found.job.plan.name or f"{found.job.architecture.id.split('/')[-1]}-{found.job.training.method}"
        given = f"runs/{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('.-') or 'plan'}"
    return inside_root(given)


_root: ContextVar[Path | None] = ContextVar("root", default=None)


@contextmanager
def writing_below(root: Path) -> Iterator[None]:
    """Tools that run inside write below `root` (absolute, links followed) instead of the working folder."""
    token = _root.set(root)
    try:
        yield
    finally:
        _root.reset(token)


def inside_root(given: str) -> Path:
    """The folder asked for, which has to lie below the root of what may be written once links are followed.

    It is relative where the root is the working folder. Raises PlanError.
    """
    root = _root.get()
    base, shown = root or Path.cwd().resolve(), repr(given if len(given) <= 60 else given[:57] + "...")
    try:
        if len(given) > 1000:
            raise ValueError
        inside = not given.startswith("~") and (base / given).resolve().is_relative_to(base)
    except (OSError, ValueError):
        raise PlanError("folder", f"{shown} cannot be the name of a folder", ["e.g. runs/my-plan"]) from None
    if not inside:
        raise PlanError("folder", f"{shown} is outside the working folder", ["a folder below it, e.g. runs/my-plan"])
    return base / given if root else Path(given)
