"""`shardwise measure logs`, and what changes the history of one's own runs: add, export, tag, forget."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from estimator.errors import PlanError
from estimator.plan.schema import merge
from knowledge.own.files import read_text
from measure.history import exchange, store
from measure.history.run import MeasuredRun
from measure.logs.reading import read
from pages.answers.page import page_of
from pages.rendering import terminal
from planner.history.reading import ReadRequest, read_at
from tools.registry import find
from tui.commands.call import parse_value
from tui.commands.plan import plotted, show
from tui.flags import arguments_of
from tui.jsonout import write_json
from tui.planning import MEASURING
from tui.progress import working

_EXPORTS = (".json", ".yaml", ".yml", ".csv")
_MOST_BYTES = 64_000_000


def run(arguments: argparse.Namespace) -> int:
    if arguments.planning is not None:
        return _logs(arguments)
    acts: dict[str, Callable[[argparse.Namespace], None]] = {
        "add": _add,
        "export": _export,
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
        result = read_at(Path(request.path).expanduser(), request)
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    else:
        show(plotted(page_of(result, terminal.screen_width()), arguments.plot), arguments)
    return 1 if result.outcome == "oom" else 0


def _add(arguments: argparse.Namespace) -> None:
    path = Path(arguments.path).expanduser()
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


def _settings(pairs: list[str] | tuple[str, ...]) -> dict[str, object]:
    plan: dict[str, object] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise PlanError("--set", f"{pair!r} is not KEY=VALUE", ["cluster.count=8"])
        plan = merge(plan, {name.strip(): parse_value(value, "--set")})
    return plan


def _export(arguments: argparse.Namespace) -> None:
    runs = [store.find(name) for name in arguments.runs] or store.runs()
    if not runs:
        raise PlanError("run", "none is kept yet", ["shardwise measure add train.log"])
    sys.stdout.write(exchange.written(runs, arguments.format))


def _tag(arguments: argparse.Namespace) -> None:
    print(store.change(arguments.name, tags=arguments.tags))


def _forget(arguments: argparse.Namespace) -> None:
    gone = store.remove(arguments.name)
    print(f"{gone.id}  {gone.name or gone.source}".rstrip())
