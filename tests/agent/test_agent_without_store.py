"""Where a conversation cannot be kept it is answered all the same, and what is wrong is said as it is."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from conversations import of, say

from agent import store
from agent.events import Remark
from agent.session import Session, find_session, list_sessions, open_session, transcript
from agent.unkept import unkept
from estimator.errors import PlanError
from server.mcp.clients import client
from tui.cli import main

QUESTION = "does llama-3.1-8b fit on 8 H100?"


@pytest.fixture(autouse=True)
def nothing_aside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setattr(store, "_aside", store._Aside())
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path))
    yield tmp_path
    # In the place of a folder of this process's own, nothing is left by a test.
    if store._aside.folder:
        assert store._aside.folder.is_dir()


def answered_with(*words: str) -> Session:
    """A session that says once that it is not kept, in those words, and answers twice."""
    session = open_session(model="offline")
    events = say(session, QUESTION)
    (remark,) = of(events, Remark)
    for word in ("not kept", *words):
        assert word in remark.text
    assert "fits" in events[-1].answer
    assert events[-1].notices == [remark.text]
    again = say(session, "and on 4?")
    assert of(again, Remark) == []
    assert again[-1].plan["cluster"]["count"] == 4
    return session


def test_a_home_that_is_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "file" / "inner"))
    answered_with("SHARDWISE_HOME: ", "cannot be used", "SHARDWISE_DATA=a folder")


def test_who_set_no_variable_is_told_of_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.delenv("SHARDWISE_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    answered_with("data folder: ", "cannot be used")


def test_a_home_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", "/proc/nobody-lives-here")
    answered_with("/proc/nobody-lives-here")


def test_no_home_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as a number which no account belongs to."""

    def nobody(number: int) -> None:
        raise KeyError(number)

    for name in ("SHARDWISE_HOME", "SHARDWISE_CONFIG", "SHARDWISE_DATA", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    answered_with("no home folder", "SHARDWISE_DATA=a folder that you may write to")
    with pytest.raises(PlanError, match="this user has no home folder"):
        client("cursor").file()


@pytest.mark.parametrize("arguments", [["trust", "~nobody-of-this-name"], ["import", "~nobody-of-this-name/x.yaml"]])
def test_the_home_of_someone_who_is_not_there(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "internal error" not in capsys.readouterr().err


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = open_session(model="offline")
    say(kept, QUESTION)
    real = os.statvfs

    def statvfs(path: os.PathLike[str]) -> object:
        return SimpleNamespace(f_bavail=3, f_frsize=4096, f_flag=0) if Path(path) == tmp_path else real(path)

    monkeypatch.setattr(os, "statvfs", statvfs)
    session = answered_with("the disk is full", "make room")
    assert {row.id for row in list_sessions()} == {kept.id, session.id}
    # What was said before goes on, and is not lost.
    assert say(Session(kept.id, "offline", tmp_path), "and on 2?")[-1].plan["cluster"]["count"] == 2
    monkeypatch.setattr(store, "_aside", store._Aside())
    assert [turn.said for turn in transcript(kept.id)] == [QUESTION]


def test_a_disk_that_is_only_for_reading_is_not_called_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = os.statvfs

    def statvfs(path: os.PathLike[str]) -> object:
        read_only = SimpleNamespace(f_bavail=0, f_frsize=4096, f_flag=os.ST_RDONLY)
        return read_only if Path(path) == tmp_path else real(path)

    monkeypatch.setattr(os, "statvfs", statvfs)
    answered_with("read-only", "choose a folder elsewhere")


def test_a_store_of_which_nothing_could_be_written_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sessions.db").touch()

    def full(connection: sqlite3.Connection) -> None:
        error = sqlite3.OperationalError("no")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error

    monkeypatch.setattr(store, "_write_ahead", full)
    with pytest.raises(PlanError, match="the disk is full; make room"):
        list_sessions()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SQLITE_FULL", "the disk is full"),
        ("SQLITE_READONLY", "it is read-only"),
        ("SQLITE_READONLY_DBMOVED", "it is read-only"),
        ("SQLITE_CANTOPEN", "read-only or full"),
        ("SQLITE_IOERR_WRITE", "full or fails"),
    ],
)
def test_what_the_database_says_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch, name: str, words: str) -> None:
    real = store._write_ahead

    def fails(connection: sqlite3.Connection) -> None:
        if store._aside.folder is not None:
            real(connection)
            return
        error = sqlite3.OperationalError("no")
        error.sqlite_errorname = name
        raise error

    monkeypatch.setattr(store, "_write_ahead", fails)
    answered_with(words)


def test_a_database_of_a_newer_version(tmp_path: Path) -> None:
    say(open_session(model="offline"), QUESTION)
    with sqlite3.connect(tmp_path / "sessions.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    before = (tmp_path / "sessions.db").read_bytes()
    answered_with("newer Shardwise", "update")
    assert (tmp_path / "sessions.db").read_bytes() == before


def test_what_a_newer_version_wrote_is_listed_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    say(open_session(model="offline"), QUESTION)
    with sqlite3.connect(tmp_path / "sessions.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    assert len(store.list_sessions()) == 1
    with sqlite3.connect(tmp_path / "sessions.db") as connection:
        connection.execute("DROP TABLE turns")
    with pytest.raises(PlanError, match="newer Shardwise"):
        store.list_sessions()


def test_a_damaged_database(tmp_path: Path) -> None:
    (tmp_path / "sessions.db").write_bytes(b"not a database, and longer than its header would be" * 100)
    answered_with("damaged", "move it away")
    assert (tmp_path / "sessions.db").read_bytes().startswith(b"not a database")


def test_what_was_kept_is_read_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = open_session(model="offline")
    say(kept, QUESTION)
    real = store._open

    def refused() -> sqlite3.Connection:
        raise PlanError("SHARDWISE_DATA", "is read-only")

    monkeypatch.setattr(store, "_open", refused)
    assert find_session(kept.id).turns == 1
    assert transcript(kept.id)[0].said == QUESTION
    monkeypatch.setattr(store, "_open", real)


def test_without_room_anywhere_it_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", "/proc/nobody-lives-here")
    monkeypatch.setattr(store, "_aside_folder", lambda: None)
    with pytest.raises(PlanError, match="cannot be used"):
        say(open_session(model="offline"), QUESTION)


def test_a_folder_that_was_deleted(tmp_path: Path) -> None:
    """Questions are answered, and files go nowhere."""
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        "import os, sys; os.rmdir(os.getcwd())\n"
        "from tui.cli import main\n"
        "print(main(['fit', 'llama-3.1-8b', '8xh100']), main(['ask', '--yes', '--offline', sys.argv[1]]))"
    )
    words = [sys.executable, "-P", "-c", code, f"{QUESTION} Write the DeepSpeed files."]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "PWD": str(gone)}
    done = subprocess.run(words, cwd=gone, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.rstrip().endswith("0 0")
    assert "It fits" in done.stdout
    assert "was deleted" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not gone.exists()


def test_what_a_killed_process_left_goes_with_the_next(tmp_path: Path) -> None:
    code = "import sys, time; from pathlib import Path; from agent.unkept import unkept; "
    code += "print(unkept(Path(sys.argv[1])), flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    left = Path(other.stdout.readline().strip())
    mine = unkept(tmp_path)
    assert left.is_dir()
    other.kill()
    other.communicate()
    (tmp_path / "shardwise-unkept-link").symlink_to(mine)
    new = unkept(tmp_path)
    assert not left.exists()
    assert mine.is_dir()
    assert new.is_dir()
