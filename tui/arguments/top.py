"""The whole command line, of which only what the command at hand needs is made."""

from __future__ import annotations

import argparse
import shutil
from typing import Any

from tui import usage
from tui.arguments.kept import (
    add_catalogues,
    add_config,
    add_portfolio,
    add_scenarios,
    add_sessions,
    add_trust,
)
from tui.arguments.measuring import add_measure
from tui.arguments.parser import Parser
from tui.arguments.planning import add_forms, add_planning
from tui.arguments.servers import THINKERS, add_servers
from tui.planning import PLANNING

_CHAT_DEFAULTS = {"session": None, "latest": False, "model": "auto", "output": None}


class _Top(Parser):
    """The help of all commands is grouped by what people want of them."""

    def format_help(self) -> str:
        listed = next(action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        meanings = {row.dest: row.help or "" for row in listed._choices_actions}
        return usage.top(meanings, shutil.get_terminal_size((100, 24)).columns)


class _Version(argparse.Action):
    """Reads the version only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"shardwise {version('shardwise')}")
        parser.exit()


def parser(command: str | None = None, every_flag: bool = False) -> argparse.ArgumentParser:
    """The command line. The flags of a planning command are made from its tools' requests, which takes their imports:
    only those of `command` are there, unless `every_flag` is wanted."""
    top = _Top(prog="shardwise")
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    top.set_defaults(run="tui.commands.chat", **_CHAT_DEFAULTS)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)

    chat = commands.add_parser("chat", help="open the app (also: no command at all)")
    _add_session_arguments(chat)
    chat.set_defaults(run="tui.commands.chat")

    ask = commands.add_parser("ask", help="answer one question and exit")
    ask.add_argument("question", nargs="+", help="the question in plain words; - reads it from standard input")
    ask.add_argument("-y", "--yes", action="store_true", help="approve writing files without being asked")
    add_forms(ask, "one JSON object")
    ask.add_argument("--now", metavar="ISO", help="the time that 'by Friday' counts from, e.g. 2026-01-05T09:00")
    _add_session_arguments(ask)
    ask.set_defaults(run="tui.commands.ask")

    call = commands.add_parser("call", help="call a tool with JSON arguments; no name lists the tools")
    call.add_argument("tool", nargs="?", help="the tool")
    call.add_argument("arguments", nargs="?", help="its arguments as a JSON object; - reads them from standard input")
    call.add_argument("--schema", action="store_true", help="print the JSON schema of the tool's arguments")
    call.add_argument(
        "--jsonl",
        metavar="FILE",
        help='one {"name": tool, "arguments": {…}} a line in (- for standard input), one result a line out; '
        'a line that fails gives {"error": text}, the rest still run, and the exit code is 2',
    )
    call.set_defaults(run="tui.commands.call")

    add_planning(commands, PLANNING, command, every_flag)
    add_scenarios(commands)
    add_servers(commands)
    add_trust(commands)
    add_portfolio(commands)

    add_catalogues(commands)

    add_measure(commands, command, every_flag)

    add_sessions(commands)
    add_config(commands)

    completion = commands.add_parser("completion", help="print the completion script of a shell")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    completion.set_defaults(run="tui.commands.completion")
    return top


def _add_session_arguments(command: argparse.ArgumentParser) -> None:
    which = command.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="continue this conversation")
    which.add_argument("-c", "--continue", dest="latest", action="store_true", help="continue the latest conversation")
    model = command.add_mutually_exclusive_group()
    model.add_argument("--model", choices=THINKERS, default="auto", help="which model answers")
    model.add_argument("--offline", dest="model", action="store_const", const="offline", help="same as --model offline")
    command.add_argument("--output", metavar="DIR", help="folder that files may be written to (default: this one)")
