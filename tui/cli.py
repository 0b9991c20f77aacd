"""The `shardwise` command. It imports only what the command at hand needs, so that `--help` costs nothing."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from estimator.errors import PlanError
from pages.rendering.clean import one_line
from tui import usage
from tui.planning import MEASURING, PLANNING, Planning

# A value that an error repeats, and what argparse says of one that it refuses.
_QUOTED, _CHOICE = re.compile(r"'([^']+)'"), re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_INTERRUPTED = 130
_YOUNG = 20_000  # objects that are made before the young ones are looked through
_LONGEST = 300  # letters of one word of an error


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as every other error of the command does."""

    def error(self, message: str) -> NoReturn:
        choice = _CHOICE.search(message)
        near = meant(choice[1], choice[2].replace("'", "").split(", ")) if choice else ""
        self.exit(2, f"{self.prog}: {_shortened(message)}{near}; see {self.prog} --help\n")


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


_MORE = {
    "models": "; test: what the language model can do that is configured",
    "prices": "; age: how old they are; update FILE|URL: take over a published list",
}


_CATALOGUES = {"models": "model catalogue", "hardware": "accelerator catalogue", "prices": "price book"}


def _catalogues(commands: Any) -> None:
    for name, what in _CATALOGUES.items():
        more = _MORE.get(name, "")
        catalogue = commands.add_parser(name, help=f"list the {what}; add: put a row of your own into it{more}")
        catalogue.add_argument(
            "query",
            nargs="*",
            help="words that the name must contain; or add, and a row (name=value ...) or its file (YAML, JSON, CSV)",
        )
        catalogue.add_argument("--project", action="store_true", help="add for this folder alone (./.shardwise)")
        catalogue.add_argument("--overwrite", action="store_true", help="add in place of your row of that name")
        catalogue.add_argument("--json", action="store_true", help="print the rows as one JSON list")
        if name == "prices":
            catalogue.add_argument("--provider", help="update: whose prices a list has that does not say it, e.g. AWS")
            catalogue.add_argument("--region", action="append", help="update: only this region; may be repeated")
            catalogue.add_argument("--dry-run", action="store_true", help="update: say what it would do, write nothing")
        catalogue.set_defaults(run="tui.commands.catalogue", catalogue=name)


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
    _add_forms(ask, "one JSON object")
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

    _add_planning(commands, PLANNING, command, every_flag)
    _add_scenarios(commands)
    _add_servers(commands)
    _add_trust(commands)
    _add_portfolio(commands)

    _catalogues(commands)

    measure = commands.add_parser("measure", help="what this machine is and does, and what estimates are fitted to")
    what = measure.add_subparsers(title="commands", metavar="WHAT", required=True, parser_class=Parser)
    _add_planning(what, MEASURING, command, every_flag)
    _add_hardware(what)
    _add_queue(what)
    _add_load(what)
    _add_history(what)
    fitting = what.add_parser("fit", help="fit estimates to your own runs: a local calibration that they then rest on")
    fitting.add_argument("--dry", action="store_true", help="show what it would do, and write nothing")
    fitting.add_argument("--reset", action="store_true", help="take the local calibration away")
    fitting.add_argument("--shipped", action="store_true", help="in a checkout: fit what ships again (minutes)")
    fitting.set_defaults(run="tui.commands.measure")

    _add_sessions(commands)
    _add_config(commands)

    completion = commands.add_parser("completion", help="print the completion script of a shell")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    completion.set_defaults(run="tui.commands.completion")
    return top


