"""Runs on one cluster, one after another and beside each other: when each begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class QueuedRun:
    """A run that needs so many nodes for so many hours; it begins not before `ready_h`, nor before the runs at the
    places in `after` have ended."""

    nodes: int
    hours: float
    priority: float = 0.0
    ready_h: float = 0.0
    after: tuple[int, ...] = ()


def starts(runs: Sequence[QueuedRun], nodes: int) -> list[float | None]:
    """When each begins: in the order of priority (the higher first, then as they are listed) each at the first moment
    from which its nodes are free for all of its hours, so that no run delays one that comes before it (conservative
    backfilling; Mu'alem and Feitelson 2001). None for what needs more nodes than there are, or waits for such."""
    placed: dict[int, float | None] = {}
    waiting = sorted(range(len(runs)), key=lambda place: (-runs[place].priority, place))
    while waiting:
        place = next((each for each in waiting if all(other in placed for other in runs[each].after)), None)
        if place is None:  # They wait for each other.
            return [placed.get(each) for each in range(len(runs))]
        waiting.remove(place)
        placed[place] = _first(runs, placed, place, nodes)
    return [placed[each] for each in range(len(runs))]


def _first(runs: Sequence[QueuedRun], placed: dict[int, float | None], place: int, nodes: int) -> float | None:
    run = runs[place]
    ends = [(placed[other], runs[other].hours) for other in run.after]
    if run.nodes > nodes or any(start is None for start, _ in ends):
        return None
    ready = max([run.ready_h, *(start + hours for start, hours in ends if start is not None)])
    busy = [(start, start + runs[other].hours, runs[other].nodes) for other, start in placed.items()
            if start is not None]  # fmt: skip
    moments = sorted({ready, *(end for _, end, _ in busy if end > ready)})
    return next(moment for moment in moments if _fits(busy, moment, run, nodes))


def _fits(busy: Sequence[tuple[float, float, int]], moment: float, run: QueuedRun, nodes: int) -> bool:
    """Whether the nodes are free from the moment on; use changes only where a run begins."""
    end = moment + run.hours
    changes = [moment, *(start for start, _, _ in busy if moment < start < end)]
    return all(
        sum(taken for start, stop, taken in busy if start <= change < stop) + run.nodes <= nodes for change in changes
    )
