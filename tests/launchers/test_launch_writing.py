"""Writing a set: all or nothing, inside the folder, nothing lost and nothing left over."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launch_plans import complete
from samples import part

from estimator.errors import PlanError
from launchers.pieces import File, Rendered
from launchers.placing import Placed, place, settle
from launchers.render import render
from launchers.writing import write


def rendered(*paths: str, text: str = "new\n") -> Rendered:
    return Rendered(tuple(File(path, "test", text) for path in paths), "true", ())


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_real_set_is_written_and_written_again(tmp_path: Path):
    files = render(complete(), ["slurm"])
    folder = tmp_path / "runs" / "one"
    for _ in range(2):
        written = write(files, folder)
        assert [(item.target, item.path, item.bytes) for item in written] == [
            (file.target, str(folder / file.path), len(file.text.encode())) for file in files.files
        ]
    assert tree(folder) == {file.path: file.text for file in files.files}


def test_other_content_is_kept_unless_told(tmp_path: Path):
    (tmp_path / "a").write_text("mine")
    (tmp_path / "b").write_text("mine\ntoo")
    with pytest.raises(PlanError, match=r"in a \(-1 \+1 lines\), b \(-2 \+1 lines\); say overwrite") as raised:
        write(rendered("a", "b", "c"), tmp_path)
    assert raised.value.field == "folder"
    assert tree(tmp_path) == {"a": "mine", "b": "mine\ntoo"}
    write(rendered("a", "b", "c"), tmp_path, overwrite=True)
    assert tree(tmp_path) == {"a": "new\n", "b": "new\n", "c": "new\n"}


@pytest.mark.parametrize(
    ("old", "said"), [(b"\xff", "not text"), (b"new\r\n", "other line ends"), (b"x\n" * 3000, "3000")]
)
def test_what_would_be_replaced_is_said(old: bytes, said: str, tmp_path: Path):
    (tmp_path / "a").write_bytes(old)
    with pytest.raises(PlanError, match=said):
        write(rendered("a"), tmp_path)
    assert (tmp_path / "a").read_bytes() == old


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "a/..", "", ".", "a\\..\\x", "c:/x", "a\0b", "//x"])
def test_paths_that_leave_the_folder(path: str, tmp_path: Path):
    inner = tmp_path / "inner"
    inner.mkdir()
    with pytest.raises(PlanError, match=r"^files: "):
        write(rendered("fine", path), inner, overwrite=True)
    assert tree(tmp_path) == {}


def test_symbolic_links_are_not_followed(tmp_path: Path):
    outside, inner = tmp_path / "outside", tmp_path / "inner"
    outside.mkdir()
    inner.mkdir()
    (outside / "secret").write_text("keep")
    (inner / "folder").symlink_to(outside)
    (inner / "file").symlink_to(outside / "secret")
    (inner / "dangling").symlink_to(outside / "nothing")
    for path in ("folder/secret", "file", "dangling"):
        with pytest.raises(PlanError, match="symbolic link"):
            write(rendered("fine", path), inner, overwrite=True)
    assert tree(outside) == {"secret": "keep"}
    assert not (inner / "fine").exists()


def test_places_that_are_taken(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "plain").write_text("x")
    for path, problem in (("sub", "not a file"), ("pipe", "not a file"), ("plain/x", "cannot be written")):
        with pytest.raises(PlanError, match=problem):
            write(rendered("fine", path), tmp_path)
    with pytest.raises(PlanError, match="twice"):
        write(rendered("a", "./a"), tmp_path)
    with pytest.raises(PlanError, match="cannot be written"):
        write(rendered("a"), tmp_path / "plain")
    assert tree(tmp_path) == {"plain": "x"}


def new(*paths: str) -> list[Placed]:
    return [Placed(path, b"new") for path in paths]


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_failure_midway_puts_everything_back(failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "b").write_text("old")
    calls = 0
    real = os.replace

    def replace(source: str, destination: str, **beside: int):
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(28, "No space left on device")
        real(source, destination, **beside)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="No space left"):
        place(str(tmp_path), ["set"], new("a", "b", "deep/er/c"))
    assert tree(tmp_path) == {"set/b": "old"}
    assert sorted(path.name for path in folder.iterdir()) == ["b"]


def test_failure_while_staging_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fsync(_descriptor: int):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(KeyboardInterrupt):
        place(str(tmp_path), ["new"], new("x/y"))
    assert list(tmp_path.iterdir()) == []


def test_no_way_leads_elsewhere_even_where_it_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Between the look and the writing another program puts a link in the place of a folder."""
    outside, inner = tmp_path / "outside", tmp_path / "inner"
    for folder in (outside, inner, inner / "sub"):
        folder.mkdir()
    real = os.fsync

    def fsync(descriptor: int):
        monkeypatch.setattr(os, "fsync", real)
        (inner / "sub").rename(inner / "moved")
        (inner / "sub").symlink_to(outside)

    monkeypatch.setattr(os, "fsync", fsync)
    with contextlib.suppress(OSError):
        place(str(inner), [], new("sub/a", "sub/b"))
    assert list(outside.iterdir()) == []
    with pytest.raises(OSError, match=r"."):
        place(str(inner), [], new("sub/a"))
    assert list(outside.iterdir()) == []


