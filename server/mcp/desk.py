"""A quick start over standard input and output: what a client asks first is answered from what was made beforehand.

Loading the protocol and the estimator takes seconds, while the greeting and the lists are the same in every process of
one installation. Their answers come with the package; where its sources have changed since, those of the last process
are kept in the user's cache, under a stamp of all that they were made from. A process that finds them answers from
there, and starts the server itself once the client has its list of tools, or asks for anything else. The server reads
the same messages, the greeting included; its second answer to that is dropped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from server.mcp.shipped import LISTS, key, shipped

_GREETINGS = ("initialize", "server/discover")
# Some clients ping before anything else, to see whether a server is there, and wait for a few seconds at most.
_AFTER_A_GREETING = (*LISTS, "ping")
_META = "io.modelcontextprotocol/"
_ROOMS = ("estimator", "knowledge", "launchers", "tools")
# What makes the schemas and speaks the protocol; its folder is new with each version.
_LIBRARIES = ("pydantic", "pydantic_core", "fastmcp", "mcp")
# A greeting that is longer than this is no usual one.
_LONGEST = 4096
_END = b"end of the server\n"


def serve_behind_desk(serve: Callable[[], None]) -> None:
    """Serves standard input and output: the first answers from the store where it has them, the others by `serve`,
    which is called once they are needed and reads and writes standard input and output as usual."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    requests, answers = os.pipe(), os.pipe()
    # Until the server has them, nothing that is printed may reach the client.
    _point(0, os.open(os.devnull, os.O_RDONLY))
    _point(1, os.dup(2))
    with open(wire_in, "rb") as read, open(wire_out, "wb") as write, open(requests[1], "wb") as forward:
        desk = Desk(write, forward, _store())
        reading = threading.Thread(target=desk.read, args=(read,), daemon=True)
        reading.start()
        desk.needed.wait()
        if desk.left:
            return
        _point(0, requests[0])
        _point(1, answers[1])
        with open(answers[0], "rb") as answered:
            writing = threading.Thread(target=desk.write_all, args=(answered,), daemon=True)
            writing.start()
            try:
                serve()
            finally:
                with contextlib.suppress(OSError):
                    os.write(1, b"\n" + _END)
                writing.join(5)


class Store:
    """Answers by what they answer, kept in one file as long as its stamp holds (None: in memory only)."""

    def __init__(self, place: Path | None, stamp: str) -> None:
        self.place, self.stamp = place, stamp
        self.answers: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            found = json.loads(place.read_text(encoding="utf-8")) if place else {}
            self.answers = dict(found["answers"]) if found["stamp"] == stamp else {}

    def keep(self, asked: str, result: Any) -> None:
        self.answers[asked] = result
        if self.place is None:
            return
        content = {"stamp": self.stamp, "answers": self.answers}
        staged = self.place.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            self.place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            staged.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
            os.replace(staged, self.place)


