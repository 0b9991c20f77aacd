"""`shardwise sessions` and `shardwise config`, in process."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from agent import store
from agent.session import ask
from tui.cli import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    for name in ("SHARDWISE_CONFIG", "SHARDWISE_MODEL", "SHARDWISE_THINK", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def said(capsys: Captured, *words: str, code: int = 0) -> str:
    assert main(words) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_a_session_is_listed_renamed_shown_forked_exported_and_deleted(capsys: Captured, tmp_path: Path) -> None:
    assert said(capsys, "sessions") == ""
    session = ask("hi there", approve=False, model="offline")["session"]
    assert session in said(capsys, "sessions")
    said(capsys, "sessions", "rename", session, "My", "plan")
    rows = json.loads(said(capsys, "sessions", "list", "--json"))
    assert [(row["id"], row["title"], row["turns"]) for row in rows] == [(session, "My plan", 1)]
    assert json.loads(said(capsys, "sessions", "--json")) == rows
    assert "> hi there" in said(capsys, "sessions", "show")
    copy = said(capsys, "sessions", "fork", session, "Other").strip()
    assert "Other" in said(capsys, "sessions", "list", "other")
    assert said(capsys, "sessions", "export", session, "--to", "out.json").startswith("Written")
    assert json.loads((tmp_path / "out.json").read_text())["title"] == "My plan"
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o600
    assert "is there already" in said(capsys, "sessions", "export", session, "--to", "out.json", code=2)
    assert json.loads(said(capsys, "sessions", "export", session, "--format", "json"))["id"] == session
    assert "--yes" in said(capsys, "sessions", "delete", copy, code=2)
    said(capsys, "sessions", "delete", "--yes", copy)
    assert copy not in said(capsys, "sessions")
    assert "no session" in said(capsys, "sessions", "show", copy, code=2)


def test_only_a_session_that_is_kept_is_said_to_go_on(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["ask", "--model", "offline", "hi there"]) == 0
    assert "To go on: shardwise ask --session" in capsys.readouterr().err
    monkeypatch.setattr(store, "_aside", store._Aside())
    monkeypatch.setenv("SHARDWISE_HOME", "/proc/nobody-lives-here")
    assert main(["ask", "--model", "offline", "hi there"]) == 0
    told = capsys.readouterr().err
    assert "This conversation is not kept" in told
    assert "To go on" not in told


def test_settings_are_shown_set_and_unset(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "very-secret")
    path = Path(said(capsys, "config", "path").strip())
    assert "file" in said(capsys, "config", "set", "gemini_model", "gemini-x")
    assert path.read_text().endswith('gemini_model = "gemini-x"\n')
    shown, found = said(capsys, "config"), json.loads(said(capsys, "config", "--json"))
    assert "gemini-x" in shown
    assert found["gemini_key_from"] == "GEMINI_API_KEY"
    assert "very-secret" not in shown + json.dumps(found)
    values = {row["key"]: (row["value"], row["source"]) for row in found["settings"]}
    assert values["gemini_model"] == ("gemini-x", "file")
    monkeypatch.setenv("SHARDWISE_MODEL", "gemini-y")
    assert "environment" in said(capsys, "config", "unset", "gemini_model")
    assert "there is no setting" in said(capsys, "config", "set", "x\x1b[2J", "1", code=2)


def test_settings_decide_who_thinks(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    said(capsys, "config", "set", "model", "offline")
    assert json.loads(said(capsys, "ask", "--json", "hi"))["answer"]
    said(capsys, "config", "set", "model", "gemini")
    monkeypatch.delenv("GEMINI_API_KEY")
    assert "GEMINI_API_KEY" in said(capsys, "ask", "--json", "hi", code=2)
