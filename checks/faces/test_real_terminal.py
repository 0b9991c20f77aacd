"""The app in a real terminal (tmux), typed at as a person would, with real sessions and the offline planner."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_PATIENCE_S = 60.0


class Terminal:
    """A tmux server of its own with one window."""

    def __init__(self, folder: Path, width: int, height: int) -> None:
        self.socket = str(folder / "tmux")
        home = folder / "home"
        home.mkdir()
        self.env = os.environ | {"SHARDWISE_HOME": str(home), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.env.pop("TMUX", None)
        self.env.pop("SHARDWISE_CONFIG", None)
        self.folder = folder
        size = ["-x", str(width), "-y", str(height)]
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(folder), "bash --norc")

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", self.socket, *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=True).stdout

    def keys(self, *names: str) -> None:
        self.tmux("send-keys", *names)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-J")

    def wait(self, pattern: str) -> str:
        """The screen once it shows `pattern`."""
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            shown = self.screen()
            if re.search(pattern, shown):
                return shown
            time.sleep(0.1)
        raise AssertionError(f"never saw {pattern!r} in:\n{self.screen()}")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    started = Terminal(tmp_path, 120, 40)
    yield started
    started.tmux("kill-server")


def test_a_whole_conversation(terminal: Terminal) -> None:
    command = f"{sys.executable} -m tui.cli chat --offline"
    root = Path(__file__).parents[2]
    terminal.type(f"PYTHONPATH={root} {command}")
    terminal.keys("Enter")
    terminal.wait("What do you want to train")
    terminal.type("Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences and 1B tokens?")
    terminal.keys("Enter")
    first = terminal.wait(r"FITS[^\n]*of 79")
    assert "Llama-3.1-8B" in first
    terminal.wait(r"cost +\$")

    # A follow-up, then the same change by hand.
    terminal.type("And on 16 GPUs?")
    terminal.keys("Enter")
    terminal.wait(r"cluster +16 ×")
    terminal.keys("F3")
    terminal.wait("find a field")
    terminal.keys("Down", "Down")
    terminal.wait(r"Accelerators in the run|Accelerator id")
    terminal.keys("Escape")
    terminal.wait(r"│ layout +DP")  # the form is closed; what follows Esc at once would be read as one key with it
    terminal.type("/plan count=32")
    terminal.keys("Enter")
    terminal.wait(r"cluster +32 ×")

    # Files: shown, then approved.
    terminal.type("Write the files.")
    terminal.keys("Enter")
    terminal.wait(r"Write \d files")
    terminal.keys("Down", "Down", "Enter")
    terminal.wait(r"\+ ")
    terminal.keys("Up", "Up", "Enter")
    end = time.monotonic() + _PATIENCE_S
    while not list(terminal.folder.glob("runs/*/job.sbatch")):
        assert time.monotonic() < end, terminal.screen()
        time.sleep(0.1)
    # The answer is read from its first line; typing goes on below it.
    terminal.wait(r"(?s)Copy(?!.*esc Stop)")

    # Out and in again: the conversation and its plan are there.
    terminal.type("/export conversation talk.md")
    terminal.keys("Enter")
    terminal.wait("Exported to")
    assert "16 GPUs" in (terminal.folder / "talk.md").read_text()
    terminal.keys("C-q")
    left = terminal.wait(r"To go on: shardwise chat --session \w+")
    session = re.search(r"--session (\w+)", left)
    assert session is not None
    terminal.type(f"PYTHONPATH={root} {command} --session {session[1]}")
    terminal.keys("Enter")
    terminal.wait(r"cluster +32 ×")
    terminal.keys("C-q")
