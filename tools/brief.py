"""What a language model is told of the tools, ours or one behind MCP: their schemas from the registry, made short
enough for every request.

Some ninety arguments describe a run, and most tools take them all. They are declared with the two tools that estimate a
run; the others take them as well, and list of them only what names the run. Of an argument the name says most: words
stand where they are needed to give it (it is required, free in its form, or of every day). Bounds are left out: a tool
checks its arguments itself and says what is valid. The same tools give the same bytes, so that they can be cached.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from planner.requests import PlanRequest, ServingRequest
from tools.registry import Tool
from tools.schemas import EVERYDAY, IN_FULL, schema_of

_KEPT = ("type", "description", "enum", "items", "anyOf", "properties", "required", "$ref", "$defs")
# The tools with which the arguments of a run and of its costs are declared.
_HOMES = (*IN_FULL, "estimate_cost")
# Of these arguments, these are listed with every tool that takes them.
_NAMING = ("plan", "model", "accelerator")
# What a model that knows nothing but a list needs beside them to say what kind of run it means.
_USUAL = (*_NAMING, "count", "method", "seq_len", "micro_batch", "global_batch", "dataset_tokens", "zero_stage", "tp",
          "pp", "input_len", "output_len", "concurrency", "request_rate", "engine", "weight_dtype")  # fmt: skip
# Their work is a part of what their writers do, who show it to the person before anything is written.
SHOWN_BY_WRITERS = frozenset({
    "preview_hardware", "preview_model", "preview_price", "preview_report", "render_matrix",
    "render_report",
    "render_scenario",
})  # fmt: skip
# Asked for by name in a conversation of its own: an assistant's list of tools does without.
SELDOM = frozenset({
    "apply_strategies", "peak_throughput", "project_mlperf", "render_benchmark", "benchmark_result", "benchmark_matrix",
    "matrix_results", "list_runs", "schedule_runs",
    "diff_scenarios", "load_scenario", "delete_scenario",
})  # fmt: skip
_PLAN = (
    "{model, workload: {kind: training|inference, …}, cluster: {accelerator, count}, layout: {tp, pp, …}, goal: {…}} "
    "in part or whole, or a saved scenario's name; flat arguments win. Described at shardwise://plan."
)
# Of which tools' arguments a tool takes every one, by what it is asked.
_HOMES_OF = {PlanRequest: "estimate_training", ServingRequest: "estimate_inference"}
_CONFIRM = {
    "type": "string",
    "description": "The code that the same call without it gave; only after the person agreed.",
}


@dataclass(frozen=True)
class _Listing:
    """`most` are the arguments of a run that are listed at all (None: every one), `naming` those that are listed with
    every tool, `homes` the tools whose arguments the others take without a word, `longest` the letters of what a tool
    gives. `once`: an argument of several tools has its words with the first of them, for a reader of the whole list."""

    most: Container[str] | None
    naming: tuple[str, ...]
    homes: tuple[str, ...]
    longest: int
    once: bool


_OF_STRANGERS = _Listing(EVERYDAY | {"improvements"}, _USUAL, _HOMES, 175, once=False)
# In a conversation of ours the prompt says what tools share: where files go stands with the tool that writes them.
_OF_CONVERSATIONS = _Listing(None, _NAMING, (*_HOMES, "write_configs"), 100, once=True)
_SENTENCE = re.compile(r"(?<=[.\"”)]) (?=[A-Z])")


def assistants(tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """The tools as an MCP server lists them, without those of its own use and those that are seldom asked for: a client
    carries the list along in every request, and knows the Plan from nothing else. Results are not described."""
    shown = tuple(tools[name] for name in tools if name not in SHOWN_BY_WRITERS | SELDOM)
    entries = _entries(shown, _OF_STRANGERS)
    return [
        {
            "name": entry["name"],
            "title": tool.title,
            "description": entry["description"],
            "inputSchema": _for_strangers(tool, entry["parameters"]),
            "annotations": {"readOnlyHint": tool.read_only, "openWorldHint": False},
        }
        for tool, entry in zip(shown, entries, strict=True)
    ]


def _for_strangers(tool: Tool, schema: dict[str, Any]) -> dict[str, Any]:
    fields = schema["properties"]
    if "plan" in fields:
        words = _PLAN if tool.name in IN_FULL else f"Also takes arguments of {_home(tool)}."
        fields = {**fields, "plan": {"anyOf": [{"type": "object"}, {"type": "string"}], "description": words}}
    return {**schema, "properties": fields if tool.read_only else {**fields, "confirm": _CONFIRM}}


def _home(tool: Tool) -> str:
    """Where the arguments of a run are declared that a tool takes beside those that it lists."""
    return next((name for kind, name in _HOMES_OF.items() if issubclass(tool.request, kind)), " or ".join(IN_FULL))


def _values(field: Mapping[str, Any]) -> tuple[str, ...]:
    """The values that an argument, or what a list in it holds, is one of; a single word says that any is taken."""
    return tuple(field.get("enum") or field.get("items", {}).get("enum") or ("any", str(field.get("type"))))


def _open(field: Mapping[str, Any]) -> dict[str, Any]:
    if "enum" in field:
        return {key: value for key, value in field.items() if key != "enum"}
    return {**field, "items": {"type": "string"}} if "enum" in field.get("items", {}) else dict(field)


def declarations(tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """Each tool as {name, description, parameters}, the last a JSON schema."""
    return json.loads(declared(tools))


def declared(tools: Mapping[str, Tool]) -> str:
    """The same as JSON text."""
    return _declared(tuple(tools.values()))


@lru_cache(maxsize=4)
def _declared(tools: tuple[Tool, ...]) -> str:
    """Generating schemas takes longer than anything else that is done for a request, and they stay the same."""
    listed = tuple(tool for tool in tools if tool.name not in SHOWN_BY_WRITERS)
    return json.dumps(_entries(listed, _OF_CONVERSATIONS), separators=(",", ":"))


def _entries(tools: tuple[Tool, ...], how: _Listing) -> list[dict[str, Any]]:
    schemas = {tool.name: _short(schema_of(tool.request)) for tool in tools}
    told, costs = (_meanings(schemas, homes) for homes in (IN_FULL, how.homes))
    entries = [
        {
            "name": tool.name,
            "description": _words(tool, how.longest),
            "parameters": _parameters(
                tool, schemas[tool.name], told if tool.name in how.homes else told | costs, how.most, how.naming
            ),
        }
        for tool in tools
    ]
    known = {_values(field) for entry in entries if entry["name"] in IN_FULL
             for field in entry["parameters"]["properties"].values()}  # fmt: skip
    for entry in entries:
        if entry["name"] not in IN_FULL:
            # Lists of values that stand with the tools that estimate a run are not given again.
            fields = entry["parameters"]["properties"]
            fields |= {name: _open(field) for name, field in fields.items() if _values(field) in known}
    if how.once:
        _say_once(entries)
    return entries


def _say_once(entries: Iterable[Mapping[str, Any]]) -> None:
    """Takes the words from arguments that had them with a tool before."""
    worded: set[str] = set()
    for entry in entries:
        for name, field in entry["parameters"]["properties"].items():
            if (meaning := _meaning(name, field)) in worded:
                field.pop("description", None)
            worded.add(meaning)


def _meanings(schemas: Mapping[str, dict[str, Any]], homes: Iterable[str]) -> set[str]:
    fields = [item for home in homes if home in schemas for item in schemas[home]["properties"].items()]
    return {each for name, field in fields for each in (name, _meaning(name, field))}


def _meaning(name: str, field: Mapping[str, Any]) -> str:
    """An argument of the same name may be another thing: the name of a plan, and that to save it under."""
    return f"{name}: {field.get('description')}"


def _words(tool: Tool, longest: int) -> str:
    """The sentences of a description that choosing a tool takes: what it gives, and what to use it for."""
    sentences = _SENTENCE.split(tool.description)
    first = sentences[0]
    if len(first) > longest:
        # Between clauses or before parentheses, and never within them.
        ends = [match.start() for match in re.finditer(r"[,;:] | \(", first[:longest])]
        whole = [end for end in ends if first.count("(", 0, end) == first.count(")", 0, end)]
        first = first[: max(whole, default=first.rfind(" ", 0, longest))] + "."
    return " ".join([first, *(sentence for sentence in sentences[1:] if sentence.startswith("Use it"))])


def _parameters(
    tool: Tool, schema: dict[str, Any], run: Container[str], most: Container[str] | None, naming: tuple[str, ...]
) -> dict[str, Any]:
    """The arguments of a tool: of those that describe a `run` only the ones that name it."""
    needed = set(schema.get("required", ()))
    is_short = tool.name not in IN_FULL and "plan" in schema.get("properties", {})
    fields: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        # The name that a plan has and the one it is saved under are two things.
        is_of_run = name in run if tool.read_only and is_short else _meaning(name, field) in run
        if tool.name not in IN_FULL and is_of_run and name not in (*naming, *needed):
            continue
        if tool.name in IN_FULL and most is not None and name not in most:
            continue
        has_words = field.get("type") == "object" or (name in EVERYDAY and not is_short) or name in needed
        fields[name] = _with_plain_items(field) if has_words else _shape(field)
    return {key: value for key, value in schema.items() if key not in ("$defs", "description")} | {"properties": fields}


def _with_plain_items(field: dict[str, Any]) -> dict[str, Any]:
    """What a list holds is told in the words of its argument: parts of a schema are not listed."""
    items = field.get("items")
    return {**field, "items": _shape(items)} if isinstance(items, dict) and "$ref" in items else field


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
