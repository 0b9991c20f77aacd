"""Facts as advice says them."""

from __future__ import annotations

from typing import Any

from estimator.units import GIB


def in_words(name: str, value: Any) -> str:
    """A fact as advice says it: bytes in GiB, seconds, shares in percent, and large counts with their suffix."""
    last = name.rpartition(".")[2]
    if value is None:
        return "an unknown number of" if last in ("steps", "hours") else "unknown"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return " and ".join(map(str, value)) or "none"
    if isinstance(value, str):
        return value
    if name.endswith("_bytes"):
        return f"{value / GIB:,.1f} GiB"
    if name.endswith("_s") and not name.endswith("per_s"):
        return f"{value:.3g} s" if value >= 1.0 else f"{1e3 * value:.3g} ms"
    if ".share" in name or last in ("mfu", "low", "median", "high", "prompt_share"):
        return f"{100.0 * value:.0f} %"
    if last in ("parameters", "active_parameters"):
        return f"{value / 1e9:.3g}B"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"
