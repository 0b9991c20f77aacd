"""Who may speak to the app in a browser."""

from __future__ import annotations

import pytest

from tui.cli import main
from tui.commands.web import may_speak

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


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "example.org"])
def test_other_addresses_need_a_clear_word(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "--host", host]) == 2
    assert "--anyone" in capsys.readouterr().err
