"""The REST face: every tool at POST /v1/tools/NAME, the catalogues, and what describes them."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from estimator.errors import PlanError
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.models.catalogue import find_model
from knowledge.models.known import models
from server.calls import GONE, Busy, unless_gone
from server.http.docs import page
from server.http.guard import error_text
from server.http.openapi import document
from server.service import Service
from server.work import CallAnswer, dumps, outward
from tools.schemas import described, listed

Route = Callable[[Request], Awaitable[Response]]
_JSON = "application/json"
_MOST_ROWS = 500
# The token may stand in the address of a page.
_CSP = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "no-referrer",
}


@dataclass(frozen=True)
class _Face:
    """What the routes share. `token` says whether a bearer token is required; `pages` are made when first asked for."""

    service: Service
    token: bool
    started_s: float = field(default_factory=time.monotonic)
    pages: dict[str, Response] = field(default_factory=dict)


_ByMethod = Mapping[str, Callable[[_Face, Request], Awaitable[Response]]]


def routes(service: Service, token: bool) -> Iterator[tuple[str, list[str], Route]]:
    """Each path, the methods it takes, and what answers them. `token` says whether a bearer token is required."""
    face = _Face(service, token)
    for path, by_method in _ROUTES.items():
        yield path, list(by_method), partial(_by_method, face, by_method)


async def _by_method(face: _Face, by_method: _ByMethod, request: Request) -> Response:
    """One route a path, so that 405 names every method that the path takes."""
    return await by_method["GET" if request.method == "HEAD" else request.method](face, request)


async def _list_tools(face: _Face, request: Request) -> Response:
    return await _made(face, request, lambda: _json({"tools": listed(face.service.tools.values())}))


async def _describe_tool(face: _Face, request: Request) -> Response:
    _parameters(request)
    with _not_found():
        return _json(described(face.service.tool(request.path_params["name"])))


async def _call_tool(face: _Face, request: Request) -> Response:
    """The result of a tool; 422 with the sentence of every face when the arguments cannot be used."""
    _parameters(request)
    with _not_found():
        tool = face.service.tool(request.path_params["name"])
    body = await request.body()
    if body and request.headers.get("content-type", "").partition(";")[0].strip().casefold() != _JSON:
        return _error(415, "send JSON: Content-Type: application/json")
    try:
        arguments = json.loads(body or b"{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        # Neither JSON nor UTF-8, an integer of thousands of digits, or nested too deeply to read.
        is_located = isinstance(error, json.JSONDecodeError)
        reason = f"{error.msg} at character {error.pos}" if is_located else "not readable"
        return _error(400, f"body: not valid JSON: {reason}")
    if not isinstance(arguments, Mapping):
        return _error(422, PlanError("arguments", "must be a JSON object"))
    # A caller over REST has no way to be asked: writing takes the code that the first call gives.
    return _answered(await unless_gone(face.service.call(tool, arguments), request.scope.get(GONE)))


async def _list_models(face: _Face, request: Request) -> Response:
    return _page(request, "models", await face.service.calls.other(_models))


async def _list_hardware(face: _Face, request: Request) -> Response:
    return _page(request, "hardware", await face.service.calls.other(_hardware))


async def _describe_model(face: _Face, request: Request) -> Response:
    return await _described_by(face, "describe_model", "model", request, lambda name: find_model(name).value.id)


async def _describe_accelerator(face: _Face, request: Request) -> Response:
    return await _described_by(
        face, "describe_hardware", "accelerator", request, lambda name: find_accelerator(name).value.id
    )


async def _described_by(
    face: _Face, tool: str, argument: str, request: Request, id_of: Callable[[str], str]
) -> Response:
    """A catalogue entry by any of its names; never a file on this machine, which the tool would read too."""
    _parameters(request)
    with _not_found():
        id = await face.service.calls.other(lambda: id_of(request.path_params["id"]))
    return _answered(await face.service.calls.run(face.service.tool(tool), {argument: id}))


async def _health(face: _Face, request: Request) -> Response:
    _parameters(request)
    uptime_s = round(time.monotonic() - face.started_s, 1)
    return _json({"status": "ok", "version": version("shardwise"), "uptime_s": uptime_s})


async def _docs(face: _Face, request: Request) -> Response:
    return await _made(
        face, request, lambda: Response(page(face.service, version("shardwise")), 200, _CSP, "text/html")
    )


async def _openapi(face: _Face, request: Request) -> Response:
    return await _made(face, request, lambda: _json(document(face.service, version("shardwise"), face.token)))


async def _made(face: _Face, request: Request, make: Callable[[], Response]) -> Response:
    """A page, which is made when it is first asked for."""
    _parameters(request)
    path = request.url.path
    if path not in face.pages:
        face.pages[path] = await face.service.calls.other(make)
    return face.pages[path]


_ROUTES: dict[str, _ByMethod] = {
    "/v1/tools/{name}": {"POST": _call_tool, "GET": _describe_tool},
    "/v1/tools": {"GET": _list_tools},
    "/v1/models": {"GET": _list_models},
    "/v1/models/{id:path}": {"GET": _describe_model},
    "/v1/hardware": {"GET": _list_hardware},
    "/v1/hardware/{id:path}": {"GET": _describe_accelerator},
    "/healthz": {"GET": _health},
    "/openapi.json": {"GET": _openapi},
    "/docs": {"GET": _docs},
    "/": {"GET": _docs},
}


async def refused(request: Request, error: Exception) -> Response:
    """Every error of a route in the one form."""
    if isinstance(error, PlanError):
        return _refused(error)
    if isinstance(error, Busy):
        return _error(503, "too many calls are waiting", {"retry-after": "1"})
    if isinstance(error, HTTPException) and isinstance(error.__cause__, PlanError):
        return _error(error.status_code, error.__cause__)
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    sentences = {404: f"there is nothing at {request.url.path[:80]!r}; see /docs",
                 405: f"this address takes {headers.get('Allow', 'other methods')}"}  # fmt: skip
    return _error(status, sentences.get(status, "this request cannot be served"), headers)


@contextmanager
def _not_found() -> Iterator[None]:
    """A name in the path that stands for nothing is 404, with the nearest names."""
    try:
        yield
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
    parameters = _parameters(request, "query", "offset", "limit")
    words = parameters.get("query", "").casefold().split()
    offset = _number(parameters, "offset", 0, 0, 1_000_000)
    limit = _number(parameters, "limit", _MOST_ROWS, 1, _MOST_ROWS)
    texts = [" ".join([row["id"], row.get("name") or "", row["family"] or "", *row.get("aliases", ())]) for row in rows]
    matches = [row for row, text in zip(rows, texts, strict=True) if all(word in text.casefold() for word in words)]
    return _json({name: matches[offset : offset + limit], "total": len(matches)})


def _parameters(request: Request, *known: str) -> dict[str, str]:
    """The query's parameters. Raises PlanError for those that the route does not have, or has twice."""
    parameters: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise PlanError(name[:60], "there is no such parameter", known)
        if name in parameters:
            raise PlanError(name, "is given twice")
        parameters[name] = value
    return parameters


def _number(parameters: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = parameters.get(name, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not least <= int(text) <= most:
        raise PlanError(name, f"must be a whole number from {least} to {most}")
    return int(text)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _answered(answer: CallAnswer) -> Response:
    if answer.failure is not None:
        return _refused(answer.error) if answer.error else _error(500, answer.failure)
    return Response(answer.text, media_type=_JSON)


def _refused(error: PlanError) -> Response:
    """What cannot be used as it is; what is not there, or not allowed to this caller, as HTTP says it."""
    error = outward(error)
    missing = error.field == "session" and error.problem.startswith("there is no")
    status = {"role": 403, "database": 503}.get(error.field, 404 if missing else 422)
    return _error(status, error, {"retry-after": "5"} if status == 503 else None)


def _json(value: Any) -> Response:
    return Response(dumps(value), media_type=_JSON)


def _error(status: int, error: PlanError | str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(error_text(error), status, headers, _JSON)
