"""`shardwise portfolio FILE`: several runs on one cluster, from a file; their times on the
terminal, as a page with a picture and as a table in a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from estimator.errors import PlanError
from knowledge.own.files import parsed, read_stream, read_text, write_file
from pages.blocks import Chart, Text
from pages.rendering import html
from pages.rendering.pictures import sheet
from pages.report.report import made_today
from pages.results.portfolio import as_csv
from pages.results.portfolio import portfolio as page
from planner import requests
from planner.asked.portfolio import PortfolioRequest
from planner.money.portfolio import schedule_runs
from tui.commands.plan import plotted, show
from tui.jsonout import write_json
from tui.progress import working


def run(arguments: argparse.Namespace) -> int:
    stdin = arguments.file == "-"
    text = read_stream(sys.stdin, "file") if stdin else read_text(Path(arguments.file), "file")
    content = parsed(text, arguments.file)
    if not isinstance(content, dict):
        raise PlanError("file", "must hold accelerator, count and runs")
    request = requests.parsed(PortfolioRequest, content)
    assert isinstance(request, PortfolioRequest)
    with working("portfolio"):
        result = schedule_runs(request)
    if arguments.csv is not None:
        write_file(Path(arguments.csv), as_csv(result), arguments.overwrite, "--csv")
    if arguments.html is not None:
        # The timeline is a picture there.
        blocks = [block for block in page(result) if not isinstance(block, Text)]
        shown = html.page(f"{len(request.runs)} runs on one cluster", blocks, made_today())
        write_file(Path(arguments.html), shown, arguments.overwrite, "--html")
    if arguments.svg is not None:
        plots = [block.plot for block in page(result) if isinstance(block, Chart)]
        if not plots:
            raise PlanError("--svg", "has nothing to draw: none of the runs fits")
        write_file(Path(arguments.svg), sheet(plots, "svg").decode(), arguments.overwrite, "--svg")
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    else:
        show(plotted(page(result), arguments.plot), arguments)
    return 0
