"""Flags of `shardwise measure`: machines, runs, endpoints, and the fit to one's own runs."""

from __future__ import annotations

import argparse
from typing import Any

from tui.arguments.parser import Parser
from tui.arguments.planning import add_forms, add_planning
from tui.planning import MEASURING


def add_measure(commands: Any, command: str | None, every_flag: bool) -> None:
    measure = commands.add_parser("measure", help="measure this machine and runs on it, and fit estimates to them")
    what = measure.add_subparsers(title="commands", metavar="WHAT", required=True, parser_class=Parser)
    add_planning(what, MEASURING, command, every_flag)
    _add_hardware(what)
    _add_queue(what)
    _add_load(what)
    _add_history(what)
    fitting = what.add_parser("fit", help="fit estimates to your own runs: a local calibration that they then rest on")
    fitting.add_argument("--dry", action="store_true", help="show what it would do, and write nothing")
    fitting.add_argument("--reset", action="store_true", help="take the local calibration away")
    fitting.add_argument(
        "--shipped", action="store_true", help="in a checkout: refit the shipped calibration (minutes)"
    )
    fitting.set_defaults(run="tui.commands.measure")


def _add_history(commands: Any) -> None:
    """What changes the history of one's own runs, or is written of it."""
    exporting = commands.add_parser("export", help="write runs as one file to share: JSON, YAML or CSV")
    exporting.add_argument("runs", nargs="*", metavar="RUN", help="ids or names (default: all)")
    exporting.add_argument("--format", choices=("json", "yaml", "csv"), default="json", help="json unless given")
    board = commands.add_parser("board", help="write the history as pictures: a page .html, or one picture .svg, .png")
    board.add_argument("file", metavar="FILE", help="a new file; its ending sets the format")
    board.add_argument("--tag", metavar="TAG", help="only runs with this tag")
    board.add_argument("--model", metavar="NAME", help="only runs whose model has this in its name")
    tagging = commands.add_parser("tag", help="give a run other tags")
    tagging.add_argument("name", metavar="RUN", help="id or name")
    tagging.add_argument("tags", nargs="*", metavar="TAG", help="none takes all away")
    forgetting = commands.add_parser("forget", help="delete a run from the history")
    forgetting.add_argument("name", metavar="RUN", help="id or name")
    for sub, act in ((exporting, "export"), (board, "board"), (tagging, "tag"), (forgetting, "forget")):
        sub.set_defaults(run="tui.commands.runs", act=act, planning=None)


def _add_hardware(commands: Any) -> None:
    hardware = commands.add_parser(
        "hardware", help="measure matmuls, memory, links and disk of this machine; plans then have it as your own"
    )
    hardware.add_argument("--seconds", type=float, metavar="S", help="of all of it (default: 45)")
    hardware.add_argument("--device", choices=("auto", "cuda", "mps", "cpu"), help="what PyTorch computes on")
    hardware.add_argument("--processes", type=int, metavar="N", help="for collectives (default: one a device)")
    hardware.add_argument("--folder", metavar="DIR", help="where to run it (default: below ./runs/measured)")
    hardware.add_argument(
        "--keep",
        action=argparse.BooleanOptionalAction,
        help="have plans use it (default: where nothing else kept the machine busy)",
    )
    hardware.add_argument("--plot", action="store_true", help="draw the roofline as well")
    add_forms(hardware, "the result as one JSON object")
    hardware.set_defaults(run="tui.commands.measuring", planning=None)


def _add_queue(commands: Any) -> None:
    queue = commands.add_parser("matrix", help="run the cells of a written matrix that are not done, with a live board")
    queue.add_argument("folder", help="of the matrix: shardwise matrix … --write runs/matrix")
    queue.add_argument("cells", nargs="*", metavar="PATTERN", help="cells by their folders: '*/h100-*', '00-*'")
    queue.add_argument("--cooldown-s", type=float, default=20.0, metavar="S", help="pause between cells (default: 20)")
    queue.add_argument("--again", action="store_true", help="finished cells too")
    queue.add_argument("--json", action="store_true", help="print the results as one JSON object")
    queue.set_defaults(run="tui.commands.queue")


def _add_load(commands: Any) -> None:
    load = commands.add_parser("serving", help="load an OpenAI-compatible endpoint and time what it answers")
    load.add_argument("url", nargs="+", help="endpoints without /v1, http://127.0.0.1:8000: several share the load")
    load.add_argument("--served-model", metavar="NAME", help="the endpoint's name for the model (default: --model)")
    load.add_argument("--key-variable", metavar="NAME", help="environment variable that holds the key")
    load.add_argument("--concurrency", type=int, metavar="N", help="clients, one request at a time each")
    load.add_argument("--request-rate", type=float, metavar="R", help="requests per second, arriving at random")
    load.add_argument("--requests", type=int, metavar="N", help="number of requests")
    load.add_argument("--trace", metavar="FILE", help="at_s, input_len, output_len of each: YAML, JSON, JSONL or CSV")
    load.add_argument("--input-len", type=int, metavar="TOKENS", help="tokens of each prompt")
    load.add_argument("--output-len", type=int, metavar="TOKENS", help="tokens of each answer")
    load.add_argument(
        "--turns", type=int, metavar="N", help="turns of each conversation, with all that was said before"
    )
    load.add_argument("--references", metavar="FILE", help="prompt, reference of each: answers are scored by ROUGE")
    load.add_argument("--ttft-slo-ms", type=float, metavar="MS", help="limit of TTFT")
    load.add_argument("--tpot-slo-ms", type=float, metavar="MS", help="limit of TPOT")
    load.add_argument(
        "--timeout-s", type=float, metavar="S", help="seconds after which a request has failed (default: 600)"
    )
    load.add_argument("--seed", type=int, metavar="N", help="seed of the arrivals")
    load.add_argument("--model", metavar="MODEL", help="with --accelerator: the prediction stands beside it")
    load.add_argument("--accelerator", metavar="NAME", help="what the endpoint runs on")
    load.add_argument("--count", type=int, metavar="N", help="number of accelerators")
    load.add_argument("--engine", metavar="NAME", help="serving engine")
    load.add_argument("--keep", action="store_true", help="keep it as a run of the history")
    load.add_argument("--json", action="store_true", help="print the result as one JSON object")
    load.set_defaults(run="tui.commands.load")
