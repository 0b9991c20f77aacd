"""Whether an utterance is about serving a model or about training one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent.offline import serving_vocabulary
from agent.offline.page import ACCELERATOR
from agent.offline.slots import Slot
from agent.offline.vocabulary import NEED, ROLLOUTS
from estimator.plan.schema import merge
from planner.partial import is_serving

# Training's own words for an engine that only generates its samples.
_ROLLOUT = "|".join(ROLLOUTS.values())
_KEPT = ("model", "name", "cluster")
_KEPT_OVERRIDES = ("usable_gib", "reserve_gib", "scaleup_gb_per_s", "network_gb_per_s", "network_latency_us")
RUN_NOTE = "read as running the model (inference); say fine-tune or train where that is meant"


def names_serving(named: str) -> bool:
    """Whether the words alone make it a question about serving; `named` is the lower-case text with names blanked."""
    return bool(re.search(serving_vocabulary.SERVES, named)) and not _trains(named)


def serves(named: str, plan: Mapping[str, Any], at_home: bool = False) -> tuple[bool, list[Slot]]:
    """(Whether this is about serving, what had to be assumed for that), said in a session with a partial plan.
    `at_home`: the device that is named is one that people have at home."""
    if _trains(named):
        return False, []
    if is_serving(plan):
        return True, []
    training = bool(plan.get("model"))
    if training and re.search(_ROLLOUT, named):
        return False, []
    if re.search(serving_vocabulary.SERVES, named) and not re.search(_ROLLOUT, named):
        return True, []
    if training:
        return False, []
    if re.search(serving_vocabulary.MAY_SERVE, named):
        return True, []
    runs = bool(re.search(serving_vocabulary.RUNS, named))
    # "How much VRAM does Llama-3.1-70B need?" asks what it takes to run it.
    runs |= ACCELERATOR not in named and bool(re.search(NEED, named))
    runs |= at_home and bool(re.search(serving_vocabulary.SPEED, named))
    return runs, [Slot("note", None, "run", RUN_NOTE)] if runs else []


def _trains(named: str) -> bool:
    return bool(re.search(serving_vocabulary.TRAINS, named))


def switched(plan: Mapping[str, Any], serving: bool) -> tuple[dict[str, Any], list[str]]:
    """The partial plan as one for serving, or for training, and what is said about that.

    Model and devices go over; what was said about the other kind of work is set aside.
    """
    if is_serving(plan) == serving:
        return merge(plan, {}), []
    kept: dict[str, Any] = {name: plan[name] for name in _KEPT if name in plan}
    if provider := (plan.get("goal") or {}).get("provider"):
        kept["goal"] = {"provider": provider}
    overrides = {name: value for name, value in (plan.get("overrides") or {}).items() if name in _KEPT_OVERRIDES}
    kept |= {"overrides": overrides} if overrides else {}
    kept |= {"workload": {"kind": "inference"}} if serving else {}
    lost = set(plan.get("workload") or {}) - {"kind"} or set(plan.get("layout") or {})
    what = "training" if serving else "serving"
    said = f"what was said about {what} before is set aside; model and accelerators are kept"
    return merge(kept, {}), [said] if lost else []
