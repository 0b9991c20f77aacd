"""A token on every address, made where none was given; wrong ones are few; a page opens by its link."""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from live_server import in_process, in_thread

from estimator.errors import PlanError
from server.http.guard import Guard
from server.http.token import Guesses, token
from tui.commands.web import Gate

TOKEN = "a-token-of-some-length"


def test_one_is_made_where_none_was_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SHARDWISE_TOKEN", raising=False)
    (first, made), (second, _) = token(None), token(None)
    assert made
    assert first != second
    assert len(first) >= 32
    monkeypatch.setenv("SHARDWISE_TOKEN", TOKEN)
    assert token(None) == (TOKEN, False)
    (tmp_path / "token").write_text(f"{TOKEN}2\n")
    assert token(str(tmp_path / "token")) == (f"{TOKEN}2", False)
    monkeypatch.setenv("SHARDWISE_TOKEN", "short")
    with pytest.raises(PlanError, match="at least 16"):
        token(None)


def test_serve_prints_a_link_and_answers_nobody_without_it(tmp_path: Path) -> None:
    with in_process(SHARDWISE_HOME=str(tmp_path), SHARDWISE_TOKEN="") as (process, port):
        assert process.stderr is not None
        page = re.search(r"http://\S+", process.stderr.readline())
        assert page
        address = f"http://127.0.0.1:{port}"
        for path in ("/", "/docs", "/healthz", "/v1/tools"):
            assert httpx.get(address + path).status_code == 401
        assert httpx.get(page[0]).status_code == 200
        secret = page[0].partition("token=")[2]
        assert httpx.get(f"{address}/healthz", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
        assert httpx.get(f"{address}/v1/models?limit=1&token={secret}").json()["total"] > 100


def test_wrong_tokens_are_slowed_and_the_right_one_never_is() -> None:
    with (
        in_thread(None, Guard(token=TOKEN, guesses=Guesses(wait_s=0.2))) as live,
        ThreadPoolExecutor(100) as pool,
        httpx.Client(timeout=60, limits=httpx.Limits(max_connections=None)) as client,
    ):

        def ask(word: str) -> tuple[int, float]:
            begun = time.monotonic()
            answer = client.get(f"{live.url}/healthz", headers={"Authorization": f"Bearer {word}"})
            return answer.status_code, time.monotonic() - begun

        first = [ask(f"guess-number-{n:08}") for n in range(20)]
        assert {status for status, _ in first} == {401}
        later = [ask(f"guess-number-{n:08}") for n in range(20, 26)]
        assert {status for status, _ in later} == {401}
        assert sum(wait_s > 0.19 for _, wait_s in later) >= 4
        flood = [pool.submit(ask, f"guess-number-{n:08}") for n in range(300)]
        for _ in range(20):
            assert ask(TOKEN)[0] == 200
        assert {each.result()[0] for each in flood} <= {401, 429}
        assert TOKEN not in "".join(live.log)


async def test_few_wait_at_once_and_addresses_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    ends = asyncio.Event()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await ends.wait()

    monkeypatch.setattr("server.http.token.asyncio.sleep", sleep)
    guesses = Guesses(wait_s=1.5)
    assert all([await guesses.wrong("a") for _ in range(20)])
    waiting = [asyncio.create_task(guesses.wrong("a")) for _ in range(64)]
    await asyncio.wait(waiting, timeout=0.01)
    assert slept == [1.5] * 64
    assert not await guesses.wrong("a")
    assert await guesses.wrong("b")
    ends.set()
    assert all(await asyncio.gather(*waiting))
    for n in range(10_000):
        await guesses.wrong(str(n))
    assert len(guesses._left) < 5000


async def test_the_app_in_a_browser_opens_by_its_link_alone_and_has_a_cap() -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="app")

    async def socket(request: web.Request) -> web.WebSocketResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        async for _ in answer:
            pass
        return answer

    gate: list[Gate] = []

    @web.middleware
    async def gated(request: web.Request, handler: object) -> web.StreamResponse:
        return await gate[0].pass_on(request, handler)

    app = web.Application(middlewares=[gated])
    app.add_routes([web.get("/", page), web.get("/ws", socket), web.get("/ws/{token}", socket)])
    async with TestServer(app) as server, TestClient(server) as client:
        gate.append(Gate({"127.0.0.1"}, TOKEN, 2))
        assert (await client.get("/")).status == 200
        for path in ("/ws", "/ws/wrong-token-of-length"):
            assert (await client.get(path)).status == 403
        tabs = [await client.ws_connect(f"/ws/{TOKEN}") for _ in range(2)]
        assert (await client.get(f"/ws/{TOKEN}")).status == 503
        await tabs[0].close()
        again = await client.ws_connect(f"/ws/{TOKEN}")
        await again.close()
        await tabs[1].close()
