"""Factors that were fitted to the user's own runs, by family of accelerator: they stand before the shipped ones.

`shardwise measure fit` writes the file, into the configuration folder of the user; what is below a project's folder
never counts here, as nobody may change estimates of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from knowledge.own.files import CALIBRATION, Stamp, calibration_stamp, parsed, read_text, user_folder

FORMAT = "shardwise-calibration/1"
_left_out: ContextVar[bool] = ContextVar("left_out", default=False)


@dataclass(frozen=True)
class OwnFactors:
    """Of one family: `device` and, by framework, factors in place of the shipped ones; by model what its step takes
    beyond that, as a multiple; `runs` that they were fitted to, and the half width of the 80 % interval of a step time
    by framework."""

    device: dict[str, float]
    models: dict[str, float]
    frameworks: dict[str, dict[str, float]]
    runs: dict[str, int]
    date: str


def calibration_file() -> Path:
    return user_folder() / CALIBRATION


def own_factors(family: str) -> OwnFactors | None:
    """What was fitted to the user's runs on a family; None where nothing was."""
    return None if _left_out.get() else _all(calibration_stamp()).get(family)


@contextmanager
def shipped_factors() -> Iterator[None]:
    """Within it estimates rest on the shipped factors alone, the user's own hardware and models still counting."""
    token = _left_out.set(True)
    try:
        yield
    finally:
        _left_out.reset(token)


@lru_cache(maxsize=8)
def _all(state: Stamp) -> dict[str, OwnFactors]:
    """A file that cannot be used counts as none: an estimate is none the worse for it."""
    ((path, _, size),) = state
    try:
        data = parsed(read_text(Path(path)), path) if size >= 0 else None
    except PlanError:
        return {}
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("families"), dict):
        return {}
    date = str(data.get("date", ""))
    return {family: own for family, row in data["families"].items() if (own := _of(row, date)) is not None}


def _of(row: Any, date: str) -> OwnFactors | None:
    if not isinstance(row, dict) or not isinstance(row.get("frameworks"), dict):
        return None
    device, frameworks = _numbers(row.get("device")), row["frameworks"]
    runs = {name: int(each["runs"]) for name, each in frameworks.items() if _counted(each)}
    factors = {name: {k: v for k, v in _numbers(frameworks[name]).items() if k != "runs"} for name in runs}
    return OwnFactors(device, _numbers(row.get("models")), factors, runs, date) if runs else None


def _counted(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("runs"), int) and row["runs"] > 0


def _numbers(row: Any) -> dict[str, float]:
    """Those of a row's values that are positive numbers, as all factors are."""
    if not isinstance(row, Mapping):
        return {}
    return {str(name): float(value) for name, value in row.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 < value < 1e6}  # fmt: skip
