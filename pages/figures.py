"""Figures as an engineer prints them; each keeps the unit that its origin has, so that it can be checked against it."""

from __future__ import annotations

from collections.abc import Callable

GIB = 2.0**30


def gib(size_bytes: float) -> str:
    value = size_bytes / GIB
    digits = 1 if abs(value) >= 1 else 2 if abs(value) >= 0.1 else 3
    return f"{value:,.{digits}f} GiB"


def gib_range(low_bytes: float, high_bytes: float) -> str:
    return f"{low_bytes / GIB:,.1f}–{high_bytes / GIB:,.1f} GiB"


def seconds(value_s: float) -> str:
    if value_s < 0.001:
        return f"{value_s * 1e6:.0f} µs"
    if value_s < 1:
        return f"{value_s * 1e3:.0f} ms" if value_s >= 0.1 else f"{value_s * 1e3:.1f} ms"
    return f"{value_s:.2f} s" if value_s < 100 else f"{value_s:,.0f} s"


def hours(value_h: float) -> str:
    """Minutes, hours or days, whichever reads best."""
    if value_h < 1:
        return f"{value_h * 60:.0f} min" if value_h * 60 >= 10 else f"{value_h * 60:.1f} min"
    if value_h < 72:
        return f"{value_h:.1f} hours"
    return f"{value_h / 24:.1f} days" if value_h / 24 < 1000 else f"{value_h / 24:,.0f} days"


def hour_range(low_h: float, high_h: float) -> str:
    """Both ends in the unit that suits the upper one."""
    if high_h < 1:
        return f"{low_h * 60:.1f}–{high_h * 60:.1f} min"
    if high_h < 72:
        return f"{low_h:.1f}–{high_h:.1f} hours"
    return f"{low_h / 24:.1f}–{high_h / 24:.1f} days"


def usd(value_usd: float) -> str:
    return f"${value_usd:,.2f}" if value_usd < 100 else f"${value_usd:,.0f}"


def rate(value: float) -> str:
    """Tokens per second and the like: whole above ten."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def percent(fraction: float) -> str:
    return f"{fraction * 100:.0f} %" if fraction >= 0.1 else f"{fraction * 100:.1f} %"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def number(value: float) -> str:
    """Four digits, or all those before the point; never a power of ten: 157.3, 10,066."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def plain(value: object) -> str:
    """An assumption's value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number(value) if abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def known(value: float | None, write: Callable[[float], str], other: str = "") -> str:
    """The figure as `write` prints it, or `other` where it is not known."""
    return other if value is None else write(value)


def tenths(value: float) -> str:
    return f"{value:,.1f}"


def factor(value: float) -> str:
    """'1.32x'."""
    return f"{value:.2f}x"


def price(value_usd: float) -> str:
    """USD of tokens: fractions of a cent matter."""
    return f"${value_usd:,.4f}" if value_usd < 0.1 else usd(value_usd)


def billions(value: float) -> str:
    """'8.03 billion'."""
    return f"{value / 1e9:.2f} billion"


def bandwidth(value_bytes_per_s: float) -> str:
    return f"{value_bytes_per_s / 1e9:,.0f} GB/s"
