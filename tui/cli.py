"""The `shardwise` command. It imports only what the command at hand needs, so that `--help` costs nothing."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

_EPILOG = """\
examples:
  shardwise
  shardwise ask "Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences?"
  shardwise call estimate_training '{"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8}'
  shardwise hardware h100

exit codes:
  0    done
  1    an error inside Shardwise (SHARDWISE_DEBUG=1 shows where)
  2    the command or its input cannot be used; one line on standard error says why
  130  stopped by Ctrl-C
"""
_INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as every other error of the command does."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Reads the version only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"shardwise {version('shardwise')}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="shardwise",
        description="Plans LLM training, fine-tuning and serving: does it fit, how fast, at what cost; launch files.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    top.set_defaults(run="tui.commands.chat", **_CHAT_DEFAULTS)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)

    chat = commands.add_parser("chat", help="open the app (also: no command at all)")
    _add_session_arguments(chat)
    chat.set_defaults(run="tui.commands.chat")

    ask = commands.add_parser("ask", help="answer one question and exit")
    ask.add_argument("question", nargs="+", help="the question in plain words; - reads it from standard input")
    ask.add_argument("-y", "--yes", action="store_true", help="approve writing files without being asked")
    ask.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    ask.add_argument("--now", metavar="ISO", help="the time that 'by Friday' counts from, e.g. 2026-01-05T09:00")
    _add_session_arguments(ask)
    ask.set_defaults(run="tui.commands.ask")

    call = commands.add_parser("call", help="call a tool with JSON arguments; no name lists the tools")
    call.add_argument("name", nargs="?", help="the tool")
    call.add_argument("arguments", nargs="?", help="its arguments as a JSON object; - reads them from standard input")
    call.add_argument("--schema", action="store_true", help="print the JSON schema of the tool's arguments")
    call.add_argument(
        "--jsonl",
        metavar="FILE",
        help='one {"name": tool, "arguments": {…}} a line in (- for standard input), one result a line out; '
        'a line that fails gives {"error": text}, the rest still run, and the exit code is 2',
    )
    call.set_defaults(run="tui.commands.call")

    _add_servers(commands)

    for name, what in (("models", "model"), ("hardware", "accelerator")):
        catalogue = commands.add_parser(name, help=f"list the {what} catalogue")
        catalogue.add_argument("query", nargs="*", help="words that the name, id or family must contain")
        catalogue.add_argument("--json", action="store_true", help="print the rows as one JSON list")
        catalogue.set_defaults(run="tui.commands.catalogue", catalogue=name)

    measure = commands.add_parser("measure", help="what estimates are fitted to")
    what = measure.add_subparsers(title="commands", metavar="WHAT", required=True)
    fitting = what.add_parser("fit", help="fit all factors to the measured runs again (minutes)")
    fitting.set_defaults(run="tui.commands.measure")

    sessions = commands.add_parser("sessions", help="list earlier conversations")
    sessions.add_argument("--json", action="store_true", help="print the rows as one JSON list")
    sessions.set_defaults(run="tui.commands.sessions")
    return top


def _add_servers(commands: Any) -> None:
    """The tools for other programs: MCP on standard input and output, and HTTP."""
    writable = "the one folder that files may be written below, once the person has agreed (default: none)"
    mcp = commands.add_parser("mcp", help="serve the tools over MCP on standard input and output")
    mcp.add_argument("--root", metavar="DIR", help=writable)
    mcp.set_defaults(run="tui.commands.mcp")
    what = mcp.add_subparsers(title="commands", metavar="WHAT", parser_class=Parser)
    config = what.add_parser("config", help="print what an assistant needs to start this server")
    config.add_argument("--client", required=True, choices=_CLIENTS, help="the assistant")
    config.add_argument("--root", metavar="DIR", dest="config_root", help=writable)
    config.add_argument("--install", action="store_true", help="write it into the assistant's file, after asking")
    config.add_argument("-y", "--yes", action="store_true", help="write without being asked")
    config.set_defaults(run="tui.commands.mcp_config")

    serve = commands.add_parser("serve", help="serve the tools over HTTP: MCP at /mcp, REST at /v1, /docs")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on; others than 127.0.0.1 need a token")
    serve.add_argument("--port", type=int, default=8000, help="0 takes any free one (default: 8000)")
    serve.add_argument("--token-file", metavar="FILE", help="file with the bearer token (or set SHARDWISE_TOKEN)")
    serve.add_argument("--root", metavar="DIR", help=writable)
    serve.add_argument("--allow-host", metavar="NAME", action="append", default=[], help="another name of this server")
    serve.add_argument(
        "--allow-origin", metavar="ORIGIN", action="append", default=[], help="a site whose pages may call, https://…"
    )
    serve.add_argument("--no-log", action="store_true", help="no access log (JSON lines on standard error)")
    serve.set_defaults(run="tui.commands.serve")


_CLIENTS = ("claude-code", "claude-desktop", "cursor", "gemini-cli", "vscode")
_CHAT_DEFAULTS = {"session": None, "latest": False, "model": "auto", "output": None}


def _add_session_arguments(command: argparse.ArgumentParser) -> None:
    which = command.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="continue this conversation")
    which.add_argument("-c", "--continue", dest="latest", action="store_true", help="continue the latest conversation")
    model = command.add_mutually_exclusive_group()
    model.add_argument("--model", choices=("auto", "offline", "gemini"), default="auto", help="who thinks")
    model.add_argument("--offline", dest="model", action="store_const", const="offline", help="same as --model offline")
    command.add_argument("--output", metavar="DIR", help="folder that files may be written to (default: this one)")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code. Only a bug inside Shardwise gives 1."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        if words and " " in words[0].strip():
            return _fail(f'to ask a question: shardwise ask "{words[0]}"', 2)
        arguments = parser().parse_args(words)
        code = importlib.import_module(arguments.run).run(arguments)
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        # Whoever read our output has seen enough. What is still buffered must not fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the line on which ^C was echoed
        return _fail("stopped", _INTERRUPTED)
    except Exception as error:
        if os.environ.get("SHARDWISE_DEBUG"):
            raise
        return _failed(error)


def _failed(error: Exception) -> int:
    """A user's mistake is told in its own words; anything else is ours."""
    from estimator.errors import PlanError

    if isinstance(error, PlanError):
        return _fail(str(error), 2)
    return _fail(f"internal error: {type(error).__name__}: {error} (SHARDWISE_DEBUG=1 shows where)", 1)


def _fail(text: str, code: int) -> int:
    from tui.clean import one_line

    print(f"shardwise: {one_line(text)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