def _add_history(commands: Any) -> None:
    """What changes the history of one's own runs."""
    adding = commands.add_parser("add", help="keep the runs of a log, a tracker's folder or an exported file")
    adding.add_argument("path", help="what `measure logs` reads, or a file of `measure export`")
    adding.add_argument("--name", default="", help="what the run is called")
    adding.add_argument("--note", default="", help="what else is to be known of it")
    adding.add_argument(
        "--set", metavar="KEY=VALUE", action="append", help="a plan field that it lacks: cluster.count=8"
    )
    adding.add_argument("--tag", dest="tags", action="append", default=[], help="a tag; may be said again")
    exporting = commands.add_parser("export", help="write runs as one file to share: JSON, YAML or CSV")
    exporting.add_argument("runs", nargs="*", metavar="RUN", help="ids or names; all if none")
    exporting.add_argument("--format", choices=("json", "yaml", "csv"), default="json", help="json unless given")
    board = commands.add_parser("board", help="write the history as pictures: a page .html, or one picture .svg, .png")
    board.add_argument("file", metavar="FILE", help="a new file; its end says what it is")
    board.add_argument("--tag", metavar="TAG", help="only runs with this tag")
    board.add_argument("--model", metavar="NAME", help="only runs whose model has this in its name")
    tagging = commands.add_parser("tag", help="give a run other tags")
    tagging.add_argument("name", metavar="RUN", help="id or name")
    tagging.add_argument("tags", nargs="*", metavar="TAG", help="none takes all away")
    forgetting = commands.add_parser("forget", help="delete a run from the history")
    forgetting.add_argument("name", metavar="RUN", help="id or name")
    for sub, act in ((adding, "add"), (exporting, "export"), (board, "board"), (tagging, "tag"),
                     (forgetting, "forget")):  # fmt: skip
        sub.set_defaults(run="tui.commands.runs", act=act, planning=None)


def _add_planning(commands: Any, rows: Mapping[str, Planning], command: str | None, every_flag: bool) -> None:
    """A command for each row, over the tools of the registry."""
    for name, planning in rows.items():
        wanted = every_flag or name == command
        about = f"{planning.help[0].upper()}{planning.help[1:]}."
        sub = commands.add_parser(
            name.split()[-1],
            help=planning.help,
            description=f"{about}\n\nexample:\n  {f'shardwise {name} {planning.example}'.strip()}",
            usage=" ".join(["shardwise", name, *_places(planning), "[flags]"]),
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=planning.run, planning=name)
        if not wanted:
            continue
        from tui.flags import add_flags, takes_plan  # these load the tools, and --help is to need none

        if planning.files:
            sub.add_argument("--json", action="store_true", help="print the tool's result as one JSON object")
            _add_check(sub, name)
            what = "config, script or command line; - is standard input"
            sub.add_argument("files", nargs="+", metavar="FILE", help=what)
        else:
            _add_forms(sub, "the tool's result as one JSON object")
            sub.add_argument("--plot", action="store_true", help="draw the figures as well")
        sub.add_argument("--set", metavar="KEY=VALUE", action="append", help="any field, dotted or flat: layout.tp=4")
        if takes_plan(planning):
            sub.add_argument("--plan", metavar="FILE", help="YAML or JSON file with a plan, - or a saved plan's name")
            sub.add_argument("--serving", action="store_true", help="plan serving, where no flag says so yet")
        if planning.writes:
            what = "FILE" if planning.writes_to == "file" else "DIR"
            sub.add_argument("--write", metavar=what, help=f"write below the working folder, to this {what.lower()}")
        if planning.run == "tui.commands.measuring":
            sub.add_argument("--show", action="store_true", help="show the files, and run nothing")
            sub.add_argument("--folder", metavar="DIR", help="where to run it (default: below ./runs/measured)")
        if planning.strict:
            sub.add_argument("--strict", action="store_true", help="exit code 1 when it does not fit")
        add_flags(sub, planning)


def _add_check(command: argparse.ArgumentParser, name: str) -> None:
    """What `check` has beside `import`, which prints a plan."""
    if name != "check":
        return
    command.add_argument("--md", action="store_true", help="print Markdown, such as for a comment")
    each = "every config by itself, those below folders too; flags complete what one leaves open"
    command.add_argument("--each", action="store_true", help=each)
    against = "with each what it changes against this revision of git; exit code 1 for what fitted there"
    command.add_argument("--against", metavar="REF", help=against)


def _add_forms(command: argparse.ArgumentParser, as_json: str) -> None:
    """How much is printed, and in which form."""
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=f"print {as_json} and nothing else")
    form.add_argument("--md", action="store_true", help="print Markdown")
    form.add_argument("--brief", action="store_true", help="print the verdict alone")
    command.add_argument("--why", action="store_true", help="print all of it: figures, assumptions, evidence")


