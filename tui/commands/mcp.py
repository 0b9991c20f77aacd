"""`shardwise mcp`: the tools for other assistants, over MCP on standard input and output."""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator.errors import PlanError


def run(arguments: argparse.Namespace) -> int:
    from server.mcp.desk import serve_behind_desk

    root = folder(arguments.root)

    def serve() -> None:
        from server.mcp.server import serve_stdio

        serve_stdio(root)

    serve_behind_desk(serve)
    return 0


def folder(given: str | None) -> Path | None:
    """The folder that may be written below, which has to be there; None where none was given."""
    if given is None:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        raise PlanError("--root", f"{given} is not a folder", ["a folder that exists"])
    return path.resolve()
