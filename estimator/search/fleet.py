"""Sizes of a cluster, the best layout on each, and the order of offers by money and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator.plan.layouts import RECOMPUTE, Floats
from estimator.plan.training.job import Job
from estimator.search.bounds import least_bytes
from estimator.search.fastest import FEW, Fitting, may_be_faster, roomy
from estimator.search.space import USUAL, Enumerated, enumerated, taken
from estimator.training.memory import fitting

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


def quickest(job: Job, slowest_s: float = np.inf, known_to_fit: bool = False) -> Quick | Slower | None:
    """The best of the usual layouts that fit, None where none does, Slower where the best surely takes `slowest_s`;
    whether any fits is not looked up where that is known.

    Layouts are estimated in the order of a bound of their time, until that is beyond the best. Raises PlanError where
    no layout is valid.
    """
    if least_bytes(job) > job.usable_bytes * job.machine.count:
        return None
    every = roomy(job, enumerated(job, USUAL))
    if not len(every):
        return None
    if slowest_s <= 0.0:
        return Slower() if _fits_any(job, every) else None
    if job.plan.goal.objective == "memory":
        able = Fitting.of(job, every.layouts(), every.rows["place"])
    else:
        able = may_be_faster(job, every, slowest_s)
    first = able.order(job)[:1]
    if len(first) and (len(every) <= FEW or able.seconds[first[0]] < slowest_s):
        layout = able.layouts.take(first)
        return Quick(layout.row(0), int(layout.micro_batch[0]), float(able.seconds[first[0]]))
    return Slower() if len(first) or known_to_fit or _fits_any(job, every) else None


def _fits_any(job: Job, every: Enumerated) -> bool:
    """Whether anything fits is mostly seen from some of the layouts that take the least memory."""
    rows = every.rows
    key = rows["micro_batch"] - len(RECOMPUTE) * (rows["recompute"] == RECOMPUTE.index("full"))
    order = np.argsort(key, kind="stable")
    return any(len(fitting(job, every.written(taken(rows, some)))[0]) for some in (order[:FEW], order[FEW:]))


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