def _places(planning: Planning) -> list[str]:
    """What stands without a flag, as in the line of usage."""
    return ["FILE..."] if planning.files else [f"[{place.upper()}]" for place in planning.places]


def _add_scenarios(commands: Any) -> None:
    scenarios = commands.add_parser("scenarios", help="saved plans: list, show, save, delete, diff")
    scenarios.set_defaults(run="tui.commands.scenarios", action="list", json=False, query=None, figures=False)
    shows = "print the tool's result as one JSON object"
    scenarios.add_argument("--json", action="store_true", help=shows)
    what = scenarios.add_subparsers(title="commands", metavar="WHAT", parser_class=Parser)
    listed = what.add_parser("list", help="the saved plans and the ready examples")
    listed.add_argument("query", nargs="?", help="words that the name, title or model must contain")
    listed.add_argument("--figures", action="store_true", help="estimate each")
    shown = what.add_parser("show", help="a saved plan as text")
    saved = what.add_parser("save", help="keep a plan from a file under a name")
    deleted = what.add_parser("delete", help="delete a saved plan")
    for action in (shown, saved, deleted):
        action.add_argument("name", help="the name of the saved plan")
    shown.add_argument("--format", choices=("yaml", "json"), default="yaml", help="default: yaml")
    saved.add_argument("--plan", metavar="FILE", help="YAML or JSON file with the plan, - or another saved plan")
    saved.add_argument("--set", metavar="KEY=VALUE", action="append", help="any field, dotted or flat: layout.tp=4")
    saved.add_argument("--overwrite", action="store_true", help="in place of what is saved under the name")
    deleted.add_argument("-y", "--yes", action="store_true", help="without being asked")
    differ = what.add_parser("diff", help="what two plans differ in, and what that does")
    for side in ("a", "b"):
        differ.add_argument(side, help="a saved plan's name, or a YAML or JSON file")
    actions = {"list": listed, "show": shown, "save": saved, "delete": deleted, "diff": differ}
    for name, action in actions.items():
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=shows)
        action.set_defaults(action=name)


def _add_servers(commands: Any) -> None:
    """The tools for other programs: MCP on standard input and output, and HTTP."""
    writable = "the one folder that files may be written below, once the person has agreed (default: none)"
    mcp = commands.add_parser("mcp", help="serve the tools over MCP on standard input and output")
    mcp.add_argument("--root", metavar="DIR", help=writable)
    full = "over MCP every tool with its whole schemas and results, for programs (default: brief, for assistants)"
    mcp.add_argument("--full", action="store_true", help=full)
    mcp.set_defaults(run="tui.commands.mcp")
    what = mcp.add_subparsers(title="commands", metavar="WHAT", parser_class=Parser)
    config = what.add_parser("config", help="print what an assistant needs to start this server")
    config.add_argument("--client", required=True, choices=_CLIENTS, help="the assistant")
    config.add_argument("--root", metavar="DIR", dest="config_root", help=writable)
    config.add_argument("--install", action="store_true", help="write it into the assistant's file, after asking")
    config.add_argument("-y", "--yes", action="store_true", help="write without being asked")
    config.set_defaults(run="tui.commands.mcp_config")

    serve = commands.add_parser("serve", help="serve the tools over HTTP: MCP at /mcp, REST at /v1, /docs")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    serve.add_argument("--port", type=int, default=8000, help="0 takes any free one (default: 8000)")
    token = "file with the token that callers need (or SHARDWISE_TOKEN; else one is made)"
    serve.add_argument("--token-file", metavar="FILE", help=token)
    serve.add_argument("--root", metavar="DIR", help=writable)
    serve.add_argument("--allow-host", metavar="NAME", action="append", default=[], help="another name of this server")
    serve.add_argument(
        "--allow-origin", metavar="ORIGIN", action="append", default=[], help="a site whose pages may call, https://…"
    )
    serve.add_argument("--full", action="store_true", help=full)
    serve.add_argument("--no-log", action="store_true", help="no access log (JSON lines on standard error)")
    _add_team(serve)
    serve.set_defaults(run="tui.commands.servers.serve")

    _add_database(commands)
    web = commands.add_parser("web", help="the same app in a browser, on this machine")
    web.add_argument("--host", default="127.0.0.1", help="address to listen on; others than 127.0.0.1 need --anyone")
    web.add_argument("--port", type=int, default=8080, help="default: 8080")
    web.add_argument("--token-file", metavar="FILE", help=token)
    web.add_argument("--tabs", type=int, default=8, metavar="N", help="most that may be open at once (default: 8)")
    web.add_argument("--anyone", action="store_true", help="whoever reaches that address may act as you")
    web.add_argument("--allow-host", metavar="NAME", action="append", default=[], help="another name of this machine")
    web.add_argument("--model", choices=_THINKERS, default="auto", help="which model answers")
    web.add_argument("--output", metavar="DIR", help="folder for files (default: the working folder)")
    web.set_defaults(run="tui.commands.web")


