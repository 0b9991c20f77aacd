"""Cells are run one after another; a runner that is killed at any moment loses none and runs none twice."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from estimator.errors import PlanError
from measure.run.queue import QueuedCell, is_done, run_queue

# What a cell does: it says that it began, works, and says that it ended.
WORK = 'echo "$(basename "$PWD")" >>../begun; sleep 0.02; echo "$(basename "$PWD")" >>../ended; echo a step'


def cells_in(folder: Path, count: int, command: str = WORK) -> list[QueuedCell]:
    cells = [QueuedCell(f"{place:02d}", folder / f"{place:02d}", command) for place in range(count)]
    for cell in cells:
        cell.folder.mkdir(exist_ok=True)
    return cells


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is needed that can be killed")
def test_a_runner_that_is_killed_fifty_times_loses_and_doubles_nothing(tmp_path: Path) -> None:
    # More than are done while a busy machine kills fifty runners: a cell goes on without its own.
    cells = cells_in(tmp_path, 80)
    kills, draw = 0, random.Random(7)
    while not all(map(is_done, cells)):
        child = os.fork()
        if child == 0:
            try:
                run_queue(tmp_path, cells, look_s=0.005)
            finally:
                os._exit(0)
        if kills < 50:
            time.sleep(draw.uniform(0.0, 0.03))
            os.kill(child, signal.SIGKILL)
            kills += 1
        os.waitpid(child, 0)
    assert kills == 50
    wanted = [cell.id for cell in cells]
    # In order, each once: also those that were at work when their runner was killed.
    assert lines(tmp_path / "begun") == lines(tmp_path / "ended") == wanted
    assert all((cell.folder / "run.log").read_text() == "a step\n" for cell in cells)


def test_what_failed_stops_nothing_and_is_tried_again(tmp_path: Path) -> None:
    cells = [*cells_in(tmp_path, 1, "exit 3"), *cells_in(tmp_path, 2)[1:]]
    first = run_queue(tmp_path, cells, look_s=0.01)
    assert [(event.state, event.code) for event in first] == [("failed", 3), ("ran", 0)]
    assert (tmp_path / "00/failed").read_text() == "3\n"
    second = run_queue(tmp_path, cells_in(tmp_path, 2), look_s=0.01)
    assert [event.state for event in second] == ["ran", "done before"]
    assert not (tmp_path / "00/failed").exists()


def test_a_plan_that_changed_is_run_again_and_again_all(tmp_path: Path) -> None:
    cells = cells_in(tmp_path, 2)
    run_queue(tmp_path, cells, look_s=0.01)
    later = time.time() + 60
    (cells[0].folder / "plan.json").write_text("{}")
    os.utime(cells[0].folder / "plan.json", (later, later))
    assert not is_done(cells[0])
    assert is_done(cells[1])
    for at in (1, 2):
        (cells[1].folder / "run.log").write_text(f"run {at}")
        assert [event.state for event in run_queue(tmp_path, cells[1:], again=True, look_s=0.01)] == ["ran"]
        assert (cells[1].folder / f"before-{at}/run.log").read_text() == f"run {at}"


def test_two_runners_are_not_at_work_in_one_folder(tmp_path: Path) -> None:
    cells = cells_in(tmp_path, 1)

    def second(_: object) -> None:
        with pytest.raises(PlanError, match="going on"):
            run_queue(tmp_path, cells)

    run_queue(tmp_path, cells, second, look_s=0.01)
