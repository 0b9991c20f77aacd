"""`shardwise measure training` and `measure hardware`: run a benchmark to its end, and tell what comes meanwhile."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from knowledge.figures import seconds as told_s
from pages.answers.page import page_of
from pages.rendering import terminal
from planner.measuring.hardware import HardwareTiming, measure_hardware
from planner.measuring.training import BenchmarkRequest, measure_training
from planner.requests import parsed
from tools.registry import find
from tui.commands.plan import plotted, show
from tui.flags import arguments_of
from tui.jsonout import write_json
from tui.planning import MEASURING


def run(arguments: argparse.Namespace) -> int:
    if arguments.planning is None:
        return _hardware(arguments)
    request = parsed(BenchmarkRequest, arguments_of(arguments, MEASURING[arguments.planning]))
    if arguments.show:
        result = find("render_benchmark").function(request)
    else:
        result = measure_training(request, arguments.folder, tell)
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    else:
        show(page_of(result, terminal.screen_width()), arguments)
    return 0


def _hardware(arguments: argparse.Namespace) -> int:
    named = {name: getattr(arguments, name) for name in ("seconds", "device", "processes", "keep")}
    question = parsed(HardwareTiming, {name: value for name, value in named.items() if value is not None})
    result = measure_hardware(question, arguments.folder, tell)
    if arguments.json:
        write_json(result.model_dump(mode="json"))
    else:
        show(plotted(page_of(result, terminal.screen_width()), arguments.plot), arguments)
    return 0


def tell(event: Mapping[str, Any]) -> None:
    """One line an event on standard error."""
    match event:
        case {"event": "planned", "steps": steps, "seconds": whole, "note": note}:
            text = f"{steps} steps, {told_s(whole)} as predicted{f'; {note}' if note else ''}"
        case {"event": "started", "processes": processes}:
            text = f"started, {processes} process{'es' if processes != 1 else ''}"
        case {"event": "built", "seconds": seconds}:
            text = f"the model stands after {seconds:.3g} s"
        case {"event": "first_step", "seconds": seconds}:
            text = f"first step {seconds:.3g} s"
        case {"event": "step", "repeat": repeat, "number": number, "seconds": seconds, "loss": loss}:
            text = f"repeat {repeat + 1}, step {number + 1}: {seconds:.4g} s, loss {loss:.4g}"
        case {"event": "part", "name": name}:
            text = f"measuring {'matrix products' if name == 'matmuls' else name}"
        case _:
            return
    print(text, file=sys.stderr, flush=True)
