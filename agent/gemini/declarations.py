"""What a language model is told of the tools: their schemas from the registry, made short enough for every request.

Some ninety arguments describe a run, and most tools take them all. They are declared with the two tools that estimate a
run; the others take them as well, and list of them only what names the run. Of an argument the name says most: words
stand where they are needed to give it (it is required, free in its form, or of every day). Bounds are left out: a tool
checks its arguments itself and says what is valid. The same tools give the same bytes, so that they can be cached.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tools.registry import Tool
from tools.schemas import EVERYDAY, IN_FULL

_KEPT = ("type", "description", "enum", "items", "anyOf", "properties", "required", "$ref", "$defs")
# The tools with which the arguments of a run and of its costs are declared.
_HOMES = (*IN_FULL, "estimate_cost")
# Of these arguments, these are listed with every tool that takes them.
_NAMING = ("plan", "model", "accelerator", "count")
# Their work is a part of what their writers do, who show it to the person before anything is written.
SHOWN_BY_WRITERS = frozenset({
    "preview_hardware", "preview_model", "preview_price", "preview_report", "render_matrix", "render_report",
    "render_scenario",
})  # fmt: skip
_LONGEST_WORDS = 200
_SENTENCE = re.compile(r"(?<=[.\"”)]) (?=[A-Z])")


def declarations(tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """Each tool as {name, description, parameters}, the last a JSON schema."""
    return json.loads(declared(tools))


def declared(tools: Mapping[str, Tool]) -> str:
    """The same as JSON text."""
    return _declared(tuple(tools.values()))


@lru_cache(maxsize=4)
def _declared(tools: tuple[Tool, ...]) -> str:
    """Generating schemas takes longer than anything else that is done for a request, and they stay the same."""
    listed = [tool for tool in tools if tool.name not in SHOWN_BY_WRITERS]
    schemas = {tool.name: _short(tool.request.model_json_schema()) for tool in listed}
    told, costs = ({name for tool in homes for name in schemas.get(tool, {}).get("properties", ())}
                   for homes in (IN_FULL, _HOMES))  # fmt: skip
    entries = [
        {
            "name": tool.name,
            "description": _words(tool),
            "parameters": _parameters(tool, schemas[tool.name], told if tool.name in _HOMES else {*told, *costs}),
        }
        for tool in listed
    ]
    return json.dumps(entries, separators=(",", ":"))


def _words(tool: Tool) -> str:
    """The sentences of a description that choosing a tool takes: what it gives, and what to use it for."""
    sentences = _SENTENCE.split(tool.description)
    first = sentences[0]
    if len(first) > _LONGEST_WORDS:
        # Between clauses, and never within parentheses.
        ends = [match.start() for match in re.finditer(r"[,;:] ", first[:_LONGEST_WORDS])]
        whole = [end for end in ends if first.count("(", 0, end) == first.count(")", 0, end)]
        first = first[: max(whole, default=_LONGEST_WORDS)] + "."
    return " ".join([first, *(sentence for sentence in sentences[1:] if sentence.startswith("Use it"))])


def _parameters(tool: Tool, schema: dict[str, Any], run: set[str]) -> dict[str, Any]:
    """The arguments of a tool: of those that describe a `run` only the ones that name it."""
    needed = set(schema.get("required", ()))
    is_short = tool.name not in IN_FULL and "plan" in schema.get("properties", {})
    fields: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        if is_short and name in run and name not in (*_NAMING, *needed):
            continue
        has_words = field.get("type") == "object" or (name in EVERYDAY and not is_short) or name in needed
        fields[name] = field if has_words else _shape(field)
    return {key: value for key, value in schema.items() if key != "$defs"} | {"properties": fields}


def _shape(field: dict[str, Any]) -> dict[str, Any]:
    """An argument without its words; of several forms the first, though a tool takes all of them."""
    shape = {key: value for key, value in field.items() if key != "description"}
    if "$ref" in shape:
        return {"type": "object"}
    if "anyOf" in shape:
        return _shape(shape["anyOf"][0])
    if isinstance(shape.get("items"), dict):
        shape["items"] = _shape(shape["items"])
    return shape


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
