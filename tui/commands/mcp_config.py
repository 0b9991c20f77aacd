"""`shardwise mcp config`: what an assistant needs to start the server, printed or written into its file.

The snippet alone goes to standard output; where it belongs and the question go to standard error.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys

from estimator.errors import PlanError
from pages.rendering.clean import clean, one_line
from server.mcp import clients as mcp_clients
from tui.root_folder import root_folder


def run(arguments: argparse.Namespace) -> int:
    client = mcp_clients.client(arguments.client)
    root = root_folder(arguments.config_root or arguments.root)
    wanted = mcp_clients.snippet(client, mcp_clients.own_command(), root)
    print(mcp_clients.written(client, wanted), end="")
    sys.stdout.flush()
    path = client.file()
    if not arguments.install:
        _say(f"For {path} ({client.source}); --install adds it there.")
        return 0
    text, now = mcp_clients.merged(client, wanted)
    if text == now or (client.form == "json" and now is not None and json.loads(now or "{}") == json.loads(text)):
        _say(f"{path} has it already.")
        return 0
    lines = difflib.unified_diff((now or "").splitlines(), text.splitlines(), str(path), str(path), lineterm="")
    print(clean("\n".join(lines)), file=sys.stderr)
    if not arguments.yes and not _agreed():
        _say("Nothing was written.")
        return 0
    mcp_clients.install(path, text)
    _say(f"Written to {path}.")
    return 0


def _agreed() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise PlanError("--install", "nobody here can be asked", ["--install --yes"])
    sys.stderr.write("Write this? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say(text: str) -> None:
    print(one_line(text), file=sys.stderr)
