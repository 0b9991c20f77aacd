"""`shardwise check` and `shardwise import`: what existing launch files run, judged, or as a plan.

`check` says with its exit code whether they fit (0), will not run (1), or whether it is not known (2). What a run left
behind, as a log, it reads as `measure logs` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from estimator.errors import PlanError
from estimator.plan.schema import merge
from knowledge.own.home import expanded
from measure.logs.reading import is_record
from pages.blocks import Block
from pages.rendering import terminal
from pages.results.of_results import blocks_of
from pages.results.reading import plan
from planner.files.importing import ImportedConfig
from planner.history.reading import ReadRequest, read_at
from planner.history.results import RunReading
from planner.requests import parsed
from tui.commands import repository
from tui.commands.plan import show
from tui.config_files import LARGEST, WorkingTree, read_whole
from tui.flags import arguments_of
from tui.jsonout import write_json
from tui.planning import PLANNING
from tui.progress import working


def run(arguments: argparse.Namespace) -> int:
    planning = PLANNING[arguments.planning]
    options = arguments_of(arguments, planning)
    checks = arguments.planning == "check"
    if checks and (arguments.each or arguments.against):
        return repository.run(arguments, options)
    with working(arguments.planning):
        result = (_logged(arguments.files, options) if checks else None) or read_whole(
            _files(arguments.files), options, WorkingTree()
        )
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    elif checks:
        show(blocks_of(result), arguments)
    elif isinstance(result, ImportedConfig):
        _print_plan(result, plan(result))
    if not checks:
        return 0
    if isinstance(result, RunReading):
        return 1 if result.outcome == "oom" else 0
    if result.missing:
        return 2
    return 0 if result.fits else 1


def _logged(paths: list[str], options: Mapping[str, Any]) -> RunReading | None:
    """The run of a file that is what a run left behind, such as a log; None of all others."""
    path = expanded(paths[0])
    if len(paths) != 1 or paths[0] == "-" or not is_record(path):
        return None
    request = parsed(ReadRequest, {name: value for name, value in options.items() if name in ReadRequest.model_fields})
    try:
        return read_at(path, request)
    except PlanError as error:
        if error.field != "path":
            raise
        return None


def _print_plan(result: ImportedConfig, notes: list[Block]) -> None:
    """The plan on standard output, for a file or a pipe; how it was read on standard error. What the program does
    unasked is part of it, so that the plan runs as the files do."""

    if not result.read:
        raise PlanError("files", "nothing in them says what is run", ["a config, a job script or a command line"])
    print(terminal.render(notes, terminal.screen_width()), file=sys.stderr)
    whole = merge(result.implied, result.plan)
    sys.stdout.write(yaml.safe_dump(whole, sort_keys=False))


def _files(paths: list[str]) -> dict[str, str]:
    tree = WorkingTree()
    named = {name: tree.text(Path(name)) for name in paths if name != "-"}
    return named | ({"standard input": sys.stdin.read(LARGEST + 1)} if "-" in paths else {})
