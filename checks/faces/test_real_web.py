"""`shardwise web` in a real browser: the page shows the app, takes what is typed, and answers a question."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

QUESTION = "Does full fine-tuning of gpt2 fit on one A100 80GB?"
# The terminal in the page draws to a canvas; what it holds is asked of the terminal itself.
_READY_S, _ANSWER_S = 60.0, 60.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    surroundings = {**os.environ, "SHARDWISE_HOME": str(tmp_path / "home"), "SHARDWISE_CONFIG": str(tmp_path / "home")}
    command = [sys.executable, "-m", "tui.cli", "web", "--port", str(port), "--model", "offline"]
    with subprocess.Popen(command, env=surroundings, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        link = re.search(r"http://\S+", line)
        assert link, line + server.stderr.read()
        _listening(port)
        yield link[0]
        server.terminate()
        server.wait(20)


def _listening(port: int) -> None:
    """The address is told a moment before it is listened at."""
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("nothing listens")


@pytest.fixture(scope="session")
def chromium() -> str:
    if not shutil.which("chromium"):
        assert os.geteuid() == 0, "Chromium is not installed, and only root may install it"
        subprocess.run(["apt-get", "update"], check=True, capture_output=True)
        subprocess.run(
            ["apt-get", "install", "-y", "--no-install-recommends", "chromium"], check=True, capture_output=True
        )
    return str(shutil.which("chromium"))


class Page:
    """A page over the browser's own protocol."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.number = 0
        # What the app sent to its terminal, as it came.
        self.drawn = ""

    async def ask(self, method: str, **given: Any) -> dict[str, Any]:
        self.number += 1
        await self.connection.send(json.dumps({"id": self.number, "method": method, "params": given}))
        while True:
            told = await self.hear(30.0)
            if told.get("id") == self.number:
                assert "error" not in told, told
                return told["result"]

    async def value(self, expression: str) -> Any:
        given = await self.ask("Runtime.evaluate", expression=expression)
        return given["result"].get("value") or ""

    async def hear(self, within_s: float) -> dict[str, Any]:
        told = json.loads(await asyncio.wait_for(self.connection.recv(), within_s))
        if told.get("method") == "Network.webSocketFrameReceived":
            self.drawn += _shown(told["params"]["response"])
        return told

    async def until(self, words: str, within_s: float) -> None:
        end = time.monotonic() + within_s
        while words not in self.drawn:
            left = end - time.monotonic()
            assert left > 0, f"{words!r} never came; the last: {' '.join(self.drawn.split())[-2000:]}"
            try:
                await self.hear(left)
            except TimeoutError:
                continue

    async def type(self, text: str) -> None:
        for letter in text:
            await self.ask("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            await self.ask("Input.dispatchKeyEvent", type="keyUp", key=letter)
            await asyncio.sleep(0.02)

    async def key(self, name: str, code: int) -> None:
        pressed = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        await self.ask("Input.dispatchKeyEvent", type="keyDown", **pressed)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **pressed)

    async def enter(self) -> None:
        enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        await self.ask("Input.dispatchKeyEvent", type="keyDown", **enter)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", key="Enter")


def _shown(frame: dict[str, Any]) -> str:
    """The words of a frame, without what colours and places them."""
    import base64
    import re

    data = frame["payloadData"]
    text = base64.b64decode(data).decode(errors="replace") if frame["opcode"] == 2 else data
    return re.sub(r"\x1b\[[0-9;?<>=]*[A-Za-z]", "", text)


@asynccontextmanager
async def opened(chromium: str, url: str, folder: Path) -> AsyncIterator[Page]:
    from websockets.asyncio.client import connect

    port = free_port()
    command = [chromium, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
               f"--user-data-dir={folder / 'profile'}", f"--remote-debugging-port={port}", "--window-size=1400,900",
               *(["--no-sandbox"] if os.geteuid() == 0 else []), "about:blank"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            async with connect(await asyncio.to_thread(_address, port), max_size=None) as connection:
                page = Page(connection)
                await page.ask("Network.enable")
                await page.ask("Emulation.setFocusEmulationEnabled", enabled=True)
                await page.ask("Page.navigate", url=url)
                yield page
        finally:
            browser.terminate()


def _address(port: int) -> str:
    end = time.monotonic() + _READY_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=5) as answer:
                pages = [each for each in json.load(answer) if each["type"] == "page"]
            if pages:
                return pages[0]["webSocketDebuggerUrl"]
        except OSError:
            pass
        assert time.monotonic() < end, "the browser did not start"
        time.sleep(0.2)


async def test_the_page_shows_the_app_and_answers(chromium: str, served: str, tmp_path: Path) -> None:
    async with opened(chromium, served, tmp_path) as page:
        await page.until("What do you want to train", _READY_S)
        # No click: what is typed goes to the prompt.
        await page.type(QUESTION)
        await page.enter()
        await page.until("GiB", _ANSWER_S)


async def test_the_token_stays_with_the_tab_and_its_port(chromium: str, served: str, tmp_path: Path) -> None:
    async with opened(chromium, served, tmp_path) as page:
        await page.until("What do you want to train", _READY_S)
        assert await page.value("location.hash + document.cookie") == ""
        await page.ask("Page.reload")
        page.drawn = ""
        await page.until("What do you want to train", _READY_S)
        await page.ask("Page.navigate", url=served.partition("#")[0].replace("127.0.0.1", "localhost"))
        for _ in range(100):
            if "shardwise web" in await page.value("document.getElementById('why')?.textContent"):
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError("the page does not say how it is opened")


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
async def test_other_pages_get_no_socket(served: str, origin: str) -> None:
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus):
        async with connect(served.replace("http", "ws").replace("/#", "/ws/"), origin=origin):  # pyright: ignore[reportArgumentType]
            pass


async def test_the_list_of_actions_has_a_key_of_its_own(chromium: str, served: str, tmp_path: Path) -> None:
    async with opened(chromium, served, tmp_path) as page:
        await page.until("What do you want to train", _READY_S)
        await page.key("F8", 119)
        await page.until("Search for commands", _ANSWER_S)
        await page.key("Escape", 27)
        await page.until("f8", _ANSWER_S)
        # What a browser's key would do is said instead.
        await page.type("/clusters")
        await page.enter()
        await page.until("lusters", _ANSWER_S)
