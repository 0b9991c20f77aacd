"""How old a price is."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

FRESH_DAYS = 90
_OLD = "(old)"


def dated(price_date: str | None, day: date) -> str:
    """'price of 2026-07-20, 124 days old' or 'undated price'."""
    age = age_days(price_date, day)
    return "undated price" if age is None else f"price of {price_date}, {age} days old"


def age_days(price_date: str | None, day: date) -> int | None:
    """Days since a price; of a month or year since its first day. None where it is undated."""
    since = _day(price_date) if price_date else None
    return None if since is None else max(0, (day - since).days)


def is_stale(price_date: str | None, day: date) -> bool:
    """Older than 90 days, or undated."""
    age = age_days(price_date, day)
    return age is None or age > FRESH_DAYS


def old_words(price_date: str | None, day: date) -> str | None:
    """'is 124 days old (of 2026-07-20)' or 'is undated'; None of a price of these days."""
    if not is_stale(price_date, day):
        return None
    age = age_days(price_date, day)
    return "is undated" if age is None else f"is {age} days old (of {price_date})"


def price_day(price_date: str | None, stale: bool | None) -> str:
    """The day of a price as tables write it: '2026-07-20 (old)'."""
    return mark_old(price_date or "date unknown", stale)


def mark_old(text: str, stale: bool | None) -> str:
    return f"{text} {_OLD}" if stale else text


def is_marked_old(text: str) -> bool:
    """Whether a cell of a table is marked so; faces with colours draw it amber."""
    return text.endswith(_OLD)


@lru_cache(maxsize=256)
def _day(text: str) -> date:
    year, month, day = (*map(int, text.split("-")), 1, 1)[:3]
    return date(year, month, day)
