"""Whatever the command line reads is bounded and stands on disk: no device, no pipe that waits, no endless file."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from tui.cli import main


@pytest.fixture
def odd(tmp_path: Path) -> dict[str, Path]:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "large.yaml").write_text("a: 1\n" * 300_000)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00" * 100)
    return {"pipe": tmp_path / "pipe.yaml", "device": Path("/dev/zero"), "large": tmp_path / "large.yaml",
            "binary": tmp_path / "binary.yaml", "folder": tmp_path}  # fmt: skip


@pytest.mark.parametrize("kind", ["pipe", "device", "large", "binary", "folder"])
@pytest.mark.parametrize(
    "words",
    [["fit", "--plan", "{}"], ["serve", "--token-file", "{}"], ["check", "{}"], ["hardware", "add", "{}"],
     ["call", "--jsonl", "{}"]],
    ids=["plan", "token", "check", "add", "jsonl"],
)  # fmt: skip
def test_odd_files_are_refused(
    words: list[str], kind: str, odd: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    if words[0] == "call" and kind in ("large", "binary"):
        pytest.skip("lines are bounded, not their number")
    assert main([word.format(odd[kind]) for word in words]) == 2
    assert len(capsys.readouterr().err) < 1000


class Endless(io.TextIOBase):
    """A stream that never ends, and counts what was taken of it."""

    taken = 0

    def read(self, size: int | None = -1) -> str:
        assert size is not None
        assert size > 0, "read without a bound"
        self.taken += size
        return "a" * size

    readline = read


@pytest.mark.parametrize(
    "words",
    [["ask", "-"], ["call", "check_fit", "-"], ["fit", "--plan", "-"], ["check", "-"], ["hardware", "add", "-"]],
)
def test_streams_without_end_are_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = Endless()
    monkeypatch.setattr("sys.stdin", stream)
    assert main(words) == 2
    assert stream.taken < 3_000_000
    assert len(capsys.readouterr().err) < 1000
