"""What day it is: prices have an age. A fixed day can be set, for tests and for answers that are to come out again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date

_fixed: ContextVar[date | None] = ContextVar("fixed_day", default=None)


def today() -> date:
    return _fixed.get() or date.today()


@contextmanager
def on(day: date) -> Iterator[None]:
    """Within it, `day` is today (in this thread or task)."""
    token = _fixed.set(day)
    try:
        yield
    finally:
        _fixed.reset(token)