def _add_team(serve: argparse.ArgumentParser) -> None:
    """Flags of a team's server (docs/team.md)."""
    team = serve.add_argument_group("for a team")
    team.add_argument("--database", metavar="ADDRESS", help=_DATABASE)
    team.add_argument("--workers", type=int, default=1, metavar="N", help="processes that serve as one (default: 1)")
    team.add_argument("--tokens", metavar="FILE", help="who may call: NAME ROLE TOKEN a line; roles: read, plan, write")
    team.add_argument("--oidc-issuer", metavar="URL", help="an identity provider whose tokens are taken, too")
    team.add_argument("--oidc-audience", metavar="NAME", help="whom its tokens must be for")


_DATABASE = "the team's database, postgresql://user@host/name (or SHARDWISE_DATABASE, which other users cannot see)"


def _add_database(commands: Any) -> None:
    database = commands.add_parser("database", help="a team's database: its tables, and what in it is shared")
    what = database.add_subparsers(title="commands", metavar="WHAT", required=True, parser_class=Parser)
    upgrade = what.add_parser("upgrade", help="make its tables, or bring them up to date")
    shown = what.add_parser("list", help="what is yours in it, and what others share")
    shown.add_argument("--json", action="store_true", help="print the rows as one JSON list")
    share = what.add_parser("share", help="let the others use something of yours")
    unshare = what.add_parser("unshare", help="keep it for yourself again")
    for each in (share, unshare):
        each.add_argument("kind", choices=("hardware", "models", "prices", "scenarios", "runs"), help="what it is")
        each.add_argument("name", help="its name, as `database list` has it")
    for action, each in (("upgrade", upgrade), ("list", shown), ("share", share), ("unshare", unshare)):
        each.add_argument("--database", metavar="ADDRESS", help=_DATABASE)
        each.set_defaults(run="tui.commands.servers.database", action=action)


def _add_portfolio(commands: Any) -> None:
    queue = commands.add_parser("portfolio", help="several runs on one cluster: when each is done, and what is enough")
    queue.add_argument("file", metavar="FILE", help="YAML or JSON: accelerator, count, runs; - is standard input")
    queue.add_argument("--csv", metavar="FILE", help="write the runs with their times as a table")
    queue.add_argument("--overwrite", action="store_true", help="also over a file that is there")
    queue.add_argument("--plot", action="store_true", help="draw the timeline as a plot as well")
    queue.add_argument("--json", action="store_true", help="print the result as one JSON object")
    queue.set_defaults(run="tui.commands.portfolio")


def _add_hardware(commands: Any) -> None:
    hardware = commands.add_parser(
        "hardware", help="measure products, memory, links and disk of this machine; plans then have it as your own"
    )
    hardware.add_argument("--seconds", type=float, metavar="S", help="of measuring (default: 30)")
    hardware.add_argument("--device", choices=("auto", "cuda", "mps", "cpu"), help="what PyTorch computes on")
    hardware.add_argument("--processes", type=int, metavar="N", help="for collectives (default: one a device)")
    hardware.add_argument("--folder", metavar="DIR", help="where to run it (default: below ./runs/measured)")
    hardware.add_argument(
        "--keep",
        action=argparse.BooleanOptionalAction,
        help="have plans use it (default: where nothing else kept the machine busy)",
    )
    hardware.add_argument("--plot", action="store_true", help="draw the roofline as well")
    _add_forms(hardware, "the result as one JSON object")
    hardware.set_defaults(run="tui.commands.measuring", planning=None)


