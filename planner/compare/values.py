"""The values of a swept field: a list, a range, or words ('8..512', '1..64 doubling', '4096..32768 step 4096')."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.plan.schema import Overrides
from planner.requests import ALL_PATHS

MOST_POINTS = 200
# What a plan has besides its flat fields that can be swept, and a word that people use for a field.
_PATHS = {"devices": "cluster.count"} | {f"overrides.{name}": f"overrides.{name}" for name in Overrides.model_fields}
_NO_AXIS = ("name", "overrides")
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_WORDS = re.compile(
    rf"{_NUMBER}\s*(?:\.\.|to)\s*{_NUMBER}(?:\s+doubling|\s*(?:x|factor)\s*{_NUMBER}|\s*step\s*{_NUMBER})?"
)
Values = list[Any] | dict[str, float] | str
_EXAMPLES = ("[8, 16, 32]", '{"start": 8, "stop": 512}', '{"start": 8, "stop": 64, "step": 8}', '"8..512"')


@dataclass(frozen=True)
class Range:
    """From `start` to at most `stop`: each value `factor` times the one before (2 where neither is given), or `step`
    more."""

    start: float
    stop: float
    factor: float | None = None
    step: float | None = None


def path_of(name: str, argument: str) -> str:
    """The dotted Plan path that a flat or dotted name means. Raises PlanError for `argument` where there is none."""
    paths = {flat: path for flat, path in ALL_PATHS.items() if flat not in _NO_AXIS}
    known = paths | {path: path for path in paths.values()} | _PATHS
    wanted = name.strip().replace("-", "_")
    if wanted not in known:
        raise PlanError(argument, f"{name!r} is no field of a plan that can be swept", nearest(wanted, known))
    return known[wanted]


def values_of(values: Values, argument: str) -> list[Any]:
    """The values in order, each once. Raises PlanError for a range that cannot be, none, or too many of them, counting
    equal ones."""
    if isinstance(values, str):
        span = _read(values)
    else:
        span = _range(values, argument) if isinstance(values, dict) else values
    listed = _steps(span, argument) if isinstance(span, Range) else list(span)
    if not listed:
        raise PlanError(argument, "has no values", _EXAMPLES)
    # Counted as given: each is compared with all before it.
    check_number(len(listed), argument)
    return [value for place, value in enumerate(listed) if value not in listed[:place]]


def check_number(points: int, argument: str) -> None:
    if points > MOST_POINTS:
        raise PlanError(argument, f"{points} points are more than a sweep takes", [f"up to {MOST_POINTS}"])


def _range(values: Mapping[str, float], argument: str) -> Range:
    names = [field.name for field in fields(Range)]
    if not {"start", "stop"} <= set(values) <= set(names):
        raise PlanError(argument, "is a range without start and stop, or with more than factor or step", _EXAMPLES)
    return Range(**values)


def _read(text: str) -> Range | list[Any]:
    """'8..512 x4' as a range, 'none, full' as a list."""
    match = _WORDS.fullmatch(text.strip().lower())
    if match is None:
        return [value_of(part.strip()) for part in text.split(",") if part.strip()]
    start, stop, factor, step = (None if number is None else float(number) for number in match.groups())
    assert start is not None
    assert stop is not None
    return Range(start, stop, factor, step)


def value_of(text: str) -> Any:
    """A number or a truth value where the text is one; words stay words."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return _whole(float(text))
    except ValueError:
        return text


def _steps(span: Range, argument: str) -> list[Any]:
    if span.factor is not None and span.step is not None:
        raise PlanError(argument, "has a factor and a step; give one of them", ["factor=2", "step=8"])
    if span.start > span.stop:
        raise PlanError(argument, f"starts at {span.start:g}, beyond its stop of {span.stop:g}", ["start below stop"])
    factor = 1.0 if span.step is not None else 2.0 if span.factor is None else span.factor
    step = 0.0 if span.step is None else span.step
    if (span.step is not None and step <= 0) or (span.step is None and (factor <= 1 or span.start <= 0)):
        raise PlanError(argument, "does not grow from its start to its stop", ["factor above 1", "step above 0"])
    steps: list[Any] = []
    value = span.start
    # A hair beyond the stop is rounding.
    while value <= span.stop * (1 + 1e-9) and len(steps) <= MOST_POINTS:
        steps.append(_whole(value))
        value = value * factor + step
    return steps


def _whole(value: float) -> int | float:
    return int(value) if value == int(value) else value
