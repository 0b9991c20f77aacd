"""The one place where a number becomes text. A figure is written by its row of knowledge/data/figures.yaml: its unit
has a rule, and the row may name another. Units stay those of the origin, so that a figure can be checked against it."""

from __future__ import annotations

import math
from collections.abc import Callable

from estimator.units import GIB
from knowledge.figure_facts import known_figure

NONE = "–"
_KIB, _MIB = 2.0**10, 2.0**20
_DAYS_FROM_H = 72
_MOST_BESIDE = 600
_LEAST_ROOM = 0.05 * GIB


def is_no_room(value_bytes: float) -> bool:
    """Whether so little is left that a layout fits since what is cached gives way."""
    return abs(value_bytes) < _LEAST_ROOM


def room(value_bytes: float) -> str:
    return "none" if is_no_room(value_bytes) else gib(value_bytes)


def gib(size_bytes: float) -> str:
    """GiB; below one GiB in MiB, below one MiB in KiB, below one KiB in bytes."""
    size = abs(size_bytes)
    if 0 < size < _KIB:
        return f"{size_bytes:.3g} byte{'' if size == 1 else 's'}"
    if size >= GIB or size == 0:
        return f"{size_bytes / GIB:,.{0 if size >= 1000 * GIB else 1}f} GiB"
    unit, name = (_MIB, "MiB") if size >= _MIB else (_KIB, "KiB")
    return f"{size_bytes / unit:,.{0 if size >= 10 * unit else 1}f} {name}"


def gib_range(low_bytes: float, high_bytes: float) -> str:
    """Both ends in the unit that suits the upper one."""
    if high_bytes < GIB:
        return _between(gib(low_bytes), gib(high_bytes))
    # As many digits as each has by itself.
    ends = (f"{size / GIB:,.{0 if size >= 1000 * GIB else 1}f}" for size in (low_bytes, high_bytes))
    return f"{'–'.join(ends)} GiB"


def file_size(size_bytes: int) -> str:
    """Exact, since it is what a person is asked to approve."""
    return f"{size_bytes:,} bytes" if size_bytes != 1 else "1 byte"


# Seconds below which each unit is used. What rounds to 1000 ms is 1.00 s.
_UNITS_OF_SECONDS = ((0.001, 1e-6, "µs"), (0.9995, 1e-3, "ms"), (600, 1.0, "s"), (7200, 60.0, "min"),
                     (172_800, 3600.0, "hours"))  # fmt: skip
_DAYS = (86_400.0, "days")


def seconds(value_s: float) -> str:
    return _seconds_beside(value_s, value_s)


def _seconds_beside(value_s: float, other_s: float) -> str:
    """In the unit and with the digits that the other is written with."""
    unit_s, unit = next(((size, name) for limit_s, size, name in _UNITS_OF_SECONDS if other_s < limit_s), _DAYS)
    size, whole = other_s / unit_s, {"µs": 0, "ms": 100, "s": 100}
    digits = (0 if size >= whole[unit] else 2 if unit == "s" else 1) if unit in whole else _digits_of_three(size)
    return f"{value_s / unit_s:,.{digits}f} {unit}"


def _digits_of_three(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2


def hours(value_h: float) -> str:
    """Minutes, hours or days, whichever reads best."""
    if value_h < 1:
        return f"{value_h * 60:.0f} min" if value_h * 60 >= 10 else f"{value_h * 60:.1f} min"
    if value_h < _DAYS_FROM_H:
        return f"{value_h:.1f} hours"
    return f"{value_h / 24:.1f} days" if value_h / 24 < 1000 else f"{value_h / 24:,.0f} days"


def hours_beside(value_h: float, other_h: float) -> str:
    """Like `hours`, in the unit that the other is written in; in its own where that makes it a large number."""
    unit = hours(other_h).rpartition(" ")[2]
    if unit != "days" and value_h > _MOST_BESIDE * {"min": 1 / 60, "hours": 1.0}[unit]:
        return hours(value_h)
    size = value_h / {"min": 1 / 60, "hours": 1.0, "days": 24.0}[unit]
    whole = size >= (10 if unit == "min" else 1000)
    return f"{size:,.0f} {unit}" if whole else f"{size:,.1f} {unit}"


def hour_range(low_h: float, high_h: float, of_h: float | None = None) -> str:
    """Both ends in the unit of the figure that they are of; by themselves in the one that suits the upper end."""
    about_h = high_h if of_h is None else of_h
    if about_h < 1:
        return f"{low_h * 60:.1f}–{high_h * 60:.1f} min"
    if about_h < _DAYS_FROM_H:
        return f"{low_h:.1f}–{high_h:.1f} hours"
    digits = 1 if high_h / 24 < 1000 else 0
    return f"{low_h / 24:,.{digits}f}–{high_h / 24:,.{digits}f} days"


def usd(value_usd: float) -> str:
    """Dollars from a hundred on, else cents; below ten cents up to three digits."""
    size = abs(value_usd)
    if 0 < size < 0.1:
        digits = f"{value_usd:.{min(2 - math.floor(math.log10(size)), 12)}f}".rstrip("0")
        return f"${digits:0<{digits.index('.') + 3}}"
    return f"${value_usd:,.2f}" if size < 100 else f"${value_usd:,.0f}"


def rate(value: float) -> str:
    """Tokens per second and the like: whole above ten."""
    if value >= 10 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def percent(fraction: float) -> str:
    return f"{fraction * 100:.0f} %" if abs(fraction) >= 0.1 else f"{fraction * 100:.1f} %"


def change(fraction: float) -> str:
    """'+12 %' of a gain, '-3.4 %' of an error."""
    return f"{fraction * 100:+.0f} %" if abs(fraction) >= 0.1 else f"{fraction * 100:+.1f} %"


def ratio(factor: float) -> str:
    return f"{factor:.2f} x"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def count(value: float) -> str:
    """'8.03B' and '1.5T' of what is counted in millions, else all digits: 32,768."""
    for size, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:.{2 if abs(value) < 10 * size else 1}f}".rstrip("0").rstrip(".") + suffix
    return number(value)


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
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={plain(item)}" for key, item in value.items())
    return "none" if value is None else str(value)


