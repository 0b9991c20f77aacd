"""A plan that the launch targets can say: what the search chose gives way to what their files can express."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan, merge
from knowledge.fitted.training import framework
from launchers.choice import frameworks_started
from launchers.pieces import Rendered
from planner.estimates import PlanEstimate, estimate_plan
from planner.fields import value_at
from planner.result import Assumption
from planner.training.pinned import better
from planner.training.planned import Planned

# Choices given up for one set of files, and values tried for each.
_MOST_CHANGES, _MOST_VALUES = 5, 6
# Fields that say which program runs: its files name the one that they are for first.
_PROGRAMS = ("workload.framework", "workload.engine")
SAYABLE = "what the files can say"
"""Why a value that was chosen gave way, before the reason."""
Estimator = Callable[[Plan], PlanEstimate]


@dataclass(frozen=True)
class Expressed:
    """An estimate whose plan the files say, and what was chosen otherwise so that they can."""

    estimate: PlanEstimate
    rendered: Rendered
    changes: list[Assumption]


def expressible(
    plan: Plan,
    render: Callable[[PlanEstimate], Rendered],
    estimated: Estimator = estimate_plan,
    *,
    only_fitting: bool = False,
) -> Expressed:
    """The estimate of `plan` with its files; `estimated` has no other than `estimate_plan`, sooner. With
    `only_fitting` what does not fit is no better than none, and is not looked for.

    Where a target refuses a value that the user did not give, the valid values of that field are estimated in its
    place, and the best one is taken (what fits, then the least score); of frameworks and engines the first that can run
    the plan. Where what the user gave is refused and a framework is not part of it, others are tried. Raises the
    PlanError of what the user gave.
    """
    stated, changes = plan.given(), list[Assumption]()
    estimate = estimated(plan)
    fits = estimate.fits
    while True:
        try:
            return Expressed(estimate, render(estimate), changes)
        except PlanError as refused:
            try:
                if _is_given(stated, refused.field) or len(changes) >= _MOST_CHANGES:
                    raise refused
                plan, estimate = _other(plan, stated, refused, estimated)
            except PlanError as against:
                if not _leaves_framework(stated):
                    raise
                # Of the plan as it was given its own framework's files are known not to say it.
                known = "" if changes or not isinstance(estimate, Planned) else estimate.job.framework.name
                names = [name for name in frameworks_started() if name != known]
                # What fits on none of them leaves nothing to look for first.
                first, able = _first(stated, render, names) if fits else (None, names)
                if only_fitting and first is None:
                    raise
                names = [first] if first else able
                return _by_another_program(stated, against, render, estimated, names)
            value = value_at(plan.given(), refused.field)
            why = f"{SAYABLE}: {refused.problem}"
            changes.append(Assumption(field=refused.field, value=value, why=why))


def _by_another_program(
    stated: Mapping[str, Any],
    refused: PlanError,
    render: Callable[[PlanEstimate], Rendered],
    estimated: Estimator,
    names: Sequence[str],
) -> Expressed:
    """The best of what these frameworks' files say of the plan as it was given. Raises `refused` where none does."""
    made: list[tuple[bool, float, Expressed]] = []
    for name in names:
        try:
            estimate = estimated(_on(stated, name))
            change = Assumption(
                field="workload.framework", value=name, why=f"whose files can say it: {refused.problem}"
            )
            made.append((not estimate.fits, estimate.score, Expressed(estimate, render(estimate), [change])))
        except PlanError:
            continue
    if not made:
        raise refused
    return min(made, key=lambda row: row[:2])[2]


def _leaves_framework(stated: Mapping[str, Any]) -> bool:
    training = value_at(stated, "workload.kind") != "inference"
    return training and value_at(stated, "workload.framework") in (None, "auto")


def _first(
    stated: Mapping[str, Any], render: Callable[[PlanEstimate], Rendered], names: Sequence[str]
) -> tuple[str | None, list[str]]:
    """The best of `names` on which the plan fits, on the devices alone or else with host memory too, and whose files
    say it, sooner known than what all of them come to; and all that refuse neither the plan nor its files."""
    # What splits in most ways is mostly the fastest of large models: with that known the others are soon left out.
    able = sorted(names, key=_splits, reverse=True)
    for offload in (False, True):
        first, least = None, math.inf
        for name in [*able]:
            try:
                planned = better(_on(stated, name), least, offload=offload)
            except PlanError:
                able.remove(name)
                continue
            if planned is not None and planned.fits and planned.score < least:
                try:
                    render(planned)
                except PlanError:
                    able.remove(name)
                    continue
                first, least = name, planned.score
        if first:
            break
    return first, [name for name in names if name in able]


def _splits(framework_name: str) -> int:
    """In how many ways a framework splits a model."""
    limits = framework(framework_name).limits
    return sum(map(bool, (limits.tp, limits.pp, limits.ep)))


def _on(stated: Mapping[str, Any], framework: str) -> Plan:
    return Plan.parse(merge(stated, {"workload": {"framework": framework}}))


def _other(
    plan: Plan, stated: Mapping[str, Any], refused: PlanError, estimated: Estimator
) -> tuple[Plan, PlanEstimate]:
    """The plan with the best of the valid values, and its estimate. Where none can be, raises what stands against it in
    what was given, or else `refused`."""
    tried: list[tuple[bool, float, tuple[Plan, PlanEstimate]]] = []
    against: list[PlanError] = []
    for value in [value for value in refused.valid if value != "auto"][:_MOST_VALUES]:
        try:
            other = plan.patch({refused.field: value})
            estimate = estimated(other)
        except PlanError as error:
            against.append(error)
            continue
        if refused.field in _PROGRAMS:
            return other, estimate
        tried.append((not estimate.fits, estimate.score, (other, estimate)))
    if not tried:
        raise next((error for error in against if _is_given(stated, error.field)), refused)
    return min(tried, key=lambda row: row[:2])[2]


def _is_given(stated: Mapping[str, Any], field: str) -> bool:
    return value_at(stated, field) is not None
