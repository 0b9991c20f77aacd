"""A tool as a function: its arguments by name, those that say what runs where also by place."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pages.answers.page import page_of
from pages.rendering.html import fragment
from planner.result import Result
from tools.registry import Tool, find

_PLAN, _RUN = "plan", ("model", "accelerator")
_WIDTH = 100


def places_of(request: type[BaseModel]) -> list[str]:
    """The arguments that need no name: of a run the model and what it runs on, of all else what is needed."""
    fields = request.model_fields
    is_of_run = _PLAN in fields and set(_RUN) <= fields.keys()
    return list(_RUN) if is_of_run else [name for name, field in fields.items() if field.is_required()]


def needed_of(request: type[BaseModel]) -> list[str]:
    """Those that have to be given by name."""
    places = places_of(request)
    return [name for name, field in request.model_fields.items() if field.is_required() and name not in places]


def function_of(name: str) -> Callable[..., BaseModel]:
    """The tool of that name as a function. Raises PlanError where there is none."""
    tool = find(name)
    places = places_of(tool.request)

    def function(*placed: Any, **arguments: Any) -> BaseModel:
        if len(placed) > len(places):
            raise TypeError(f"{name}() takes {', '.join(places)} by place, all else by name")
        by_place = dict(zip(places, placed, strict=False))
        if twice := by_place.keys() & arguments.keys():
            raise TypeError(f"{name}() got {', '.join(sorted(twice))} twice")
        return tool.run(by_place | arguments)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "shardwise"
    function.__doc__ = described(tool)
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        list(_parameters(tool.request, places)), return_annotation=tool.response
    )
    return function


def described(tool: Tool) -> str:
    """The tool's words, and a line for each argument."""
    lines = [textwrap.fill(tool.description, _WIDTH), "", "Arguments:"]
    for name, field in tool.request.model_fields.items():
        words = f"{name}: {field.description or ''}".rstrip(": ")
        lines.append(textwrap.fill(words, _WIDTH, initial_indent="    ", subsequent_indent="        "))
    return "\n".join([*lines, "", f"Gives {tool.response.__name__}. Raises PlanError for what cannot be used."])


def _parameters(request: type[BaseModel], places: list[str]) -> Iterator[inspect.Parameter]:
    fields = request.model_fields
    for name in places:
        yield _parameter(name, fields[name], inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for name, field in fields.items():
        if name not in places:
            yield _parameter(name, field, inspect.Parameter.KEYWORD_ONLY)


def _parameter(name: str, field: FieldInfo, kind: Any) -> inspect.Parameter:
    empty = inspect.Parameter.empty
    default = empty if field.is_required() else field.get_default(call_default_factory=True, validated_data={})
    return inspect.Parameter(name, kind, default=default, annotation=field.annotation)


def _page(result: Result) -> str:
    return fragment(page_of(result, _WIDTH))


Result.shown = _page