def _with(unit: str, size: float = 1.0) -> Callable[[float], str]:
    return lambda value: f"{number(round(value / size, 1)) if abs(value / size) < 100 else whole(value / size)} {unit}"


bandwidth = _with("GB/s", 1e9)
_RULES: dict[str, Callable[[float], str]] = {
    "B": gib,
    "room": room,
    "bytes": lambda value: file_size(int(value)),
    "s": seconds,
    "min": lambda value: seconds(60.0 * value),
    "h": hours,
    "USD": usd,
    "USD/h": usd,
    "1": number,
    "tokens/s": rate,
    "requests/s": rate,
    "samples/s": rate,
    "TFLOP/s": whole,
    "FLOP/s": _with("TFLOP/s", 1e12),
    "FLOP": _with("TFLOP", 1e12),
    "FLOP/B": number,
    "B/s": bandwidth,
    "W": _with("W"),
    "kW": _with("kW"),
    "kWh": _with("kWh"),
    "kg": _with("kg"),
    "percent": percent,
    "change": change,
    "ratio": ratio,
    "rate": rate,
    "count": count,
    "number": number,
}


def written(unit: str, value: float | bool | str | None) -> str:
    """A value by the rule of its unit or `rounding`; what has no rule is counted: parameters, tokens, devices."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NONE
    if isinstance(value, bool | str):
        return plain(value)
    return _RULES.get(unit, count)(value)


def amount(key: str, unit: str, value: float | bool | None) -> str:
    """A figure or an input of one where no label says what it counts: '42,500 tokens/s', '61.2 GiB', '42 %'."""
    row = known_figure(key) if key else None
    text = written((row.rounding if row else "") or unit, value)
    bare = value is not None and not isinstance(value, bool) and text.replace(",", "").replace(".", "").isdigit()
    if not bare or unit == "1":
        return text
    single = text == "1" and unit.endswith("s") and "/" not in unit
    return f"{text} {unit[:-1] if single else unit}"


def shown(key: str, value: object) -> str:
    """The figure of that key; words, lists and truth values as they are, an en dash for what there is not."""
    if value is None:
        return NONE
    if not isinstance(value, int | float):
        return plain(value)
    row = known_figure(key)
    return written(row.rounding or row.unit if row else "1", value)


def label(key: str) -> str:
    """What tables call it; a field that is no figure by its own name."""
    row = known_figure(key)
    return row.label or row.name if row else key.rpartition(".")[2].replace("_", " ")


def better(key: str) -> str:
    """'higher', 'lower', or '' where neither end is better."""
    row = known_figure(key)
    return row.better if row else ""


def between(key: str, low: float, high: float, value: float | None = None) -> str:
    """The ends of an interval, their unit said once: '11.00–13.50 s'; '' where both read the same. `value` is the
    figure that it is of, where that is known."""
    row, ends = known_figure(key), (shown(key, low), shown(key, high))
    if ends[0] == ends[1]:
        return ""
    match row.unit if row else "1":
        case "B":
            return gib_range(low, high)
        case "h":
            return hour_range(low, high, value)
        case "s" if value is not None:
            return _between(*(_seconds_beside(end, value) for end in (low, high)))
    return _between(*ends)


def interval(part: object, key: str) -> str:
    """The 80 % interval of a figure of a result; '' where it has none."""
    row = known_figure(key)
    low, high = (getattr(part, end, None) for end in (row.ends if row and row.ends else ("", "")))
    return "" if low is None or high is None else between(key, low, high, getattr(part, key))


def held(part: object, key: str) -> str:
    """A figure of a result with its interval: '12.34 s (11.00–13.50)'."""
    value = shown(key, getattr(part, key))
    return with_interval(value, interval(part, key) if value != NONE else "")


def with_interval(value: str, span: str, name: str = "") -> str:
    """A written figure and its written interval, which leaves out the unit that the figure has too; `name` is what the
    interval is called before it."""
    unit = value.partition(" ")[2]
    if unit and "–" in span and span.endswith(f" {unit}"):
        span = span.removesuffix(f" {unit}")
    return f"{value} ({name}{span})" if span else value


def _between(low: str, high: str) -> str:
    (first, _, unit), (last, _, other) = low.partition(" "), high.partition(" ")
    if unit != other:
        return f"{low} to {high}"
    sign = "$" if first.startswith("$") else ""
    return f"{first}–{last.removeprefix(sign)} {other}".strip()


def known(value: float | None, write: Callable[[float], str], other: str = "") -> str:
    """The figure as `write` prints it, or `other` where it is not known."""
    return other if value is None else write(value)


def length_in_tokens(digits: float, scale: str) -> float:
    """Tokens of a context of `digits` "k" or "m" as people write them: binary where the size is a power of two (4k is
    4,096, 100k is 100,000)."""
    power = {"k": 1, "m": 2}.get(scale, 0)
    whole = digits == int(digits) and digits > 0
    return digits * (1024**power if whole and not int(digits) & (int(digits) - 1) else 1000**power)
