"""Who may speak to the app in a browser."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
import textual_serve

from tui.cli import main
from tui.commands.web import PAGE, may_speak

# With what an address would take for its own.
TOKEN = "a/token%of#this?test"
KNOWN = f"/ws/{quote(TOKEN, safe='')}"
NAMES = {"127.0.0.1", "localhost", "::1"}


@pytest.mark.parametrize(
    ("host", "origin", "may"),
    [
        ("127.0.0.1:8080", None, True),
        ("127.0.0.1:8080", "http://127.0.0.1:8080", True),
        ("127.0.0.1:8080", "http://localhost:8080", True),
        ("[::1]:8080", "http://[::1]:8080", True),
        ("127.0.0.1:8080", "http://127.0.0.1:9", False),
        ("127.0.0.1:8080", "https://evil.example", False),
        ("127.0.0.1:8080", "null", False),
        ("127.0.0.1:8080", "", False),
        ("evil.example:8080", None, False),
        ("127.0.0.1:x", None, False),
        ("", None, False),
    ],
)
def test_only_pages_of_its_own(host: str, origin: str | None, may: bool) -> None:
    assert may_speak(host, origin, NAMES) is may


def test_the_page_is_ours_and_loads_nothing_from_elsewhere() -> None:
    text = (PAGE / "app_index.html").read_text()
    loaded = re.findall(r"(?:src|href)=\"([^\"]*)\"|url\(\"([^\"]*)\"\)", text)
    assert len(loaded) >= 4
    for place in (first or second for first, second in loaded):
        assert place.startswith(("data:image/svg+xml,", "{{ config.static.url }}")), place
    assert "<title>Shardwise</title>" in text
    assert ".focus()" in text
    served = Path(textual_serve.__file__).parent / "static"
    for name in re.findall(r"config\.static\.url \}\}([^\"]+)\"", text):
        assert (served / name).is_file(), name


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "example.org"])
def test_other_addresses_need_a_clear_word(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "--host", host]) == 2
    assert "--anyone" in capsys.readouterr().err


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home = str(tmp_path_factory.mktemp("home"))
    env = os.environ | {"SHARDWISE_HOME": home, "SHARDWISE_TOKEN": TOKEN, "COLUMNS": "300"}
    command = [sys.executable, "-m", "tui.cli", "web", "--port", str(port), "--allow-host", "My-Machine"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as served:
        assert served.stderr is not None
        try:
            assert f"/#{quote(TOKEN, safe='')} " in served.stderr.readline()
            # The link is told a moment before the address is listened on.
            for _ in range(100):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            yield "127.0.0.1", port
        finally:
            served.terminate()
            told = served.communicate(timeout=30)[1]
    assert "Traceback" not in told


SOCKET = {
    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "x" * 22 + "==",
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 200),
        ("/", {"Host": "my-machine:1"}, 200),
        ("/", {"Host": "evil.example"}, 403),
        ("/", {"Host": "127.0.0.1@evil.example"}, 403),
        ("/", {"Origin": "http://127.0.0.1:9"}, 403),
        ("/?token=" + quote(TOKEN, safe=""), {}, 200),
        ("/static/js/textual.js", {}, 200),
        ("/download/x", {}, 404),
        ("/ws", SOCKET, 403),
        ("/ws/", SOCKET, 403),
        ("/ws/none", SOCKET, 403),
        ("/ws?token=" + quote(TOKEN, safe=""), SOCKET, 403),
        (KNOWN, SOCKET, 101),
        (KNOWN, {}, 400),
        (KNOWN, {"Origin": "https://evil.example", **SOCKET}, 403),
        (KNOWN, {"Origin": "http://127.0.0.1:9", **SOCKET}, 403),
        (KNOWN, {"Host": "evil.example", **SOCKET}, 403),
        ("/<script>alert(1)</script>", {}, 404),
    ],
)
def test_who_gets_in(address: tuple[str, int], path: str, headers: dict[str, str], status: int) -> None:
    connection = http.client.HTTPConnection(*address, timeout=30)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode() if status != 101 else ""
    assert (answer.status, "<script>alert" in text) == (status, False)
    # A page at another port is of the same site, and could show this one in a frame, where clicks are the person's.
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    # A cookie would go to all ports of the machine, and what an address holds into its history.
    assert "Set-Cookie" not in answer.headers
    assert TOKEN not in text
    connection.close()


def test_an_app_in_a_tab_ends_with_the_server_that_showed_it(tmp_path: Path) -> None:
    env = os.environ | {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "SHARDWISE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tui.cli", "chat", "--model", "offline"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env) as app:
        assert app.stdin is not None
        assert app.stdout is not None
        try:
            assert app.stdout.readline() == b"__GANGLION__\n"
            # As where a server is killed, which tells nobody.
            app.stdin.close()
            app.stdout.close()
            assert app.wait(60) is not None
        finally:
            app.kill()
