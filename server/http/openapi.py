"""The OpenAPI document of the REST face, made from the registry like every other face."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from server.mcp.resources import accelerator_ids, model_ids
from server.service import Service
from tools.registry import Tool
from tools.schemas import CONFIRM, untitled

_REF = "#/components/schemas/{model}"
_JSON = "application/json"
_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string", "description": "The whole sentence, the same on every face."},
                "field": {"type": "string", "description": "The argument that cannot be used."},
                "problem": {"type": "string"},
                "valid": {"type": "array", "items": {"type": "string"}, "description": "The nearest valid values."},
            },
            "required": ["message"],
        }
    },
    "required": ["error"],
}
_FAILURES = {
    "400": "What was sent is not an HTTP request with JSON.",
    "401": "The bearer token is missing or wrong.",
    "403": "Pages of this Origin may not call the server.",
    "404": "There is no such thing; the error lists the nearest.",
    "405": "The address does not take this method.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "421": "The Host header names another server.",
    "422": "The arguments cannot be used; the error says which, why, and what would be valid.",
    "503": "Too many calls are waiting, or what is kept cannot be reached.",
}


def document(service: Service, version: str, token: bool) -> dict[str, Any]:
    """The document, OpenAPI 3.1. `token` says whether a bearer token is required."""
    pairs: list[tuple[type[BaseModel], JsonSchemaMode]] = []
    for tool in service.tools.values():
        pairs.append((tool.request, "validation"))
        pairs.append((tool.response, "serialization"))
    refs, definitions = models_json_schema(pairs, ref_template=_REF)
    schemas = {name: untitled(schema) for name, schema in definitions.get("$defs", {}).items()} | {"Error": _ERROR}
    paths: dict[str, Any] = {}
    for tool in service.tools.values():
        request, response = refs[(tool.request, "validation")], refs[(tool.response, "serialization")]
        described = _get(f"about_{tool.name}", f"{tool.title}: its schemas", {"type": "object", "required": ["name"]})
        paths[f"/v1/tools/{tool.name}"] = {"post": _tool_operation(tool, request, response, schemas), **described}
    paths |= _other_paths(service, refs)
    if service.conversations is not None:
        paths |= _team_paths()
    secured = {"security": [{"bearer": []}]} if token else {}
    schemes = {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}} if token else {}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Shardwise",
            "version": version,
            "description": "Plans for LLM training, fine-tuning and serving: memory, time, cost, layouts, launch "
            "files. Every tool takes and gives flat JSON.",
        },
        **secured,
        "paths": paths,
        "components": {"schemas": schemas, **schemes},
    }


def _tool_operation(tool: Tool, request: Any, response: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    name = request["$ref"].rpartition("/")[2]
    schema = schemas[name]
    if not tool.read_only:
        # As over MCP: the first call shows the files and gives a code, the same call with the code writes them.
        schemas[name] = {**schema, "properties": {**schema["properties"], "confirm": CONFIRM}}
        not_written = {"type": "object", "properties": {"written": {"const": False}, "preview": {"type": "object"}},
                       "required": ["written", "preview", "confirm", "how"]}  # fmt: skip
        response = {"anyOf": [response, not_written]}
    return {
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "tags": ["tools"],
        # No body is one without arguments.
        "requestBody": {"required": bool(schema.get("required")), "content": {_JSON: {"schema": request}}},
        "responses": _responses(
            response, f"The result of {tool.name}.", "400", "404", "408", "413", "415", "422", "503"
        ),
    }


def _other_paths(service: Service, refs: Any) -> dict[str, Any]:
    listing = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    paths = {
        "/v1/tools": _get("list_tools", "List the tools", {"type": "object", "required": ["tools"]}),
        "/v1/models": _get("list_models", "List the model catalogue", listing, "422", parameters=_PAGING),
        "/v1/hardware": _get("list_hardware", "List the accelerators", listing, "422", parameters=_PAGING),
        "/healthz": _get("healthz", "Whether the server answers", {"type": "object", "required": ["status"]}),
    }
    for path, tool, name, ids in (
        ("/v1/models/{id}", "describe_model", "model", model_ids()),
        ("/v1/hardware/{id}", "describe_hardware", "accelerator", accelerator_ids()),
    ):
        parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1},
                     "description": f"Any name of the {name}, slashes included.", "example": ids[0]}  # fmt: skip
        response = refs[(service.tools[tool].response, "serialization")]
        paths[path] = _get(f"get_{name}", f"One {name}", response, "404", "422", parameters=[parameter])
    return paths


def _team_paths() -> dict[str, Any]:
    """What a team's server answers beside the tools (server.team.routes)."""
    id = [_in_path("id", "A conversation's id.")]
    row = [_in_path("kind", "hardware, models, prices, scenarios or runs."), _in_path("name", "As /v1/own has it.")]
    session = {"type": "object", "required": ["session"]}
    text = {"type": "string", "minLength": 1, "maxLength": 100_000}
    asked = {"type": "object", "properties": {"text": text, "session": {"type": ["string", "null"]}},
             "required": ["text"], "additionalProperties": False}  # fmt: skip
    listed = {"type": "object", "required": ["sessions"]}
    return {
        "/v1/ask": {"post": _sent("ask", "Say something in a conversation", asked, session, [])},
        "/v1/sessions": _get("list_sessions", "List your conversations", listed, "422"),
        "/v1/sessions/{id}": {
            **_get("get_session", "One conversation", {"type": "object", "required": ["turns"]}, "404", parameters=id),
            "delete": _sent("delete_session", "Delete a conversation", None, {"type": "object"}, id),
        },
        "/v1/sessions/{id}/approval": {
            "post": _sent(
                "approve", "Answer the files that a conversation waits to write", _flag("approved"), session, id
            )
        },
        "/v1/own": _get("list_own", "What you keep, and what others share", {"type": "object", "required": ["own"]}),
        "/v1/own/{kind}/{name}": {
            "put": _sent("share", "Share it, or no longer", _flag("shared"), {"type": "object"}, row)
        },
        "/readyz": _get(
            "readyz", "Whether requests can be served now", {"type": "object", "required": ["status"]}, "503"
        ),
    }


