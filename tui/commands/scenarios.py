"""`shardwise scenarios`: saved plans, by the tools for them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import merge
from pages import blocks as page
from pages.blocks import Block, Text, Verdict
from pages.views.words import diff, scenarios
from tools.registry import find
from tui.flags import read_plan, saved_plan, settings_of
from tui.jsonout import write_json


def run(arguments: argparse.Namespace) -> int:
    outcome = _ACTIONS[arguments.action](arguments)
    if outcome is None:
        return 0
    result, blocks = outcome
    if arguments.json:
        write_json(result)
    else:
        page.show(blocks)
    return 0


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return find(name)(arguments)


def _list(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Block]]:
    result = _call("list_scenarios", {"query": arguments.query, "figures": arguments.figures})
    return result, scenarios(result)


def _show(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Block]]:
    result = _call("load_scenario", {"name": arguments.name, "format": arguments.format})
    return result, [Text(file["text"]) for file in result["files"]]


def _save(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Block]]:
    if arguments.plan is None and not arguments.set:
        raise PlanError("--plan", "is required: the plan to save", ["--plan plan.yaml", "--plan - < plan.json"])
    request = find("save_scenario").request
    flat, dotted = settings_of(arguments.set or (), request.model_fields)
    plan = None if arguments.plan is None else read_plan(arguments.plan)
    if dotted:
        plan = merge(saved_plan(plan) if isinstance(plan, str) else plan or {}, dotted)
    fields = {"name": arguments.name, "overwrite": arguments.overwrite} | flat
    result = _call("save_scenario", fields if plan is None else fields | {"plan": plan})
    where = ", ".join(file["path"] for file in result["files"])
    return result, [Verdict(f"Saved as {result['name']} ({where} in {result['folder']}).", True)]


def _delete(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Block]] | None:
    if not arguments.yes and not _agreed(arguments.name):
        print("Nothing was deleted.", file=sys.stderr)
        return None
    result = _call("delete_scenario", {"name": arguments.name})
    return result, [Verdict(f"Deleted {result['name']}.")]


def _agreed(name: str) -> bool:
    saved_plan(name, "name")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise PlanError("--yes", f"is needed to delete {name!r} where nobody can be asked")
    sys.stderr.write(f"Delete the saved plan {name!r}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _diff(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Block]]:
    result = _call("diff_scenarios", {"a": read_plan(arguments.a, "a"), "b": read_plan(arguments.b, "b")})
    return result, diff(result)


_ACTIONS = {"list": _list, "show": _show, "save": _save, "delete": _delete, "diff": _diff}
