"""`shardwise` and `shardwise chat`: the app, when there is a terminal to show it in."""

from __future__ import annotations

import argparse
import os
import sys

from agent.store import is_kept
from tui.app import ShardwiseApp
from tui.commands.sessions import chosen
from tui.tab import BrowserApp


def run(arguments: argparse.Namespace) -> int:
    # `shardwise web` shows the app through a driver that speaks over pipes.
    in_browser = "TEXTUAL_DRIVER" in os.environ
    if not in_browser and not (sys.stdin.isatty() and sys.stdout.isatty()):
        print('shardwise: the app needs a terminal; without one: shardwise ask "…"', file=sys.stderr)
        return 2
    made = BrowserApp if in_browser else ShardwiseApp
    app = made(session_id=chosen(arguments), model=arguments.model, output=arguments.output)
    app.run()
    if app.talk.id is not None and not in_browser and is_kept():
        print(f"Session {app.talk.id}. To go on: shardwise chat --session {app.talk.id}")
    return app.return_code or 0
