"""What a language model is told of the tools: their schemas from the registry, made short enough for every request.

Some ninety arguments describe a run, and most tools take them all. They are declared in full with the two tools that
estimate a run; with the others only those of every day, the rest being taken within `plan`. Bounds are left out: a tool
checks its arguments itself and says what is valid. The same tools give the same bytes, so that they can be cached.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tools.registry import Tool
from tools.schemas import EVERYDAY, IN_FULL

_PLAN = "A partial Plan, for arguments of a run that are not listed here, or a saved scenario; listed ones win over it."
_KEPT = ("type", "description", "enum", "items", "anyOf", "properties", "required", "$ref", "$defs")


def declarations(tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """Each tool as {name, description, parameters}, the last a JSON schema."""
    return json.loads(declared(tools))


def declared(tools: Mapping[str, Tool]) -> str:
    """The same as JSON text."""
    return _declared(tuple(tools.values()))


@lru_cache(maxsize=4)
def _declared(tools: tuple[Tool, ...]) -> str:
    """Generating schemas takes longer than anything else that is done for a request, and they stay the same."""
    shared: dict[str, list[Any]] = {}
    for tool in tools:
        if tool.name in IN_FULL:
            for field, schema in _short(tool.request.model_json_schema())["properties"].items():
                shared.setdefault(field, []).append(schema)
    told = [(tool.name, tool.description, _parameters(tool, shared)) for tool in tools]
    return json.dumps([{"name": name, "description": when, "parameters": schema} for name, when, schema in told])


def _parameters(tool: Tool, shared: Mapping[str, list[Any]]) -> dict[str, Any]:
    schema = _short(tool.request.model_json_schema())
    if tool.name in IN_FULL or "plan" not in schema.get("properties", {}):
        return schema
    needed = set(schema.get("required", ()))
    fields: dict[str, Any] = {}
    for name, field in schema["properties"].items():
        if name in needed or field not in shared.get(name, ()):
            fields[name] = field
        elif name in EVERYDAY:
            fields[name] = {key: field[key] for key in ("type", "anyOf") if key in field}
    kinds = {key: schema["properties"]["plan"][key] for key in ("type", "anyOf") if key in schema["properties"]["plan"]}
    fields["plan"] = kinds | {"description": _PLAN}
    return {**schema, "properties": fields}


def _short(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without titles, defaults, bounds and the null that every optional argument may be."""
    schema = dict(schema)
    if "const" in schema:
        schema["enum"] = [schema["const"]]
    if "anyOf" in schema:
        choices = [_short(choice) for choice in schema["anyOf"] if choice.get("type") != "null"]
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        schema = {**choices[0], **rest} if len(choices) == 1 else {**rest, "anyOf": choices}
    short = {key: schema[key] for key in _KEPT if key in schema}
    for key in ("properties", "$defs"):
        if key in short:
            short[key] = {name: _short(inner) for name, inner in short[key].items()}
    if isinstance(short.get("items"), Mapping):
        short["items"] = _short(short["items"])
    return short
