"""`shardwise sessions`: earlier conversations, latest first."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from estimator.errors import PlanError
from tui.jsonout import write_json
from tui.table import table


def run(arguments: argparse.Namespace) -> int:
    rows = earlier()
    if arguments.json:
        write_json(rows)
        return 0
    if not rows:
        print("No conversation yet.", file=sys.stderr)
        return 0
    print(table(("ID", "LAST USED", "TITLE"), [(r["id"], str(r["last_used"])[:16], r["title"][:80]) for r in rows]))
    return 0


def earlier() -> list[dict[str, Any]]:
    from agent.session import list_sessions

    return sorted(list_sessions(), key=lambda row: row["last_used"], reverse=True)


def chosen(arguments: argparse.Namespace) -> str | None:
    """The conversation that --session or --continue names; None starts a new one."""
    if not arguments.latest:
        return arguments.session
    rows = earlier()
    if not rows:
        raise PlanError("--continue", "there is no earlier conversation")
    return rows[0]["id"]
