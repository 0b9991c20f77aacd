"""`shardwise measure logs`, and what changes the history of one's own runs: add, export, tag, forget."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import merge
from knowledge.own.files import read_text
from knowledge.own.home import expanded
from measure.history import exchange, store
from measure.history.run import MeasuredRun
from measure.logs.reading import read
from pages.answers.page import page_of
from pages.rendering import terminal
from pages.rendering.drawing import sheet
from pages.rendering.html import page
from pages.results.runs import history
from planner.history.listing import HistoryRequest, list_runs
from planner.history.reading import ReadRequest, plan_told, read_at
from planner.requests import parsed
from tools.registry import find
from tui.commands.plan import plotted, show
from tui.flags import arguments_of, settings_of
from tui.jsonout import write_json
from tui.planning import MEASURING
from tui.progress import working

_EXPORTS = (".json", ".yaml", ".yml", ".csv")
_MOST_BYTES = 64_000_000
_PICTURES = ("html", "svg", "png")


def run(arguments: argparse.Namespace) -> int:
    if arguments.planning is not None:
        return _logs(arguments)
    acts: dict[str, Callable[[argparse.Namespace], None]] = {
        "add": _add,
        "export": _export,
        "board": _board,
        "tag": _tag,
        "forget": _forget,
    }
    acts[arguments.act](arguments)
    return 0


def _logs(arguments: argparse.Namespace) -> int:
    """Of a person's own terminal: a log may stand anywhere."""
    request = find("read_run").parse(arguments_of(arguments, MEASURING[arguments.planning]))
    assert isinstance(request, ReadRequest)
    if not request.path:
        raise PlanError("path", "is required: a log, or the folder of a tracker", ["train.log"])
    with working(arguments.planning):
        result = read_at(expanded(request.path), request)
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    else:
        show(plotted(page_of(result, terminal.screen_width()), arguments.plot), arguments)
    return 1 if result.outcome == "oom" else 0


def _add(arguments: argparse.Namespace) -> None:
    path = expanded(arguments.path)
    runs = _exported(path) or read(path)
    over = _settings(arguments.set or ())
    about = {key: value for key, value in (("name", arguments.name), ("note", arguments.note)) if value}
    kept = [
        MeasuredRun.model_validate(
            run.model_dump() | about | {"plan": merge(run.plan, over), "tags": [*run.tags, *arguments.tags]}
        )
        for run in runs
    ]
    for id, each in zip(store.add(kept), kept, strict=True):
        print(f"{id}  {each.name or each.source}")


def _exported(path: Path) -> list[MeasuredRun]:
    """The runs of a file that `measure export` wrote; none of any other."""
    if path.suffix not in _EXPORTS or not path.is_file():
        return []
    try:
        return exchange.read(read_text(path, "path", _MOST_BYTES))
    except PlanError:
        return []


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    """What --set says of a plan, as other commands take it."""
    flat, dotted = settings_of(pairs, ReadRequest.model_fields)
    return plan_told(parsed(ReadRequest, flat | {"plan": merge({}, dotted)}))


def _export(arguments: argparse.Namespace) -> None:
    runs = [store.find(name) for name in arguments.runs] or store.runs()
    if not runs:
        raise PlanError("run", "none is kept yet", ["shardwise measure add train.log"])
    sys.stdout.write(exchange.written(runs, arguments.format))


def _board(arguments: argparse.Namespace) -> None:
    path = expanded(arguments.file)
    form = path.suffix.lower().removeprefix(".")
    if form not in _PICTURES:
        raise PlanError("file", f"{path.name} is none of them", [f"board.{form}" for form in _PICTURES])
    with working("measure board"):
        result = list_runs(HistoryRequest(model=arguments.model, tag=arguments.tag))  # pyright: ignore[reportCallIssue]
        if not result.plots:
            raise PlanError(
                "run", "there is nothing to draw yet: two runs or the steps of one", ["shardwise measure add"]
            )
        if form == "html":
            content = page("Runs of your own", history(result), f"{len(result.runs)} runs").encode()
        else:
            content = sheet(result.plots, "svg" if form == "svg" else "png")
    try:
        with path.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise PlanError("file", f"cannot write {path}: {error.strerror}", ["a new file"]) from None
    print(path)


def _tag(arguments: argparse.Namespace) -> None:
    print(store.change(arguments.name, tags=arguments.tags))


def _forget(arguments: argparse.Namespace) -> None:
    gone = store.remove(arguments.name)
    print(f"{gone.id}  {gone.name or gone.source}".rstrip())
