"""A team's PostgreSQL database in the place of one's own files, where SHARDWISE_DATABASE names one.

Sessions, runs, scenarios and rows of the catalogue are kept there, each for its user: views of the database show a user
what is theirs and what others share. Scenarios and rows are texts as on disk, so they have paths too, which nobody else
can read: /postgresql:/~USER/KIND/NAME.yaml, and /postgresql:/shared/KIND/NAME.yaml for what others share.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from estimator.errors import PlanError

if TYPE_CHECKING:
    import psycopg

ADDRESS = "SHARDWISE_DATABASE"
# The revision of the tables that this code reads and writes (server.team.migrations has its text).
SCHEMA = "0001"
UPGRADE = "run: shardwise database upgrade"
KINDS = ("hardware", "models", "prices", "scenarios", "runs")
# In whose name a call runs, where one process serves many.
USER: ContextVar[str] = ContextVar("user", default="")
_ROOT = Path("/postgresql:")
_SHARED = _ROOT / "shared"
_MOST_IDLE = 2
_WAIT_S = 5
_USER_NAME = re.compile(r"[^\x00-\x20\x7f]{1,128}")
# By process: what a fork has from its parent is the parent's, and never used or closed here.
_idle: dict[tuple[int, str], list[psycopg.Connection[Any]]] = {}


def address() -> str:
    """Of the team's database; '' where there is none."""
    return os.environ.get(ADDRESS, "")


def user() -> str:
    """In whose name this runs. Raises PlanError."""
    name = USER.get() or os.environ.get("SHARDWISE_USER", "")
    if not name:
        try:
            name = getpass.getuser()
        except (OSError, KeyError):
            raise PlanError("SHARDWISE_USER", "is not set, and the system has no name for you") from None
    if not _USER_NAME.fullmatch(name):
        raise PlanError("SHARDWISE_USER", "must be 1 to 128 characters without spaces", ["alice"])
    return name


