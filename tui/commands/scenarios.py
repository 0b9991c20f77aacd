"""`shardwise scenarios`: saved plans, by the tools for them."""

from __future__ import annotations

import argparse
import sys

from pydantic import BaseModel

from estimator.errors import PlanError
from estimator.plan.schema import merge
from pages.blocks import Text
from pages.rendering import terminal
from pages.results.of_results import blocks_of
from planner.records.scenarios import LoadedScenario
from tools.registry import find
from tui.commands.plan import show
from tui.flags import read_plan, saved_plan, settings_of
from tui.jsonout import write_json


def run(arguments: argparse.Namespace) -> int:
    result = _ACTIONS[arguments.action](arguments)
    if result is None:
        return 0
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    elif isinstance(result, LoadedScenario):
        # The file alone, to be kept as one.
        terminal.show([Text(file.text) for file in result.files])
    else:
        show(blocks_of(result), arguments)
    return 0


def _list(arguments: argparse.Namespace) -> BaseModel:
    return find("list_scenarios").run({"query": arguments.query, "figures": arguments.figures})


def _show(arguments: argparse.Namespace) -> BaseModel:
    return find("load_scenario").run({"name": arguments.name, "format": arguments.format})


def _save(arguments: argparse.Namespace) -> BaseModel:
    if arguments.plan is None and not arguments.set:
        raise PlanError("--plan", "is required: the plan to save", ["--plan plan.yaml", "--plan - < plan.json"])
    request = find("save_scenario").request
    flat, dotted = settings_of(arguments.set or (), request.model_fields)
    plan = None if arguments.plan is None else read_plan(arguments.plan)
    if dotted:
        plan = merge(saved_plan(plan) if isinstance(plan, str) else plan or {}, dotted)
    fields = {"name": arguments.name, "overwrite": arguments.overwrite} | flat
    return find("save_scenario").run(fields if plan is None else fields | {"plan": plan})


def _delete(arguments: argparse.Namespace) -> BaseModel | None:
    if not arguments.yes and not _agreed(arguments.name):
        print("Nothing was deleted.", file=sys.stderr)
        return None
    return find("delete_scenario").run({"name": arguments.name})


def _agreed(name: str) -> bool:
    saved_plan(name, "name")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise PlanError("--yes", f"is needed to delete {name!r} where nobody can be asked")
    sys.stderr.write(f"Delete the saved plan {name!r}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _diff(arguments: argparse.Namespace) -> BaseModel:
    return find("diff_scenarios").run({"a": read_plan(arguments.a, "a"), "b": read_plan(arguments.b, "b")})


_ACTIONS = {"list": _list, "show": _show, "save": _save, "delete": _delete, "diff": _diff}
