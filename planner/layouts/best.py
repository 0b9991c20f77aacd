"""best_parallelism: the best layout of a training plan, what else is good, and why each neighbour lost."""

from __future__ import annotations

import time

from estimator.search.ranking import alternatives, neighbours, pareto
from planner.asked.training import SearchRequest
from planner.evidence import evidence_of
from planner.results import BestParallelism, Rejected
from planner.training.launchable import unwritten
from planner.training.memory import memory_of
from planner.training.planned import Planned, choice, plan_training, warnings_of, why_chosen
from planner.training.run import run_of


def best_parallelism(request: SearchRequest) -> BestParallelism:
    """Find the best layout."""
    started = time.perf_counter()
    asked = request.to_plan()
    chosen = plan_training(asked, every_framework=True)
    search = best_of(chosen, request.top)
    warnings = [*unwritten(asked, chosen), *search.warnings]
    return search.model_copy(update={"warnings": warnings, "seconds": time.perf_counter() - started})


def best_of(chosen: Planned, top: int) -> BestParallelism:
    """The same of what has been searched; the seconds are those of the telling."""
    started = time.perf_counter()
    search, best = chosen.search, int(chosen.search.order[0])
    estimates, layouts = search.estimates, search.estimates.layouts
    return BestParallelism(
        plan=chosen.complete_plan,
        assumptions=chosen.assumptions,
        best=choice(chosen.estimates, chosen.index),
        memory=memory_of(chosen),
        run=run_of(chosen),
        why=why_chosen(chosen),
        alternatives=[choice(estimates, index) for index in alternatives(estimates, search.order, top)],
        pareto=[choice(estimates, int(index)) for index in pareto(estimates)[: 4 * top]],
        rejected=[
            Rejected(layout=layouts.row(index), rule=rule, summary=layouts.summary(index))
            for index, rule in neighbours(estimates, best, search.order)
        ],
        candidates=search.valid,
        estimated=len(layouts),
        feasible=int(estimates.fits.sum()),
        seconds=time.perf_counter() - started,
        warnings=warnings_of(chosen),
        evidence=evidence_of(chosen.job),
    )
