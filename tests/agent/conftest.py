"""Every test has its own data folder and working folder, no key, and no network beyond this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_gemini import KEY, FakeGemini, serving
from scored_sets import scored_once
from scoring import Said

from agent.settings import SETTINGS

LOCAL = ("127.0.0.1", "::1", "localhost")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    # Settings, and rows of the user's own, are then in the same folder.
    monkeypatch.delenv("SHARDWISE_CONFIG", raising=False)
    for setting in SETTINGS:
        monkeypatch.delenv(setting.variable, raising=False)
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "SHARDWISE_MODEL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in LOCAL:
            raise AssertionError(f"a test tried to reach {address!r}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGemini]:
    """A server in the place of Gemini, with a key for it."""
    with serving() as server:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.setattr("agent.gemini.model._FIRST_DELAY_S", 0.01)
        yield server


@pytest.fixture(scope="session")
def scored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, float], list[Said]]]:
    """The shares of each set of questions and its turns as they went."""
    folder = tmp_path_factory.getbasetemp()
    return scored_once((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "scored")
