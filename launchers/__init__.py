"""From a complete Plan to the files that start it: training configs, engine commands, scheduler jobs.

A target is one module and one row in `launchers.targets`. Nothing here estimates: the figures in a file's heading come
from the prediction that the caller passes. What a target cannot say is refused with a PlanError that names what can
(`launchers.rules`), never bent into a different plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from estimator.plan.schema import Inference
from launchers.job import make_job
from launchers.shell.quoting import NODE_RANK
from launchers.site import Site
from launchers.targets import TARGETS

if TYPE_CHECKING:
    from estimator.plan.schema import Plan
    from launchers.engines.job import ServingJob
    from launchers.job import Job


@dataclass(frozen=True)
class Prediction:
    """What the estimator says of a training plan: bytes per device and seconds per optimizer step, with intervals."""

    memory_bytes: float
    memory_low_bytes: float
    memory_high_bytes: float
    capacity_bytes: float
    step_s: float
    step_low_s: float
    step_high_s: float


@dataclass(frozen=True)
class ServingPrediction:
    """What the estimator says of a serving plan: bytes per device, and means over requests, with intervals.

    Rates are of all replicas together. No `ttft_s` where the load is more than can be served.
    """

    memory_bytes: float
    capacity_bytes: float
    fits: bool
    ttft_s: float | None
    ttft_low_s: float | None
    ttft_high_s: float | None
    tpot_s: float
    tpot_low_s: float
    tpot_high_s: float
    output_tokens_per_s: float
    max_concurrency: int | None


@dataclass(frozen=True)
class File:
    """One file to write; `path` is relative to the folder that the user chooses. What is no text is in `data`."""

    path: str
    target: str
    text: str
    executable: bool = False
    data: bytes | None = None


@dataclass(frozen=True)
class Start:
    """How a program is started: `command` is run once on every node, from the folder of the files.

    It is one simple command of POSIX shell, on one line, in which every value from the plan or the user is quoted
    already (a scheduler may put `exec env` before it). Where the run has several nodes it reads what differs from node
    to node, and where they meet, from the variables NODE_RANK, MASTER_ADDR and MASTER_PORT
    (`launchers.shell.quoting.NODE_RANK` …), which the scheduler sets. An engine takes its port from
    `launchers.shell.quoting.PORT`, so that replicas can share a node. Nothing else is expanded. `environment` is set
    besides. `programs` are what has to be installed on every node, `image` a container image that holds them (None:
    none is known). `port` is where an engine listens unless PORT says otherwise.
    """

    command: str
    environment: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    image: str | None = None
    port: int | None = None


@dataclass(frozen=True)
class Piece:
    """What one target adds: its files, what the user must fill in, and how what it is for is started."""

    files: tuple[File, ...]
    needs_from_user: tuple[str, ...] = ()
    start: Start | None = None


@dataclass(frozen=True)
class Rendered:
    """All files of a set, the command that starts the run from their folder, and what only the user can fill in."""

    files: tuple[File, ...]
    launch_command: str
    needs_from_user: tuple[str, ...]


def target_descriptions() -> dict[str, str]:
    """What each target writes, by its name."""

    return {name: target.description for name, target in TARGETS.items()}


def render(
    plan: Plan,
    targets: Sequence[str],
    prediction: Prediction | ServingPrediction | None = None,
    model_id: str | None = None,
    site: Site | None = None,
) -> Rendered:
    """The files of `targets`, and of those that these refer to, for a complete plan.

    `model_id` is what goes in as the model's name (the plan may hold an alias); without it the plan's own string does,
    and a local path goes through as it is. A scheduler without a program starts the usual one of the plan's framework
    or engine. Raises PlanError when the plan lacks a field, contradicts itself, or asks for something that one of the
    targets cannot express.
    """
    from launchers.choice import chosen
    from launchers.rules import check

    names = chosen(plan, targets)
    job = make(plan, names, prediction, model_id, site or Site())
    for name in names:
        check(job, name)
    pieces: list[Piece] = []
    start: Start | None = None
    for name in names:
        module: Any = import_module(f"launchers.{TARGETS[name].module}")
        if TARGETS[name].role == "scheduler":
            started = [file for piece in pieces for file in piece.files if TARGETS[file.target].role != "scheduler"]
            pieces.append(module.render(job, start, started))
        else:
            pieces.append(module.render(job))
            start = pieces[-1].start or start
    assert start is not None, "a set has a program, or a config that names what reads it"
    files = tuple(file for piece in pieces for file in piece.files)
    needs = dict.fromkeys(need for piece in pieces for need in piece.needs_from_user)
    launch = job.launch or start.command
    if NODE_RANK in launch:
        needs[
            f"every node runs the command with its own NODE_RANK (0 to {job.nodes - 1}), the first node's address as "
            "MASTER_ADDR and a free port there as MASTER_PORT"
        ] = None
    return Rendered(files, launch, tuple(needs))


def make(
    plan: Plan,
    names: Sequence[str],
    prediction: Prediction | ServingPrediction | None = None,
    model_id: str | None = None,
    site: Site | None = None,
) -> Job | ServingJob:
    """The job of a complete plan and its set of targets. Raises PlanError."""

    site = site or Site()

    if isinstance(plan.workload, Inference):
        from launchers.engines.job import make_serving_job

        assert not isinstance(prediction, Prediction)
        return make_serving_job(plan, names, prediction, model_id, site)

    assert not isinstance(prediction, ServingPrediction)
    return make_job(plan, names, prediction, model_id, site)
