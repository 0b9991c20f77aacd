"""`shardwise measure serving URL`: loads an OpenAI-compatible endpoint, and says what it answered."""

from __future__ import annotations

import argparse
import sys

from measure.history import store
from pages.rendering import terminal
from pages.results.of_results import blocks_of
from planner.measuring.serving import EndpointLoad, kept_run, measure_serving
from planner.requests import parsed
from tui.jsonout import write_json
from tui.pager import paged


def run(arguments: argparse.Namespace) -> int:
    named = {name: value for name, value in vars(arguments).items() if name in EndpointLoad.model_fields}
    named["url"] = ",".join(arguments.url)
    request = parsed(EndpointLoad, {name: value for name, value in named.items() if value is not None})
    result = measure_serving(request, tell if sys.stderr.isatty() else lambda done: None)
    if arguments.keep:
        (id,) = store.add([kept_run(request, result)])
        print(f"kept as {id}", file=sys.stderr)
    if arguments.json:
        write_json(result.model_dump(mode="json"))
        return 0
    paged(terminal.rendered(blocks_of(result)))
    return 0


def tell(done: int) -> None:
    print(f"\r{done} requests answered", end="", file=sys.stderr, flush=True)
