"""How figures are written for people: three digits and a unit. Values come in SI units and are never changed."""

from __future__ import annotations

_GIB = 2**30
_MIB = 2**20


def memory(n_bytes: float) -> str:
    """'61.2 GiB', or MiB below one GiB."""
    if abs(n_bytes) >= _GIB:
        return f"{_gib(n_bytes)} GiB"
    return f"{n_bytes / _MIB:.0f} MiB"


def memory_range(low_bytes: float, high_bytes: float) -> str:
    return f"{_gib(low_bytes)} to {_gib(high_bytes)} GiB"


def duration(seconds: float) -> str:
    """'85 ms', '12.4 s', '25 min', '3.4 h' or '12.1 days'."""
    for limit, unit, name in ((1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min"), (172800.0, 3600.0, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} ms" if name == "ms" else f"{_digits(seconds / unit)} {name}"
    return f"{_digits(seconds / 86400)} days"


def short_duration(seconds: float) -> str:
    """As `duration`, with three digits of milliseconds: '8.43 ms', '85.1 ms'."""
    return f"{_digits(seconds * 1e3)} ms" if seconds < 1.0 else duration(seconds)


def count(number: float) -> str:
    """'8.03B', '131K', '512'."""
    for size, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if abs(number) >= size:
            scaled = number / size
            return (f"{scaled:.0f}" if scaled == int(scaled) else _digits(scaled)) + suffix
    return f"{number:.0f}" if number == int(number) else _digits(number)


def usd(amount: float) -> str:
    """'$1,234' or, below 100, '$12.34'."""
    return f"${amount:,.0f}" if abs(amount) >= 100 else f"${amount:,.2f}"


def percent(fraction: float) -> str:
    return f"{fraction * 100:.1f} %"


def size(n_bytes: int) -> str:
    """A file's size: exact, since it is what the user is asked to approve."""
    return f"{n_bytes:,} bytes" if n_bytes != 1 else "1 byte"


def _gib(n_bytes: float) -> str:
    return f"{n_bytes / _GIB:,.0f}" if abs(n_bytes) >= 1000 * _GIB else f"{n_bytes / _GIB:.1f}"


def _digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if magnitude >= 10 else f"{value:.2f}"