class Transaction:
    """A transaction in the name of a user. Marks are `?`, as in SQLite."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        return self._connection.execute(sql.replace("?", "%s"), list(values))  # pyright: ignore[reportArgumentType]


@contextmanager
def transaction() -> Iterator[Transaction]:
    """Kept whole or not at all. Raises PlanError where the database cannot be used."""
    import psycopg  # only where there is a database

    place, name = address(), user()
    try:
        connection = _begun(place, name)
        try:
            yield Transaction(connection)
            connection.commit()
        except BaseException:
            if not connection.closed:
                connection.rollback()
            raise
        finally:
            _give_back(place, connection)
    except psycopg.Error as error:
        raise refused(error) from None


def _begun(place: str, name: str) -> psycopg.Connection[Any]:
    import psycopg  # as above

    begin = "SELECT set_config('shardwise.user', %s, true)"
    idle = _idle.setdefault((os.getpid(), place), [])
    while idle:
        connection = idle.pop()
        try:
            connection.execute(begin, (name,))
        except psycopg.OperationalError:
            # The server was started anew meanwhile; the others are no better.
            connection.close()
            continue
        return connection
    connection = psycopg.connect(place, connect_timeout=_WAIT_S, application_name="shardwise", prepare_threshold=None)
    connection.execute(begin, (name,))
    return connection


def _give_back(place: str, connection: psycopg.Connection[Any]) -> None:
    idle = _idle.setdefault((os.getpid(), place), [])
    if connection.closed or connection.broken or len(idle) >= _MOST_IDLE:
        connection.close()
    else:
        idle.append(connection)


def refused(error: Exception) -> PlanError:
    """What is wrong with the database, and what to do."""
    code = getattr(error, "sqlstate", None) or ""
    kinds = {
        "53100": "has no room left: make room on its disk",
        "53300": "has no connection left: raise its max_connections, or start fewer workers",
        "25006": "is read-only (a standby?): name the server that is written to",
        "42P01": f"lacks tables of Shardwise; {UPGRADE}",
        "42703": f"has tables of another Shardwise; {UPGRADE}",
        "42501": "does not let this user read and write the tables: grant it, or name another user",
        "3D000": "is not there: create it (createdb), or name another",
        "28P01": "does not take this password: put the right one into the address or ~/.pgpass",
        "28000": "does not take this user",
        "57P03": "is starting or stopping; try again in a moment",
    }
    if code in kinds:
        return PlanError(ADDRESS, f"{shown()} {kinds[code]}")
    words = " ".join(str(error).split())
    if not _parts():
        return PlanError(ADDRESS, "is no address of a database", ["postgresql://user@host/name"])
    known = {
        "password authentication failed": "does not take this user and password: see the address, or ~/.pgpass",
        "no password supplied": "wants a password: put it into the address, or ~/.pgpass",
        'role "': "has no such user: see the address",
        'database "': "is not there: create it (createdb), or name another",
        "too many": "has no connection left: raise its max_connections, or start fewer workers",
        "starting up": "is starting; try again in a moment",
        "shutting down": "is stopping; try again in a moment",
    }
    for part, problem in known.items():
        if part in words:
            return PlanError(ADDRESS, f"{shown()} {problem}")
    if "FATAL: " in words:
        return PlanError(ADDRESS, f"{shown()} does not let us in: {words.rpartition('FATAL: ')[2].strip()}")
    if not code or code.startswith(("08", "57")):
        return PlanError(ADDRESS, f"{shown()} cannot be reached: see that PostgreSQL runs there ({_safe(words)})")
    return PlanError(ADDRESS, f"{shown()} cannot be used ({_safe(words)})")


def shown() -> str:
    """The address without its password."""
    parts = _parts()
    host = f"{parts.get('host') or 'this machine'}{':' + str(parts['port']) if parts.get('port') else ''}"
    return f"the database {parts.get('dbname') or parts.get('user') or ''} on {host}".replace("  ", " ")


def _parts() -> dict[str, Any]:
    """What the address says; nothing where it is none."""
    from psycopg import Error  # as above
    from psycopg.conninfo import conninfo_to_dict

    try:
        return conninfo_to_dict(address())
    except Error:
        return {}


def _safe(text: str) -> str:
    return re.sub(r"(password=)\S+|(//[^:/@\s]+:)[^@\s]+@", r"\1\2…@", text)[:300]


def schema_problem(is_running: bool = False) -> str:
    """What is wrong with the database's tables, and the one command that mends it; '' where nothing is. What runs on
    them already goes on when a newer Shardwise adds to them, until it is replaced by that."""
    with transaction() as connection:
        there = connection.execute(
            "SELECT to_regclass('shardwise_schema') IS NOT NULL, getdatabaseencoding() = 'UTF8'"
        ).fetchone()
        if there and not there[1]:
            return f"{shown()} is not in UTF-8, as names and texts are; {_UTF8}"
        row = there and there[0] and connection.execute("SELECT version_num FROM shardwise_schema").fetchone()
    version = row[0] if row else ""
    if version == SCHEMA or (is_running and version > SCHEMA):
        return ""
    if version > SCHEMA:
        return f"{shown()} was upgraded by a newer Shardwise ({version}; this one has {SCHEMA}); {_NEWER}"
    have = f"has tables of an older Shardwise ({version}; this one needs {SCHEMA})" if version else "has no tables yet"
    return f"{shown()} {have}; {UPGRADE}"


_UTF8 = "make another: createdb -E UTF8 -T template0 NAME"
_NEWER = "run: pip install --upgrade 'shardwise[team]'"


# Texts under paths, as the files that they stand for.


def folder(kind: str) -> Path:
    """Where the user's own texts of a kind are."""
    return home() / kind


def home() -> Path:
    return _ROOT / f"~{quote(user(), safe='@')}"


def shared_folder(kind: str) -> Path:
    """Where the texts are that others share."""
    return _SHARED / kind


def holds(path: Path) -> bool:
    """Whether a path leads into the database."""
    return path.parts[:2] == _ROOT.parts


def stamps(place: Path) -> tuple[tuple[str, int, int], ...]:
    """(Path, time, size) of what is in a folder of the database, by name; hidden ones are none of it."""
    seen = _seen.get()
    key = address(), user()
    rows = seen.get(key) if seen is not None else None
    if rows is None:
        with transaction() as connection:
            rows = connection.execute(
                "SELECT name, (extract(epoch FROM changed) * 1000000)::bigint * 1000, octet_length(body), kind,"
                f" {_OWN} FROM documents WHERE {_OWN} OR shared"
                f" UNION ALL SELECT id, rowid, length(name || document), 'runs', true FROM runs ORDER BY 1"
            ).fetchall()
        if seen is not None:
            seen[key] = rows
    is_own = place.parent == home()
    if not is_own and place.parent != _SHARED:
        return ()
    return tuple(
        (str(place / name), moment, size)
        for name, moment, size, *of in rows
        if of == [place.name, is_own] and not name.startswith(".")
    )


