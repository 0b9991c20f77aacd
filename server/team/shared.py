"""What the workers of a team's server share, so that any of them answers any request: codes, results, the audit log."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from estimator.errors import PlanError
from knowledge.own import database
from server.mcp.brief import NOT_KEPT
from server.service import SeenCall

_log = logging.getLogger("shardwise")
_OWN = "owner = current_setting('shardwise.user')"
_KEPT = "interval '1 hour'"


class SharedCodes:
    """Codes of server.mcp.writes in the database, each good for the user that it was given to."""

    def keep(self, code: str, bound: str) -> None:
        with database.transaction() as connection:
            connection.execute(f"DELETE FROM codes WHERE made < clock_timestamp() - {_KEPT}")
            connection.execute("INSERT INTO codes (code, bound) VALUES (?, ?)", (code, bound))

    def look(self, code: str) -> tuple[str, float] | None:
        with database.transaction() as connection:
            row = connection.execute(
                f"SELECT bound, extract(epoch FROM clock_timestamp() - made) FROM codes WHERE code = ? AND {_OWN}",
                (code,),
            ).fetchone()
        return (row[0], float(row[1])) if row else None

    def drop(self, code: str) -> bool:
        with database.transaction() as connection:
            return bool(connection.execute(f"DELETE FROM codes WHERE code = ? AND {_OWN}", (code,)).rowcount)


class SharedResults:
    """Whole results of what was answered in brief, for an hour."""

    def keep(self, text: str) -> str:
        id = hashlib.sha256(text.encode()).hexdigest()[:20]
        with database.transaction() as connection:
            connection.execute(f"DELETE FROM results WHERE made < clock_timestamp() - {_KEPT}")
            connection.execute(
                "INSERT INTO results (id, body) VALUES (?, ?)"
                " ON CONFLICT (owner, id) DO UPDATE SET made = clock_timestamp()",
                (id, text),
            )
        return id

    def read(self, id: str) -> str:
        with database.transaction() as connection:
            row = connection.execute(f"SELECT body FROM results WHERE id = ? AND {_OWN}", (id,)).fetchone()
        if row is None:
            raise PlanError("results", NOT_KEPT)
        return row[0]


@dataclass
class Audit:
    """Who did what, when, and what came of it, as rows of the database: of arguments their digest, of tokens
    nothing."""

    # One thread: rows come in the order of the calls, and no call waits for them.
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "audit"))

    def __call__(self, seen: SeenCall) -> None:
        self._thread.submit(_note, database.user(), seen)

    def close(self) -> None:
        """Writes what is left."""
        self._thread.shutdown(wait=True)


def digest(arguments: Mapping[str, Any]) -> str:
    """Of a call's arguments: the same for the same ones, and telling nothing of them."""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True, default=str).encode()).hexdigest()


def _note(user: str, seen: SeenCall) -> None:
    try:
        database.USER.set(user)
        with database.transaction() as connection:
            connection.execute(
                "INSERT INTO audit (who, face, tool, arguments, outcome, ms) VALUES (?, ?, ?, ?, ?, ?)",
                (user, seen.face, seen.name, digest(seen.arguments), seen.outcome, round(seen.seconds * 1e3)),
            )
    except Exception as error:
        _log.error("not in the audit log: %s of %s over %s, %s (%s)", seen.name, user, seen.face, seen.outcome, error)
