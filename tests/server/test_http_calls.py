"""Calls and lists over HTTP: what a plain request gets, what an odd one gets, and that both faces say the same."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from live_server import in_thread, served_in_thread
from mcp_types import version
from tool_calls import FLAT, steady

from server.http.guard import LARGEST_BODY_BYTES, Guard
from server.http.server import app
from server.mcp import server as mcp_server
from server.service import Service
from tools import call
from tools.registry import registry

VERSION = version.LATEST_MODERN_VERSION
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
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


def message(method: str, id: Any = 1, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META | (meta or {})}}


def headers(method: str, name: str | None = None) -> dict[str, str]:
    named = {} if name is None else {"Mcp-Name": name}
    return {
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION, "Mcp-Method": method, **named,
    }  # fmt: skip


def post(client: httpx.Client, name: str, arguments: Any, id: Any = 1, **meta: Any) -> httpx.Response:
    body = message("tools/call", id, meta, name=name, arguments=arguments)
    return client.post("/mcp", json=body, headers=headers("tools/call", name))


def answered(answer: httpx.Response) -> Any:
    content = answer.json()
    result = content["result"]
    if "structuredContent" in result:
        result["structuredContent"] = steady(result["structuredContent"])
        result["content"] = "the same as text"
    return answer.status_code, answer.headers["content-type"], content


def test_a_call_over_mcp_and_one_over_rest_say_the_same() -> None:
    with in_thread(full=True) as live, httpx.Client(base_url=live.url, timeout=60) as client:
        for name, arguments in CALLS:
            mcp = post(client, name, arguments, "a")
            # What the protocol does not know changes nothing.
            assert answered(post(client, name, arguments, "a", other=1)) == answered(mcp)
            result, rest = mcp.json()["result"], client.post(f"/v1/tools/{name}", json=arguments)
            assert result["isError"] == (rest.status_code == 422)
            if result["isError"]:
                assert result["content"][0]["text"] == rest.json()["error"]["message"]
            else:
                assert steady(result["structuredContent"]) == steady(rest.json()) == steady(call(name, arguments))


def test_the_list_of_tools_is_whole_and_within_bounds() -> None:
    with in_thread(full=True) as live, httpx.Client(base_url=live.url, timeout=60) as client:
        answer = client.post("/mcp", json=message("tools/list"), headers=headers("tools/list"))
    assert [tool["name"] for tool in answer.json()["result"]["tools"]] == list(registry())
    assert len(answer.content) < 300_000


PLAIN = message("tools/call", name="describe_model", arguments={"model": "gpt2"})
ODD: list[tuple[dict[str, Any], dict[str, str], int]] = [
    (PLAIN | {"method": "tools/list"}, {}, 400),
    (PLAIN, {"Mcp-Name": "estimate_training"}, 400),
    (PLAIN, {"Mcp-Method": "tools/list"}, 400),
    (PLAIN, {"MCP-Protocol-Version": "2025-06-18"}, 400),
    (PLAIN, {"Content-Type": "text/plain"}, 400),
    (PLAIN, {"Accept": "text/html"}, 406),
    (PLAIN, {"Host": "evil.example"}, 421),
    (PLAIN, {"Origin": "https://evil.example"}, 403),
    (message("tools/call", name="describe_model", arguments=[]), {}, 400),
]


@pytest.fixture(scope="module")
def client() -> Any:
    with in_thread() as live, httpx.Client(base_url=live.url, timeout=60) as client:
        yield client


@pytest.mark.parametrize(("body", "changed", "status"), ODD, ids=range(len(ODD)))
def test_what_does_not_fit_together_is_refused(
    client: httpx.Client, body: dict[str, Any], changed: dict[str, str], status: int
) -> None:
    answer = client.post("/mcp", json=body, headers=headers("tools/call", "describe_model") | changed)
    assert answer.status_code == status, answer.text
    assert answer.text


def test_too_large_a_message_is_refused(client: httpx.Client) -> None:
    assert post(client, "describe_model", {"model": "x" * LARGEST_BODY_BYTES}).status_code == 413


def test_an_unknown_tool_is_told_with_those_that_there_are(client: httpx.Client) -> None:
    result = post(client, "nope", {}).json()["result"]
    assert result["isError"]
    assert "describe_model" in result["content"][0]["text"]


def test_an_equal_request_gets_the_same_answer_until_something_changes(client: httpx.Client) -> None:
    first = post(client, "describe_model", {"model": "gpt2"}).json()
    for id in (2, "größe", 1):
        assert post(client, "describe_model", {"model": "gpt2"}, id).json() == first | {"id": id}
    other = post(client, "describe_model", {"model": "gpt2-xl"}).json()
    assert other["result"]["structuredContent"] != first["result"]["structuredContent"]
    rest = [client.post("/v1/tools/describe_model", json={"model": "gpt2"}) for _ in range(2)]
    assert rest[0].content == rest[1].content
    assert rest[0].json() == first["result"]["structuredContent"]
    # Another header, another host: looked at anew.
    other_host = {"Host": "evil.example"}
    assert client.post("/v1/tools/describe_model", json={"model": "gpt2"}, headers=other_host).status_code == 421
    plain = {"Content-Type": "text/plain"}
    assert client.post("/v1/tools/describe_model", content=b'{"model": "gpt2"}', headers=plain).status_code == 415


@pytest.mark.parametrize("full", [False, True])
def test_an_equal_call_passes_the_library_once(monkeypatch: pytest.MonkeyPatch, full: bool) -> None:
    service, ran, run = Service(remote=True, full=full), list[str](), mcp_server._RegistryTool.run

    async def counted(self: Any, arguments: dict[str, Any]) -> Any:
        ran.append(self.name)
        return await run(self, arguments)

    monkeypatch.setattr(mcp_server._RegistryTool, "run", counted)
    served = served_in_thread(app(service, Guard()), [])
    with served as live, httpx.Client(base_url=live.url, timeout=60) as client:
        # A first call sets up the person's own folder, on which answers depend.
        post(client, "estimate_training", FLAT | {"seq_len": 128})
        ran.clear()
        first = post(client, "estimate_training", FLAT)
        for id in (2, 10**20, "größe", '"id":1,', "\\", 1):
            again = post(client, "estimate_training", FLAT, id)
            assert again.json() == first.json() | {"id": id}
            lengths = [{**each.headers, "content-length": "", "date": ""} for each in (first, again)]
            assert lengths[0] == lengths[1]
        assert len(ran) == 1
        if not full:
            # What the answer names is there, however many others were answered meanwhile.
            service.results._kept.clear()  # type: ignore[attr-defined]
            details = post(client, "estimate_training", FLAT).json()["result"]["structuredContent"]["details"]
            assert service.results.read(details.rpartition("/")[2])
        # Another kind of client, a call whose progress is told, and what the protocol refuses are the library's.
        assert post(client, "estimate_training", FLAT, other=1).json() == first.json()
        assert len(ran) == 2
        for number in range(2):
            told = post(client, "estimate_training", FLAT, progressToken=1)
            assert told.headers["content-type"].startswith("text/event-stream")
            assert len(ran) == 3 + number
        post(client, "describe_model", {"model": "gpt2"})
        for body, changed, status in ODD:
            answer = client.post("/mcp", json=body, headers=headers("tools/call", "describe_model") | changed)
            assert answer.status_code == status, answer.text
        before = len(ran)
        service.calls.forget()
        assert post(client, "estimate_training", FLAT).json()["result"]["isError"] is False
        assert len(ran) == before + 1
