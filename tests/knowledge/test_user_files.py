"""Names of files, reading and writing of what the user keeps: hostile names and texts, and writers at the same time."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from knowledge.own.files import (
    data_folder,
    file_stem,
    open_regular,
    parsed,
    project_folder,
    read_stream,
    read_text,
    row_folders,
    scenario_folder,
    stamp,
    user_folder,
    write_file,
)

NAMED = {
    "../../etc/passwd": "etc-passwd",
    "My 8B / test": "my-8b-test",
    "C:\\plans\\a": "c-plans-a",
    "con": "plan-con",
    "NUL.yaml": "plan-nul.yaml",
    "lpt1": "plan-lpt1",
    "日本語 70b": "日本語-70b",
    "a..b": "a.b",
    "-rf": "rf",
    ".hidden": "hidden",
    "ﬁne": "fine",
    "a\nb\tc": "a-b-c",
}


@pytest.mark.parametrize(("name", "stem"), NAMED.items())
def test_a_name_becomes_a_plain_file_name(name: str, stem: str) -> None:
    assert file_stem(name, "name") == stem


@pytest.mark.parametrize("name", ["", "   ", "..", "/", "a\0b", "x" * 1001, "🙂", "--", 7])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(PlanError) as caught:
        file_stem(name, "name")
    assert caught.value.field == "name"


@given(st.text(max_size=300))
def test_every_name_is_refused_or_one_safe_part_of_a_path(name: str) -> None:
    try:
        stem = file_stem(name, "name")
    except PlanError:
        return
    assert Path(stem).name == stem
    assert not stem.startswith((".", "-"))
    assert not set(stem) & set('/\\:*?"<>|\0')
    assert len(f"{stem}.yaml".encode()) <= 100
    assert stem.isprintable()
    assert file_stem(stem, "name") == stem or len(stem) > 60


def test_long_names_that_differ_late_stay_apart() -> None:
    assert file_stem("a" * 200 + "b", "name") != file_stem("a" * 200 + "c", "name")


BAD_TEXT = {
    "a: [1": "not readable YAML",
    "a: &x [1, 1]\nb: [*x, *x]": "anchors",
    "[" * 3000: "nested deeper",
    '{"a":' * 3000: "nested deeper",
    "1: 2": "field name 1",
    "a: !!python/object/apply:os.system ['true']": "not readable YAML",
    "a: " + "1" * 1_000_001: "larger than",
    "a: \x00": "not readable YAML",
}


@pytest.mark.parametrize(("text", "says"), BAD_TEXT.items(), ids=range(len(BAD_TEXT)))
def test_bad_text_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(PlanError, match=says) as caught:
        parsed(text, "text")
    assert caught.value.field == "text"


def test_json_and_yaml_are_read_alike() -> None:
    assert parsed('{"a": {"b": [1, 2.5, null]}}', "text") == parsed("a: {b: [1, 2.5, null]}", "text")
    assert parsed('{"a": "\\ud83d\\ude42"}', "text") == {"a": "🙂"}


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00")
    for path, says in ((tmp_path / "a.yaml", "UTF-8"), (tmp_path, "cannot be read"), (tmp_path / "no", "No such file")):
        with pytest.raises(PlanError, match=says):
            read_text(path)


def test_of_many_writers_at_once_one_wins_and_the_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.yaml"
    texts = [f"{number}\n" * 20_000 for number in range(16)]

    def keep(text: str) -> bool:
        try:
            write_file(path, text, overwrite=False, field="name")
        except PlanError as error:
            return "say overwrite" not in str(error)
        return True

    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(keep, texts))
    assert sum(kept) == 1
    assert path.read_text() == texts[kept.index(True)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_file(path, text, overwrite=True, field="name"), texts))
    assert path.read_text() in texts
    assert [each.name for each in path.parent.iterdir()] == ["a.yaml"]


def test_where_the_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SHARDWISE_DATA", "SHARDWISE_HOME", "SHARDWISE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert scenario_folder().is_relative_to(tmp_path)
    assert user_folder().is_relative_to(tmp_path)
    assert row_folders("models") == (user_folder() / "models", tmp_path / ".shardwise" / "models")
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    assert data_folder() == user_folder() == tmp_path / "home"
    assert data_folder().stat().st_mode & 0o077 == 0
    assert project_folder() == tmp_path / ".shardwise"
    monkeypatch.setenv("SHARDWISE_DATA", str(tmp_path / "mine"))
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path / "rows"))
    assert scenario_folder() == tmp_path / "mine" / "scenarios"
    assert row_folders("prices") == (tmp_path / "rows" / "prices",)


def test_a_stamp_changes_with_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path))
    assert stamp("hardware") == ()
    (tmp_path / "hardware").mkdir()
    path = tmp_path / "hardware" / "a.yaml"
    seen = [stamp("hardware")]
    for text in ("id: a", "id: ab"):
        path.write_text(text)
        seen.append(stamp("hardware"))
    os.utime(path, ns=(1, 1))
    seen.append(stamp("hardware"))
    path.unlink()
    assert len(set(seen)) == 4
    assert stamp("hardware") == seen[0]


def test_only_files_that_end_are_read(tmp_path: Path) -> None:
    """A row of a folder that somebody else made may name a device or a pipe."""
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for path in (Path("/dev/zero"), pipe, tmp_path):
        with pytest.raises(PlanError, match="not a regular file"):
            read_text(path)
        with pytest.raises(PlanError) as caught:
            read_text(path, "model")
        assert caught.value.field == "model"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that opens and cannot be read is Linux's")
def test_a_file_that_breaks_while_it_is_read_is_refused_by_its_name() -> None:
    with pytest.raises(PlanError, match="plan: /proc/self/mem cannot be read"):
        read_text(Path("/proc/self/mem"), "plan")
    with pytest.raises(PlanError, match="cannot be read"), open_regular(Path("/proc/self/mem"), "plan") as file:
        file.readline()


def test_what_comes_through_a_pipe_ends() -> None:
    with pytest.raises(PlanError, match="longer than"), open("/dev/zero", encoding="utf-8") as endless:
        read_stream(endless, "--plan")
