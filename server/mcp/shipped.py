"""The first answers of `shardwise mcp`, made beforehand: the greeting of each version of the protocol, and the lists.

Making them takes seconds, of which most go into loading the protocol and every tool; so they come with the package, in
mcp_shipped.json, with a stamp of the sources that declare tools. Where these have changed since, the file is as good as
not there. `python -m server.mcp.shipped` makes it anew, from what the server itself says.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LISTS = ("tools/list", "prompts/list", "resources/templates/list")
_FILE = Path(__file__).with_suffix(".json")
_META = "io.modelcontextprotocol/"
_CLIENT = {"name": "shardwise", "version": "1"}
_SERVE = "from server.mcp.server import serve_stdio; serve_stdio()"


def shipped() -> dict[str, Any]:
    """Answers by what they answer (see `key`); none where they may be those of other sources."""
    try:
        found = json.loads(_FILE.read_text(encoding="utf-8"))
        return _answers(found) if found["stamp"] == stamp() else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def key(method: str, version: str, by_request: bool = False) -> str:
    """What a request asks for. In the modern era (`by_request`) each says its version, else the greeting has."""
    return f"{method} {version} by request" if by_request else f"{method} {version}"


def stamp() -> str:
    """Another one whenever a source has changed in which tools and their arguments are declared."""
    folder = Path(__file__).parent
    found = hashlib.sha256()
    for path in [*sorted(folder.glob("*.py")), folder.parent / "estimator" / "plan.py"]:
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:20]


def _answers(found: dict[str, Any]) -> dict[str, Any]:
    """The answers by their keys. The lists are the same in all versions, but for what is beside them."""
    answers: dict[str, Any] = {}
    for asked, given in found["versions"].items():
        answers[key("initialize", asked)] = {**found["initialize"], "protocolVersion": given}
        answers |= {key(method, given): found["lists"][method] for method in LISTS}
        answers[key("ping", given)] = {}
    for version in found["discover"]["supportedVersions"]:
        answers[key("server/discover", version, True)] = found["discover"]
        answers |= {key(method, version, True): {**found["beside"], **found["lists"][method]} for method in LISTS}
    return answers


def made() -> dict[str, Any]:
    """What belongs into the file, from a server started for it."""
    from mcp_types import version

    latest, modern = version.LATEST_HANDSHAKE_VERSION, version.LATEST_MODERN_VERSION
    hello = {"protocolVersion": latest, "capabilities": {}, "clientInfo": _CLIENT}
    initialize, *lists = _asked([("initialize", hello), *((method, {}) for method in LISTS)])
    meta = {f"{_META}protocolVersion": modern, f"{_META}clientCapabilities": {}, f"{_META}clientInfo": _CLIENT}
    discover, tools = _asked([(method, {"_meta": meta}) for method in ("server/discover", "tools/list")])
    handshakes = version.HANDSHAKE_PROTOCOL_VERSIONS
    return {
        "stamp": stamp(),
        "versions": {asked: asked if asked in handshakes else latest for asked in version.KNOWN_PROTOCOL_VERSIONS},
        "initialize": {name: value for name, value in initialize.items() if name != "protocolVersion"},
        "discover": discover,
        "beside": {name: value for name, value in tools.items() if name != "tools"},
        "lists": dict(zip(LISTS, lists, strict=True)),
    }


def _asked(requests: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The results of some requests in one conversation."""
    messages = [{"jsonrpc": "2.0", "id": id, "method": method, "params": params}
                for id, (method, params) in enumerate(requests)]  # fmt: skip
    with subprocess.Popen([sys.executable, "-c", _SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin
        assert server.stdout
        results = []
        for message in messages:
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            results.append(json.loads(server.stdout.readline())["result"])
            if message["method"] == "initialize":
                server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        server.stdin.close()
    return results


def text(content: dict[str, Any]) -> str:
    """The file's text: an entry of a list a line, so that a change of one tool is a change of one line."""
    lists = {}
    for method, result in content["lists"].items():
        [(name, entries)] = result.items()
        rows = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
        lists[method] = f"{json.dumps({name: 0})[:-2]}[\n{rows}\n]}}"
    parts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items() if name != "lists"]
    parts.append('"lists": {' + ",\n".join(f"{json.dumps(method)}: {rows}" for method, rows in lists.items()) + "}")
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    _FILE.write_text(text(made()), encoding="utf-8")
