"""Calls as lines of Python, whose values are literals, so that no name from a plan becomes code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Symbol(str):
    """A name of the script, or of a module that it imports, which stands without quotes."""


def call(function: str, arguments: Mapping[str, Any], comments: Mapping[str, str], *first: str) -> list[str]:
    """`function(first, name=value, …)` as lines, an argument each."""
    lines = [f"{function}(", *(f"    {word}," for word in first)]
    for name, value in arguments.items():
        literal = str(value) if isinstance(value, Symbol) else repr(value)
        lines.append(f"    {name}={literal}," + (f"  # {comments[name]}" if name in comments else ""))
    return [*lines, ")"]