def _add_queue(commands: Any) -> None:
    queue = commands.add_parser("matrix", help="run the cells of a written matrix that are not done, with a live board")
    queue.add_argument("folder", help="of the matrix: shardwise matrix … --write runs/matrix")
    queue.add_argument("cells", nargs="*", metavar="PATTERN", help="cells by their folders: '*/h100-*', '00-*'")
    queue.add_argument("--cooldown-s", type=float, default=20.0, metavar="S", help="pause between cells (default: 20)")
    queue.add_argument("--again", action="store_true", help="those that are done too")
    queue.add_argument("--json", action="store_true", help="print the results as one JSON object")
    queue.set_defaults(run="tui.commands.queue")


def _add_load(commands: Any) -> None:
    load = commands.add_parser("serving", help="load an OpenAI-compatible endpoint and time what it answers")
    load.add_argument("url", nargs="+", help="endpoints without /v1, http://127.0.0.1:8000: several share the load")
    load.add_argument("--served-model", metavar="NAME", help="the endpoint's name for the model (default: --model)")
    load.add_argument("--key-variable", metavar="NAME", help="environment variable that holds the key")
    load.add_argument("--concurrency", type=int, metavar="N", help="clients, each with one request at a time")
    load.add_argument("--request-rate", type=float, metavar="R", help="requests a second that come by chance")
    load.add_argument("--requests", type=int, metavar="N", help="how many in all")
    load.add_argument("--trace", metavar="FILE", help="at_s, input_len, output_len of each: YAML, JSON, JSONL or CSV")
    load.add_argument("--input-len", type=int, metavar="TOKENS", help="of each request")
    load.add_argument("--output-len", type=int, metavar="TOKENS", help="of each answer")
    load.add_argument("--turns", type=int, metavar="N", help="of each conversation, with all that was said before")
    load.add_argument("--references", metavar="FILE", help="prompt, reference of each: answers are scored by ROUGE")
    load.add_argument("--ttft-slo-ms", type=float, metavar="MS", help="limit of the first token")
    load.add_argument("--tpot-slo-ms", type=float, metavar="MS", help="limit of each token after it")
    load.add_argument("--timeout-s", type=float, metavar="S", help="after which a request has failed (default: 600)")
    load.add_argument("--seed", type=int, metavar="N", help="of the arrivals")
    load.add_argument("--model", metavar="MODEL", help="with --accelerator: what is predicted stands beside it")
    load.add_argument("--accelerator", metavar="NAME", help="what the endpoint runs on")
    load.add_argument("--count", type=int, metavar="N", help="how many of them")
    load.add_argument("--engine", metavar="NAME", help="what serves there")
    load.add_argument("--keep", action="store_true", help="as a run of the history")
    load.add_argument("--json", action="store_true", help="print the result as one JSON object")
    load.set_defaults(run="tui.commands.load")


def _add_trust(commands: Any) -> None:
    trust = commands.add_parser("trust", help="use the hardware, models and prices in ./.shardwise")
    trust.add_argument("folder", nargs="?", default=".", help="the folder of the project (default: this one)")
    trust.add_argument("-y", "--yes", action="store_true", help="trust it without being asked")
    trust.add_argument("--withdraw", action="store_true", help="use them no longer")
    trust.set_defaults(run="tui.commands.trust")


