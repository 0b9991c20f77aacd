"""Reading the fields of a model config: typed, bounded, and with an error that names the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError

# An assumption: no dimension of a model is larger.
_LARGEST = 10**9
# Characters of a value that an error shows.
_SHOWN = 60


def problem(name: str, text: str, valid: tuple[object, ...] = ()) -> PlanError:
    return PlanError(f"model.{name}", text, valid)


def whole(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """The field as a whole number from 1 up; `default` when it is absent or null. Raises PlanError without either."""
    value = fields.get(name)
    if value is None:
        if default is None:
            raise problem(name, "is required to know the model's size, and the config does not have it")
        return default
    number = count(fields, name)
    if number < 1:
        raise problem(name, f"must be 1 or more, not {value!r}")
    return number


def count(fields: Mapping[str, Any], name: str, default: int = 0) -> int:
    """The field as a whole number from 0 up; `default` when it is absent or null."""
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise problem(name, f"must be a whole number, not {_shown(value)}")
    if not 0 <= value <= _LARGEST:
        raise problem(name, f"must be between 0 and {_LARGEST:,}, not {value}")
    return value


def flag(fields: Mapping[str, Any], name: str, default: bool = False) -> bool:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise problem(name, f"must be true or false, not {_shown(value)}", ("true", "false"))
    return value


def word(fields: Mapping[str, Any], name: str, default: str, valid: tuple[str, ...] = ()) -> str:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise problem(name, f"must be text, not {_shown(value)}", valid)
    if valid and value not in valid:
        raise problem(name, f"{_shown(value)} is not one of the known values", valid)
    return value


def items(fields: Mapping[str, Any], name: str, length: int) -> list[Any] | None:
    """The field as a list with one entry a layer, None when it is absent; a longer list (MTP layers) is cut."""
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or len(value) < length:
        raise problem(name, f"must be a list with one entry for each of the {length} layers")
    return value[:length]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
