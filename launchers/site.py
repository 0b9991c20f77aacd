"""What the user may say of the place where a run starts, checked before it goes into any file."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from estimator.errors import PlanError
from launchers.trial.profile import ProfiledSteps, profile_of

_WORD = "letters, digits, dots, dashes and underscores"
# What each may hold: a pattern, and in words.
_ALLOWED = {
    "partition": (r"[A-Za-z0-9_][A-Za-z0-9._,-]{0,127}", f"{_WORD}; several with commas"),
    "account": (r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", _WORD),
    "image": (r"[A-Za-z0-9/._~][A-Za-z0-9._:/@#+~-]{0,511}", "e.g. nvcr.io/nvidia/pytorch:25.10-py3"),
    "namespace": (r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "small letters, digits and dashes, at most 63"),
    "queue": (r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", "small letters, digits, dots and dashes, at most 63"),
}
SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class Site:
    """None is marked in the files and asked for. Raises PlanError for a value that no file could carry.

    `partition` and `account` are Slurm's; `namespace` and `queue` (Kueue's) Kubernetes'; `image` is a container image,
    `dataset` the name or path of the data as the program takes it, or SYNTHETIC for random
    tokens; `profile` what a profiler looks at.
    """

    partition: str | None = None
    account: str | None = None
    image: str | None = None
    namespace: str | None = None
    queue: str | None = None
    dataset: str | None = None
    time_limit_h: float | None = None
    profile: str | None = None

    @property
    def profiled(self) -> ProfiledSteps | None:
        return None if self.profile is None else profile_of(self.profile)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if field.name == "time_limit_h":
                if not 0 < value <= 24 * 365:
                    raise PlanError("time_limit_h", f"{value!r} is not a time limit", ["hours, up to a year"])
            elif field.name == "dataset":
                _check_text(field.name, value)
            elif field.name == "profile":
                profile_of(value)
            else:
                pattern, words = _ALLOWED[field.name]
                if not re.fullmatch(pattern, value):
                    raise PlanError(field.name, f"{value[:60]!r} cannot stand in a launch file", [words])


def _check_text(name: str, value: str) -> None:
    if not value.strip() or not value.isprintable() or "${" in value or len(value) > 1000:
        raise PlanError(name, f"{value[:60]!r} cannot stand in a launch file", ["a name or path on one line"])
