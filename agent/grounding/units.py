"""Units as they are printed, and what they count."""

from __future__ import annotations

import re

from agent.grounding import tongues

_GIB, _MIB, _KIB = 2.0**30, 2.0**20, 2.0**10
# Unit as printed: (kind, factor to the kind's own unit). Longer spellings stand first in the pattern.
UNITS: dict[str, tuple[str, float]] = {
    "gib": ("bytes", _GIB), "mib": ("bytes", _MIB), "kib": ("bytes", _KIB), "tib": ("bytes", 2.0**40),
    "gb": ("bytes", 1e9), "mb": ("bytes", 1e6), "kb": ("bytes", 1e3), "tb": ("bytes", 1e12), "bytes": ("bytes", 1.0),
    "gibibytes": ("bytes", _GIB), "mebibytes": ("bytes", _MIB), "tebibytes": ("bytes", 2.0**40), "gigs": ("bytes", 1e9),
    "gigabyte": ("bytes", 1e9), "gigabytes": ("bytes", 1e9), "megabytes": ("bytes", 1e6), "terabytes": ("bytes", 1e12),
    "terabyte": ("bytes", 1e12), "gibibyte": ("bytes", _GIB), "gbs": ("bytes", 1e9), "megabyte": ("bytes", 1e6),
    "kilobyte": ("bytes", 1e3), "kilobytes": ("bytes", 1e3), "pb": ("bytes", 1e15), "petabytes": ("bytes", 1e15),
    "gb/s": ("bytes_per_s", 1e9), "tb/s": ("bytes_per_s", 1e12), "gib/s": ("bytes_per_s", _GIB),
    "ms": ("seconds", 1e-3), "µs": ("seconds", 1e-6), "us": ("seconds", 1e-6), "s": ("seconds", 1.0),
    "sec": ("seconds", 1.0), "second": ("seconds", 1.0), "seconds": ("seconds", 1.0), "min": ("seconds", 60.0),
    "minute": ("seconds", 60.0), "minutes": ("seconds", 60.0), "h": ("seconds", 3600.0), "hr": ("seconds", 3600.0),
    "hrs": ("seconds", 3600.0), "hour": ("seconds", 3600.0), "hours": ("seconds", 3600.0), "day": ("seconds", 86400.0),
    "days": ("seconds", 86400.0), "week": ("seconds", 604800.0), "weeks": ("seconds", 604800.0),
    "fortnight": ("seconds", 1209600.0), "fortnights": ("seconds", 1209600.0), "month": ("seconds", 2629800.0),
    "months": ("seconds", 2629800.0), "year": ("seconds", 31557600.0), "years": ("seconds", 31557600.0),
    "decade": ("seconds", 315576000.0), "decades": ("seconds", 315576000.0), "millisecond": ("seconds", 1e-3),
    "milliseconds": ("seconds", 1e-3), "microseconds": ("seconds", 1e-6),
    "%": ("fraction", 0.01), "percent": ("fraction", 0.01), "per cent": ("fraction", 0.01),
    "usd": ("usd", 1.0), "dollars": ("usd", 1.0), "dollar": ("usd", 1.0), "bucks": ("usd", 1.0), "cents": ("usd", 0.01),
    "grand": ("usd", 1e3), "£": ("gbp", 1.0), "gbp": ("gbp", 1.0), "pounds": ("gbp", 1.0), "¥": ("yen", 1.0),
    "yen": ("yen", 1.0), "yuan": ("yen", 1.0),
    "tokens/s": ("rate", 1.0), "tok/s": ("rate", 1.0), "tokens/sec": ("rate", 1.0), "tokens per second": ("rate", 1.0),
    "tokens a second": ("rate", 1.0), "tokens each second": ("rate", 1.0), "teraflops": ("tflops", 1.0),
    "samples/s": ("rate", 1.0), "tflops": ("tflops", 1.0), "tflop/s": ("tflops", 1.0), "pflops": ("tflops", 1e3),
    "petaflops": ("tflops", 1e3), "pflop/s": ("tflops", 1e3), "exaflops": ("tflops", 1e6),
    "device-hours": ("device_hours", 1.0), "gpu-hours": ("device_hours", 1.0),
    "kwh": ("kwh", 1.0), "mwh": ("kwh", 1e3), "kg": ("kg", 1.0), "kw": ("w", 1e3), "w": ("w", 1.0),
    "watts": ("w", 1.0), "kilowatts": ("w", 1e3), "mw": ("w", 1e6), "megawatts": ("w", 1e6),
    **tongues.UNITS,
}  # fmt: skip
# What is no unit by itself: a part of a whole, and how many times as much.
SHARE, TIMES = "share", "times"
MEASURES = {**UNITS, SHARE: ("fraction", 1.0), TIMES: ("ratio", 1.0)}
MONEY = {"$": "usd", "€": "eur", "£": "gbp", "¥": "yen"}
SCALES = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "billion": 1e9, "t": 1e12, "trillion": 1e12,
    **tongues.SCALES,
}  # fmt: skip
# 'forty-odd gigabytes', '40+ GB'.
FILLER = r"(?:[\s-]?(?:odd|ish|plus|\+|or\s+so|whole|full)(?=[\s-]))?"
SCALE = "|".join(sorted((re.escape(scale) for scale in SCALES), key=len, reverse=True))
UNIT = "|".join(sorted((re.escape(unit) for unit in UNITS), key=len, reverse=True))
