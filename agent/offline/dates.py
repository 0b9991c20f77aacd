"""Deadlines given as dates: 'by Friday', 'before tomorrow noon', 'by 2026-12-01', as hours from the given now."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = r"(?:[ ,]+(?:at )?(?P<clock>noon|midnight|night|morning|evening|\d{1,2}(?::\d{2})? ?(?:am|pm)|\d{1,2}:\d{2}))?"
_DATE = (
    r"(?:the )?(?:(?P<next>next )?(?P<day>"
    + "|".join(DAYS)
    + r")|(?P<word>today|tonight|tomorrow)|(?P<end>end of (?:the )?(?P<span>week|month|year))|"
    r"(?P<span2>next week|next month)|(?P<feast>christmas|xmas|new year(?:'?s)?)(?: (?:eve|day))?\b|"
    r"(?P<iso>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2})?)|"
    r"(?P<month>(?:" + "|".join(MONTHS) + r")[a-z]*)\.? (?P<date>\d{1,2})(?:st|nd|rd|th)?|"
    r"(?P<date2>\d{1,2})(?:st|nd|rd|th)? (?:of )?(?P<month2>(?:" + "|".join(MONTHS) + r")[a-z]*)"
    r")" + _TIME
)
_DEADLINE = re.compile(rf"\b(?:by|before|until|till|due|due on|deadline(?: is|:)?)\s+{_DATE}", re.IGNORECASE)
# 'The meeting is Monday 9am, and I need it before that'.
_THEN = re.compile(r"\b(?:by|before|until|till) (?:that|then)\b", re.IGNORECASE)
_NAMED = re.compile(rf"\b{_DATE}", re.IGNORECASE)


def hours_until(text: str, now: datetime) -> tuple[float, str] | None:
    """(hours from `now`, the words), or None. A date without a time ends at the end of that day."""
    match = _DEADLINE.search(text) or (_THEN.search(text) and _NAMED.search(text))
    if not match:
        return None
    day = _day(match, now)
    if day is None:
        return None
    iso = match["iso"] or ""
    due = datetime.fromisoformat(iso).replace(tzinfo=now.tzinfo) if len(iso) > 10 else _at(day, match["clock"])
    hours = (due - now).total_seconds() / 3600
    return (round(hours, 1), match[0]) if hours > 0 else None


def _day(match: re.Match[str], now: datetime) -> datetime | None:
    """Midnight at the start of the day that is meant."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if name := match["day"]:
        ahead = (DAYS.index(name.lower()) - today.weekday()) % 7 or 7
        return today + timedelta(days=ahead)
    if word := match["word"]:
        return today + timedelta(days=1 if word.lower() == "tomorrow" else 0)
    if match["span2"]:
        return today + timedelta(days=7 if "week" in match["span2"].lower() else 30)
    if span := match["span"]:
        if span.lower() == "week":
            return today + timedelta(days=6 - today.weekday())
        first = today.replace(day=1)
        after = (
            first.replace(month=1, year=first.year + 1)
            if span.lower() == "year" or first.month == 12
            else first.replace(month=first.month + 1)
        )
        return after - timedelta(days=1)
    if feast := match["feast"]:
        # Christmas Eve, and the last day of the year.
        day = today.replace(month=12, day=31 if feast.lower().startswith("new") else 24)
        return day if day >= today else day.replace(year=day.year + 1)
    try:
        if match["iso"]:
            return datetime.fromisoformat(match["iso"][:10]).replace(tzinfo=now.tzinfo)
        month = MONTHS.index((match["month"] or match["month2"])[:3].lower()) + 1
        day = today.replace(month=month, day=int(match["date"] or match["date2"]))
    except ValueError:
        return None
    return day if day >= today else day.replace(year=day.year + 1)


def _at(day: datetime, clock: str | None) -> datetime:
    if clock is None:
        return day + timedelta(days=1)
    clock = clock.lower().strip()
    named = {"noon": 12, "midnight": 24, "night": 24, "morning": 9, "evening": 18}
    if clock in named:
        return day + timedelta(hours=named[clock])
    match = re.match(r"(\d{1,2})(?::(\d{2}))?\s?(am|pm)?", clock)
    assert match
    hour = int(match[1]) % 12 + (12 if match[3] == "pm" else 0) if match[3] else int(match[1])
    return day + timedelta(hours=min(hour, 24), minutes=int(match[2] or 0))