def is_placing() -> bool:
    """Whether a process that puts files into a folder is still there."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"launchers/placing.py" in line.read_bytes():
                return True
    return False


KILLED = """
import sys
from pathlib import Path
from launchers.pieces import File, Rendered
from launchers.placing import Placed, place
from launchers.writing import write
print("ready", flush=True)
sys.stdin.readline()
files = tuple(File(f"part{n % 3}/file{n}", "test", sys.argv[2] * 20_000) for n in range(20))
write(Rendered(files, "true", ()), Path(sys.argv[1]), overwrite=True)
"""
KILLS = part(16, 200)


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "there"])
def test_a_killed_process_leaves_a_whole_set_or_none(is_there: bool, tmp_path: Path):
    """Killed (SIGKILL, with its whole group) at moments from before the first byte to after the last, also over an
    older set. What is promised: what was handed over comes to its end by itself, within moments of the kill."""
    root = Path(__file__).parents[2]
    seen: set[str] = set()
    longest_s = 0.25
    for turn in range(KILLS // 2):
        folder = tmp_path / (f"set{turn}" if not is_there else "set")
        words = [sys.executable, "-c", KILLED, str(folder), "old" if is_there and not turn else f"v{turn}"]
        with subprocess.Popen(words, cwd=root, stdin=-1, stdout=-1, start_new_session=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            process.stdin.write(b"\n")
            process.stdin.flush()
            # The last is left to end, however slow the machine is.
            if turn < KILLS // 2 - 1 and not (is_there and not turn):
                time.sleep(longest_s * turn / (KILLS // 2))
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # What was handed over comes to its end.
        until = time.monotonic() + 20
        while is_placing():
            assert time.monotonic() < until
            time.sleep(0.01)
        now = {path: text for path, text in tree(tmp_path).items() if path.startswith(f"{folder.name}/")}
        assert not any(Path(path).name.startswith(".") for path in now)
        assert len(now) in (0, 20)
        assert len(set(now.values())) <= 1
        assert folder.exists() == bool(now)
        assert all(path.name.startswith("set") for path in tmp_path.iterdir())
        seen.add("whole" if now else "none")
    assert "whole" in seen


KILLED_AT = """
import os, signal, sys
from launchers.placing import Placed, place
left = int(sys.argv[1])
def counted(call):
    def counting(*words, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*words, **named)
    return counting
for name in ("link", "mkdir", "rename", "replace", "rmdir", "unlink", "write"):
    setattr(os, name, counted(getattr(os, name)))
base, parts, journals, paths = sys.argv[2], [part for part in sys.argv[3].split("/") if part], sys.argv[4], sys.argv[5:]
place(base, parts, [Placed(path, b"new") for path in paths], journals)
"""
PATHS = ("a", "b", "deep/er/c", "deep/d")


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "there"])
def test_a_writer_killed_at_any_step_is_settled_by_the_next(is_there: bool, tmp_path: Path):
    """The process that moves the files itself dies before each of its calls that change something: the whole old set
    or the whole new one is there with nothing beside it once the next call of `write`, or start, has settled it."""
    root, journals = Path(__file__).parents[2], tmp_path / "journals"
    old = {"a": "old", "deep/d": "old", "results/own": "mine"} if is_there else {}
    whole = dict.fromkeys(PATHS, "new")
    seen: list[bool] = []
    for step in range(100):
        folder = tmp_path / f"set{step}" / "inner"
        if is_there:
            for path, text in old.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
        base, parts = (folder, "") if is_there else (tmp_path, f"set{step}/inner")
        words = [sys.executable, "-c", KILLED_AT, str(step), str(base), parts, str(journals), *PATHS]
        code = subprocess.run(words, cwd=root, check=False).returncode
        assert code in (0, -signal.SIGKILL)
        settle(str(journals))
        now = tree(folder)
        assert now in (old, old | whole)
        assert folder.exists() == bool(now)
        assert all(any(path.iterdir()) for path in folder.rglob("*") if path.is_dir())
        assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]
        assert not any(journals.glob("*"))
        seen.append(now != old)
        if code == 0:
            break
    assert seen[-1]
    assert seen == sorted(seen)
    assert seen.count(False) > 5
    assert seen.count(True) > 5


def test_a_start_settles_what_was_killed(tmp_path: Path):
    """Some step of it left a mix of old and new; any command that is run next, anywhere, finds the whole set."""
    root, folder, home = Path(__file__).parents[2], tmp_path / "set", tmp_path / "home"
    settings = os.environ | {"SHARDWISE_HOME": str(home), "SHARDWISE_CONFIG": ""}
    folder.mkdir()
    for step in range(100):
        for path in PATHS[:2]:
            (folder / path).write_text("old")
        words = [sys.executable, "-c", KILLED_AT, str(step), str(folder), "", str(home / "sets"), *PATHS[:2]]
        subprocess.run(words, cwd=root, check=False)
        if tree(folder)["a"] != tree(folder)["b"]:
            break
        settle(str(home / "sets"))
    else:
        pytest.fail("no step leaves a mix: is this needed?")
    start = "import sys; from tui.cli import main; sys.exit(main(['models', 'gpt2']))"
    subprocess.run([sys.executable, "-c", start], cwd=root, env=settings, check=True, stdout=subprocess.DEVNULL)
    assert tree(folder) == {"a": "new", "b": "new"}


def test_a_set_that_is_being_written_is_not_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another start meanwhile leaves alone what a living process is at."""
    real = os.replace
    (tmp_path / "a").write_text("old")

    def replace(source: str, destination: str, **beside: int):
        settle(str(tmp_path / "journals"))
        real(source, destination, **beside)

    monkeypatch.setattr(os, "replace", replace)
    place(str(tmp_path), [], new("a", "b"), str(tmp_path / "journals"))
    assert tree(tmp_path) == {"a": "new", "b": "new"}


def test_modes_follow_the_umask(tmp_path: Path):
    files = Rendered((File("run.sh", "test", "#!/bin/sh\n", executable=True), File("plain", "test", "x")), "true", ())
    previous = os.umask(0o027)
    try:
        write(files, tmp_path)
    finally:
        os.umask(previous)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"run.sh": 0o750, "plain": 0o640}
