"""Processes of the server run no modules of the working folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

START = """import os
import sys
from server import forking

if __name__ == "__main__":
    context = forking.context("server.warmed")
    ours = context.Process(target=forking.begin)
    {start}
    ours.join()
    assert "PYTHONSAFEPATH" not in os.environ
    sys.exit(ours.exitcode)
"""


@pytest.mark.parametrize(("start", "runs"), [("forking.start(ours)", False), ("ours.start()", True)])
def test_modules_of_the_working_folder_are_run_by_a_plain_start_alone(tmp_path: Path, start: str, runs: bool) -> None:
    here, program = tmp_path / "here", tmp_path / "program.py"
    here.mkdir()
    (here / "estimator.py").write_text("open('ran', 'w').close()\n")
    program.write_text(START.format(start=start))
    done = subprocess.run([sys.executable, str(program)], cwd=here, capture_output=True, text=True, check=False)
    assert (here / "ran").exists() == runs
    assert runs or done.returncode == 0, done.stderr
