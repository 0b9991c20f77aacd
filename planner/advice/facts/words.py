"""Facts as advice says them."""

from __future__ import annotations

from typing import Any

from knowledge.figure_facts import known_figure
from knowledge.figures import percent, shown, written


def in_words(name: str, value: Any) -> str:
    """A fact as advice says it: a figure as everywhere, and shares in percent."""
    last = name.rpartition(".")[2]
    if value is None:
        return "an unknown number of" if last in ("steps", "hours") else "unknown"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return " and ".join(map(str, value)) or "none"
    if isinstance(value, str):
        return value
    if ".share" in name or last in ("mfu", "low", "median", "high", "prompt_share"):
        return percent(value)
    return written("B" if last.endswith("_bytes") else "", value) if known_figure(last) is None else shown(last, value)
