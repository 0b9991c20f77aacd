"""The checkpoint that an engine is given: the model's own where it holds the plan's weights, else one to be named."""

from __future__ import annotations

import re
from typing import Any

from knowledge.models.known import facts_of
from knowledge.models.weight_formats import plan_format
from launchers.launch.names import last_part
from launchers.launch.serving import ServingLaunch
from launchers.tables import table

PLACEHOLDER = "SET_ME_CHECKPOINT"


def checkpoint(launch: ServingLaunch, place: str, online: dict[str, str], needs: list[str]) -> tuple[str, str | None]:
    """(Name or path for the engine, its word for quantising it at load or None).

    A placeholder, which is asked for, where the plan's model is not published in the plan's format and the engine
    cannot make it so (`online`: format -> word).
    """
    wanted = launch.serving.weight_dtype
    if launch.model is None:
        needs.append(f"{place}: {PLACEHOLDER}, a checkpoint of the model with {wanted} weights")
        return PLACEHOLDER, None
    held = formats_of(launch.model)
    if wanted in held:
        return launch.model, None
    if wanted in online and "bf16" in held:
        return launch.model, online[wanted]
    needs.append(f"{place}: {PLACEHOLDER}, a checkpoint of {launch.model} with {wanted} weights")
    return PLACEHOLDER, None


def formats_of(model: str) -> list[str]:
    """Weight formats that a checkpoint of this name holds by the catalogue, or is taken to hold (checkpoints.yaml)."""
    facts = facts_of(model)
    name = plan_format(facts.weight_format) if facts and facts.weight_format else last_part(model)
    return _first_match(name, "checkpoints") or []


def _first_match(model: str, kind: str) -> Any:
    name = last_part(model).lower()
    return next((value for pattern, value in table("engines/checkpoints")[kind] if re.match(pattern, name)), None)
