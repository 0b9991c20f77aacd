"""Who calls, and what they may do: read what is known and kept, plan with it, write.

A role has those before it. Callers show a token of the file that the server was started with, or a JSON Web Token of
the company's identity provider (OIDC), checked by FastMCP's verifier.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from estimator.errors import PlanError
from knowledge.own.files import read_text

ROLES = ("read", "plan", "write")
_SHORTEST = 16
_LONGEST_NAME = 128
# What users of an identity provider are called by begins with.
_OF_PROVIDER = "oidc:"
_log = logging.getLogger("shardwise")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_LOOK_S = 1.0
_WAIT_S = 10
# Claims of providers that list what a user may do beside the standard `scope`.
_CLAIMS = ("scope", "scp", "roles", "groups")


@dataclass(frozen=True)
class Caller:
    """Whoever makes a request, by name."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        return ROLES.index(role) <= ROLES.index(self.role)


# Who makes the request at hand; None where one token is everybody's, and everything allowed.
CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


def refuse_role(role: str, what: str) -> None:
    """PlanError where the caller's role is not enough for something."""
    caller = CALLER.get()
    if caller is not None and not caller.may(role):
        problem = f"{what} needs the role {role}, and {caller.name} has {caller.role}; ask whoever runs this server"
        raise PlanError("role", problem)


class TokenFile:
    """`NAME ROLE TOKEN` a line, where TOKEN may be sha256:HEX of it. Read again when it has changed, so that a token is
    given or taken without a restart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._callers = self._read()
        self._state, self._looked = self._stat(), time.monotonic()

    def caller(self, token: str) -> Caller | None:
        """Compared by digest, which takes as long for a wrong token as for a right one."""
        if time.monotonic() - self._looked > _LOOK_S:
            self._looked = time.monotonic()
            if (state := self._stat()) != self._state:
                self._state = state
                try:
                    self._callers = self._read()
                except PlanError as error:
                    # Half written, or wrong: those who were known stay until it can be read.
                    _log.warning("%s; whoever was known before stays so", error)
        shown = hashlib.sha256(token.encode(errors="replace")).digest()
        matching = [caller for digest, caller in self._callers if hmac.compare_digest(digest, shown)]
        return matching[0] if matching else None

    def _stat(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def _read(self) -> list[tuple[bytes, Caller]]:
        callers: list[tuple[bytes, Caller]] = []
        for number, line in enumerate(read_text(self.path, "--tokens").splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            place = f"--tokens line {number}"
            if len(words) != 3:
                raise PlanError(place, "must be NAME ROLE TOKEN", ["alice plan sha256:…"])
            name, role, token = words
            if name.startswith(_OF_PROVIDER) or len(name) > _LONGEST_NAME:
                raise PlanError(place, f"a name must be at most {_LONGEST_NAME} letters, not beginning {_OF_PROVIDER}")
            if role not in ROLES:
                raise PlanError(place, f"{role!r} is no role", ROLES)
            if token.startswith("sha256:") and not _DIGEST.fullmatch(token):
                raise PlanError(place, "sha256: must be followed by the 64 hexadecimal digits of the token's digest")
            if len(token) < _SHORTEST or not token.isascii():
                raise PlanError(place, f"the token must be at least {_SHORTEST} ASCII characters")
            is_digest = _DIGEST.fullmatch(token)
            digest = bytes.fromhex(is_digest[1]) if is_digest else hashlib.sha256(token.encode()).digest()
            if any(digest == other for other, _ in callers):
                raise PlanError(place, f"has the token of another line: {name} could not be told from them")
            callers.append((digest, Caller(name, role)))
        if not callers:
            raise PlanError("--tokens", f"{self.path} names nobody", ["alice plan sha256:…"])
        return callers


@dataclass(frozen=True)
class Provider:
    """An identity provider, as it says of itself, and whom its tokens must be for."""

    issuer: str
    keys: str
    audience: str


class Oidc:
    """Tokens of an identity provider: RS256, for us (the audience), and with an end that is not past.

    A user is who the provider's `sub` says: other names may be somebody else's tomorrow, or of the file of tokens.
    """

    def __init__(self, provider: Provider) -> None:
        from fastmcp.server.auth.providers.jwt import JWTVerifier  # takes a second, and few servers need it

        self.issuer = provider.issuer
        self._verifier = JWTVerifier(
            jwks_uri=provider.keys, issuer=provider.issuer, audience=provider.audience, algorithm="RS256"
        )

    async def caller(self, token: str) -> Caller | None:
        shown = await self._verifier.verify_token(token)
        if shown is None or shown.expires_at is None or not shown.subject:
            return None
        role = role_of(shown.claims)
        # A name has no white space, and is a subject's alone.
        return Caller(_OF_PROVIDER + quote(str(shown.subject), safe="@|:+"), role) if role else None


def role_of(claims: Mapping[str, Any]) -> str | None:
    """The highest of the roles shardwise:read, shardwise:plan and shardwise:write in a token's scopes, roles or
    groups."""
    words: set[str] = set()
    for claim in _CLAIMS:
        value = claims.get(claim)
        words |= set(value.split() if isinstance(value, str) else map(str, value) if isinstance(value, list) else ())
    return next((role for role in reversed(ROLES) if f"shardwise:{role}" in words), None)


def provider_of(issuer: str, audience: str) -> Provider:
    """What a provider says about itself. Raises PlanError."""
    if not issuer.startswith(("https://", "http://127.0.0.1", "http://localhost")):
        raise PlanError("--oidc-issuer", f"{issuer!r} is not an https address", ["https://login.example.org/realm"])
    if not audience:
        raise PlanError("--oidc-audience", "is required: whom the provider's tokens must be for", ["shardwise"])
    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        with urllib.request.urlopen(address, timeout=_WAIT_S) as answer:
            told = json.loads(answer.read(1_000_000))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise PlanError("--oidc-issuer", f"{address} cannot be read ({reason}); see that the issuer is right") from None
    if not isinstance(told, dict) or not told.get("jwks_uri") or not told.get("issuer"):
        raise PlanError("--oidc-issuer", f"{address} names no issuer and jwks_uri")
    return Provider(str(told["issuer"]), str(told["jwks_uri"]), audience)


@dataclass(frozen=True)
class Callers:
    """All who may call. `address` is the server's own, where identity providers are told of it."""

    tokens: TokenFile | None = None
    oidc: Oidc | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    async def caller(self, token: str) -> Caller | None:
        caller = self.tokens.caller(token) if self.tokens else None
        # A web token has three parts; nothing else is sent through its checks.
        if caller is None and self.oidc is not None and token.count(".") == 2:
            caller = await self.oidc.caller(token)
        return caller
