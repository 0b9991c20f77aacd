"""`shardwise completion`: the script that makes a shell complete commands, flags and their values.

It is made from the command line itself and the catalogues, and stands alone: completing starts no Python.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import shtab

from knowledge.machines.catalogue import accelerators
from knowledge.models.known import models
from launchers.targets import TARGETS
from tools.registry import registry
from tui.arguments.top import parser

# Of flags and places by name: which words complete them. Others are completed by their own values.
_LISTED = {
    "model": "models", "models": "models", "accelerator": "hardware", "accelerators": "hardware", "tool": "tools",
    "targets": "targets",
}  # fmt: skip
_FILES = ("plan", "token_file", "jsonl", "files", "to")
_FOLDERS = ("output", "root", "config_root", "write", "folder")


def run(arguments: argparse.Namespace) -> int:
    sys.stdout.write(script(arguments.shell))
    return 0


def script(shell: str) -> str:
    made = parser(every_flag=True)
    _fill(made)
    preamble: Any = {shell: "\n".join(_function(shell, name, words) for name, words in _words().items())}
    return shtab.complete(made, shell=shell, preamble=preamble)


def _words() -> dict[str, list[str]]:
    return {
        "models": [row.id for row in models()],
        "hardware": [row.id for row in accelerators()],
        "tools": list(registry()),
        "targets": list(TARGETS),
    }


def _function(shell: str, name: str, words: list[str]) -> str:
    """A function of the shell that completes these words: a list stands once in the script, not at each flag.

    What is typed may be any part of a word; an accelerator may have a count in front, 8xh100.
    """
    listed = " ".join(words)
    match shell:
        case "bash":
            return (
                f"_shardwise_{name}() {{ local counted=; [[ $1 =~ ^[0-9]+x ]] && counted=${{BASH_REMATCH[0]}}; "
                f'printf "$counted%s\\n" {listed} | grep -iF -- "${{1#"$counted"}}"; }}'
            )
        case "zsh":
            matching = "m:{a-zA-Z}={A-Za-z} l:|=*"
            return f"_shardwise_{name}() {{ compset -P '<->x'; compadd -M '{matching}' -- {listed}; }}"
    counted = "set -l counted (string match -r '^[0-9]+x' -- (commandline -ct))"
    told = f"string split ' ' -- '{listed}' | string replace -r '^' -- \"$counted\""
    return f"function _shardwise_{name}; {counted}; {told}; end"


def _fill(made: argparse.ArgumentParser) -> None:
    """Says of every argument what completes it."""
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in set(action.choices.values()):
                _fill(inner)
            continue
        name = action.dest.removeprefix("field:").removeprefix("place_")
        complete = None
        if name in _FILES:
            complete = shtab.FILE
        elif name in _FOLDERS:
            complete = shtab.DIRECTORY
        elif name in _LISTED and action.choices is None:
            function = f"_shardwise_{_LISTED[name]}"
            complete = {"bash": function, "zsh": function, "fish": f"({function})"}
        elif action.choices is None and action.nargs != 0:
            action.choices = getattr(action, "values", None) or None
        if complete is not None and action.nargs != 0 and not isinstance(action, argparse._HelpAction):
            action.complete = complete  # type: ignore[attr-defined]
