"""`shardwise database`: the tables of a team's database, and what in it is shared."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict

from estimator.errors import PlanError
from knowledge.own import database
from pages.rendering.clean import one_line
from pages.rendering.table import table
from pages.rendering.terminal import screen_width
from tui.jsonout import write_json


def named(address: str | None) -> str:
    """The team's database: `address`, which counts from here on, else SHARDWISE_DATABASE. Raises PlanError."""
    if address:
        os.environ[database.ADDRESS] = address
    if not database.address():
        problem = f"is required: name the team's database (or set {database.ADDRESS})"
        raise PlanError("--database", problem, ["postgresql://user@host/name"])
    return database.address()


def run(arguments: argparse.Namespace) -> int:
    named(arguments.database)
    match arguments.action:
        case "upgrade":
            from server.team.schema import upgrade  # its libraries take a second

            print(f"{database.shown()} has the tables of this Shardwise ({upgrade()})")
        case "share" | "unshare":
            shares = arguments.action == "share"
            database.share(arguments.kind, arguments.name, shares)
            print(f"{one_line(arguments.name)} is {'shared' if shares else 'yours alone'} from here on")
        case _:
            rows = database.owned()
            if arguments.json:
                write_json([asdict(row) for row in rows])
                return 0
            shown = [
                (row.kind, one_line(row.name), one_line(row.owner), "shared" if row.shared else "private")
                for row in rows
            ]
            print(table(("KIND", "NAME", "OWNER", "WHOSE"), shown, width=screen_width()))
    return 0
