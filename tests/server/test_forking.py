"""Processes of the server run no modules of the working folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from server import forking

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


def test_processes_started_at_once_have_what_each_sets_until_it_is_started() -> None:
    seen: list[bool] = []

    def process(number: int) -> Any:
        def start() -> None:
            time.sleep(0.002 * (1 + number % 3))
            seen.append("PYTHONSAFEPATH" in os.environ)

        return SimpleNamespace(start=start)

    before = dict(os.environ)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(forking.start, map(process, range(16))))
    assert seen == [True] * 16
    assert dict(os.environ) == before