class Desk:
    """Stands between the client and the server. `read` runs in one thread, `write_all` in another."""

    def __init__(self, client: BinaryIO, server: BinaryIO, store: Store) -> None:
        self.client, self.server, self.store = client, server, store
        self.needed = threading.Event()
        self.left = False
        self._lock = threading.Lock()
        self._version: str | None = None  # of the handshake, once it was answered
        self._dropped: set[str] = set()
        self._asked: dict[str, str] = {}

    def read(self, wire: BinaryIO) -> None:
        """Answers or hands on every message of the client, until it leaves."""
        for line in wire:
            self._take(line)
        with contextlib.suppress(OSError):
            self.server.close()
        self.left = not self.needed.is_set()
        self.needed.set()

    def write_all(self, answers: BinaryIO) -> None:
        """Hands the server's answers on to the client, until the server ends."""
        for line in answers:
            if line == _END:
                return
            if line.strip() and not self._settled(line):
                self._say(line)

    def _take(self, line: bytes) -> None:
        message = _message(line)
        method, asked = message.get("method"), self._key(message) if len(line) <= _LONGEST else None
        found = self.store.answers.get(asked) if asked else None
        id = json.dumps(message.get("id"))
        if found is None:
            if asked:
                self._asked[id] = asked
            # What ends the greeting can wait for the request that follows it; a pipe holds little more.
            if method != "notifications/initialized":
                self.needed.set()
            self._hand_on(line)
            return
        if method in _GREETINGS:
            self._dropped.add(id)
            self._hand_on(line)
            self._version = found.get("protocolVersion", self._version)
        self._say(b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (id.encode(), _text(found)))
        if method == "tools/list":
            self.needed.set()

    def _hand_on(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            self.server.write(line if line.endswith(b"\n") else line + b"\n")
            self.server.flush()

    def _say(self, line: bytes) -> None:
        with self._lock, contextlib.suppress(OSError):
            self.client.write(line)
            self.client.flush()

    def _settled(self, line: bytes) -> bool:
        """Whether the client has this answer already. One that is worth keeping is kept."""
        if not self._dropped and not self._asked:
            return False
        message = _message(line)
        id = json.dumps(message.get("id"))
        if "method" in message or "id" not in message:
            return False
        if id in self._dropped:
            self._dropped.discard(id)
            return True
        asked, result = self._asked.pop(id, None), message.get("result")
        if asked and isinstance(result, dict):
            self._version = result.get("protocolVersion", self._version)
            self.store.keep(asked, result)
        return False

    def _key(self, message: dict[str, Any]) -> str | None:
        """What a request asks for, where the answer to it is always the same; None for all others."""
        method, params, id = message.get("method"), message.get("params") or {}, message.get("id")
        if not isinstance(method, str) or method not in (*_GREETINGS, *_AFTER_A_GREETING):
            return None
        if not isinstance(params, dict) or not isinstance(id, str | int) or isinstance(id, bool):
            return None
        if method == "initialize":
            version, who = params.get("protocolVersion"), params.get("clientInfo")
            plain = self._version is None and isinstance(params.get("capabilities"), dict) and _is_client(who)
            return key(method, version) if plain and isinstance(version, str) else None
        meta = params.get("_meta", {})
        if set(params) - {"_meta"} or not isinstance(meta, dict):
            return None
        if not any(name.startswith(_META) for name in meta):
            return key(method, self._version) if self._version and method in _AFTER_A_GREETING else None
        version, who = meta.get(f"{_META}protocolVersion"), meta.get(f"{_META}clientInfo")
        plain = self._version is None and isinstance(meta.get(f"{_META}clientCapabilities"), dict) and _is_client(who)
        return key(method, version, by_request=True) if plain and isinstance(version, str) else None


def _message(line: bytes) -> dict[str, Any]:
    """The one message of a line; nothing where it is none, which the server says in its own words."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and found.get("jsonrpc") == "2.0" else {}


def _is_client(who: Any) -> bool:
    return isinstance(who, dict) and all(isinstance(who.get(part), str) for part in ("name", "version"))


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _point(target: int, source: int) -> None:
    os.dup2(source, target)
    os.close(source)


def _store() -> Store:
    if answers := shipped():
        store = Store(None, "")
        store.answers = answers
        return store
    return Store(_place(), _stamp())


def _place() -> Path:
    """Where the answers of this installation are kept."""
    if home := os.environ.get("SHARDWISE_HOME"):
        folder = Path(home) / "cache"
    else:
        from platformdirs import user_cache_path

        folder = user_cache_path("shardwise", appauthor=False)
    installation = hashlib.sha256(f"{__file__} {sys.executable} {sys.version}".encode()).hexdigest()[:12]
    return folder / f"mcp-{installation}.json"


def _stamp() -> str:
    """Another one whenever a file has changed from which the answers are made."""
    from importlib.util import find_spec

    rooms = [Path(__file__).parents[1] / room for room in _ROOMS]
    found = [find_spec(name) for name in _LIBRARIES]
    libraries = [Path(spec.origin) for spec in found if spec and spec.origin]
    parts = [(str(path), path.stat().st_mtime_ns) for path in libraries]
    parts += sorted(part for room in rooms for part in _files(room))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def _files(folder: str | Path) -> Iterator[tuple[str, int]]:
    """Every source and data file below a folder, with its time."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in ("__pycache__", "measurements"):
                yield from _files(entry.path)
        elif entry.name.endswith((".py", ".yaml", ".csv", ".json")):
            yield entry.path, entry.stat().st_mtime_ns
