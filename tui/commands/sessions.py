"""`shardwise sessions`: earlier conversations: list, show, rename, fork, delete, export."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path

from agent import store
from agent.export import export_session
from estimator.errors import PlanError
from pages.rendering.clean import clean, one_line
from pages.rendering.prose import BlockPrinter
from pages.rendering.table import table
from tui.jsonout import write_json
from tui.pager import paged


def run(arguments: argparse.Namespace) -> int:
    match arguments.action:
        case "show":
            _show(arguments.id or _latest(), arguments.json)
        case "rename":
            title = store.rename_session(arguments.id, " ".join(arguments.title))
            print(f"{arguments.id} is now: {one_line(title)}")
        case "fork":
            copy = store.fork_session(arguments.id or _latest(), " ".join(arguments.title))
            print(copy)
            print(f'To go on: shardwise ask --session {copy} "…"', file=sys.stderr)
        case "delete":
            return _delete(arguments.id, arguments.yes)
        case "export":
            _export(arguments)
        case _:
            _list(" ".join(getattr(arguments, "query", None) or ()), arguments.json)
    return 0


def _list(query: str, as_json: bool) -> None:
    rows = store.list_sessions(query)
    if as_json:
        write_json([asdict(row) for row in rows])
        return
    if not rows:
        print(f"No conversation has {one_line(query)!r}." if query else "No conversation yet.", file=sys.stderr)
        return
    shown = [(row.id, row.last_used[:16], str(row.turns), one_line(row.title, 80)) for row in rows]
    paged(table(("ID", "LAST USED", "TURNS", "TITLE"), shown))


def _show(session_id: str, as_json: bool) -> None:
    if not as_json and sys.stdout.isatty():
        printer = BlockPrinter()
        printer.feed(export_session(session_id))
        printer.finish()
        return
    sys.stdout.write(export_session(session_id, "json" if as_json else "markdown"))


def _delete(ids: list[str], yes: bool) -> int:
    rows = [store.find_session(each) for each in ids]
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise PlanError("delete", "nobody here can confirm it", ["--yes"])
        for row in rows:
            print(f"{row.id}  {one_line(row.title, 80)}", file=sys.stderr)
        sys.stderr.write("Delete for good? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("Nothing was deleted.", file=sys.stderr)
            return 0
    for row in rows:
        store.delete_session(row.id)
        print(f"{row.id} is deleted.")
    return 0


def _export(arguments: argparse.Namespace) -> None:
    """To a file that is new (0600: it is a conversation), or to standard output."""
    suffix = Path(arguments.to).suffix.lower() if arguments.to else ""
    text = export_session(arguments.id or _latest(), arguments.format or ("json" if suffix == ".json" else "markdown"))
    if not arguments.to:
        sys.stdout.write(clean(text))
        return
    try:
        with os.fdopen(
            os.open(arguments.to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
    except FileExistsError:
        raise PlanError("--to", f"{one_line(arguments.to)} is there already", ["another name"]) from None
    except OSError as error:
        raise PlanError("--to", f"{one_line(arguments.to)} cannot be written: {error.strerror}") from None
    print(f"Written: {one_line(arguments.to)}")


def _latest(field: str = "session") -> str:
    """The conversation that was used last. Raises PlanError."""
    rows = store.list_sessions()
    if not rows:
        raise PlanError(field, "there is no earlier conversation")
    return rows[0].id


def chosen(arguments: argparse.Namespace) -> str | None:
    """The conversation that --session or --continue names; None starts a new one."""
    return _latest("--continue") if arguments.latest else arguments.session
