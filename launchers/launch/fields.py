"""What a plan must say before files can be made of it."""

from __future__ import annotations

from typing import TypeVar

from estimator.errors import PlanError

# The catalogue's ids of models that are known from a paper alone.
_UNPUBLISHED = "paper/"
_Value = TypeVar("_Value")


def required(field: str, value: _Value | None) -> _Value:
    """Raises PlanError where the plan leaves `field` open."""
    if value is None:
        raise PlanError(field, "is needed to write launch files, and the plan leaves it open")
    return value


def loadable(model: str | None) -> str | None:
    """The model's name or path, refused where a config file could not carry it as plain text; None of one that nobody
    published."""
    if model is None or model.startswith(_UNPUBLISHED):
        return None
    if not model.strip() or not model.isprintable():
        raise PlanError("model", "the name must be printable text on one line to stand in a launch file")
    if "${" in model:
        raise PlanError("model", "the name holds '${', which config files read as a variable")
    return model
