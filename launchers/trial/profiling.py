"""How a program is profiled: by its own profiler, whose settings are in data/profilers.yaml, or by NVIDIA's nsys."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError
from launchers.devices import maker
from launchers.launch.duration import run_steps
from launchers.launch.of_plan import Launch
from launchers.launch.training import TrainingLaunch
from launchers.tables import table
from launchers.trial.profile import ProfiledSteps
from launchers.yaml_text import Tree

FIELD, FOLDER = "profile", "profiles"
# Assumed, with no source: how long a program loads and compiles before its first step; and how long nsys looks where
# the length of a step is not known.
_LOADING_S, _LOOKING_S = 600, 60


def check(launch: Launch) -> None:
    """Raises PlanError where the program of the set cannot be profiled as is asked."""
    profile = launch.site.profiled
    if profile is None:
        return
    if launch.kind == "inference":
        raise PlanError(FIELD, "is of training; an engine is profiled by what it serves, while it runs")
    program = launch.program
    tools = _tools(launch, program)
    if not tools:
        problem = _rows(program).get("reason", f"{program} has no profiler of its own, and nsys does not reach it")
        raise PlanError(FIELD, problem)
    if profile.tool not in ("auto", *tools):
        raise PlanError(FIELD, f"{program} is not profiled with {profile.tool} here", list(tools))
    tool = _tool(launch, profile)
    own = tools[tool]
    if profile.ranks and not own.get("ranks"):
        raise PlanError(FIELD, f"{program} takes no ranks to profile with {tool}", [f"{tool}:{profile.steps}"])
    if any(rank >= launch.devices for rank in profile.ranks):
        raise PlanError(FIELD, f"the run has ranks 0 to {launch.devices - 1}", [f"{tool}:{profile.steps}@0"])
    steps, longest = run_steps(launch), own.get("longest_run")
    if longest is not None and (steps is None or steps > longest):
        raise PlanError("workload.steps", f"{program} traces all steps of a run, of {longest} at most", [longest])
    if longest is None and steps is not None and profile.last > steps:
        raise PlanError(FIELD, f"the run has {steps} steps", [f"{tool}:2-{steps}"] if steps > 1 else ())


def settings(launch: TrainingLaunch) -> dict[str, Tree]:
    """What the program's own profiler is told; nothing where it is not asked for, or nsys looks from outside."""
    profile = launch.site.profiled
    if profile is None:
        return {}
    own = _tools(launch, launch.program)[_tool(launch, profile)]
    values, by_stage = _values(launch, profile), own.get("by_stage", {})
    told = by_stage.get(launch.training.stage) or by_stage.get("others") or own.get("settings", {})
    return {name: _filled(value, values) for name, value in told.items()}


def tool_of(launch: TrainingLaunch) -> str | None:
    """The profiler that the run is looked at with; None where it is not."""
    return None if launch.site.profiled is None else _tool(launch, launch.site.profiled)


def around(launch: TrainingLaunch) -> str:
    """nsys as words before the command that starts a node, '' where nothing goes around it.

    Where the program tells it which steps to record it waits for that; else for as long as is predicted.
    """
    profile = launch.site.profiled
    if profile is None or _tool(launch, profile) != "nsys":
        return ""
    row = _tools(launch, launch.program)["nsys"]
    if row.get("of_its_own"):
        return ""
    words = ["nsys", "profile", "--trace=cuda,nvtx", "--sample=none", "--kill=none", "--force-overwrite=true"]
    if row.get("range"):
        words += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    else:
        delay_s, duration_s = _window_s(launch, profile)
        words += [f"--delay={delay_s}", f"--duration={duration_s}"]
    return shlex.join([*words, f"--output=nsys-{launch.slug}-%h-%p"]) + " env "


def needs(launch: TrainingLaunch) -> list[str]:
    profile = launch.site.profiled
    if profile is None or _tool(launch, profile) != "nsys":
        return []
    wanted = ["environment: nsys (NVIDIA Nsight Systems) on every node"]
    if (words := around(launch)) and "--delay" in words:
        delay_s, duration_s = _window_s(launch, profile)
        wanted.append(
            f"profile: nsys looks {duration_s} s from {delay_s} s after the start, of which {_LOADING_S} s of loading "
            "are assumed; set --delay by what a first run shows"
        )
    return wanted


def _window_s(launch: TrainingLaunch, profile: ProfiledSteps) -> tuple[int, int]:
    if launch.prediction is None:
        return _LOADING_S, _LOOKING_S
    step_s = launch.prediction.step_s
    return _LOADING_S + round((profile.first - 1) * step_s), max(1, round(profile.count * step_s))


def _rows(program: str) -> Mapping[str, Any]:
    return table("data/profilers").get(program, {})


def _tools(launch: TrainingLaunch, program: str) -> dict[str, Mapping[str, Any]]:
    """By tool what is known of it, the program's own first; nsys of any process of a node's on NVIDIA's devices."""
    rows = _rows(program)
    stage = launch.training.stage
    own: dict[str, Mapping[str, Any]] = {
        name: row
        for name, row in rows.get("tools", {}).items()
        if stage in row.get("stages", [stage]) and (name != "nsys" or maker(launch) == "NVIDIA")
    }
    reached = maker(launch) == "NVIDIA" and stage not in rows.get("ray", ())
    return own if "nsys" in own or not reached else own | {"nsys": {}}


def _tool(launch: TrainingLaunch, profile: ProfiledSteps) -> str:
    return next(iter(_tools(launch, launch.program))) if profile.tool == "auto" else profile.tool


def _values(launch: TrainingLaunch, profile: ProfiledSteps) -> dict[str, Tree]:
    """What a setting may stand for (the head of data/profilers.yaml)."""
    return {
        "$first": profile.first,
        "$last": profile.last,
        "$count": profile.count,
        "$before": profile.first - 1,
        "$waiting": profile.first - 2,
        "$after": profile.last + 1,
        "$one_more": profile.count + 1,
        "$steps": list(range(profile.first, profile.last + 1)),
        "$range": profile.steps,
        "$slice": f"{profile.first}:{profile.last + 1}",
        "$ranks": list(profile.ranks or (0,)),
        "$folder": f"{FOLDER}/{launch.slug}",
    }


def _filled(value: Any, values: Mapping[str, Tree]) -> Tree:
    if isinstance(value, dict):
        return {name: _filled(part, values) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, values) for part in value]
    return values.get(value, value) if isinstance(value, str) else value
