"""How each tool of the registry is described to a client: flat parameters, schemas without padding, annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.registry import Tool

CONFIRM = {
    "anyOf": [{"type": "string"}, {"type": "null"}],
    "default": None,
    "description": "For clients that cannot ask the person: the code that the same call without it gave together with "
    "the files as text. Give it only after the person has agreed; exactly those files are written.",
}
_WRITING = {
    "written": {"type": "boolean", "description": "Whether the files are on disk now."},
    "preview": {"type": "object", "description": "What would be written, where nothing was written yet."},
    "confirm": {"type": ["string", "null"], "description": "The code that confirms exactly what preview shows."},
    "how": {"type": "string", "description": "How to have it written."},
}
# Where a schema holds schemas: by name, in a list, or alone.
_NAMED = ("properties", "$defs", "patternProperties")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_ALONE = ("items", "additionalProperties", "not")


def described(tool: Tool) -> dict[str, Any]:
    """The tool as `tools/list` shows it."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": input_schema(tool),
        "outputSchema": output_schema(tool),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.read_only,
            "destructiveHint": not tool.read_only,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def input_schema(tool: Tool) -> dict[str, Any]:
    schema = untitled(tool.request.model_json_schema())
    if not tool.read_only:
        schema["properties"] = {**schema.get("properties", {}), "confirm": CONFIRM}
    return schema


def output_schema(tool: Tool) -> dict[str, Any]:
    schema = untitled(tool.response.model_json_schema(mode="serialization"))
    if tool.read_only:
        return schema
    # Nothing of the result is there before the person has agreed.
    return {**schema, "properties": {**schema["properties"], **_WRITING}, "required": ["written"]}


def untitled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without the titles that pydantic makes of the field names; they are a fifth of its size."""
    slim: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title":
            continue
        if key in _NAMED and isinstance(value, Mapping):
            slim[key] = {name: untitled(inner) for name, inner in value.items()}
        elif key in _LISTED and isinstance(value, list):
            slim[key] = [untitled(inner) for inner in value]
        elif key in _ALONE and isinstance(value, Mapping):
            slim[key] = untitled(value)
        else:
            slim[key] = value
    return slim
