"""How each tool of the registry is described to a client: flat parameters, schemas without padding, annotations.

Some ninety arguments describe a run, and most tools take them all. A list of tools, which an assistant carries along in
every request, shows them all with the two tools that estimate a run, with the others only those of every day and these
without their words; what several tools take or give is spelled out with the first, and what lies deep in a result
not at all. One tool alone is described in full.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import JsonSchemaMode

    from tools.registry import Tool

Schema = dict[str, Any]

CONFIRM = {
    "anyOf": [{"type": "string"}, {"type": "null"}],
    "default": None,
    "description": "For clients that cannot ask the person: the code that the same call without it gave. Give it only "
    "after the person has agreed; exactly what was shown is written.",
}
_WRITING = {
    "written": {"type": "boolean", "description": "Whether the files are on disk now."},
    "preview": {"type": "object", "description": "What would be written, where nothing was written yet."},
    "confirm": {"type": ["string", "null"], "description": "The code that confirms exactly what preview shows."},
    "how": {"type": "string", "description": "How to have it written."},
}
# The tools whose arguments a list shows in full, and the others' plan argument there.
IN_FULL = ("estimate_training", "estimate_inference")
# These have their words at home, wherever they come in the list.
_FIRST = (*IN_FULL, "estimate_cost")
_PLAN = (
    "A whole or partial Plan, or a saved scenario's name; flat arguments win over it. Also takes whatever describes a "
    "run to estimate_training and estimate_inference."
)
EVERYDAY = frozenset({
    "plan", "model", "accelerator", "count", "per_node", "framework", "stage", "method", "precision", "optimizer",
    "seq_len", "micro_batch", "global_batch", "dataset_tokens", "epochs", "lora_rank", "tp", "pp", "cp", "ep", "dp",
    "zero_stage", "recompute", "offload", "deadline_h", "budget_usd", "provider", "input_len", "output_len",
    "concurrency", "request_rate", "weight_dtype", "kv_dtype", "engine", "ttft_slo_ms", "tpot_slo_ms",
    "slo_statistic",
})  # fmt: skip
# So many values an argument may have to be listed again.
_FEW = 6
# Where a schema holds schemas: by name, in a list, or alone.
_NAMED = ("properties", "$defs", "patternProperties")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_ALONE = ("items", "additionalProperties", "not")
_NULL = {"type": "null"}
# What is left of an argument that was described before; its bounds are in the message that refuses it.
_SHAPE = frozenset({"type", "enum", "const", "anyOf", "items", "additionalProperties", "default", "$ref"})


def listed(tools: Iterable[Tool]) -> list[Schema]:
    """All tools as a list shows them."""
    tools = list(tools)
    run: dict[str, list[Schema]] = {}
    for tool in tools:
        if tool.name in IN_FULL:
            for name, field in _brief(input_schema(tool), False)["properties"].items():
                run.setdefault(name, []).append(field)
    taken, told = set[str](), set[str]()
    entries = {
        tool.name: _entry(tool, _listed_input(tool, run, taken), _listed_output(tool, told))
        for tool in sorted(tools, key=lambda tool: tool.name not in _FIRST)
    }
    return [entries[tool.name] for tool in tools]


def described(tool: Tool) -> Schema:
    """One tool with its whole schemas."""
    return _entry(tool, input_schema(tool), output_schema(tool))


def input_schema(tool: Tool) -> Schema:
    schema = untitled(schema_of(tool.request))
    if not tool.read_only:
        schema["properties"] = {**schema.get("properties", {}), "confirm": CONFIRM}
    return schema


def output_schema(tool: Tool) -> Schema:
    schema = untitled(schema_of(tool.response, "serialization"))
    if tool.read_only:
        return schema
    # Nothing of the result is there before the person has agreed.
    return {**schema, "properties": {**schema["properties"], **_WRITING}, "required": ["written"]}


def schema_of(model: type[BaseModel], mode: JsonSchemaMode = "validation") -> Schema:
    """A request's or a result's schema, the caller's own to change."""
    return json.loads(_schema_text(model, mode))


@cache
def _schema_text(model: type[BaseModel], mode: JsonSchemaMode) -> str:
    """Made once: of some ninety arguments it takes long, and lists, pages and descriptions all show it."""
    return json.dumps(model.model_json_schema(mode=mode))


def untitled(schema: Mapping[str, Any]) -> Schema:
    """A schema without the titles that pydantic makes of the field names; they are a fifth of its size."""
    return _mapped(schema, lambda each: {key: value for key, value in each.items() if key != "title"})


def _entry(tool: Tool, request: Schema, response: Schema) -> Schema:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": request,
        "outputSchema": response,
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": not tool.read_only,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def _listed_input(tool: Tool, run: Mapping[str, list[Schema]], taken: set[str]) -> Schema:
    """The arguments' schema: of those that describe a `run` the usual ones, words only where no tool before has them.
    Adds these to `taken`."""
    schema = _brief(input_schema(tool), nulls=False)
    fields = schema.get("properties", {})
    whole = tool.name in IN_FULL or "plan" not in fields
    kept: Schema = {}
    for name, field in fields.items():
        means = f"{name}: {field.get('description')}"
        if whole or not _describes(field, run.get(name, ())):
            kept[name] = (
                _wordless(field) if means in taken and name != "confirm" and tool.name not in IN_FULL else field
            )
            taken.add(means)
        elif name in EVERYDAY:
            kept[name] = _wordless(field)
    if whole:
        return {**schema, "properties": kept}
    kept["plan"] = {**kept["plan"], "description": _PLAN}
    # What is not listed is taken as well, and refused by the tool itself where it is nothing.
    return {**{key: value for key, value in schema.items() if key != "additionalProperties"}, "properties": kept}


