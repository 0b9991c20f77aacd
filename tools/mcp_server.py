"""The registry as an MCP server: every tool with its own flat parameters, output schema and annotations."""

from __future__ import annotations

import json
import logging
from importlib.metadata import version
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool as McpTool
from fastmcp.tools import ToolResult
from mcp.types import ToolAnnotations

from estimator.errors import PlanError
from tools.registry import Tool, registry

_INSTRUCTIONS = (
    "Shardwise plans LLM training and fine-tuning: does it fit, how fast, what does it cost, which layout is best, and "
    "the launch files. Every figure comes from these tools; quote them with their units and intervals, and state the "
    "assumptions that a result lists. Name models and accelerators as the user did; an unknown or ambiguous name comes "
    "back with the nearest valid ones."
)


class RegistryTool(McpTool):
    """One tool of the registry as FastMCP serves it."""

    tool: Tool

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        try:
            result = self.tool(arguments)
        except PlanError as error:
            raise ToolError(str(error)) from None
        return ToolResult(content=json.dumps(result), structured_content=result)


def server() -> FastMCP:
    """A server with every tool of the registry, in its order."""
    served = FastMCP("shardwise", instructions=_INSTRUCTIONS, version=version("shardwise"))
    for tool in registry().values():
        served.add_tool(
            RegistryTool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                parameters=tool.request.model_json_schema(),
                output_schema=tool.response.model_json_schema(mode="serialization"),
                annotations=ToolAnnotations(
                    title=tool.title,
                    read_only_hint=tool.read_only,
                    destructive_hint=not tool.read_only,
                    idempotent_hint=True,
                    open_world_hint=False,
                ),
                tool=tool,
            )
        )
    return served


def serve_stdio() -> None:
    """Serves over standard input and output until the client closes them; stdout carries nothing else."""
    # A refused argument is an answer, not an incident: clients show what a server logs as if it had failed.
    logging.disable(logging.ERROR)
    server().run(transport="stdio", show_banner=False)
