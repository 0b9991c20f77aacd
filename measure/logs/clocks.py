"""When a line of a log was printed, in seconds of which differences count, as programs and people write it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(?P<{0}>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{{0,6}}"
_TIME = r"(?P<h>[0-2]?\d):(?P<min>[0-5]\d):(?P<s>[0-5]\d)(?:[.,](?P<part>\d{1,6}))?"
# 2026-01-31 and 20260131, 31/01/2026 or 01/31/2026 (nanotron), 31.01.2026, Jan 31, 31 Jan 2026, I0131.
_CLOCK = re.compile(
    r"(?<!\d)(?:(?P<y>20[1-4]\d)[-/.]?(?P<m>[01]\d)[-/.]?(?P<d>[0-3]\d)"
    r"|(?P<one>[0-3]?\d)[/.-](?P<two>[0-3]?\d)[/.-](?P<y2>20[1-4]\d)"
    rf"|{_MONTH.format('name')} {{1,2}}(?P<d2>[0-3]?\d)(?:,? 20[1-4]\d)?"
    rf"|(?P<d3>[0-3]?\d)[ /-]{_MONTH.format('name2')}(?:[ /-]20[1-4]\d)?"
    rf"|[IWE](?P<m2>[01]\d)(?P<d4>[0-3]\d))[ T_:,]{{1,2}}{_TIME}"
)
# Of a line that begins with the time of the day alone; no bar has its own there.
_OF_THE_DAY = re.compile(rf"(?:\[[\w.-]+\]:? ?)?[\[(]?{_TIME}(?![\d<])")
_SOME_YEAR, _LAST_MONTH = 2024, 12
_MOST_CHARACTERS = 400


def clock_s(line: str) -> float | None:
    """Seconds of the time that a line has; None of one without. A time of the day alone is that of some day."""
    clock = _CLOCK.search(line[:_MOST_CHARACTERS]) or _OF_THE_DAY.match(line)
    if clock is None:
        return None
    parts = {name: text for name, text in clock.groupdict().items() if text}
    name = parts.get("name") or parts.get("name2")
    month = _MONTHS.index(name.lower()) + 1 if name else int(parts.get("m") or parts.get("m2") or 1)
    day = int(parts.get("d") or parts.get("d2") or parts.get("d3") or parts.get("d4") or 1)
    if "one" in parts:
        # The month comes first but where it can be none.
        month, day = sorted((int(parts["one"]), int(parts["two"])), key=lambda number: number > _LAST_MONTH)
    year = int(parts.get("y") or parts.get("y2") or _SOME_YEAR)
    try:
        at = datetime(year, month, day, int(clock["h"]), int(clock["min"]), int(clock["s"]), tzinfo=UTC)
    except ValueError:
        return None
    return at.timestamp() + float(f"0.{clock['part'] or 0}")
