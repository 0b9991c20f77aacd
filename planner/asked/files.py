"""What the tools for launch files are asked."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, Field

from launchers.site import Site
from launchers.targets import target_descriptions
from planner.requests import EitherRequest


class SiteArguments(BaseModel):
    """What the user may say of the place where a run starts."""

    partition: str | None = Field(None, description="Slurm partition.")
    account: str | None = Field(None, description="Slurm account.")
    image: str | None = Field(None, description="Container image to run in, e.g. nvcr.io/nvidia/pytorch:25.10-py3.")
    namespace: str | None = Field(None, description="Kubernetes namespace.")
    queue: str | None = Field(None, description="Kueue queue of the Kubernetes cluster.")
    dataset: str | None = Field(None, description="Name or path of the data as the program takes it, or synthetic.")
    time_limit_h: float | None = Field(None, gt=0, description="Time limit of the job, instead of the deadline.")

    def site(self) -> Site:
        return Site(**{name: getattr(self, name) for name in SiteArguments.model_fields})


class RunArguments(SiteArguments):
    """The same, and how the run is looked at."""

    profile: str | None = Field(None, description="Profiler, its steps and ranks: torch:10-12@0, nsys or auto.")

    def site(self) -> Site:
        return replace(super().site(), profile=self.profile)


class RenderRequest(RunArguments, EitherRequest):
    targets: list[str] | None = Field(
        None,
        min_length=1,
        description="What to write; by default the usual program of the plan's framework or engine, and Slurm. "
        f"Of: {', '.join(target_descriptions())}.",
    )


class WriteRequest(RenderRequest):
    folder: str | None = Field(None, description="Where to write; ./runs/<name of the plan> by default.")
    overwrite: bool = Field(False, description="Replace files that exist with other contents.")


class ImportRequest(EitherRequest):
    text: str | None = Field(None, description="One config, script or command line.")
    files: dict[str, str] | None = Field(None, description="Files that belong together, text by name.")
    file_paths: list[str] | None = Field(
        None, min_length=1, description="Files below the working folder; those that they name are read, too."
    )
