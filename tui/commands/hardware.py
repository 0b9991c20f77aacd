"""`shardwise measure hardware`: measures this machine, and keeps what it reaches as an accelerator of one's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from pages.answers.page import page_of
from pages.rendering import terminal
from planner.measuring.hardware import HardwareTiming, measure_hardware
from planner.requests import parsed
from tui.commands.plan import plotted, show
from tui.jsonout import write_json

_TOLD = {"matmuls": "matrix products"}


def run(arguments: argparse.Namespace) -> int:
    named = {name: getattr(arguments, name) for name in ("seconds", "device", "processes", "keep")}
    question = parsed(HardwareTiming, {name: value for name, value in named.items() if value is not None})
    result = measure_hardware(question, arguments.folder, _tell)
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    else:
        show(plotted(page_of(result, terminal.screen_width()), arguments.plot), arguments)
    return 0


def _tell(event: Mapping[str, Any]) -> None:
    """One line a part on standard error."""
    match event:
        case {"event": "part", "name": name}:
            print(f"measuring {_TOLD.get(name, name)}", file=sys.stderr, flush=True)
        case {"event": "repeated"}:
            print("measuring collectives", file=sys.stderr, flush=True)