def _add_sessions(commands: Any) -> None:
    """Earlier conversations, and what can be done with one; without an action they are listed."""
    sessions = commands.add_parser("sessions", help="earlier conversations: list, show, rename, fork, delete, export")
    sessions.add_argument("--json", action="store_true", help="print JSON and nothing else")
    sessions.set_defaults(run="tui.commands.sessions", action="list")
    actions = sessions.add_subparsers(title="actions", metavar="ACTION", parser_class=Parser)
    listing = actions.add_parser("list", help="list them, latest first (also: no action at all)")
    listing.add_argument("query", nargs="*", help="words that the title or what was said must contain")
    listing.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the rows as a JSON list")
    listing.set_defaults(action="list")
    show = actions.add_parser("show", help="print a conversation (default: the latest)")
    show.add_argument("id", nargs="?", metavar="ID")
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as one JSON object")
    show.set_defaults(action="show")
    rename = actions.add_parser("rename", help="give it another title")
    rename.add_argument("id", metavar="ID")
    rename.add_argument("title", nargs="+", metavar="TITLE")
    rename.set_defaults(action="rename")
    fork = actions.add_parser("fork", help="copy it, to go on in two ways; prints the copy's id")
    fork.add_argument("id", nargs="?", metavar="ID", help="default: the latest")
    fork.add_argument("title", nargs="*", metavar="TITLE")
    fork.set_defaults(action="fork")
    delete = actions.add_parser("delete", help="delete for good")
    delete.add_argument("id", nargs="+", metavar="ID")
    delete.add_argument("-y", "--yes", action="store_true", help="delete without being asked")
    delete.set_defaults(action="delete")
    export = actions.add_parser("export", help="as Markdown or JSON, to a file or standard output")
    export.add_argument("id", nargs="?", metavar="ID", help="default: the latest")
    export.add_argument("--format", choices=("markdown", "json"), help="default: markdown, or as --to ends")
    export.add_argument("--to", metavar="FILE", help="a new file")
    export.set_defaults(action="export")


def _add_config(commands: Any) -> None:
    config = commands.add_parser("config", help="the settings in force and where each is from; set, unset, path")
    config.add_argument("--json", action="store_true", help="print one JSON object")
    config.set_defaults(run="tui.commands.config", action="show")
    actions = config.add_subparsers(title="actions", metavar="ACTION", parser_class=Parser)
    setting = actions.add_parser("set", help="write a setting into the settings file")
    setting.add_argument("key", metavar="KEY")
    setting.add_argument("value", metavar="VALUE")
    setting.set_defaults(action="set")
    unset = actions.add_parser("unset", help="take a setting out of the file")
    unset.add_argument("key", metavar="KEY")
    unset.set_defaults(action="unset")
    path = actions.add_parser("path", help="print where the settings file is")
    path.set_defaults(action="path")


_THINKERS = ("auto", "offline", "gemini", "openai")
_CLIENTS = (
    "claude-code", "claude-desktop", "codex", "cursor", "gemini-cli", "goose", "openhands", "vscode", "windsurf", "zed",
)  # fmt: skip
_CHAT_DEFAULTS = {"session": None, "latest": False, "model": "auto", "output": None}


def _add_session_arguments(command: argparse.ArgumentParser) -> None:
    which = command.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="continue this conversation")
    which.add_argument("-c", "--continue", dest="latest", action="store_true", help="continue the latest conversation")
    model = command.add_mutually_exclusive_group()
    model.add_argument("--model", choices=_THINKERS, default="auto", help="which model answers")
    model.add_argument("--offline", dest="model", action="store_const", const="offline", help="same as --model offline")
    command.add_argument("--output", metavar="DIR", help="folder that files may be written to (default: this one)")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code. Only a bug inside Shardwise gives 1."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    _collect_seldom()
    try:
        arguments = parsed(words)
        code = importlib.import_module(arguments.run).run(arguments)
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        _drop_output()  # whoever read it has seen enough
        return 0
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the line on which ^C was echoed
        return _fail("stopped", _INTERRUPTED)
    except Exception as error:
        if os.environ.get("SHARDWISE_DEBUG"):
            raise
        return _failed(error)


def _collect_seldom() -> None:
    """A command keeps most of what it makes: modules, tables, types. To look for garbage among them as often as Python
    usually does is a fifth of its time."""
    young, *older = gc.get_threshold()
    if 0 < young < _YOUNG:
        gc.set_threshold(_YOUNG, *older)


