"""How a run is paid for, as arguments of estimate_cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.registry import Tool


def payment(work: Mapping[str, Any], tools: Mapping[str, Tool]) -> dict[str, Any]:
    """What the conversation said of prices, as far as estimate_cost takes it."""
    said = dict(work.get("pricing") or {})
    if work.get("usd_per_device_hour"):
        said["usd_per_device_hour"] = work["usd_per_device_hour"]
    known = tools["estimate_cost"].request.model_fields if "estimate_cost" in tools else {}
    return {name: value for name, value in said.items() if name in known}
