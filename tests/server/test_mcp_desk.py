"""The desk before the server: what it answers by itself, what it hands on, and what it keeps."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from server.mcp.desk import Desk, Store

CLIENT = {"name": "test", "version": "1"}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
GREETED = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "shardwise", "version": "0"}}
TOOLS = {"tools": [{"name": "größe"}]}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}
KEPT = {"initialize 2025-06-18": GREETED, "tools/list 2025-06-18": TOOLS, "tools/list 2026-07-28 by request": TOOLS}


class Kept(io.BytesIO):
    def close(self) -> None:
        """What was written can be read after the writer has closed it."""


def line(id: Any, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def desk(*messages: bytes, store: Store | None = None) -> tuple[Desk, list[Any], list[bytes]]:
    """A desk that has read the messages; what it said to the client, and what it handed on to the server."""
    if store is None:
        store = Store(None, "")
        store.answers = dict(KEPT)
    client, server = Kept(), Kept()
    found = Desk(client, server, store)
    found.read(io.BytesIO(b"".join(messages)))
    return found, [json.loads(each) for each in client.getvalue().splitlines()], server.getvalue().splitlines(True)


def test_a_greeting_and_a_list_need_no_server() -> None:
    hello, ready = line(1, "initialize", **HELLO), b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    _, said, handed = desk(hello, ready, line("a", "tools/list"))
    assert said == [{"jsonrpc": "2.0", "id": 1, "result": GREETED}, {"jsonrpc": "2.0", "id": "a", "result": TOOLS}]
    assert handed == [hello, ready]  # for the server, once it is needed


def test_a_client_that_leaves_early_starts_no_server() -> None:
    assert desk(line(1, "initialize", **HELLO))[0].left
    assert not desk(line(1, "initialize", **HELLO), line(2, "tools/list"))[0].left


def test_a_list_of_the_modern_era_comes_without_a_greeting() -> None:
    _, said, handed = desk(line(1, "tools/list", _meta=META))
    assert said == [{"jsonrpc": "2.0", "id": 1, "result": TOOLS}]
    assert not handed


def test_a_ping_after_the_greeting_needs_no_server() -> None:
    store = Store(None, "")
    store.answers = KEPT | {"ping 2025-06-18": {}}
    found, said, _ = desk(line(1, "initialize", **HELLO), line(2, "ping"), store=store)
    assert said[1] == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert found.left


def test_all_else_is_for_the_server_to_answer() -> None:
    for message in (
        line(1, "tools/list"),  # without a greeting
        line(1, "tools/list", _meta={**META, "io.modelcontextprotocol/protocolVersion": "1999"}),
        line(1, "tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"}),
        line(1, "tools/list", _meta=META, cursor="a"),
        line(True, "tools/list", _meta=META),
        line(1, "initialize", **HELLO | {"protocolVersion": ["2025-06-18"]}),
        line(1, "initialize", **HELLO | {"clientInfo": {"name": "n" * 5000, "version": "1"}}),
        line(1, "initialize"),
        line(1, "tools/call", name="describe_model"),
        b"not json\n",
        b"[" * 100_000 + b"\n",
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]\n',
        b"\xff\n",
    ):
        found, said, handed = desk(message)
        assert not said
        assert handed == [message]
        assert not found.left


def test_the_servers_second_greeting_is_dropped_and_its_answers_are_kept(tmp_path: Path) -> None:
    place = tmp_path / "cache" / "mcp.json"
    store = Store(place, "now")
    store.answers = {"initialize 2025-06-18": GREETED}
    found, _, _ = desk(line(1, "initialize", **HELLO), line(2, "tools/list"), line(3, "logging/setLevel"), store=store)
    answers = [
        {"jsonrpc": "2.0", "id": 1, "result": GREETED},
        {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}},  # the server's own numbers
        {"jsonrpc": "2.0", "id": 3, "result": {}},
        {"jsonrpc": "2.0", "id": 2, "result": TOOLS},
    ]
    found.write_all(io.BytesIO(b"".join(json.dumps(each).encode() + b"\n" for each in answers)))
    client: Any = found.client
    assert [json.loads(each) for each in client.getvalue().splitlines()][1:] == answers[1:]
    assert Store(place, "now").answers == {"initialize 2025-06-18": GREETED, "tools/list 2025-06-18": TOOLS}
    assert Store(place, "later").answers == {}


def test_an_error_is_not_kept_and_a_broken_store_is_an_empty_one(tmp_path: Path) -> None:
    place = tmp_path / "mcp.json"
    found, _, _ = desk(line(1, "initialize", **HELLO), store=Store(place, "now"))
    found.write_all(io.BytesIO(b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}\n'))
    assert not place.exists()
    for text in ("", "[]", "{", '{"stamp": "now"}', '{"stamp": "now", "answers": 7}', "\0"):
        place.write_text(text)
        assert Store(place, "now").answers == {}