# What is there, as a user was shown it, for what looks at it once between its own changes.
_seen: ContextVar[dict[tuple[str, str], list[Any]] | None] = ContextVar("seen", default=None)


@contextmanager
def seen_once() -> Iterator[None]:
    """Within it the list of what is there is asked for once, and again after a change made here."""
    before = _seen.set({})
    try:
        yield
    finally:
        _seen.reset(before)


def _forget() -> None:
    if (seen := _seen.get()) is not None:
        seen.clear()


def read(path: Path) -> str | None:
    """The text at a path; None where there is none."""
    with transaction() as connection:
        row = connection.execute(
            f"SELECT body FROM documents WHERE kind = ? AND name = ? AND {_whose(path.parent)}",
            (path.parent.name, path.name),
        ).fetchone()
    return row[0] if row else None


def write(path: Path, text: str, overwrite: bool, field: str) -> None:
    """Raises PlanError(field) where a text is there already, or the place is not the user's."""
    _refuse_foreign(path, field)
    _forget()
    change = (
        "DO UPDATE SET body = excluded.body,"
        " changed = greatest(clock_timestamp(), documents.changed + interval '1 microsecond')"
        if overwrite
        else "DO NOTHING"
    )
    with transaction() as connection:
        done = connection.execute(
            f"INSERT INTO documents (kind, name, body) VALUES (?, ?, ?) ON CONFLICT (owner, kind, name) {change}",
            (path.parent.name, path.name, text),
        )
        if not done.rowcount:
            raise PlanError(field, f"{path} is there already; say overwrite to replace it")


def remove(path: Path, field: str) -> None:
    """Raises PlanError(field)."""
    _refuse_foreign(path, field)
    _forget()
    with transaction() as connection:
        done = connection.execute(
            f"DELETE FROM documents WHERE kind = ? AND name = ? AND {_OWN}", (path.parent.name, path.name)
        )
        if not done.rowcount:
            raise PlanError(field, f"{path} is not there any more")


_OWN = "owner = current_setting('shardwise.user')"


def _whose(place: Path) -> str:
    if place.parent == _SHARED:
        return "shared AND owner <> current_setting('shardwise.user')"
    return _OWN if place.parent == home() else "false"


def _refuse_foreign(path: Path, field: str) -> None:
    if path.parent.parent != home():
        raise PlanError(field, f"{path} is shared by somebody else, who alone may change it")


def share(kind: str, name: str, shared: bool) -> None:
    """Lets others use a text or a run of the user's, or no longer. Raises PlanError."""
    if kind not in KINDS:
        raise PlanError("kind", f"{kind!r} is not shared", KINDS)
    table, column = ("kept_runs", "id") if kind == "runs" else ("documents", "name")
    more = "" if kind == "runs" else " AND kind = ?"
    with transaction() as connection:
        if shared and kind != "runs":
            clash = connection.execute(
                "SELECT owner FROM documents WHERE kind = ? AND name = ? AND shared AND NOT " + _OWN, (kind, name)
            ).fetchone()
            if clash:
                raise PlanError("name", f"{clash[0]} shares a {name} already; save yours under another name")
        done = connection.execute(
            f"UPDATE {table} SET shared = ? WHERE {column} = ? AND {_OWN}{more}",
            (shared, name, *((kind,) if more else ())),
        )
        if not done.rowcount:
            raise PlanError("name", f"you have no {name} among your {kind}")


@dataclass(frozen=True)
class OwnedText:
    """A text or run that a user has or that is shared, by the name of its file or its id."""

    kind: str
    name: str
    owner: str
    shared: bool
    changed: str


def owned() -> list[OwnedText]:
    """What the user has and what others share, by kind and name."""
    with transaction() as connection:
        rows = connection.execute(
            f"SELECT kind, name, owner, shared, changed FROM documents WHERE {_OWN} OR shared"
            " UNION ALL SELECT 'runs', id, owner, shared, added::timestamptz FROM kept_runs"
            f" WHERE {_OWN} OR shared ORDER BY 1, 2, 3"
        ).fetchall()
    return [
        OwnedText(kind, name, owner, shared, changed.isoformat(timespec="seconds"))
        for kind, name, owner, shared, changed in rows
    ]
