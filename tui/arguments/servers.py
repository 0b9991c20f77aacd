"""Flags of what serves the tools to other programs, to browsers and to a team."""

from __future__ import annotations

import argparse
from typing import Any

from tui.arguments.parser import Parser

THINKERS = ("auto", "offline", "gemini", "openai")
_CLIENTS = (
    "claude-code", "claude-desktop", "codex", "cursor", "gemini-cli", "goose", "openhands", "vscode", "windsurf", "zed",
)  # fmt: skip
_DATABASE = "the team's database, postgresql://user@host/name (or SHARDWISE_DATABASE, which other users cannot see)"


def add_servers(commands: Any) -> None:
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
    web.add_argument("--model", choices=THINKERS, default="auto", help="which model answers")
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
