"""How much of a sweep is gone through: a fixed part by `make test`, the whole by `make fuzz` (SHARDWISE_THOROUGH=1).
The part is drawn by the same rules and the same seed each time, over all that the whole is over."""

from __future__ import annotations

import os
from typing import TypeVar

THOROUGH = bool(os.environ.get("SHARDWISE_THOROUGH"))
# Of examples of one property so many are always drawn, and of more than these a part.
_LEAST, _PART = 12, 5


_Part = TypeVar("_Part")


def part(usual: _Part, whole: _Part) -> _Part:
    return whole if THOROUGH else usual


def examples(whole: int) -> int:
    """Of so many that Hypothesis draws."""
    return part(min(whole, max(_LEAST, whole // _PART)), whole)
