"""Writes `__init__.pyi`, from which editors and type checkers know the functions: `python -m shardwise.stub`.

Requests that build on another share its arguments, here as there.
"""

from __future__ import annotations

import datetime
import textwrap
import types
import typing
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, BeforeValidator
from pydantic_core import PydanticUndefined

from shardwise.functions import needed_of, places_of
from tools.registry import Tool, registry

_WIDTH, _QUOTES = 118, '"""'
_HEAD = """\
# Written by `python -m shardwise.stub` from the tools' own schemas.
import datetime
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, Unpack

from estimator.errors import PlanError as PlanError
{imports}

__version__: str
"""


def text() -> str:
    tools = list(registry().values())
    bases: dict[type[BaseModel], None] = {}
    for tool in tools:
        bases |= dict.fromkeys(reversed(list(_requests(tool.request))))
    imports: dict[str, set[str]] = defaultdict(set)
    for tool in tools:
        imports[tool.response.__module__].add(tool.response.__name__)
    lines = [f"from {module} import {name} as {name}" for module in sorted(imports) for name in sorted(imports[module])]
    parts = [_HEAD.format(imports="\n".join(lines)), *map(_arguments, bases), *map(_function, tools)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _requests(request: type) -> Iterator[type[BaseModel]]:
    """A request and what it builds on, as far as there is something that may be given by name."""
    for each in request.__mro__:
        if each is not BaseModel and issubclass(each, BaseModel) and _optional(each):
            yield each


def _optional(request: type[BaseModel]) -> list[str]:
    apart = {*places_of(request), *needed_of(request)}
    return [name for name in request.model_fields if name not in apart]


def _arguments(request: type[BaseModel]) -> str:
    above = [base for base in request.__bases__ if issubclass(base, BaseModel) and base is not BaseModel]
    above = [base for base in above if _optional(base)]
    inherited = {name for base in above for name in _optional(base)}
    lines = [
        f"class _{request.__name__}({', '.join(f'_{base.__name__}' for base in above) or 'TypedDict'}, total=False):"
    ]
    for name in _optional(request):
        if name in inherited:
            continue
        field = request.model_fields[name]
        lines.append(f"    {name}: {type_text(field.annotation, field.metadata)}")
        if field.description:
            lines += _quoted(field.description)
    return "\n".join(lines if len(lines) > 1 else [*lines, "    ..."])


def _function(tool: Tool) -> str:
    fields = tool.request.model_fields

    def parameter(name: str) -> str:
        field = fields[name]
        default = "" if field.is_required() else " = None"
        return f"{name}: {type_text(field.annotation, field.metadata)}{default}"

    needed = needed_of(tool.request)
    parameters = [*map(parameter, places_of(tool.request)), *(["*"] if needed else []), *map(parameter, needed)]
    if _optional(tool.request):
        parameters.append(f"**arguments: Unpack[_{tool.request.__name__}]")
    head = f"def {tool.name}({', '.join(parameters)}) -> {tool.response.__name__}:"
    return "\n".join([head, *_quoted(tool.description)])


def _quoted(words: str) -> list[str]:
    lines = textwrap.wrap(words.replace("\\", "\\\\"), _WIDTH - 7)
    lines[0] = _QUOTES + lines[0]
    lines[-1] += (" " if lines[-1].endswith('"') else "") + _QUOTES
    return [f"    {line}" for line in lines]


def type_text(hint: Any, metadata: Any = ()) -> str:
    """A type as a caller gives it: what a field reads other spellings of, it takes in those too."""
    for reader in metadata:
        if isinstance(reader, BeforeValidator) and reader.json_schema_input_type is not PydanticUndefined:
            return type_text(reader.json_schema_input_type)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return type_text(inner[0], inner[1:])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, inner))}]"
    if origin in (typing.Union, types.UnionType):
        kinds = dict.fromkeys(type_text(each) for each in inner if each is not type(None))
        return " | ".join([*kinds, *(["None"] if type(None) in inner else [])])
    if origin is list:
        return f"list[{type_text(inner[0])}]"
    if origin is dict:
        return f"Mapping[str, {type_text(inner[1])}]"
    if hint in (datetime.date, datetime.datetime):
        return f"datetime.{hint.__name__} | str"
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return "Mapping[str, Any]"
    return "Any" if hint is Any else hint.__name__


if __name__ == "__main__":
    Path(__file__).with_name("__init__.pyi").write_text(text(), encoding="utf-8")
