"""Sizes of a cluster, the best layout on each, and the order of offers by money and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator.plan.layouts import RECOMPUTE, Floats
from estimator.plan.training.job import Job
from estimator.search.bounds import least_bytes, least_memory, least_seconds
from estimator.search.ranking import TIE_S, fitting_order
from estimator.search.space import USUAL, Rows, enumerated, taken
from estimator.training.memory import fits, fitting
from estimator.training.schedule import step_time

# Layouts that are estimated first, and how many times as many each time after.
_MANY, _MORE = 200, 4
# Of the unit square of a front: its ends are on the line between them but for rounding.
_ON_THE_LINE = 1e-9


@dataclass(frozen=True)
class Quick:
    """The best usual layout of a job that fits: its sizes, and seconds of a step."""

    layout: dict[str, Any]
    micro_batch: int
    step_s: float


def sizes(per_node: int, least: int, most: int) -> list[int]:
    """Numbers of devices from `least` to `most`: powers of two within a node, then whole nodes, doubling; and the most
    whole nodes (or devices of one) that there may be."""
    counts = {2**power for power in range(per_node.bit_length()) if 2**power <= per_node}
    nodes = 1
    while nodes * per_node <= most:
        counts.add(nodes * per_node)
        nodes *= 2
    counts.add(most // per_node * per_node if most >= per_node else most)
    return sorted(size for size in counts if least <= size <= most)


@dataclass(frozen=True)
class Slower:
    """Some layout fits, and none of them takes less than what was asked."""


def quickest(job: Job, slowest_s: float = np.inf) -> Quick | Slower | None:
    """The best of the usual layouts that fit, None where none does, Slower where the best surely takes `slowest_s`.

    Layouts are estimated in the order of a bound of their time, until that is beyond the best. Raises PlanError where
    no layout is valid.
    """
    if least_bytes(job) > job.usable_bytes * job.machine.count:
        return None
    every = enumerated(job, USUAL)
    groups = np.arange(len(every.groups["base"]))
    if len(every) > _MANY:
        groups = np.flatnonzero(fits(job, least_memory(job, every))[every.groups["base"]])
    rows = every.rows_of(groups)
    count = len(rows["place"])
    if count > _MANY and slowest_s <= 0.0 and len(fitting(job, every.written(_leanest(rows)))[0]):
        return Slower()
    bound = np.zeros(count)
    if count > _MANY and slowest_s > 0.0 and job.plan.goal.objective != "memory":
        bound = least_seconds(job, every, rows)
        order = np.argsort(bound, kind="stable")
        rows, bound = taken(rows, order), bound[order]
        if bound[0] >= slowest_s and len(fitting(job, every.written(_leanest(rows)))[0]):
            return Slower()
    pieces: list[tuple[np.ndarray, Floats, Floats]] = []
    best, done, step = np.inf, 0, _MANY if bound.any() else count
    while done < (most := int(np.searchsorted(bound, best, side="right"))):
        piece = np.arange(done, min(most, done + step))
        done, step = done + len(piece), _MORE * step
        layouts = every.written(taken(rows, piece))
        inside, total = fitting(job, layouts)
        if len(inside) and slowest_s <= 0.0:
            return Slower()
        if len(inside):
            seconds = step_time(job, layouts.take(inside)).seconds
            pieces.append((piece[inside], seconds, total))
            best = min(best, float(seconds.min()) + TIE_S)
    if not pieces:
        return None
    index, seconds, total = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.argsort(rows["place"][index])
    index, seconds, total = index[order], seconds[order], total[order]
    layouts = every.written(taken(rows, index))
    first = int(fitting_order(job, layouts, seconds, total * (1.0 + job.memory_above))[0])
    return Quick(
        layout=layouts.row(first),
        micro_batch=int(layouts.micro_batch[first]),
        step_s=float(seconds[first]),
    )


def _leanest(rows: Rows) -> Rows:
    """Some of the layouts that take the least memory: whether anything fits is seen from them."""
    key = rows["micro_batch"] - len(RECOMPUTE) * (rows["recompute"] == RECOMPUTE.index("full"))
    return taken(rows, np.argsort(key, kind="stable")[:_MANY])


def front(money: Floats, time: Floats) -> np.ndarray:
    """Mask of the entries that no other beats in money or time without being worse in the other; NaN never is one."""
    known = np.isfinite(money) & np.isfinite(time)
    on_front = np.zeros(len(money), dtype=bool)
    index = np.flatnonzero(known)
    order = index[np.lexsort((time[index], money[index]))]
    best = np.inf
    for place in order:
        if time[place] < best:
            on_front[place], best = True, time[place]
    return on_front


def knee(money: Floats, time: Floats) -> int | None:
    """The entry of the front that lies farthest below the line between its ends, in logarithms, each over the width of
    its kind (Satopaa et al. 2011, "Finding a kneedle in a haystack"); None where none lies below it."""
    places = np.flatnonzero(front(money, time) & (money > 0.0) & (time > 0.0))
    if len(places) < 3:
        return None
    x, y = np.log(money[places]), np.log(time[places])
    x, y = (x - x.min()) / np.ptp(x), (y - y.min()) / np.ptp(y)
    least = int(np.argmin(x + y))
    return int(places[least]) if x[least] + y[least] < 1.0 - _ON_THE_LINE else None


def balance(money: Floats, time: Floats) -> Floats:
    """The geometric mean of money and time, each over the least of its kind; 1 is the best in both, NaN not known."""
    known = np.isfinite(money) & np.isfinite(time)
    if not known.any():
        return np.full(len(money), np.nan)
    return np.sqrt(money / money[known].min() * (time / time[known].min()))
