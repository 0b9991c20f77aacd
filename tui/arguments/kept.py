"""Flags of what is kept: catalogues, saved plans, conversations, settings, trust, and queues of runs."""

from __future__ import annotations

import argparse
from typing import Any

from tui.arguments.parser import Parser
from tui.arguments.planning import add_forms

_MORE = {
    "models": "; test: what the configured language model can do",
    "prices": "; age: how old they are; update FILE|URL: take over a published list",
}
_EXAMPLES = {
    "models": ("llama 3.1", "add my-org/my-8b ./config.json", "test openai"),
    "hardware": ("mi300", "add my-h100 like=h100-sxm memory_gib=94"),
    "prices": ("lambda", "add provider=ACME instance=h8 accelerator=h100-sxm count=8 usd_per_hour=17.6", "age",
               "update vms.csv --provider AWS"),
}  # fmt: skip
# What these are, as errors say it too.
_ID = "of the conversation, as `shardwise sessions` lists them"
_KEY = "the setting, as `shardwise config` lists them"
CATALOGUES = {"models": "model catalogue", "hardware": "accelerator catalogue", "prices": "price book"}


def add_catalogues(commands: Any) -> None:
    for name, what in CATALOGUES.items():
        more = _MORE.get(name, "")
        told = f"list the {what}; add: put a row of your own into it{more}"
        examples = "\n  ".join(f"shardwise {name} {words}" for words in _EXAMPLES[name])
        catalogue = commands.add_parser(
            name,
            help=told,
            description=f"{told[0].upper()}{told[1:]}.\n\nexamples:\n  {examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        catalogue.add_argument(
            "query",
            nargs="*",
            help="words that the name must contain; or add, and a row (name=value ...) or its file (YAML, JSON, CSV)",
        )
        catalogue.add_argument("--project", action="store_true", help="add for this folder alone (./.shardwise)")
        catalogue.add_argument("--overwrite", action="store_true", help="add in place of your row of that name")
        catalogue.add_argument("--json", action="store_true", help="print the rows as one JSON list")
        if name == "prices":
            catalogue.add_argument(
                "--provider", help="only this provider; update: the provider, where a list names none"
            )
            catalogue.add_argument("--region", action="append", help="only this region; may be repeated")
            catalogue.add_argument("--dry-run", action="store_true", help="update: say what it would do, write nothing")
        catalogue.set_defaults(run="tui.commands.catalogue", catalogue=name)


def add_scenarios(commands: Any) -> None:
    scenarios = commands.add_parser("scenarios", help="saved plans: list, show, save, delete, diff")
    forms = {"json": False, "md": False, "brief": False, "why": False}
    scenarios.set_defaults(run="tui.commands.scenarios", action="list", query=None, figures=False, **forms)
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
    differ = what.add_parser("diff", help="what differs between two plans, and its effect")
    for side in ("a", "b"):
        differ.add_argument(side, help="a saved plan's name, or a YAML or JSON file")
    for text in (listed, differ):
        text.add_argument("--md", action="store_true", default=argparse.SUPPRESS, help="print Markdown")
    differ.add_argument("--brief", action="store_true", default=argparse.SUPPRESS, help="print the verdict alone")
    actions = {"list": listed, "show": shown, "save": saved, "delete": deleted, "diff": differ}
    for name, action in actions.items():
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=shows)
        action.set_defaults(action=name)


def add_sessions(commands: Any) -> None:
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
    show.add_argument("id", nargs="?", metavar="ID", help="default: the latest")
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as one JSON object")
    show.set_defaults(action="show")
    rename = actions.add_parser("rename", help="give it another title")
    rename.add_argument("id", metavar="ID", help=_ID)
    rename.add_argument("title", nargs="+", metavar="TITLE", help="its new title")
    rename.set_defaults(action="rename")
    fork = actions.add_parser("fork", help="copy it, to go on in two ways; prints the copy's id")
    fork.add_argument("id", nargs="?", metavar="ID", help="default: the latest")
    fork.add_argument("title", nargs="*", metavar="TITLE")
    fork.set_defaults(action="fork")
    delete = actions.add_parser("delete", help="delete for good")
    delete.add_argument("id", nargs="+", metavar="ID", help=_ID)
    delete.add_argument("-y", "--yes", action="store_true", help="delete without being asked")
    delete.set_defaults(action="delete")
    export = actions.add_parser("export", help="as Markdown or JSON, to a file or standard output")
    export.add_argument("id", nargs="?", metavar="ID", help="default: the latest")
    export.add_argument("--format", choices=("markdown", "json"), help="default: markdown, or as --to ends")
    export.add_argument("--to", metavar="FILE", help="a new file")
    export.set_defaults(action="export")


def add_config(commands: Any) -> None:
    config = commands.add_parser("config", help="the settings in force and where each is from; set, unset, path")
    config.add_argument("--json", action="store_true", help="print one JSON object")
    config.set_defaults(run="tui.commands.config", action="show")
    actions = config.add_subparsers(title="actions", metavar="ACTION", parser_class=Parser)
    setting = actions.add_parser("set", help="write a setting into the settings file")
    setting.add_argument("key", metavar="KEY", help=_KEY)
    setting.add_argument("value", metavar="VALUE", help="what it is set to")
    setting.set_defaults(action="set")
    unset = actions.add_parser("unset", help="take a setting out of the file")
    unset.add_argument("key", metavar="KEY", help=_KEY)
    unset.set_defaults(action="unset")
    path = actions.add_parser("path", help="print where the settings file is")
    path.set_defaults(action="path")


def add_trust(commands: Any) -> None:
    trust = commands.add_parser("trust", help="use the hardware, models and prices in ./.shardwise")
    trust.add_argument("folder", nargs="?", default=".", help="the folder of the project (default: this one)")
    trust.add_argument("-y", "--yes", action="store_true", help="trust it without being asked")
    trust.add_argument("--withdraw", action="store_true", help="use them no longer")
    trust.set_defaults(run="tui.commands.trust")


def add_portfolio(commands: Any) -> None:
    queue = commands.add_parser("portfolio", help="several runs on one cluster: when each is done, and what is enough")
    queue.add_argument("file", metavar="FILE", help="YAML or JSON: accelerator, count, runs; - is standard input")
    queue.add_argument("--csv", metavar="FILE", help="write the runs with their times as a table")
    queue.add_argument("--html", metavar="FILE", help="write the runs with their timeline as a page")
    queue.add_argument("--svg", metavar="FILE", help="write the timeline as a picture")
    queue.add_argument("--overwrite", action="store_true", help="also over a file that is there")
    queue.add_argument("--plot", action="store_true", help="draw the timeline as a plot as well")
    add_forms(queue, "the result as one JSON object")
    queue.set_defaults(run="tui.commands.portfolio")
