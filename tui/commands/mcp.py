"""`shardwise mcp`: the tools for other assistants, over MCP on standard input and output."""

from __future__ import annotations

import argparse


def run(_: argparse.Namespace) -> int:
    from tools.mcp_server import serve_stdio

    serve_stdio()
    return 0
