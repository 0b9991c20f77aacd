"""Which steps of a run a profiler looks at, as a person says it: `torch:10-12@0,8`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from estimator.errors import PlanError

_PATTERN = re.compile(r"([a-z]+)(?::([0-9]{1,9})-([0-9]{1,9}))?(?:@([0-9]{1,7}(?:,[0-9]{1,7}){0,63}))?")
_TOOLS = ("auto", "torch", "nsys", "xplane")
# Megatron-LM's defaults (megatron/training/config/common_config.py, profile_step_start and profile_step_end).
_FIRST, _LAST = 10, 12
# A trace of more steps is too large to open.
_MOST = 100


@dataclass(frozen=True)
class ProfiledSteps:
    """`first` to `last` optimizer step, counted from 1, on `ranks`, or where a program looks by itself. `tool` is auto
    for the program's own profiler."""

    tool: str
    first: int
    last: int
    ranks: tuple[int, ...]

    @property
    def steps(self) -> str:
        return f"{self.first}-{self.last}"

    @property
    def count(self) -> int:
        return self.last - self.first + 1


def profile_of(text: str) -> ProfiledSteps:
    """Raises PlanError."""
    match = _PATTERN.fullmatch(text.strip().lower())
    valid = [*_TOOLS, f"torch:{_FIRST}-{_LAST}", f"torch:{_FIRST}-{_LAST}@0,8"]
    if match is None or match[1] not in _TOOLS:
        raise PlanError("profile", f"{text[:60]!r} is no profiler with its steps and ranks", valid)
    first, last = (int(match[2]), int(match[3])) if match[2] else (_FIRST, _LAST)
    if not 2 <= first <= last < first + _MOST:
        problem = f"steps {first} to {last} are none of a trace: it has a step before it, and {_MOST} at most"
        raise PlanError("profile", problem, [f"{match[1]}:{_FIRST}-{_LAST}"])
    ranks = tuple(dict.fromkeys(int(rank) for rank in match[4].split(","))) if match[4] else ()
    return ProfiledSteps(match[1], first, last, ranks)
