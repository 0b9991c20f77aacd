"""Settings: file and environment, what wins, what is refused; keys are never written or shown."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import settings
from agent.gemini.model import Gemini
from agent.session import open_session
from estimator.errors import PlanError


def sources() -> dict[str, tuple[object, str]]:
    return {row.setting.key: (row.value, row.source) for row in settings.in_force()}


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sources()["gemini_model"] == ("gemini-3.8-flash", "default")
    settings.set_value("gemini_model", "gemini-other")
    assert sources()["gemini_model"] == ("gemini-other", "file")
    monkeypatch.setenv("SHARDWISE_MODEL", "gemini-third")
    assert sources()["gemini_model"] == ("gemini-third", "environment: SHARDWISE_MODEL")
    assert Gemini().name == "gemini-third"
    settings.unset("gemini_model")
    monkeypatch.delenv("SHARDWISE_MODEL")
    assert sources()["gemini_model"][1] == "default"


def test_the_file_is_private_and_keeps_its_other_lines() -> None:
    path = settings.set_value("theme", "nord")
    path.write_text('# mine\ntheme = "nord"  # dark\n\ngemini_attempts = 2\n')
    settings.set_value("theme", 'a "b"')
    assert path.read_text() == '# mine\ntheme = "a \\"b\\""\n\ngemini_attempts = 2\n'
    assert settings.value("gemini_attempts") == 2
    settings.set_value("output", "runs")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert settings.value("theme") == 'a "b"'


def test_a_linked_file_stays_linked(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    settings.settings_file().parent.mkdir(parents=True)
    settings.settings_file().symlink_to(real)
    settings.set_value("theme", "nord")
    assert settings.settings_file().is_symlink()
    assert "nord" in real.read_text()


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("modle", "offline", "there is no setting"),
        ("model", "gpt", "valid: auto offline gemini"),
        ("gemini_api_key", "AIza", "read from the environment"),
        ("gemini_attempts", "0", "from 1 to 10"),
        ("gemini_attempts", "two", "whole number"),
        ("gemini_timeout_s", "nan", "whole number"),
        ("gemini_input_tokens", "1e999", "whole number"),
        ("gemini_model", "a b", "not the name of a model"),
        ("gemini_base_url", "ftp://x", "not an address"),
        ("theme", "a\x1b[2Jb", "control characters"),
    ],
)
def test_what_cannot_be_a_setting_is_refused_and_nothing_is_written(key: str, text: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        settings.set_value(key, text)
    assert not settings.settings_file().exists()


def test_a_file_that_cannot_be_used_names_itself() -> None:
    path = settings.set_value("theme", "nord")
    path.write_text("theme = ")
    with pytest.raises(PlanError, match="readable TOML"):
        settings.in_force()
    path.write_text('gemini_api_key = "AIzaSecret"\n')
    with pytest.raises(PlanError) as refused:
        open_session(model="auto")
    assert "AIzaSecret" not in str(refused.value)


def test_settings_choose_who_thinks_and_where_files_go(tmp_path: Path) -> None:
    settings.set_value("model", "offline")
    settings.set_value("output", str(tmp_path / "out"))
    session = open_session()
    assert (session.model, session.root) == ("offline", (tmp_path / "out").resolve())
    assert open_session(output=tmp_path / "other").root == (tmp_path / "other").resolve()


def test_only_the_name_of_the_variable_with_the_key_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.key_variable() is None
    monkeypatch.setenv("GEMINI_API_KEY", "secret-value")
    assert settings.key_variable() == "GEMINI_API_KEY"
    assert "secret-value" not in repr(settings.in_force())


@given(st.text(max_size=40))
def test_text_comes_back_as_it_was_set_or_is_refused(text: str) -> None:
    try:
        settings.set_value("theme", text)
    except PlanError:
        return
    assert settings.value("theme") == text.strip()


def test_every_setting_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    for each in settings.SETTINGS:
        assert f"| `{each.key}` | `{each.variable}` | {each.default}".rstrip() in text
