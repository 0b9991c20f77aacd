"""The fields of a plan's model as a config says them, for programs that take a model by its dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from knowledge.models.catalogue import architecture, facts_of, find_model, read_config
from knowledge.models.fields import canonical
from launchers.launch.training import TrainingLaunch
from launchers.tables import table


def fields_of(spec: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Canonical fields (estimator.model.configs) of a catalogue name, a config.json or its folder, or an inline config.

    Raises PlanError as knowledge.models.catalogue.architecture does.
    """
    if isinstance(spec, Mapping):
        return canonical(spec)
    path = Path(spec).expanduser()
    if facts_of(spec) is None:
        if (path / "config.json").is_file():
            return canonical(read_config(path / "config.json"))
        if path.is_file():
            return canonical(read_config(path))
    return find_model(spec).value.fields


def rotary_base(launch: TrainingLaunch) -> int | None:
    """The base of the rotary embedding, from the plan's config or the table of families; None where neither says."""
    fields = fields_of(launch.plan.model)
    theta = fields.get("rope_theta") or (fields.get("rope_parameters") or {}).get("rope_theta")
    if isinstance(theta, int | float) and theta >= 1:
        return int(theta)
    names = (architecture(launch.plan.model).id, launch.model or "")
    return next(
        (
            base
            for start, base in table("megatron/fields")["rotary_bases"]
            if any(re.match(start, n.lower()) for n in names)
        ),
        None,
    )
