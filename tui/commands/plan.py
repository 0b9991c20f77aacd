"""The planning commands (tui/planning.py): flags in, a tool's result out, as a page or as the JSON of `call`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from estimator.errors import PlanError
from pages.answers.page import page_of
from pages.blocks import Block, Chart, Headline, Text, ranked, unfolded
from pages.rendering import markdown, terminal
from planner.results import FitCheck
from tools.registry import find
from tui.asides import say
from tui.flags import arguments_of, of_tool, serves
from tui.jsonout import write_json
from tui.pager import paged
from tui.planning import MEASURING, PLANNING
from tui.progress import working

_DOES_NOT_FIT = 1


def run(arguments: argparse.Namespace) -> int:
    planning = (PLANNING | MEASURING)[arguments.planning]
    request = arguments_of(arguments, planning)
    place = planning.serving if serves(request, planning) else planning.training
    target = getattr(arguments, "write", None)
    if target is not None:
        if not target.strip():
            raise PlanError("--write", "is empty: it names what to write", ["runs/mine", "report.html"])
        place, request = planning.writes, request | {planning.writes_to: target}
    elif planning.writes is not None:
        _refuse_unwritten(request, planning.writes, place)
    assert place is not None
    with working(arguments.planning):
        result = find(place).run(of_tool(request, place))
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    else:
        show(plotted(page_of(result, terminal.screen_width()), arguments.plot), arguments)
    unfit = isinstance(result, FitCheck) and not result.fits
    return _DOES_NOT_FIT if getattr(arguments, "strict", False) and unfit else 0


def show(blocks: list[Block], arguments: argparse.Namespace) -> None:
    """The page: its first line, its first lines, or all of it, for a terminal or as Markdown."""
    if arguments.brief:
        blocks = [block for block in blocks if isinstance(block, Headline)] or _verdicts(blocks) or blocks[:1]
    if arguments.md:
        print(markdown.render(unfolded(blocks) if arguments.why else ranked(blocks)[0]))
        return
    paged(terminal.rendered(blocks, details=arguments.why))
    # A hint is for people: who reads a pipe knows what to ask for.
    if ranked(blocks)[1] and not arguments.why and sys.stdout.isatty():
        say("The whole of it, what was assumed and what it rests on: --why.")


def _verdicts(blocks: list[Block]) -> list[Block]:
    return [Headline(block.verdict) for block in blocks if isinstance(block, Text) and block.verdict]


def _refuse_unwritten(request: dict[str, Any], writes: str, shows: str | None) -> None:
    """What only writing takes has no effect without --write, so it is refused."""
    known = find(shows).request.model_fields if shows else {}
    for name in request:
        if name not in known and name in find(writes).request.model_fields:
            raise PlanError(f"--{name.replace('_', '-')}", "only goes with --write")


def plotted(blocks: list[Block], plots: bool) -> list[Block]:
    if plots and not any(isinstance(block, Chart) for block in blocks):
        print("shardwise: there is nothing to draw in this result", file=sys.stderr)
    return [block for block in blocks if plots or not isinstance(block, Chart)]
