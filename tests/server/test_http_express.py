"""The short way of a plain call over MCP says what the long way says, and takes nothing that is out of the ordinary."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from live_server import in_thread
from tool_calls import FLAT, steady

from server.http.express import express
from server.service import Service

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("describe_model", {"model": "gpt2"}),
    ("describe_model", {"model": "gpt3000"}),
    ("describe_model", {}),
    ("describe_model", {"model": "/etc/passwd"}),
    ("estimate_training", FLAT),
    ("estimate_training", FLAT | {"count": "größe"}),
    ("best_parallelism", FLAT),
]


def call(name: str, arguments: Any, id: Any = 1, **meta: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": META | meta},
    }  # fmt: skip


def headers(name: str) -> dict[str, str]:
    return {
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }  # fmt: skip


def said(answer: httpx.Response) -> Any:
    found = answer.json()
    result = found["result"]
    if "structuredContent" in result:
        result["structuredContent"] = steady(result["structuredContent"])
        result["content"] = "the same as text"
    return answer.status_code, answer.headers["content-type"], found


def test_both_ways_say_the_same() -> None:
    with in_thread() as live, httpx.Client(base_url=live.url, timeout=60) as client:
        for name, arguments in CALLS:
            short = client.post("/mcp", json=call(name, arguments, "a"), headers=headers(name))
            # What the protocol does not know goes the long way.
            long = client.post("/mcp", json=call(name, arguments, "a", other=1), headers=headers(name))
            assert said(short) == said(long)


OTHERS: list[tuple[dict[str, Any], dict[str, str]]] = [
    (call("write_configs", FLAT), {}),
    (call("nope", {}), {}),
    (call("describe_model", []), {}),
    (call("describe_model", {"model": "gpt2"}, progressToken=1), {}),
    (call("describe_model", {"model": "gpt2"}) | {"more": 1}, {}),
    (call("describe_model", {"model": "gpt2"}) | {"method": "tools/list"}, {}),
    (call("describe_model", {"model": "gpt2"}), {"Mcp-Name": "estimate_training"}),
    (call("describe_model", {"model": "gpt2"}), {"Mcp-Method": "tools/list"}),
    (call("describe_model", {"model": "gpt2"}), {"MCP-Protocol-Version": "2025-06-18"}),
    (call("describe_model", {"model": "gpt2"}), {"Content-Type": "text/plain"}),
]


@pytest.mark.parametrize(("message", "changed"), OTHERS, ids=range(len(OTHERS)))
def test_all_else_goes_the_long_way(message: dict[str, Any], changed: dict[str, str]) -> None:
    service, took = Service(), list[str]()
    asyncio.run(service.loaded())

    async def long(scope: Any, receive: Any, send: Any) -> None:
        took.append("long")

    async def send(_: Any) -> None:
        took.append("short")

    def go(message: Any, given: dict[str, str]) -> None:
        pairs = [(name.lower().encode(), value.encode()) for name, value in given.items()]
        scope = {
            "type": "http", "path": "/mcp", "method": "POST", "headers": pairs, "query_string": b"",
            "shardwise.message": message, "shardwise.body": b"",
        }  # fmt: skip
        asyncio.run(express(long, service, "shardwise", "0")(scope, send, send))  # type: ignore[arg-type]

    usual = headers("describe_model") | {"Content-Type": "application/json"}
    go(message, usual | changed)
    assert took == ["long"]
    go(call("describe_model", {"model": "gpt2"}), usual)
    assert took[1:] == ["short", "short"]


def test_an_equal_request_gets_the_same_answer_until_something_changes() -> None:
    with in_thread() as live, httpx.Client(base_url=live.url, timeout=60) as client:

        def ask(id: Any, **changed: Any) -> Any:
            found = client.post("/mcp", json=call("describe_model", {"model": "gpt2"} | changed, id),
                                headers=headers("describe_model"))  # fmt: skip
            return found.json()

        first = ask(1)
        assert [ask(id) for id in (2, "größe", 1)] == [first | {"id": id} for id in (2, "größe", 1)]
        assert ask(3, model="gpt2-xl")["result"]["structuredContent"] != first["result"]["structuredContent"]
        rest = [client.post("/v1/tools/describe_model", json={"model": "gpt2"}) for _ in range(2)]
        assert rest[0].content == rest[1].content
        assert rest[0].json() == first["result"]["structuredContent"]
        # Another header, another host: looked at anew.
        other = {"Host": "evil.example"}
        assert client.post("/v1/tools/describe_model", json={"model": "gpt2"}, headers=other).status_code == 421
        plain = {"Content-Type": "text/plain"}
        assert client.post("/v1/tools/describe_model", content=b'{"model": "gpt2"}', headers=plain).status_code == 415


async def test_an_answer_stands_until_a_write() -> None:
    service = Service()
    answer = await service.call(await service.tool("describe_model"), {"model": "gpt2"})
    assert service.calls.stands(answer)
    service.calls.forget()
    assert not service.calls.stands(answer)
