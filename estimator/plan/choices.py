"""What a field takes, as its annotation says it."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin


def about(description: str | None) -> str:
    """': what is meant by it', as an error says it; nothing without a description."""
    if not description:
        return ""
    first = description[0] if description[1:2].isupper() else description[0].lower()
    return f": {first}{description[1:].rstrip('.')}"


def members(annotation: Any) -> Iterator[Any]:
    """The members of a union, however nested, without None and without what validates them."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from members(member)
    elif origin is Annotated:
        yield from members(get_args(annotation)[0])
    elif annotation is not type(None):
        yield annotation


def valid_values(annotation: Any) -> list[str]:
    """Where only certain words are taken: these, of a list those of its members."""
    values: list[str] = []
    for part in members(annotation):
        origin = get_origin(part)
        if origin is Literal:
            values += [str(value) for value in get_args(part)]
        elif origin is list:
            values += valid_values(get_args(part)[0])
        elif part is bool:
            values += ["true", "false"]
        else:
            return []
    return list(dict.fromkeys(values))
