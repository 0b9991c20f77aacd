"""What launch programs of frameworks take of a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.offers import is_unstarted
from launchers.choice import usual_program
from launchers.render import render
from planner.fields import value_at

# Fields that nobody gave and that are tried otherwise, one after the other.
_MOST_CHANGES = 6


def refused(plan: Plan, stated: Mapping[str, object]) -> PlanError | None:
    """Why a framework's usual program cannot be told what was given; None where it can, the rest chosen otherwise.

    A batch that is dealt to fewer replicas as the plan stands is too small only for what was changed here (sequences
    that nothing splits): what the program had not is the reason."""
    first: PlanError | None = None
    for _ in range(_MOST_CHANGES):
        try:
            render(plan, [usual_program(plan)])
            return None
        except PlanError as error:
            why = error
        first = first or why
        stands = why.field.startswith("cluster.") or value_at(stated, why.field) is not None
        changed = None if stands else _changed(plan, why)
        if changed is None:
            return first if why.field == "workload.global_batch" else why
        plan = changed
    return None


def has_program(plan: Plan, framework: str) -> bool:
    """Whether the usual program of a framework has the plan's model, stage and method, whatever else is chosen; of
    frameworks that are started without files of ours nothing is known."""
    workload = {"stage": plan.training.stage, "method": plan.training.method, "framework": framework}
    stated = json.dumps({"model": plan.model, "workload": workload}, sort_keys=True)
    return is_unstarted(framework) or _has_program(stated, plan.cluster.accelerator or "")


@lru_cache(maxsize=4096)
def _has_program(stated: str, accelerator: str) -> bool:
    data = json.loads(stated)
    workload = data["workload"] | {"seq_len": 2048, "micro_batch": 1, "global_batch": 8}
    cluster = {"accelerator": accelerator, "count": 1, "per_node": 1}
    whole = dict.fromkeys(("tp", "pp", "vpp", "cp", "ep", "etp", "dp"), 1)
    layout = whole | {"zero_stage": 0, "recompute": "none", "offload": "none"}
    why = refused(Plan.parse({**data, "workload": workload, "cluster": cluster, "layout": layout}), data)
    return why is None or why.field not in ("model", "workload.stage", "workload.method")


def _changed(plan: Plan, why: PlanError) -> Plan | None:
    for value in why.valid:
        with suppress(PlanError):
            if value != "auto":
                return plan.patch({why.field: value})
    return None
