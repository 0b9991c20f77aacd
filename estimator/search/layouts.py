"""The search: layouts estimated in one batch and put in order, with what cannot be the best left out early."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import RECOMPUTE, Floats, Ints, Layouts, more_offloaded
from estimator.plan.training.job import Job
from estimator.plan.training.layout_checks import check_given, divisors, given_recompute, valid_tp
from estimator.plan.training.options import asked_for
from estimator.search.bounds import least_resident, least_seconds
from estimator.search.ranking import FIELDS, neighbours, objective_order, pareto
from estimator.search.space import WHOLE, Enumerated, Space, block_quarters, candidates, enumerated, leanest, taken
from estimator.training.estimates import Estimates, estimate, step_seconds, totals
from estimator.training.memory import fits

__all__ = [
    "SearchResult", "candidates", "check_given", "divisors", "least_bytes", "neighbours", "objective_order", "pareto",
    "search", "search_whole", "valid_tp",
]  # fmt: skip
# Layouts from which on it pays to look first which bases hold nothing that fits.
_MANY = 2_000
# Layouts from which on only those are estimated that may come first, or close behind the best: a quarter slower.
_TOO_MANY = 40_000
_MARGIN = 1.25
_TASTED, _FIRST, _OF_EACH, _LEAN = 100, 1_000, 32, 1_000
# Where memory is the goal, how many of the best layouts that recompute some blocks are tried with every number of them.
_REFINED = 48
# A plan that names all of these names its layout.
_DECISIVE = ("tp", "pp", "cp", "ep", "dp", "zero_stage", "recompute", "micro_batch")


@dataclass(frozen=True)
class SearchResult:
    """What a search found. `valid` counts the layouts of the space; `estimates` has those that were estimated.

    The rest was left out because nothing of their base can fit. Times are only there for what fits (NaN elsewhere).
    """

    estimates: Estimates
    order: np.ndarray
    valid: int


def search(job: Job) -> tuple[Estimates, np.ndarray]:
    """All usual candidates estimated, and their order from best to worst."""
    estimates = estimate(job, candidates(job))
    return estimates, objective_order(estimates)


def search_whole(job: Job, space: Space = WHOLE, *, offload: bool = True) -> SearchResult:
    """The best layout of those that agree with the plan: what every answer about a training plan rests on.

    What usually has to be asked for is tried where nothing fits, or nothing can be, without: splits of tensors and
    sequences by frameworks that seldom run so, and then, with `offload`, offloading to host memory besides. Raises
    PlanError where no layout is valid.
    """
    result, refusal = None, None
    for each in spaces(job, space, offload):
        try:
            result = _searched(job, enumerated(job, each))
        except PlanError as error:
            refusal = refusal or error
            continue
        if result.estimates.fits[result.order[0]]:
            break
    if result is None:
        assert refusal
        raise refusal
    return result


@dataclass(frozen=True)
class Least:
    """Memory per device of the layout that needs least of those that `search_whole` looks at, and whether that is one
    that offloads unasked. `space` is the first in which one fits, or the last, where `last`; `fitting` are the lightest
    of its bases that fit."""

    bytes: float
    offloads: bool
    space: Space
    fitting: Layouts
    last: bool

    def hopeful(self, job: Job) -> Layouts:
        """The extremes of the bases of which the leanest fit: of what fits none takes less of the host."""
        every = _extremes(job, self.space)
        return every.layouts(_hopeful(job, every)[0])


def least_bytes(job: Job, space: Space = WHOLE, *, offload: bool = True) -> Least:
    """The least memory that a layout takes, without any times. Raises PlanError where no layout is valid."""
    least, refusal = None, None
    wider = list(spaces(job, space, offload))
    for each in wider:
        try:
            every = _extremes(job, each)
        except PlanError as error:
            refusal = refusal or error
            continue
        light = lightest_layouts(job, every)
        total = totals(job, light)
        fitting = np.flatnonzero(fits(job, total))
        unasked = each.offloads not in (space.offloads, (job.plan.layout.offload,))
        least = Least(float(total.min()), unasked, each, light.take(fitting), each is wider[-1])
        if len(fitting):
            break
    if least is None:
        assert refusal
        raise refusal
    return least


def _extremes(job: Job, space: Space) -> Enumerated:
    """Of all layouts those that can be the leanest of their base; what a plan asks for may leave neither extreme."""
    return enumerated(job, replace(space, extremes=not asked_for(job)))


def roomy(job: Job, space: Space = WHOLE, *, offload: bool = True) -> Layouts:
    """The bases of all layouts that `search_whole` looks at, as lean as can be, that leave out those whose weights and
    states alone are too large for the devices: whatever else a run keeps, and how it computes its loss, makes no
    difference to that. Raises PlanError where no layout is valid."""
    *_, widest = every = list(spaces(job, space, offload))
    offloads = dict.fromkeys(name for each in every for name in each.offloads)
    bases = leanest(job, replace(widest, offloads=tuple(offloads)))
    if job.overridden_bytes:
        return bases
    return bases.take(np.flatnonzero(fits(job, least_resident(job, bases))))


def lightest_layouts(job: Job, every: Enumerated) -> Layouts:
    """Layouts than the lightest of which none takes less memory."""
    return every.layouts(np.flatnonzero(_lean(job, every)))


def spaces(job: Job, space: Space, offload: bool) -> Iterator[Space]:
    """`space`, then wider ones; the first that holds all that the plan asks for comes first, so that naming a field of
    the best layout leaves the search where that was found. What a plan offloads is completed like all that it names,
    unless it leaves no choice at all."""
    layout, limits = job.plan.layout, job.framework.limits
    split = not limits.searches_splits and (limits.tp or limits.cp)
    if layout.offload not in (None, "none"):
        named = replace(space, splits=True, offloads=(layout.offload,))
        yield named
        more = more_offloaded(layout.offload, limits.offloads) if offload else []
        if more and _leaves_choice(job, named):
            yield replace(named, offloads=(*more,))
        return
    if not (split and max(layout.tp or 1, layout.cp or 1) > 1):
        yield space
    if split:
        yield replace(space, splits=True)
    if offload and layout.offload is None and limits.offloads:
        yield replace(space, splits=True, offloads=("none", *limits.offloads))
        states = [name for name in limits.offloads if name != "activations"]
        if states and "activations" in limits.offloads:
            yield replace(space, splits=True, offloads=tuple(f"{name}+activations" for name in states))


def _leaves_choice(job: Job, space: Space) -> bool:
    """Whether a plan leaves open how devices are split, what is sharded or recomputed, or the micro-batch."""
    with suppress(PlanError):
        layouts = enumerated(job, space).layouts()
        return any(np.ptp(getattr(layouts, name)) > 0 for name in _DECISIVE)
    return False


def _searched(job: Job, every: Enumerated) -> SearchResult:
    if len(every) <= _MANY:
        estimates = estimate(job, every.layouts())
    else:
        index, lean = _hopeful(job, every)
        if len(index) > _TOO_MANY:
            estimates = _contenders(job, every, index, lean)
        else:
            estimates = estimate(job, every.layouts(index), misfit_times=False)
    order = objective_order(estimates)
    fitting = order[estimates.fits[order]]
    between = finer(job, every, estimates.layouts.take(fitting), estimates.step.seconds[fitting])
    if between is not None:
        estimates = estimates.joined(estimate(job, between))
        order = objective_order(estimates)
    return SearchResult(estimates, order, len(every) + (0 if between is None else len(between)))


def _hopeful(job: Job, every: Enumerated) -> tuple[np.ndarray, np.ndarray]:
    """(Layouts of the bases of which the leanest fit, the leanest that fit, those of the least memory first).

    Where none fits, both are the leanest of all bases."""
    starts, place = _bases(every)
    index = np.flatnonzero(_lean(job, every))
    need = totals(job, every.layouts(index))
    index, need = index[np.argsort(need, kind="stable")], np.sort(need)
    fitting = index[fits(job, need)]
    if not len(fitting):
        return np.sort(index), index
    hopeful = np.zeros(len(starts), dtype=bool)
    hopeful[place[fitting]] = True
    return np.flatnonzero(hopeful[place]), fitting


def _bases(every: Enumerated) -> tuple[np.ndarray, np.ndarray]:
    """(Where each base starts among the rows, the place of each row's base)."""
    base = every.rows["base"]
    return np.flatnonzero(np.diff(base, prepend=-1)), np.cumsum(np.diff(base, prepend=base[0]) != 0)


def _lean(job: Job, every: Enumerated) -> np.ndarray:
    """The leanest of each base, than one of which nothing within takes less: without virtual stages, with sequence
    parallelism, in whatever recompute mode, at the smallest micro-batch, or at the largest (with one micro-batch a step
    no gradients of an earlier one stand beside the activations)."""
    rows, (starts, place) = every.rows, _bases(every)

    def least(values: np.ndarray) -> np.ndarray:
        return values == np.minimum.reduceat(values, starts)[place]

    lean = least(rows["micro_batch"]) | least(rows["grad_accum"])
    if job.plan.layout.schedule != "interleaved":  # else whether there are virtual stages depends on the micro-batch
        lean &= least(rows["vpp"])
    lean &= least(-rows["sequence_parallel"])
    if given_recompute(job) is None:
        lean &= rows["recompute"] != RECOMPUTE.index("block")
    return lean


def _contenders(job: Job, every: Enumerated, index: np.ndarray, lean: np.ndarray) -> Estimates:
    """Estimates of all layouts among `index` that can be the best, or `_MARGIN` behind it, and of some of each kind.

    First come the `lean` layouts, some or all where memory is the goal, and the groups that may be fastest. A group is
    no faster than without recompute: of those that can be near the best of these, groups are estimated in the order of
    that bound until it is beyond the best that fits by the margin. Then come, for each value of each field, the groups
    with the lowest bound.
    """
    group = every.rows["group"][index]
    heads = np.flatnonzero(np.diff(group, prepend=-1))
    sizes = np.diff(heads, append=len(index))
    bound = least_seconds(job, every, taken(every.rows, index[heads]))
    seen = np.zeros(len(every), dtype=bool)
    parts: list[Estimates] = []

    def add(chosen: np.ndarray) -> float:
        """Estimates what has not been yet; the shortest step of what fits among it."""
        fresh = np.unique(chosen[~seen[chosen]])
        seen[fresh] = True
        parts.append(estimate(job, every.layouts(fresh), misfit_times=False))
        return float(np.fmin.reduce(parts[-1].step.seconds, initial=np.inf))

    def members(groups: np.ndarray) -> np.ndarray:
        before = np.cumsum(sizes[groups]) - sizes[groups]
        return index[np.repeat(heads[groups] - before, sizes[groups]) + np.arange(sizes[groups].sum())]

    best = min(
        add(lean if job.plan.goal.objective == "memory" else lean[:_LEAN]),
        add(members(np.argsort(bound, kind="stable")[:_TASTED])),
    )
    near = np.flatnonzero(bound <= best * _MARGIN)
    bound[near] = step_seconds(job, every.layouts(index[heads[near]]))
    order = np.argsort(bound, kind="stable")
    done, step = 0, _FIRST
    while done < (most := int(np.searchsorted(bound[order], best * _MARGIN, side="right"))):
        chosen = order[done : min(most, done + step)]
        best = min(best, add(members(chosen)))
        done, step = done + len(chosen), 2 * step
    rest = order[done:]
    if len(rest):
        kinds = every.layouts(index[heads[rest]])
        firsts = np.concatenate([_firsts(getattr(kinds, name)) for name in FIELDS])
        add(members(rest[np.unique(firsts)]))
    return parts[0].joined(*parts[1:])


def _firsts(values: np.ndarray) -> np.ndarray:
    """Of each value the first `_OF_EACH` places."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=values.min() - 1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return order[rank < _OF_EACH]


def finer(job: Job, every: Enumerated, fitting: Layouts, seconds: Floats) -> Layouts | None:
    """Every number of recomputed blocks between the quarters that `every` has, for those of the `fitting` that may yet
    be best; these come in order, with the seconds of their steps.

    More blocks take more time and less memory, so between a number that fits and the next smaller quarter the fewest
    blocks that fit are the best, and none is better than one block more than that quarter.
    """
    block, full = RECOMPUTE.index("block"), RECOMPUTE.index("full")
    if given_recompute(job) is not None or not every.has(block):
        return None
    some = np.flatnonzero((fitting.recompute == block) | (fitting.recompute == full))
    if job.plan.goal.objective == "memory":
        some = some[:_REFINED]
    if not len(some):
        return None
    chosen, lower, gaps = _gaps(job, fitting.take(some))
    if job.plan.goal.objective != "memory":
        chosen, lower, gaps = _hopeful_gaps(job, float(seconds[0]), chosen, lower, gaps)
    row = np.repeat(np.arange(len(gaps)), gaps)
    if not len(row):
        return None
    blocks = lower[row] + 1 + np.arange(len(row)) - np.repeat(np.cumsum(gaps) - gaps, gaps)
    if job.framework.recompute.by_virtual_stage:
        even = blocks % chosen.vpp[row] == 0
        row, blocks = row[even], blocks[even]
        if not len(row):
            return None
    return replace(chosen.take(row), recompute=np.full(len(row), block), recompute_layers=blocks)


def _gaps(job: Job, chosen: Layouts) -> tuple[Layouts, Ints, Ints]:
    """(Layouts, the next smaller quarter of each, how many numbers of blocks are between): those with any between."""
    per_stage = -(-job.architecture.layers // chosen.pp)
    upper = np.where(chosen.recompute == RECOMPUTE.index("full"), per_stage, chosen.recompute_layers)
    quarters = block_quarters(job, chosen.pp, chosen.vpp)
    lower = np.where(quarters < upper[:, None], quarters, 0).max(axis=1)
    gaps = upper - lower - 1
    kept = np.flatnonzero(gaps > 0)
    return chosen.take(kept), lower[kept], gaps[kept]


def _hopeful_gaps(job: Job, best_s: float, chosen: Layouts, lower: Ints, gaps: Ints) -> tuple[Layouts, Ints, Ints]:
    """Of `_gaps` those whose fewest blocks would be faster than the best there is."""
    if not len(gaps):
        return chosen, lower, gaps
    least = replace(chosen, recompute=np.full_like(lower, RECOMPUTE.index("block")), recompute_layers=lower + 1)
    kept = np.flatnonzero(step_seconds(job, least) < best_s)
    return chosen.take(kept), lower[kept], gaps[kept]
