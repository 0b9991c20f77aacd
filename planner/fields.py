"""Fields of a plan's data by dotted name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def value_at(data: object, path: str) -> Any:
    """None where there is none."""
    for name in path.split("."):
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def leaves(data: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted name of every value, with the value; an inline model is one value."""
    for key, value in data.items():
        path = f"{section}.{key}" if section else key
        if isinstance(value, Mapping) and path != "model":
            yield from leaves(value, path)
        else:
            yield path, value
