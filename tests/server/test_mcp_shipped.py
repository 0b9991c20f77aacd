"""The answers that come with the package are those that the server gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from live_server import in_thread
from mcp_types import version

from server.mcp import shipped as mcp_shipped
from server.mcp.shipped import LISTS, key, shipped, stamp, text

CLIENT = {"name": "test", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": version.LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}
ANEW = "run: make lists"


def ask(client: httpx.Client, method: str, params: dict[str, Any], **headers: str) -> tuple[Any, httpx.Headers]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accepted = {"Accept": "application/json, text/event-stream", **headers}
    answer = client.post("/mcp", json=message, headers=accepted)
    assert answer.status_code == 200, answer.text
    found = next((line for line in answer.text.splitlines() if line.startswith("data: {")), answer.text)
    return json.loads(found.removeprefix("data: "))["result"], answer.headers


def test_they_are_what_the_server_says_in_both_eras() -> None:
    known = shipped()
    assert known, f"tools or their arguments have changed; {ANEW}"
    with in_thread() as live, httpx.Client(base_url=live.url, timeout=60) as client:
        given, session = "", ""
        for asked in version.KNOWN_PROTOCOL_VERSIONS:
            hello = {"protocolVersion": asked, "capabilities": {}, "clientInfo": CLIENT}
            found, headers = ask(client, "initialize", hello)
            assert known.pop(key("initialize", asked)) == found, ANEW
            given, session = found["protocolVersion"], headers["mcp-session-id"]
        about = {"mcp-session-id": session, "mcp-protocol-version": given}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        client.post("/mcp", json=ready, headers={"Accept": "application/json, text/event-stream", **about})
        for method in (*LISTS, "ping"):
            found, _ = ask(client, method, {}, **about)
            for asked in version.HANDSHAKE_PROTOCOL_VERSIONS:
                assert known.pop(key(method, asked)) == found, ANEW
        for method in ("server/discover", *LISTS):
            modern = {"mcp-protocol-version": version.LATEST_MODERN_VERSION, "mcp-method": method}
            found, _ = ask(client, method, {"_meta": META}, **modern)
            assert known.pop(key(method, version.LATEST_MODERN_VERSION, True)) == found, ANEW
    assert not known


def test_the_file_has_a_line_for_each_entry_of_a_list() -> None:
    found = Path(mcp_shipped.__file__).with_suffix(".json").read_text(encoding="utf-8")
    assert text(json.loads(found)) == found, ANEW
    assert max(len(line) for line in found.splitlines()) < 20_000


def test_those_of_other_sources_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for broken in ("", "[]", "{", json.dumps({"stamp": "other"}), json.dumps({"stamp": stamp()}), "\0"):
        (tmp_path / "found.json").write_text(broken)
        monkeypatch.setattr(mcp_shipped, "_FILE", tmp_path / "found.json")
        assert shipped() == {}
