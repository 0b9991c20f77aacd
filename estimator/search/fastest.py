"""The best layout of a job where it beats a time that is known already: what cannot is left out before it is estimated,
so that asking whether another framework is faster costs less than a search of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import Floats, Ints, Layouts, keep_pages
from estimator.plan.training.job import Job
from estimator.search.bounds import least_kernels_s, least_memory, least_seconds
from estimator.search.layouts import finer, lightest_layouts, spaces
from estimator.search.ranking import TIE_S, fitting_order
from estimator.search.space import WHOLE, Enumerated, enumerated
from estimator.training.memory import fits, fitting
from estimator.training.schedule import step_time

# Layouts up to which a bound costs more than it saves, groups from which on it pays to look first which have no room;
# groups that are estimated first, and how many times as many each time after.
FEW, _MANY, _FIRST, _MORE = 200, 500, 50, 4


@dataclass(frozen=True)
class Fitting:
    """Layouts that fit, with seconds of a step, bytes of a device, and their places in the enumeration."""

    layouts: Layouts
    seconds: Floats
    total: Floats
    place: Ints

    @staticmethod
    def of(job: Job, layouts: Layouts, place: Ints) -> Fitting:
        inside, total = fitting(job, layouts)
        layouts = layouts.take(inside)
        return Fitting(layouts, step_time(job, layouts).seconds if len(inside) else total, total, place[inside])

    def joined(self, *more: Fitting) -> Fitting:
        parts = [self, *more]
        return Fitting(
            self.layouts.joined(*(part.layouts for part in more)),
            np.concatenate([part.seconds for part in parts]),
            np.concatenate([part.total for part in parts]),
            np.concatenate([part.place for part in parts]),
        )

    def order(self, job: Job) -> np.ndarray:
        """From best to worst; of equal ones that which is enumerated first."""
        first = np.argsort(self.place, kind="stable")
        total = self.total[first] * (1.0 + job.memory_above)
        return first[fitting_order(job, self.layouts.take(first), self.seconds[first], total)]


def fastest(job: Job, slowest_s: float = np.inf, *, offload: bool = True) -> Layouts | None:
    """The layout that `search_whole` would have, alone, where it fits and takes less than `slowest_s`; else None. The
    goal has to be speed."""
    keep_pages()
    if slowest_s < np.inf and least_kernels_s(job) >= slowest_s:
        return None
    for space in spaces(job, WHOLE, offload):
        try:
            every = roomy(job, enumerated(job, space))
        except PlanError:
            continue
        if not len(every):
            continue
        able = may_be_faster(job, every, slowest_s)
        if len(able.layouts):
            order = able.order(job)
            between = finer(job, every, able.layouts.take(order), able.seconds[order])
            if between is not None:
                able = able.joined(Fitting.of(job, between, every.modes.allowed.size + np.arange(len(between))))
                order = able.order(job)
            first = order[:1]
            return able.layouts.take(first) if able.seconds[first[0]] < slowest_s else None
        if len(fitting(job, lightest_layouts(job, every))[0]):
            return None
    return None


def may_be_faster(job: Job, every: Enumerated, slowest_s: float) -> Fitting:
    """What fits of the groups that may be faster than that and than the best of those with a lower bound."""
    if len(every) <= FEW:
        return Fitting.of(job, every.layouts(), every.rows["place"])
    heads = every.heads()
    bound = least_seconds(job, every, heads)
    best, step, parts = slowest_s, _FIRST, []
    group, bound = heads["group"][bound <= best], bound[bound <= best]
    while len(group) or not parts:
        order = np.argpartition(bound, step) if len(group) > step else np.arange(len(group))
        rows = every.rows_of(group[order[:step]])
        parts.append(Fitting.of(job, every.written(rows), rows["place"]))
        best = min(best, float(parts[-1].seconds.min(initial=np.inf)) + TIE_S)
        left = order[step:]
        left = left[bound[left] <= best]
        group, bound, step = group[left], bound[left], _MORE * step
    return parts[0].joined(*parts[1:])


def roomy(job: Job, every: Enumerated) -> Enumerated:
    """Without bases of which nothing can fit, where there are so many that it pays to look: what is left may be
    none."""
    if len(every.modes.allowed) <= _MANY:
        return every
    room = fits(job, least_memory(job, every))[every.groups["base"]]
    return replace(every, modes=replace(every.modes, allowed=every.modes.allowed & room[:, None]))
