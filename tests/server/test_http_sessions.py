"""Sessions of the handshake era: only so many stay open, those in use among them, and all are answered alike."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from live_server import in_thread

VERSION = "2025-11-25"
ACCEPT = {"Accept": "application/json, text/event-stream"}
HELLO = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def post(client: httpx.Client, method: str, params: Any = None, **headers: str) -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": method} | ({} if params is None else {"params": params})
    return client.post("/mcp", json=message, headers=ACCEPT | headers)


def opened(client: httpx.Client) -> dict[str, str]:
    """The headers of a new session."""
    answer = post(client, "initialize", HELLO)
    assert answer.status_code == 200
    return {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": VERSION}


def result(answer: httpx.Response) -> Any:
    """The result of an answer, which may come as the last of some events."""
    text = answer.text.rpartition("\ndata: ")[2]
    found = json.loads(text)["result"]
    if not found.get("isError", True):
        del found["isError"]
    return found


def test_one_session_too_many_ends_the_one_that_was_used_the_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.http.sessions.MOST_OPEN", 3)
    with in_thread() as live, httpx.Client(base_url=live.url, timeout=60) as client:
        first, second, third = (opened(client) for _ in range(3))
        assert post(
            client, "tools/call", {"name": "describe_model", "arguments": {"model": "gpt2"}}, **first
        ).is_success
        fourth = opened(client)
        gone = post(client, "ping", **second)
        assert gone.status_code == 404
        assert gone.json()["error"]["message"]
        assert all(result(post(client, "ping", **each)) == {} for each in (first, third, fourth))
        assert client.request("DELETE", "/mcp", headers=third).status_code == 200
        fifth = opened(client)  # there is room for it
        assert all(result(post(client, "ping", **each)) == {} for each in (first, fourth, fifth))


def test_an_answer_in_a_session_is_the_same_each_time() -> None:
    with in_thread() as live, httpx.Client(base_url=live.url, timeout=60) as client:
        session = opened(client)
        for method, params in (
            ("tools/call", {"name": "describe_model", "arguments": {"model": "gpt2"}}),
            ("tools/call", {"name": "describe_model", "arguments": {"model": "gpt3000"}}),
            ("tools/call", {"name": "describe_model"}),
            ("tools/list", {}),
            ("prompts/list", {}),
            ("resources/templates/list", {}),
        ):
            # The first tells of its progress as well.
            first = post(client, method, params | {"_meta": {"progressToken": "a"}}, **session)
            for _ in range(2):
                again = post(client, method, params, **session)
                assert again.headers["mcp-session-id"] == session["Mcp-Session-Id"]
                assert result(again) == result(first)


def test_a_request_of_no_session_is_refused_whatever_was_answered_before() -> None:
    call = {"name": "describe_model", "arguments": {"model": "gpt2"}}
    with in_thread() as live, httpx.Client(base_url=live.url, timeout=60) as client:
        session = opened(client)
        for method, params in (("tools/call", call), ("tools/list", {})):
            assert post(client, method, params, **session).is_success
            for changed in (
                {"Mcp-Session-Id": "nope"},
                {"MCP-Protocol-Version": "1999-01-01"},
                {"Accept": "text/html"},
            ):
                refused = post(client, method, params, **session | changed)
                assert 400 <= refused.status_code < 500, changed
        assert client.request("DELETE", "/mcp", headers=session).status_code == 200
        assert post(client, "tools/call", call, **session).status_code == 404
