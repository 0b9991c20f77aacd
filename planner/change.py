"""A change to a plan that is worth trying: what lists of them share, whether for speed, for memory or for serving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimator.plan.schema import Layout

OPEN_LAYOUT: dict[str, Any] = {f"layout.{name}": None for name in Layout.model_fields} | {"workload.micro_batch": None}
"""The patch that leaves layout and micro-batch to the search again."""


@dataclass(frozen=True)
class Change:
    """A patch over the complete plan: what it does, and what it saves or costs in words.

    `knob` is what it turns; changes of one knob are alternatives. `kind` is setting, framework, training (what is
    trained changes), quality (of served answers) or hardware. `keeps_choice` patches are told with the whole layout
    that was found for them, since they leave it open.
    """

    knob: str
    patch: Mapping[str, Any]
    what: str
    why: str
    kind: str = "setting"
    keeps_choice: bool = False