def _describes(field: Schema, same: Iterable[Schema]) -> bool:
    """Whether an argument is the one of that name that describes a run."""
    return field.get("description") in [each.get("description") for each in same]


def _listed_output(tool: Tool, told: set[str]) -> Schema:
    """The result's schema; of what it holds, only what no tool before has shown, and of what that holds, no more than
    its kind. Adds to `told`."""
    schema = _brief(output_schema(tool), nulls=True)
    # A result has all its fields; saying so again takes as much room as their names. What writes may hold a part.
    top = {key: value for key, value in schema.items() if key != "$defs" and (key != "required" or not tool.read_only)}
    parts = schema.get("$defs", {})
    kinds = {name: {"type": part["type"]} if "type" in part else part for name, part in parts.items()}
    shown = {}
    for name in sorted(_references(top)):
        part = {key: value for key, value in parts[name].items() if key != "required"}
        known = f"{name} {part}"
        shown[name] = kinds[name] if known in told else _mapped(part, lambda each: _unreferred(each, kinds))
        told.add(known)
    # What was shown before is named by its kind alone, without a definition to look up.
    top = _mapped(
        top, lambda each: _unreferred(each, {name: part for name, part in shown.items() if part == kinds[name]})
    )
    return _reachable({**top, "$defs": {**kinds, **shown}}) if shown else top


def _unreferred(schema: Schema, kinds: Mapping[str, Schema]) -> Schema:
    """A schema with the kind of what it refers to in place of the reference."""
    either = schema.get("anyOf", ())
    if len(either) > 1 and all(each == either[0] for each in either):
        return {**either[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    kind = kinds.get(str(schema.get("$ref", "")).removeprefix("#/$defs/"))
    if kind is None or set(kind) != {"type"}:
        return schema
    return {**kind, **{key: value for key, value in schema.items() if key != "$ref"}}


def _reachable(schema: Schema) -> Schema:
    """The schema with those of its definitions that it still refers to."""
    parts, needed = schema["$defs"], set[str]()
    fields = {key: value for key, value in schema.items() if key != "$defs"}
    layer = _references(fields)
    while layer := layer - needed:
        needed |= layer
        layer = set().union(*(_references(parts[name]) for name in layer))
    kept = {name: part for name, part in parts.items() if name in needed}
    return {"$defs": kept, **fields} if kept else fields


def _references(schema: Schema) -> set[str]:
    return set(re.findall(r"'\$ref': '#/\$defs/([^']+)'", repr(schema)))


def _brief(schema: Mapping[str, Any], nulls: bool) -> Schema:
    """The same said in fewer words. Of results (`nulls`) without defaults; of arguments without null, which is as well
    left out and taken all the same."""

    def brief(each: Schema) -> Schema:
        each = {key: value for key, value in each.items() if not (key == "default" and (value is None or nulls))}
        if each.get("additionalProperties") is True:
            del each["additionalProperties"]
        if nulls and ("const" in each or "enum" in each):
            each.pop("type", None)
        if "anyOf" not in each:
            return each
        kinds = [kind for kind in each.pop("anyOf") if nulls or kind != _NULL]
        # Whole numbers are numbers.
        kinds = [kind for kind in kinds if kind != {"type": "integer"} or {"type": "number"} not in kinds]
        rest = [kind for kind in kinds if kind != _NULL]
        if len(rest) == 1 and (len(kinds) == 1 or isinstance(rest[0].get("type"), str)):
            either = {"type": [rest[0]["type"], "null"]} if len(kinds) > 1 else {}
            return {**rest[0], **either, **each}
        # In arguments as several schemas: not every assistant reads several types in one.
        if nulls and all(set(kind) == {"type"} and isinstance(kind["type"], str) for kind in kinds):
            return {"type": [kind["type"] for kind in kinds], **each}
        return {"anyOf": kinds, **each}

    return _mapped(schema, brief)


def _wordless(schema: Mapping[str, Any]) -> Schema:
    if len(schema.get("enum", ())) > _FEW:
        return {"type": "string"}
    return {key: value for key, value in schema.items() if key in _SHAPE}


def _mapped(schema: Mapping[str, Any], change: Callable[[Schema], Schema]) -> Schema:
    """A schema whose parts, and then itself, went through `change`. Names of fields are left alone."""
    whole: Schema = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            whole[key] = {name: _mapped(inner, change) for name, inner in value.items()}
        elif key in _LISTED and isinstance(value, list):
            whole[key] = [_mapped(inner, change) for inner in value]
        elif key in _ALONE and isinstance(value, Mapping):
            whole[key] = _mapped(value, change)
        else:
            whole[key] = value
    return change(whole)