def _flag(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "boolean"}}, "required": [name],
            "additionalProperties": False}  # fmt: skip


def _in_path(name: str, what: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": what,
            "schema": {"type": "string", "minLength": 1}}  # fmt: skip


def _sent(name: str, title: str, body: Any, answer: Any, parameters: list[Any]) -> dict[str, Any]:
    sent = {"requestBody": {"required": True, "content": {_JSON: {"schema": body}}}} if body else {}
    responses = _responses(answer, f"{title}.", "400", "404", "408", "413", "422", "503")
    return {"operationId": name, "summary": title, "tags": ["team"], "parameters": parameters, **sent,
            "responses": responses}  # fmt: skip


_PAGING = [
    {"name": "query", "in": "query", "description": "Words that names must contain.", "schema": {"type": "string"}},
    {"name": "offset", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 1_000_000}},
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 500}},
]


def _get(name: str, title: str, schema: Any, *failures: str, parameters: list[Any] | None = None) -> dict[str, Any]:
    operation = {"operationId": name, "summary": title, "tags": ["catalogue"], "parameters": parameters or []}
    return {"get": {**operation, "responses": _responses(schema, title + ".", "400", *failures)}}


def _responses(schema: Any, description: str, *failures: str) -> dict[str, Any]:
    error = {_JSON: {"schema": {"$ref": _REF.format(model="Error")}}}
    responses = {"200": {"description": description, "content": {_JSON: {"schema": schema}}}}
    for status in sorted({*failures, "401", "403", "405", "421"}):
        responses[status] = {"description": _FAILURES[status], "content": error}
    return responses
