"""`shardwise mcp`: the tools for other assistants, over MCP on standard input and output."""

from __future__ import annotations

import argparse

from server.mcp.server import serve_stdio
from tui.root_folder import root_folder


def run(arguments: argparse.Namespace) -> int:
    serve_stdio(root_folder(arguments.root), arguments.full)
    return 0
