"""Results for tests that say only what matters to them: every other field is blank."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)


def filled(kind: type[Model], said: Mapping[str, Any]) -> Model:
    """A result with the fields of `said`, nested ones alike."""
    fields = kind.model_fields.items()
    return kind.model_validate(
        {
            name: _value(info.annotation, said[name]) if name in said else _blank(info.annotation)
            for name, info in fields
            if name in said or info.is_required()
        }
    )


def _value(hint: Any, said: Any) -> Any:
    models = [part for part in _parts(hint) if isinstance(part, type) and issubclass(part, BaseModel)]
    if isinstance(said, Mapping) and models:
        return filled(models[0], said)
    if isinstance(said, list) and get_origin(hint) is list:
        return [_value(get_args(hint)[0], each) for each in said]
    return said


def _blank(hint: Any) -> Any:
    parts = _parts(hint)
    if type(None) in parts:
        return None
    part = parts[0]
    if isinstance(part, type) and issubclass(part, BaseModel):
        return filled(part, {})
    return {str: "", int: 0, float: 0.0, bool: False, list: [], dict: {}}.get(get_origin(part) or part)


def _parts(hint: Any) -> list[Any]:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return [part for each in get_args(hint) for part in _parts(each)]
    return _parts(get_args(hint)[0]) if origin is Annotated else [hint]
