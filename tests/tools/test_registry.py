"""The registry: what may be a tool, the order of the tools, and one error for an unknown name."""

from __future__ import annotations

import subprocess
import sys
import typing
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from estimator.errors import PlanError
from tools import call
from tools.registry import Maker, OnDemand, find, is_declared, registry, tool

TOOLS = [
    "describe_model", "describe_hardware", "estimate_training", "check_fit", "best_parallelism", "find_limit", "sweep",
    "estimate_cost", "render_configs", "write_configs",
]  # fmt: skip


class Question(BaseModel):
    word: str = "a"


class Answer(BaseModel):
    length: int


def no_annotations(request):
    """Documented."""
    return Answer(length=len(request.word))


def no_docstring(request: Question) -> Answer:
    return Answer(length=len(request.word))


def plain_result(request: Question) -> int:
    """Documented."""
    return len(request.word)


def plain_argument(request: str) -> Answer:
    """Documented."""
    return Answer(length=len(request))


def two_arguments(request: Question, again: Question) -> Answer:
    """Documented."""
    return Answer(length=len(request.word + again.word))


def no_argument() -> Answer:
    """Documented."""
    return Answer(length=0)


def estimate_training(request: Question) -> Answer:
    """Documented."""
    return Answer(length=len(request.word))


@pytest.mark.parametrize(
    "function",
    [no_annotations, no_docstring, plain_argument, two_arguments, no_argument, estimate_training],
)
def test_what_cannot_be_a_tool_is_refused_where_it_is_defined(function: Callable[..., Any]) -> None:
    before = set(registry())
    with pytest.raises(TypeError, match=f"^tool {function.__name__}: "):
        tool(title="A tool", by=__name__, read_only=True)(function)
    assert set(registry()) == before


def test_a_tool_is_the_function_that_it_declares() -> None:
    for name, entry in registry().items():
        hints = typing.get_type_hints(entry.maker.function)
        assert hints.pop("return") is entry.response, name
        assert all(issubclass(entry.request, taken) for taken in hints.values()), name
        assert len(hints) == 1, name
        assert is_declared(entry)
    maker = Maker(__name__, "plain_result")
    with pytest.raises(TypeError, match="must return a pydantic model"):
        _ = replace(registry()["check_fit"], maker=maker).response
    assert not is_declared(replace(registry()["check_fit"], function=plain_result))


def test_all_tools_are_there_in_a_fixed_order() -> None:
    assert [name for name in registry() if name in TOOLS] == TOOLS
    for name, entry in registry().items():
        assert entry.name == name
        assert entry.title
        assert len(entry.description) > 40
        assert "\n" not in entry.description
        if entry.read_only:
            assert entry.preview is None, name
        else:
            assert registry()[entry.preview or ""].read_only, name
        assert entry.request.model_json_schema()["additionalProperties"] is False, name
        assert entry.response.model_json_schema(mode="serialization")["type"] == "object"


def test_the_order_does_not_depend_on_who_imports_first() -> None:
    code = "import planner.files.render, planner.money.cost; from tools.registry import registry; print(*registry())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == list(registry())


def test_a_tool_is_found_without_importing_those_of_other_modules() -> None:
    code = (
        "import sys; from tools.registry import OnDemand, find; tools = OnDemand();"
        " print(*tools); print(tools['search_playbook'].name, find('search_playbook').name, 'no such' in tools);"
        " print([name for name in ('planner.facts', 'pages.report.report') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, found, imported = done.stdout.splitlines()
    assert names.split() == list(registry())
    assert found == "search_playbook search_playbook False"
    assert imported == "[]"
    assert {name: entry for name, entry in OnDemand().items() if name in registry()} == registry()


@pytest.mark.parametrize("name", ["estimate_trainig", "", "describe", "__class__"])
def test_an_unknown_tool_lists_those_that_are(name: str) -> None:
    with pytest.raises(PlanError) as caught:
        call(name, {})
    assert caught.value.field == "tool"
    assert set(TOOLS) <= set(caught.value.valid)
    with pytest.raises(PlanError):
        find(name)