def _open_streams() -> None:
    """Streams that were closed by whoever started us are empty ones; bytes that are no text stop nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (for as long as we run)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """What is still buffered must not fail again when Python exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parsed(typed: list[str]) -> argparse.Namespace:
    """The words as what the command's module takes. Raises PlanError for what is no command."""
    words = typed
    first = words[0] if words else ""
    if first.startswith("-") and first not in ("-h", "--help", "--version"):
        # Options alone are those of the app.
        words, first = ["chat", *words], "chat"
    name = " ".join(words[:2]) if " ".join(words[:2]) in MEASURING else first
    made = parser(name)
    names = commands_of(made)
    if first and first not in names and not first.startswith("-"):
        raise _no_command(first, names)
    if words[:1] != typed[:1] and (named := [word for word in words[1:] if word in names]):
        made.error(f"options come after the command: shardwise {named[0]} …")
    planning = (PLANNING | MEASURING).get(name)
    if first in _CATALOGUES:
        # Options may stand anywhere among the words of a row.
        return names[first].parse_intermixed_args(words[1:])
    if planning is None:
        return made.parse_args(words)
    from tui.flags import normal  # as above

    # Model and accelerator may stand anywhere among the flags.
    depth = len(name.split())
    chosen = names[first] if depth == 1 else commands_of(names[first])[words[1]]
    arguments, left = chosen.parse_known_intermixed_args(normal(words[depth:], planning))
    if left:
        raise _no_flag(left[0], chosen)
    return arguments


def commands_of(made: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    return next(action.choices for action in made._actions if isinstance(action, argparse._SubParsersAction))


def _no_command(word: str, names: Iterable[str]) -> Exception:
    if " " in word.strip():
        return PlanError("command", f'to ask a question: shardwise ask "{word}"')
    return PlanError("command", f"there is no command {word!r}{_meant(word, names)}")


def _meant(word: str, names: Iterable[str]) -> str:
    """': did you mean fit?', or where to look."""
    return meant(word, names) or "; see shardwise --help"


def meant(word: str, names: Iterable[str]) -> str:
    """': did you mean fit?'; nothing where no name is like the word."""
    by_folded = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), by_folded, n=2, cutoff=0.6)
    return f": did you mean {' or '.join(by_folded[name] for name in near)}?" if near else ""


def _no_flag(word: str, made: argparse.ArgumentParser) -> Exception:
    if not word.startswith("-"):
        return PlanError(made.prog, f"does not know what {word!r} is for", ["a flag in front of it"])
    flag = word.partition("=")[0]
    near = _of_group(flag, made) or meant(flag, made._option_string_actions) or f"; see {made.prog} --help"
    return PlanError(flag, f"there is no such flag{near}")


def _of_group(flag: str, made: argparse.ArgumentParser) -> str:
    """The flags of a small group that a word of the flag names: of --custom-layout those of 'layout'."""
    words = flag.strip("-").split("-")
    group = next((group for group in made._action_groups if group.title in words), None)
    flags = [action.option_strings[0] for action in group._group_actions if action.option_strings] if group else []
    return f"; flags of the {group.title}: {', '.join(flags)}" if group and 0 < len(flags) <= _FEW_FLAGS else ""


_FEW_FLAGS = 16

# What only some commands need, and the extra that brings it.
_EXTRAS = {"httptools": "serve", "aiohttp": "web", "textual_serve": "web", "openai": "openai", "psycopg": "team",
           "alembic": "team"}  # fmt: skip


def _failed(error: Exception) -> int:
    """A user's mistake, and what the machine refuses, are told in their own words; anything else is ours."""
    if isinstance(error, PlanError):
        typed = _QUOTED.search(error.problem)
        near = get_close_matches(typed[1].lower(), error.valid, n=1, cutoff=0.6) if typed else []
        return _fail(f"{error}{f'; did you mean {near[0]}?' if near and len(error.valid) > 1 else ''}", 2)
    if isinstance(error, ModuleNotFoundError) and (extra := _EXTRAS.get((error.name or "").partition(".")[0])):
        return _fail(f"{error.name} is not installed; `pip install 'shardwise[{extra}]'` brings what this needs", 2)
    if isinstance(error, OSError) and error.strerror:
        _drop_output()
        return _fail(f"{error.filename or 'output'}: {error.strerror}", 2)
    return _fail(f"internal error: {type(error).__name__}: {error} (SHARDWISE_DEBUG=1 shows where)", 1)


def _fail(text: str, code: int) -> int:
    print(f"shardwise: {_shortened(text)}", file=sys.stderr)
    return code


def _shortened(text: str) -> str:
    """On one line, and without what steers a terminal. What was given may be a whole file; its start says which it
    is."""
    words = (word if len(word) <= _LONGEST else f"{word[: _LONGEST // 2]}…" for word in one_line(text).split(" "))
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
