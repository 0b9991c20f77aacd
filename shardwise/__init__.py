"""Shardwise from Python: every tool is a function of this module, with its arguments by name and a typed result.

    >>> import shardwise
    >>> shardwise.check_fit("llama-3.1-8b", "8xh100", method="full", seq_len=4096).fits
    True

What a function takes and gives, editors read in `__init__.pyi`. A value that cannot be used raises PlanError.
"""

from __future__ import annotations

import importlib
from typing import Any

from estimator.errors import PlanError, nearest

__all__ = ["PlanError"]


def __getattr__(name: str) -> Any:
    """A tool's function, made when it is first looked up: so this import costs nothing that is not used."""
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("shardwise")
    if name.startswith("_"):
        raise AttributeError(name)
    from shardwise.functions import function_of  # has pydantic and a tool's own modules behind it
    from tools.registry import OnDemand  # as above

    if name not in OnDemand():
        raise AttributeError(f"shardwise has no tool {name!r}; near: {', '.join(nearest(name, OnDemand()))}")
    globals()[name] = function_of(name)
    return globals()[name]


def __dir__() -> list[str]:
    from tools.registry import OnDemand  # as above

    return [*__all__, "__version__", *OnDemand()]
