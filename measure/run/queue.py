"""Cells of a matrix, run one after another, in a way that whatever ends the runner loses and doubles nothing.

All state stands on disk beside each cell: `done`, or `failed` with an exit code, written by the shell that runs the
cell, as run_all.sh writes the first. That shell holds a lock on its folder for as long as it lives. A runner that was
killed leaves its cell running; the next one waits for that cell rather than start it again.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from estimator.errors import PlanError

State = Literal["waiting", "running", "ran", "failed", "done before"]
DONE, FAILED, LOG, LOCK = "done", "failed", "run.log", ".running"
_LOOK_S = 0.2
# The lock is open in the shell as this descriptor; what it starts in the background does not keep it.
# What a run before it left is kept, for another run of the same cell is another measurement.
_SHELL = """
rm -f done failed
if [ -e run.log ]; then
  at=1
  while [ -e "before-$at" ]; do at=$((at + 1)); done
  mkdir "before-$at"
  for left in run.log result.json; do [ ! -e "$left" ] || mv "$left" "before-$at/"; done
fi
( eval "$CELL_COMMAND" ) </dev/null >run.log 2>&1 {lock}>&-
code=$?
if ((code)); then echo "$code" >failed.part && mv failed.part failed; else : >done; fi
"""


@dataclass(frozen=True)
class QueuedCell:
    id: str
    folder: Path
    command: str


@dataclass(frozen=True)
class CellEvent:
    """What became of a cell, `seconds` after it was started; `left` are those after it."""

    id: str
    state: State
    seconds: float
    left: int
    code: int = 0


Watch = Callable[[CellEvent], None]


def run_queue(
    root: Path,
    cells: Sequence[QueuedCell],
    watch: Watch = lambda event: None,
    cooldown_s: float = 0.0,
    again: bool = False,
    look_s: float = _LOOK_S,
) -> list[CellEvent]:
    """Runs the cells that are not done, and says what became of each. A cell that has failed is tried again by the
    next call, not by this one. Raises PlanError where another runner is at work in `root`."""
    ended: list[CellEvent] = []
    with _locked(root / LOCK) as lock:
        if lock is None:
            raise PlanError("folder", f"another run of {root} is going on")
        started_one = False
        for place, cell in enumerate(cells):
            left = len(cells) - place - 1
            orphan = _wait_for_orphan(cell, look_s, left, watch)
            if is_done(cell) and not (again and not orphan):
                event = CellEvent(cell.id, "ran" if orphan else "done before", 0.0, left)
            else:
                if started_one and cooldown_s:
                    time.sleep(cooldown_s)
                started_one = True
                event = _run(cell, look_s, left, watch)
            watch(event)
            ended.append(event)
    return ended


def is_done(cell: QueuedCell) -> bool:
    """Whether it ended well, and its plan has not changed since."""
    done, plan = cell.folder / DONE, cell.folder / "plan.json"
    with suppress(FileNotFoundError):
        ended = done.stat().st_mtime_ns
        return not plan.exists() or ended >= plan.stat().st_mtime_ns
    return False


@contextmanager
def _locked(path: Path) -> Iterator[int | None]:
    """A lock that goes with its last holder, however that ends; None where another has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield handle
    finally:
        os.close(handle)


def _wait_for_orphan(cell: QueuedCell, look_s: float, left: int, watch: Watch) -> bool:
    """Whether a runner that is gone had left the cell running; then it has ended now."""
    started = time.monotonic()
    while True:
        with _locked(cell.folder / LOCK) as lock:
            if lock is not None:
                return time.monotonic() - started > look_s
        watch(CellEvent(cell.id, "running", time.monotonic() - started, left))
        time.sleep(look_s)


def _run(cell: QueuedCell, look_s: float, left: int, watch: Watch) -> CellEvent:
    started = time.monotonic()
    with _locked(cell.folder / LOCK) as lock:
        if lock is None:
            raise PlanError("folder", f"{cell.id} is being run by another program")
        process = subprocess.Popen(
            ["bash", "-c", _SHELL.format(lock=lock)],
            cwd=cell.folder,
            env={**os.environ, "CELL_COMMAND": cell.command},
            stdin=subprocess.DEVNULL,
            pass_fds=(lock,),
            start_new_session=True,
        )
    while process.poll() is None:
        watch(CellEvent(cell.id, "running", time.monotonic() - started, left))
        with suppress(subprocess.TimeoutExpired):
            process.wait(look_s)
    seconds = time.monotonic() - started
    if is_done(cell):
        return CellEvent(cell.id, "ran", seconds, left)
    with suppress(OSError, ValueError):
        return CellEvent(cell.id, "failed", seconds, left, int((cell.folder / FAILED).read_text()))
    return CellEvent(cell.id, "failed", seconds, left, process.returncode or 1)
