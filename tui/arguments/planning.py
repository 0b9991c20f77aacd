"""Flags of the commands over tools of the registry, and what every command has that prints an answer."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from tui.planning import Planning


def add_planning(commands: Any, rows: Mapping[str, Planning], command: str | None, every_flag: bool) -> None:
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
            _add_reading(sub, name)
            what = "config, script or command line; - is standard input"
            sub.add_argument("files", nargs="+", metavar="FILE", help=what)
        elif planning.keeps:
            sub.add_argument("--note", default="", help="anything else worth knowing about the run")
            sub.add_argument("--tag", dest="tags", action="append", default=[], help="a tag; may be repeated")
        else:
            add_forms(sub, "the tool's result as one JSON object")
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


def _add_reading(command: argparse.ArgumentParser, name: str) -> None:
    """`import` prints a plan, `check` what it says of the files."""
    as_json = "the tool's result as one JSON object"
    if name != "check":
        command.add_argument("--json", action="store_true", help=f"print {as_json}")
        return
    add_forms(command, as_json)
    each = "every config by itself, those below folders too; flags complete what one leaves open"
    command.add_argument("--each", action="store_true", help=each)
    against = "with each what it changes against this revision of git; exit code 1 for what fitted there"
    command.add_argument("--against", metavar="REF", help=against)


def add_forms(command: argparse.ArgumentParser, as_json: str) -> None:
    """How much is printed, and in which form."""
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=f"print {as_json} and nothing else")
    form.add_argument("--md", action="store_true", help="print Markdown")
    form.add_argument("--brief", action="store_true", help="print the verdict alone")
    command.add_argument("--why", action="store_true", help="print all of it: figures, assumptions, evidence")


def _places(planning: Planning) -> list[str]:
    """What stands without a flag, as in the line of usage."""
    return ["FILE..."] if planning.files else [f"[{place.upper()}]" for place in planning.places]
