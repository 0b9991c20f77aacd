"""`shardwise check` and `shardwise import`: what existing launch files run, judged, or as a plan.

`check` says with its exit code whether they fit (0), will not run (1), or whether it is not known (2).
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import yaml

from estimator.errors import PlanError
from estimator.plan.schema import merge
from knowledge.own.files import open_regular, working_folder
from pages.blocks import Block
from pages.rendering import terminal
from pages.rendering.clean import one_line
from pages.results.of_results import blocks_of
from pages.results.reading import plan
from planner.files.importing import ImportedConfig
from tools.registry import Tool, find
from tui.flags import arguments_of
from tui.jsonout import write_json
from tui.planning import PLANNING

_LARGEST = 200_000
_NAMED = (".json", ".yaml", ".yml", ".toml", ".sh", ".sbatch", ".slurm", ".bash")
# A job starts a script, which names a config, which names another.
_DEEPEST = 3


def run(arguments: argparse.Namespace) -> int:
    planning = PLANNING[arguments.planning]
    read = find(planning.tools[0])
    options = arguments_of(arguments, planning)
    files = _files(arguments.files)
    result = _read(read, options | {"files": files})
    for _ in range(_DEEPEST):
        if not (more := _beside(arguments.files, result.refers, files)):
            break
        files |= more
        result = _read(read, options | {"files": files})
    checks = arguments.planning == "check"
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    elif checks:
        terminal.show(blocks_of(result))
    else:
        _print_plan(result, plan(result))
    if not checks:
        return 0
    if result.missing:
        return 2
    return 0 if result.fits else 1


def _read(tool: Tool, arguments: dict[str, Any]) -> ImportedConfig:
    result = tool.run(arguments)
    assert isinstance(result, ImportedConfig)
    return result


def _print_plan(result: ImportedConfig, notes: list[Block]) -> None:
    """The plan on standard output, for a file or a pipe; how it was read on standard error. What the program does
    unasked is part of it, so that the plan runs as the files do."""

    if not result.read:
        raise PlanError("files", "nothing in them says what is run", ["a config, a job script or a command line"])
    print(terminal.render(notes, terminal.screen_width()), file=sys.stderr)
    whole = merge(result.implied, result.plan)
    sys.stdout.write(yaml.safe_dump(whole, sort_keys=False))


def _files(paths: list[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for name in paths:
        if name == "-":
            files["standard input"] = sys.stdin.read(_LARGEST + 1)
            continue
        path = Path(name)
        files[name] = _text(path)
    return files


def _text(path: Path) -> str:
    """The text of a file, one character more than may be: what is longer is refused with all that is wrong."""
    if path.is_dir():
        raise PlanError("files", f"{one_line(path)} is a folder", ["the files in it"])
    try:
        with io.TextIOWrapper(open_regular(path, "files"), encoding="utf-8") as stream:
            return stream.read(_LARGEST + 1)
    except UnicodeDecodeError:
        raise PlanError("files", f"{one_line(path)} is not a text file") from None


def _beside(paths: list[str], named: list[str], files: dict[str, str]) -> dict[str, str]:
    """Files that the given ones name: in or below their folders, or the working folder, from where they are started."""
    beside: dict[str, str] = {}
    here = working_folder()
    folders = dict.fromkeys([*(Path(path).parent for path in paths if path != "-"), Path()])
    read = {Path(path).resolve() for path in files}
    for name in named:
        relative = Path(name)
        if relative.is_absolute() or relative.suffix not in _NAMED:
            continue
        for place in (folder / part for folder in folders for part in (relative, relative.name)):
            whole = place.resolve()
            inside = ".." not in place.parts or whole.is_relative_to(here)
            if inside and whole not in read and place.is_file():
                beside[str(place)] = _text(place)
                break
    return beside
