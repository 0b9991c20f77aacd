"""`shardwise measure logs`, and what changes the history of one's own runs: add, export, tag, forget."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from estimator.errors import PlanError
from estimator.plan.schema import merge
from knowledge.own.home import expanded
from measure.history import exchange, store
from measure.history.run import MeasuredRun
from measure.logs.reading import read
from pages.answers.page import page_of
from pages.rendering import terminal
from pages.rendering.clean import one_line
from pages.rendering.html import page
from pages.rendering.pictures import sheet
from pages.results.runs import history
from planner.history.keeping import with_config
from planner.history.listing import HistoryRequest, list_runs
from planner.history.reading import ReadRequest, plan_told, read_at
from tools.registry import find
from tui.commands.plan import plotted, show
from tui.flags import arguments_of
from tui.jsonout import write_json
from tui.planning import MEASURING
from tui.progress import working

_PICTURES = ("html", "svg", "png")


def run(arguments: argparse.Namespace) -> int:
    if arguments.planning == "measure logs":
        return _logs(arguments)
    acts: dict[str | None, Callable[[argparse.Namespace], None]] = {
        "export": _export,
        "board": _board,
        "tag": _tag,
        "forget": _forget,
    }
    (_add if arguments.planning else acts[arguments.act])(arguments)
    return 0


def _asked(arguments: argparse.Namespace) -> tuple[ReadRequest, Path]:
    """What is said of a log, and where that stands: of a person's own terminal anywhere."""
    request = find("read_run").parse(arguments_of(arguments, MEASURING[arguments.planning]))
    assert isinstance(request, ReadRequest)
    if not request.path:
        raise PlanError("path", "is required: a log, or the folder of a tracker", ["train.log"])
    return request, expanded(request.path)


def _logs(arguments: argparse.Namespace) -> int:
    request, path = _asked(arguments)
    with working(arguments.planning):
        result = read_at(path, request)
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    else:
        show(plotted(page_of(result, terminal.screen_width()), arguments.plot), arguments)
    return 1 if result.outcome == "oom" else 0


def _add(arguments: argparse.Namespace) -> None:
    request, path = _asked(arguments)
    runs = read(path)
    over = plan_told(request)
    about = {key: value for key, value in (("name", over.pop("name", "")), ("note", arguments.note)) if value}
    if over:
        # Of another plan it is another run.
        about["exported_as"] = ""
    kept = [
        MeasuredRun.model_validate(
            run.model_dump()
            | about
            | {"plan": with_config(merge(run.plan, over)), "tags": [*run.tags, *arguments.tags]}
        )
        for run in runs
    ]
    for id, each in zip(store.add(kept), kept, strict=True):
        print(f"{id}  {one_line(each.name or each.source)}")


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
    print(f"{gone.id}  {one_line(gone.name or gone.source)}".rstrip())
