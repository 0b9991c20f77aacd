"""run_matrix: the cells of a written matrix, run here or handed to their scheduler, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from estimator.errors import PlanError, nearest
from launchers.matrix import MANIFEST, runnable
from measure.run.matrix import Measured, read
from measure.run.queue import CellEvent, QueuedCell, run_queue
from planner.files.below import inside_root

# Of a cell the figure that a board shows: of training, and of a served model.
_SHOWN = ("step_s", "tpot_s")


@dataclass(frozen=True)
class BoardRow:
    """A cell as a board shows it; times of a step, or of a token, in seconds, None where they are not known."""

    id: str
    state: str
    seconds: float = 0.0
    code: int = 0
    predicted_s: float | None = None
    measured_s: float | None = None


Board = Callable[[Sequence[BoardRow]], None]


def run_matrix(
    folder: str,
    patterns: Sequence[str] = (),
    board: Board = lambda rows: None,
    cooldown_s: float = 20.0,
    again: bool = False,
) -> list[BoardRow]:
    """Runs the cells that are not done, in the manifest's order; `patterns` choose some by their folders. `board` is
    told of every change. Raises PlanError where nothing can be run."""
    place = inside_root(folder)
    cells = [cell for cell in read(place / MANIFEST) if not patterns or _matches(cell.id, patterns)]
    if not cells:
        known = [cell.id for cell in read(place / MANIFEST)]
        raise PlanError("cells", f"no cell is called {' '.join(patterns)}", nearest(patterns[0], known, 3))
    rows = {cell.id: _first(cell) for cell in cells}
    queue = [queued for cell in cells if (queued := _queued(place, cell))]

    def told(event: CellEvent) -> None:
        row = rows[event.id]
        ended = event.state != "running"
        rows[event.id] = BoardRow(
            id=row.id,
            state=event.state,
            seconds=event.seconds,
            code=event.code,
            predicted_s=row.predicted_s,
            measured_s=_measured(place, event.id) if ended else row.measured_s,
        )
        board(list(rows.values()))

    run_queue(place, queue, told, cooldown_s, again)
    return list(rows.values())


def _matches(id: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(id, pattern) for pattern in patterns)


def _first(cell: Measured) -> BoardRow:
    state = f"left out: {cell.left_out}" if cell.command is None else "waiting"
    return BoardRow(cell.id, state, predicted_s=next(filter(None, map(cell.predicted, _SHOWN)), None))


def _queued(place: Path, cell: Measured) -> QueuedCell | None:
    if cell.command is None:
        return None
    folder = inside_root(str(place / cell.id))
    if not folder.is_relative_to(place) or not folder.is_dir():
        raise PlanError("folder", f"the matrix has no folder {cell.id}")
    return QueuedCell(cell.id, folder, runnable(cell.command))


def _measured(place: Path, id: str) -> float | None:
    """Seconds of a step, or of a token, as they are on disk now."""
    cell = next((cell for cell in read(place / MANIFEST) if cell.id == id), None)
    return next(filter(None, map(cell.values.get, _SHOWN)), None) if cell else None
