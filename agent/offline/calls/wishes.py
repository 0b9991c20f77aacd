"""The call of a tool that answers alone: the plan's arguments and its own, and what of the plan it can do without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.offline.calls.figure import resolved
from agent.wire import Content
from estimator.plan.schema import merge
from planner.partial import flat, get, is_serving
from planner.requests import ALL_PATHS
from tools.registry import Tool

# The tools that show and add rows of one's own, with the kind of row.
ROWS = {f"{does}_{kind}": kind for does in ("add", "preview") for kind in ("price", "hardware", "model")}
# Tools whose question is about no plan, or about a saved one.
FREE = frozenset({"list_scenarios", "load_scenario", "delete_scenario", "diff_scenarios", "search_playbook",
                  "list_catalogue", "import_config", "matrix_results", "benchmark_result", "list_runs",
                  "describe_machine", "schedule_runs", *ROWS})  # fmt: skip
# Tools that look for the hardware themselves.
SEARCHES_HARDWARE = frozenset({"recommend_cluster", "auto_configure"})
# Follow-ups that ask nothing ask these again.
REPEATED = SEARCHES_HARDWARE | {"compare", "apply_strategies", "project_scaling", "peak_throughput"}
# Every other tool that is the whole answer to a question about the plan.
ALONE = REPEATED | {"advise", "explain", "benchmark_matrix", "render_matrix", "report", "render_report",
                    "preview_report", "save_scenario", "render_scenario", "render_benchmark", "rate_run",
                    "read_run"}  # fmt: skip
# Of a search for hardware the plan's own cluster and layout are the question, not the answer.
_CLUSTER = ("accelerator", "count", "per_node", "interconnect", "usable_gib")
_LAYOUT = tuple(name for name, path in ALL_PATHS.items() if path.startswith("layout."))
_MONEY = ("usd", "co2_kg", "kwh", "usd_per_million_tokens")
_ESSENTIAL = frozenset({"model", "cluster.accelerator", "cluster.count"})
_DEVICES = frozenset({"cluster.accelerator", "cluster.count"})


def of_hardware(own: Mapping[str, Any]) -> bool:
    """Whether the scenarios that are compared bring their own devices."""
    return any("accelerator" in scenario or "plan" in scenario for scenario in own.get("scenarios") or ())


def _brings_its_plan(tool: str, own: Mapping[str, Any]) -> bool:
    """Whether a question is about no plan, or about that of a run of the history."""
    return tool in FREE or (tool == "rate_run" and "run" in own)


def settles(tool: str, own: Mapping[str, Any]) -> set[str]:
    """Plan paths of the essentials that the tool can do without."""
    if _brings_its_plan(tool, own) or tool == "read_run":
        return set(_ESSENTIAL)
    over = own.get("over") or {}
    rows = own.get("scenarios") or []
    settled = {
        path for path in _ESSENTIAL if rows and all(scenario.get("plan") or _said(scenario, path) for scenario in rows)
    }
    if tool in SEARCHES_HARDWARE or tool == "peak_throughput" or "accelerators" in own or "accelerator" in over:
        settled |= _DEVICES
    if "models" in own or "model" in over:
        settled |= {"model"}
    return settled | ({"cluster.count"} if tool == "project_scaling" else set())


def _said(scenario: Mapping[str, Any], path: str) -> bool:
    return scenario.get(path.rpartition(".")[2]) is not None


def arguments(
    tool: str,
    own: Mapping[str, Any],
    plan: Mapping[str, Any],
    pricing: Mapping[str, Any],
    tools: Mapping[str, Tool],
    messages: Sequence[Content],
) -> dict[str, Any]:
    """All arguments of the call. `messages` is the conversation, for figures that are named by their value."""
    own = dict(own)
    if _brings_its_plan(tool, own):
        return own
    arguments = flat(plan)
    if is_serving(plan):
        arguments["plan"] = merge(arguments.get("plan") or {}, {"workload": {"kind": "inference"}})
    if tool == "explain":
        own["figure"] = resolved(str(own.get("figure", "first")), plan, messages)
    if tool != "explain" or own["figure"] in _MONEY:
        known = tools[tool].request.model_fields if tool in tools else {}
        own = {name: value for name, value in pricing.items() if name in known and name not in ALL_PATHS} | own
    left_out = _replaced(tool, own, plan)
    if "providers" in own or "provider" in own:
        left_out |= {"provider"}
    own = {name: value for name, value in own.items() if value is not None}
    return {name: value for name, value in arguments.items() if name not in left_out} | own


def _replaced(tool: str, own: Mapping[str, Any], plan: Mapping[str, Any]) -> set[str]:
    """Arguments of the plan that the tool's own stand for, or that the question leaves open."""
    names = set(own.get("over") or {}) | {name for name, value in own.items() if value is None}
    names |= {"accelerator"} if "accelerators" in own else set()
    names |= {"model"} if "models" in own else set()
    rows = own.get("scenarios") or []
    if rows:
        names |= {
            name for name in ALL_PATHS if all(scenario.get(name) is not None or "plan" in scenario for scenario in rows)
        }
    names |= {"per_node"} if of_hardware(own) else set()
    if tool in SEARCHES_HARDWARE:
        names |= set(_LAYOUT)
        names |= set(_CLUSTER) if tool == "recommend_cluster" or "accelerators" in own else set()
    if tool == "project_scaling":
        names |= {"count"}
    if tool == "peak_throughput" and "accelerators" in own and get(plan, "cluster.count") is None:
        names |= {"per_node"}
    return names
