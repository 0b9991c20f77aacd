"""What is sent to Gemini: the conversation as the SDK's contents, and the tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from google.genai import types

from agent.models import Turn
from agent.outgoing import BYTES_PER_TOKEN, outgoing
from agent.prompt import SYSTEM
from agent.wire import OWN_ID
from tools.brief import declarations
from tools.registry import Tool

_MOST_OUTPUT_TOKENS = 16_384


def config(tools: Mapping[str, Tool]) -> Any:
    """The SDK's configuration of a request."""
    functions = [
        types.FunctionDeclaration(
            name=each["name"], description=each["description"], parameters_json_schema=each["parameters"]
        )
        for each in declarations(tools)
    ]
    return types.GenerateContentConfig(
        system_instruction=SYSTEM,
        temperature=0.0,
        tools=[types.Tool(function_declarations=functions)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        max_output_tokens=_MOST_OUTPUT_TOKENS,
    )


def outbound(turn: Turn, model: str, most_tokens: int, part: float = 1.0) -> list[Any]:
    """The conversation as the SDK's contents, without the ids that are ours."""
    contents = outgoing(turn, model, most_tokens, part)
    bare = [{**content, "parts": [_without_own_id(each) for each in content["parts"]]} for content in contents]
    return [types.Content.model_validate_json(json.dumps(content)) for content in bare]


def tokens_of(contents: Sequence[Any]) -> int:
    """What a request is taken to come to, without its tools."""
    return int(sum(len(content.model_dump_json(exclude_none=True)) for content in contents) / BYTES_PER_TOKEN)


def _without_own_id(part: Mapping[str, Any]) -> dict[str, Any]:
    part = dict(part)
    for kind in ("functionCall", "functionResponse"):
        if kind in part and str(part[kind].get("id", "")).startswith(OWN_ID):
            part[kind] = {key: value for key, value in part[kind].items() if key != "id"}
    return part
