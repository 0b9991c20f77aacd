"""Schedulers rendered alone, for programs that the tests launch_of up."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from launch_plans import complete

from estimator.plan.schema import Plan
from launchers.launch.of_plan import launch_of
from launchers.pieces import File, Piece, Start
from launchers.rules import check
from launchers.shell.quoting import MASTER_ADDR, MASTER_PORT, NODE_RANK, PORT
from launchers.site import Site
from launchers.tables import table
from launchers.targets import TARGETS

# Those that take the base plan's devices.
SCHEDULERS = [
    name
    for name, target in TARGETS.items()
    if target.role == "scheduler" and "devices" not in table(f"{target.folder}/refusals")
]
TRAINS = [name for name in SCHEDULERS if "training" in TARGETS[name].kinds]
SERVES = [name for name in SCHEDULERS if "inference" in TARGETS[name].kinds]

WHO = Start(
    f"who {NODE_RANK} {MASTER_ADDR} {MASTER_PORT} '$(touch owned)' 'it'\"'\"'s $HOME ${{x}} $$'", {"FLAG": "a b$c"}
)
ALONE = Start("who 'alone'", {"FLAG": "a b$c"})
ENGINE = Start(f"serve --port {PORT}", image="example/engine:v1", port=8000, programs=("engine",))
CONFIG = File("conf/my config.yaml", "llamafactory", "a: 1\n\nb: 'x'\n")
# What a target that starts an engine itself takes from that engine's files.
_VLLM = (File("vllm.yaml", "vllm", "model: meta-llama/Llama-3.1-8B\n"),)
OF_ENGINE = {"production-stack": _VLLM, "dynamo": _VLLM, "llm-d": _VLLM}


def serving(count: int = 8, per_node: int = 8, tp: int = 1, pp: int = 1, **changes: Any) -> Plan:
    """A serving plan of `count` devices whose replicas have tp x pp."""
    plan = {
        "model": "meta-llama/Llama-3.1-8B",
        "workload": {"kind": "inference", "engine": "vllm"},
        "cluster": {"accelerator": "h100-sxm", "count": count, "per_node": per_node},
        "layout": {"tp": tp, "pp": pp},
    }
    return Plan.parse({**plan, **changes})


def scheduled(
    target: str, plan: Plan | None = None, start: Start = ALONE, files: tuple[File, ...] = (CONFIG,), **site: Any
) -> Piece:
    """What `target` makes of a plan (the base plan by default) and of a program; its rules are checked too."""
    job = launch_of(plan or complete(), [target], site=Site(**site))
    check(job, target)
    module = import_module(f"{TARGETS[target].package}.write")
    return module.render(job, start, OF_ENGINE.get(target, files))


def text(piece: Piece, path: str | None = None) -> str:
    return next(file.text for file in piece.files if path in (None, file.path))
