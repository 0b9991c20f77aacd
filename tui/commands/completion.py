"""`shardwise completion`: the script that makes a shell complete commands, flags and their values.

It is made from the command line itself and the catalogues, and stands alone: completing starts no Python.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tui.cli import parser

# Of flags and places by name: which words complete them. Others are completed by their own values.
_CATALOGUES = {"model": "models", "models": "models", "accelerator": "hardware", "accelerators": "hardware"}
_FILES = ("plan", "token_file", "jsonl", "files")
_FOLDERS = ("output", "root", "config_root", "write")


def run(arguments: argparse.Namespace) -> int:
    sys.stdout.write(script(arguments.shell))
    return 0


def script(shell: str) -> str:
    import shtab

    made = parser(every_flag=True)
    _fill(made)
    preamble: Any = {shell: "\n".join(_function(shell, name, words) for name, words in _words().items())}
    return shtab.complete(made, shell=shell, preamble=preamble)


def _words() -> dict[str, list[str]]:
    from knowledge.hardware import accelerators
    from knowledge.models import models

    return {"models": [row.id for row in models()], "hardware": [row.id for row in accelerators()]}


def _function(shell: str, name: str, words: list[str]) -> str:
    """A function of the shell that completes these words: the catalogue stands once in the script, not at each flag."""
    listed = " ".join(words)
    match shell:
        case "bash":
            return f"_shardwise_{name}() {{ printf '%s\\n' {listed} | grep -iF -- \"$1\"; }}"
        case "zsh":
            return f"_shardwise_{name}() {{ compadd -M 'm:{{a-zA-Z}}={{A-Za-z}} l:|=*' -- {listed}; }}"
    return f"function _shardwise_{name}; string split ' ' -- '{listed}'; end"


def _fill(made: argparse.ArgumentParser) -> None:
    """Says of every argument what completes it."""
    import shtab

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
        elif name in _CATALOGUES and action.choices is None:
            function = f"_shardwise_{_CATALOGUES[name]}"
            complete = {"bash": function, "zsh": function, "fish": f"({function})"}
        elif action.choices is None and action.nargs != 0:
            action.choices = getattr(action, "values", None)
        if complete is not None and action.nargs != 0 and not isinstance(action, argparse._HelpAction):
            action.complete = complete  # type: ignore[attr-defined]
