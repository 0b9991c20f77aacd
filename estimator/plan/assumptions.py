"""What a job takes for granted where its plan is silent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Assumption:
    """A value that the user did not give."""

    field: str
    value: Any
    why: str
