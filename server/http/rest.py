"""The REST face: every tool at POST /v1/tools/NAME, the catalogues, and what describes them."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from estimator.errors import PlanError
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.models.catalogue import find_model, models
from server.calls import Answer, Busy, dumps
from server.http.docs import page
from server.http.guard import error_text
from server.http.openapi import document
from server.service import Service
from tools.schemas import described, listed

Route = Callable[[Request], Awaitable[Response]]
_JSON = "application/json"
_MOST_ROWS = 500
_CSP = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}


def routes(service: Service, token: bool) -> dict[tuple[str, str], Route]:
    """What answers each method and path. `token` says whether a bearer token is required."""
    started, pages = time.monotonic(), dict[str, Response]()

    async def list_tools(request: Request) -> Response:
        return await made(request, lambda: _json({"tools": listed(service.tools.values())}))

    async def describe_tool(request: Request) -> Response:
        _parameters(request)
        tool = await _found(service.tool(request.path_params["name"]))
        return _json(described(tool))

    async def call_tool(request: Request) -> Response:
        """The result of a tool; 422 with the sentence of every face when the arguments cannot be used."""
        _parameters(request)
        tool = await _found(service.tool(request.path_params["name"]))
        body = await request.body()
        if body and request.headers.get("content-type", "").partition(";")[0].strip().casefold() != _JSON:
            return _error(415, "send JSON: Content-Type: application/json")
        try:
            arguments = json.loads(body or b"{}", parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            # Neither JSON nor UTF-8, an integer of thousands of digits, or nested too deeply to read.
            said = (
                f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else "not readable"
            )
            return _error(400, f"body: not valid JSON: {said}")
        if not isinstance(arguments, Mapping):
            return _error(422, PlanError("arguments", "must be a JSON object"))
        # A caller over REST has no way to be asked: writing takes the code that the first call gives.
        answer = await service.call(tool, arguments)
        request.scope["shardwise.answered"].append(answer)
        return _answered(answer)

    async def list_models(request: Request) -> Response:
        return _page(request, "models", await service.calls.other(_models))

    async def list_hardware(request: Request) -> Response:
        return _page(request, "hardware", await service.calls.other(_hardware))

    async def one_model(request: Request) -> Response:

        return await described_by("describe_model", "model", request, lambda name: find_model(name).value.id)

    async def one_accelerator(request: Request) -> Response:

        return await described_by(
            "describe_hardware", "accelerator", request, lambda name: find_accelerator(name).value.id
        )

    async def described_by(tool: str, argument: str, request: Request, id: Callable[[str], str]) -> Response:
        """A catalogue entry by any of its names; never a file on this machine, which the tool would read too."""
        _parameters(request)
        found = await _found(service.calls.other(lambda: id(request.path_params["id"])))
        return _answered(await service.calls.run(await service.tool(tool), {argument: found}))

    async def health(request: Request) -> Response:
        _parameters(request)
        return _json(
            {"status": "ok", "version": version("shardwise"), "uptime_s": round(time.monotonic() - started, 1)}
        )

    async def docs(request: Request) -> Response:

        return await made(request, lambda: Response(page(service, version("shardwise")), 200, _CSP, "text/html"))

    async def openapi(request: Request) -> Response:

        return await made(request, lambda: _json(document(service, version("shardwise"), token)))

    async def made(request: Request, make: Callable[[], Response]) -> Response:
        """A page, which is made when it is first asked for."""
        _parameters(request)
        path = request.url.path
        if path not in pages:
            pages[path] = await service.calls.other(make)
        return pages[path]

    return {
        ("POST", "/v1/tools/{name}"): call_tool,
        ("GET", "/v1/tools/{name}"): describe_tool,
        ("GET", "/v1/tools"): list_tools,
        ("GET", "/v1/models"): list_models,
        ("GET", "/v1/models/{id:path}"): one_model,
        ("GET", "/v1/hardware"): list_hardware,
        ("GET", "/v1/hardware/{id:path}"): one_accelerator,
        ("GET", "/healthz"): health,
        ("GET", "/openapi.json"): openapi,
        ("GET", "/docs"): docs,
        ("GET", "/"): docs,
    }


async def refused(request: Request, error: Exception) -> Response:
    """Every error of a route in the one form."""
    if isinstance(error, PlanError):
        return _error(422, error)
    if isinstance(error, Busy):
        return _error(503, "too many calls are waiting", {"retry-after": "1"})
    if isinstance(error, HTTPException) and isinstance(error.__cause__, PlanError):
        return _error(error.status_code, error.__cause__)
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    said = {404: f"there is nothing at {request.url.path[:80]!r}; see /docs",
            405: f"this address takes {headers.get('Allow', 'other methods')}"}  # fmt: skip
    return _error(status, said.get(status, "this request cannot be served"), headers)


async def _found(finding: Awaitable[Any]) -> Any:
    """What a name in the path stands for; 404 with the nearest names where it stands for nothing."""
    try:
        return await finding
    except PlanError as error:
        raise HTTPException(404) from error


def _models() -> list[dict[str, Any]]:
    return [
        {
            "id": row.id, "family": row.family, "parameters": row.parameters or row.published_parameters,
            "active_parameters": row.active_parameters or row.published_active_parameters, "context": row.context,
            "license": row.license, "released": row.released, "aliases": list(row.aliases),
        }
        for row in models()
    ]  # fmt: skip


def _hardware() -> list[dict[str, Any]]:
    return [
        {
            "id": row.id, "name": row.name, "vendor": row.vendor, "family": row.family,
            "usable_bytes": row.usable_bytes, "memory_bandwidth_bytes_per_s": row.memory_bandwidth,
            "peak_tflops": {kind: rate / 1e12 for kind, rate in row.peak_flops.items()},
        }
        for row in accelerators()
    ]  # fmt: skip


def _page(request: Request, name: str, rows: list[dict[str, Any]]) -> Response:
    """Rows whose names hold all words of `query`, from `offset` on."""
    given = _parameters(request, "query", "offset", "limit")
    words = given.get("query", "").casefold().split()
    offset = _number(given, "offset", 0, 0, 1_000_000)
    limit = _number(given, "limit", _MOST_ROWS, 1, _MOST_ROWS)
    texts = [" ".join([row["id"], row.get("name") or "", row["family"] or "", *row.get("aliases", ())]) for row in rows]
    found = [row for row, text in zip(rows, texts, strict=True) if all(word in text.casefold() for word in words)]
    return _json({name: found[offset : offset + limit], "total": len(found)})


def _parameters(request: Request, *known: str) -> dict[str, str]:
    """The query's parameters. Raises PlanError for those that the route does not have, or has twice."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise PlanError(name[:60], "there is no such parameter", known)
        if name in found:
            raise PlanError(name, "is given twice")
        found[name] = value
    return found


def _number(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not least <= int(text) <= most:
        raise PlanError(name, f"must be a whole number from {least} to {most}")
    return int(text)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _answered(answer: Answer) -> Response:
    if answer.failure is not None:
        return _error(422, answer.error) if answer.error else _error(500, answer.failure)
    return Response(answer.text, media_type=_JSON)


def _json(value: Any) -> Response:
    return Response(dumps(value), media_type=_JSON)


def _error(status: int, error: PlanError | str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(error_text(error), status, headers, _JSON)
