"""What a team's server answers beside the tools: conversations, what is shared, readiness, and its figures."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from estimator.errors import PlanError
from knowledge.own import database
from server.calls import GONE, unless_gone
from server.http.guard import error_text
from server.service import Conversations, Service
from server.team import schema
from server.team.identity import ROLES, Oidc, refuse_role
from server.work import dumps

Route = Callable[[Request], Awaitable[Response]]
_JSON = "application/json"
_log = logging.getLogger("shardwise")
_METADATA = "/.well-known/oauth-protected-resource"
_LOOK_S = 1.0


@dataclass
class TeamFace:
    """`figures` gives the metrics as Prometheus reads them, and their type."""

    service: Service
    figures: Callable[[], tuple[bytes, str]]
    oidc: Oidc | None = None
    is_leaving: bool = False
    _looked: tuple[float, str] = field(default=(-1e9, ""))

    def routes(self) -> Iterator[tuple[str, list[str], Route]]:
        """Each path, the methods it takes, and what answers them."""
        by_path: dict[str, dict[str, Route]] = {
            "/readyz": {"GET": self._ready},
            "/metrics": {"GET": self._metrics},
            "/v1/ask": {"POST": self._ask},
            "/v1/sessions": {"GET": self._sessions},
            "/v1/sessions/{id}": {"GET": self._session, "DELETE": self._delete},
            "/v1/sessions/{id}/approval": {"POST": self._settle},
            "/v1/own": {"GET": self._own},
            "/v1/own/{kind}/{name}": {"PUT": self._share},
        }
        if self.oidc is not None:
            by_path |= {_METADATA: {"GET": self._about}, f"{_METADATA}/mcp": {"GET": self._about}}
        for path, by_method in by_path.items():
            yield path, list(by_method), _by_method(by_method)

    def leave(self) -> None:
        """From here on it says that it is not ready, so that whoever spreads requests looks elsewhere."""
        self.is_leaving = True

    async def _ready(self, _: Request) -> Response:
        """Whether requests can be served now: the database answers, and its tables are ours. What is wrong is for
        whoever runs the server; anybody may ask here."""
        if self.is_leaving:
            return Response(error_text("this server is about to end"), 503, {"retry-after": "5"}, _JSON)
        if await asyncio.to_thread(self._problem):
            sentence = "the database cannot be used; the server's log says why"
            return Response(error_text(sentence), 503, {"retry-after": "5"}, _JSON)
        return _json({"status": "ready"})

    def _problem(self) -> str:
        if time.monotonic() - self._looked[0] > _LOOK_S:
            try:
                problem = schema.problem(is_running=True)
            except PlanError as error:
                problem = str(error)
            if problem and problem != self._looked[1]:
                _log.error("not ready: %s", problem)
            self._looked = time.monotonic(), problem
        return self._looked[1]

    async def _metrics(self, _: Request) -> Response:
        text, kind = await asyncio.to_thread(self.figures)
        return Response(text, media_type=kind)

    async def _ask(self, request: Request) -> Response:
        asked = await _body(request, {"text": str}, {"session": str})
        with self.service.watched("ask", asked) as noted:
            refuse_role("plan", "a conversation")
            talk = self._conversations.ask(asked["text"], asked.get("session"))
            answer = await unless_gone(talk, request.scope.get(GONE))
            noted.outcome = "done"
        return _json(answer)

    async def _settle(self, request: Request) -> Response:
        asked = await _body(request, {"approved": bool}, {})
        id = request.path_params["id"]
        with self.service.watched("approve", {"session": id, **asked}) as noted:
            refuse_role("write" if asked["approved"] else "plan", "an approval")
            answer = await self._conversations.settle(id, asked["approved"])
            noted.outcome = "done"
        return _json(answer)

    async def _sessions(self, _: Request) -> Response:
        return _json({"sessions": await asyncio.to_thread(self._conversations.listed)})

    async def _session(self, request: Request) -> Response:
        return _json(await asyncio.to_thread(self._conversations.shown, request.path_params["id"]))

    async def _delete(self, request: Request) -> Response:
        id = request.path_params["id"]
        with self.service.watched("delete_session", {"session": id}) as noted:
            refuse_role("plan", "to delete a conversation")
            await asyncio.to_thread(self._conversations.delete, id)
            noted.outcome = "done"
        return _json({"deleted": id})

    async def _own(self, _: Request) -> Response:
        rows = await asyncio.to_thread(database.owned)
        return _json({"own": [asdict(row) for row in rows]})

    async def _share(self, request: Request) -> Response:
        asked = await _body(request, {"shared": bool}, {})
        kind, name = request.path_params["kind"], request.path_params["name"]
        with self.service.watched("share", {"kind": kind, "name": name, **asked}) as noted:
            refuse_role("write", "to share something")
            await asyncio.to_thread(database.share, kind, name, asked["shared"])
            self.service.calls.forget()
            noted.outcome = "done"
        return _json({"kind": kind, "name": name, **asked})

    async def _about(self, request: Request) -> Response:
        """Which provider's tokens are taken, as clients of MCP look it up (RFC 9728)."""
        assert self.oidc is not None
        return _json(
            {
                "resource": f"{address_of(request.headers.get('host', ''))}/mcp",
                "authorization_servers": [self.oidc.issuer],
                "scopes_supported": [f"shardwise:{role}" for role in ROLES],
                "bearer_methods_supported": ["header"],
            }
        )

    @property
    def _conversations(self) -> Conversations:
        if self.service.conversations is None:
            raise PlanError("sessions", "this server holds no conversations")
        return self.service.conversations


def address_of(host: str) -> str:
    """This server's address by the name that a client called it: behind a proxy with TLS, but on one's own machine."""
    name = host.rpartition(":")[0] or host
    return f"{'http' if name in ('localhost', '127.0.0.1', '[::1]') else 'https'}://{host}"


def metadata_of(host: str) -> str:
    """Where a client that has no token reads which provider's are taken."""
    return f"{address_of(host)}{_METADATA}/mcp"


def _by_method(by_method: Mapping[str, Route]) -> Route:
    async def answer(request: Request) -> Response:
        for name in request.query_params:
            raise PlanError(name[:60], "there is no such parameter")
        return await by_method["GET" if request.method == "HEAD" else request.method](request)

    return answer


async def _body(request: Request, needed: Mapping[str, type], open_: Mapping[str, type]) -> dict[str, Any]:
    """The fields of a JSON body. Raises PlanError."""
    try:
        value = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise PlanError("body", "is not valid JSON") from None
    if not isinstance(value, dict):
        raise PlanError("body", "must be a JSON object", list(needed))
    known = {**needed, **open_}
    for name, each in value.items():
        if name not in known:
            raise PlanError(name[:60], "there is no such field", list(known))
        if not isinstance(each, known[name]) and not (each is None and name in open_):
            raise PlanError(name, "must be true or false" if known[name] is bool else "must be text")
    for name in needed:
        if name not in value:
            raise PlanError(name, "is required")
    return value


def _json(value: Any) -> Response:
    return Response(dumps(value), media_type=_JSON)
