"""The typed tools and their registry. `call` is the whole Python interface: a tool's name and plain arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def call(name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Runs tool `name` on plain arguments and returns its result as plain JSON data.

    Raises estimator.errors.PlanError for an unknown tool or arguments that cannot be used.
    """
    from tools.registry import find  # keeps `import tools` from loading pydantic and every tool

    return find(name)(arguments or {})
