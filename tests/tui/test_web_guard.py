"""Who may speak to the app in a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import textual_serve

from tui.cli import main
from tui.commands.web import PAGE, may_speak

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
