"""The one list of tools, from which every face (agent, MCP, HTTP, command line, Python) is generated.

A tool is a function from one pydantic model to another, in a room below. `@tool` stands before its name, the type of
its argument and its words, and says in which module it is: the list of tools is read without what they compute with,
which takes longer to load than all else. What cannot be a tool is refused where it is declared.
"""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from pydantic import BaseModel, ValidationError

from estimator.errors import PlanError, nearest
from knowledge.own.database import seen_once
from knowledge.own.files import looked_at_once
from planner.requests import parsed

# The modules that define tools and the tools of each, in the order in which faces list them. Known without importing
# them, so that one tool costs the imports of its own module alone.
_MODULES = {
    "tools.facts": "describe_model describe_hardware",
    "tools.training": ("estimate_training check_fit best_parallelism find_limit sweep project_scaling"),
    "tools.serving": "estimate_inference best_serving size_serving",
    "tools.decisions": "estimate_cost compare recommend_cluster auto_configure schedule_runs advise explain",
    "tools.files": ("render_configs write_configs import_config render_report preview_report report"),
    "tools.records": (
        "render_scenario save_scenario list_scenarios load_scenario delete_scenario "
        "diff_scenarios list_catalogue preview_hardware add_hardware preview_model add_model "
        "preview_price add_price search_playbook"
    ),
    "tools.measuring": "describe_machine",
    "tools.runs": "read_run rate_run list_runs",
    "tools.benchmarks": (
        "apply_strategies peak_throughput project_mlperf render_matrix benchmark_matrix matrix_results "
        "render_benchmark benchmark_result"
    ),
}
# What these read is looked up; all others plan.
_RECORDS = "tools.records"
_LOOKED_UP = frozenset({"tools.facts", _RECORDS, "tools.runs"})
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
_tools: dict[str, Tool] = {}


@dataclass(frozen=True)
class Maker:
    """A function by its module and name, imported when it is first called."""

    module: str
    name: str

    def __call__(self, request: Any) -> Any:
        return self.function(request)

    @property
    def function(self) -> Callable[[Any], Any]:
        return getattr(importlib.import_module(self.module), self.name)


@dataclass(frozen=True)
class Tool:
    """One tool. `run` returns its typed result, for faces in this process; calling it returns that as plain JSON."""

    name: str
    title: str
    description: str
    read_only: bool
    request: type[BaseModel]
    maker: Maker
    function: Callable[[Any], BaseModel]
    preview: str | None = None
    """Of a tool that writes: the tool that shows what it would write, from the same arguments where it has them."""

    @property
    def response(self) -> type[BaseModel]:
        """The type of the result, as the function has it."""
        made = typing.get_type_hints(self.maker.function).get("return")
        if not _is_model(made):
            raise TypeError(f"tool {self.name}: must return a pydantic model")
        return made

    @property
    def role(self) -> str:
        """What a caller must be allowed to do: read, plan or write."""
        if not self.read_only:
            return "write"
        return "read" if _MODULE_OF.get(self.name) in _LOOKED_UP else "plan"

    def parse(self, arguments: Mapping[str, Any]) -> BaseModel:
        """The arguments as the tool's request. Raises PlanError naming the argument and what is wrong with it."""
        return parsed(self.request, arguments)

    def run(self, arguments: Mapping[str, Any]) -> BaseModel:
        # What writes rows of one's own reads them again.
        with seen_once() if self._changes_rows else looked_at_once():
            return self.function(self.parse(arguments))

    @property
    def _changes_rows(self) -> bool:
        return not self.read_only and _MODULE_OF.get(self.name, _RECORDS) == _RECORDS

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self.run(arguments).model_dump(mode="json")


def tool(
    *, title: str, by: str, read_only: bool, preview: str | None = None
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Registers what a function declares as the tool of its name, which the function of that name in module `by` is."""

    def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        name = function.__name__
        hints = typing.get_type_hints(function)
        hints.pop("return", None)
        requests = list(hints.values())
        if len(requests) != 1 or not _is_model(requests[0]):
            raise TypeError(f"tool {name}: must take one pydantic model")
        if not function.__doc__:
            raise TypeError(f"tool {name}: needs a docstring that says when to use it")
        if name in _tools:
            raise TypeError(f"tool {name}: is registered twice")
        if function.__module__ in _MODULES and _MODULE_OF.get(name) != function.__module__:
            raise TypeError(f"tool {name}: is not among those of {function.__module__} in tools.registry")
        description = inspect.cleandoc(function.__doc__).replace("\n", " ")
        maker = Maker(by, name)
        _tools[name] = Tool(name, title, description, read_only, requests[0], maker, maker, preview)
        return function

    return register


def registry() -> dict[str, Tool]:
    """All tools by name, in the order above."""
    return dict(OnDemand())


class OnDemand(Mapping[str, Tool]):
    """The same tools in the same order, each imported when it is first looked up."""

    def __getitem__(self, name: str) -> Tool:
        if name not in _tools and name in _MODULE_OF:
            importlib.import_module(_MODULE_OF[name])
        return _tools[name]

    def __contains__(self, name: object) -> bool:
        return name in _MODULE_OF or name in _tools

    def __iter__(self) -> Iterator[str]:
        yield from _MODULE_OF
        yield from [name for name in _tools if name not in _MODULE_OF]

    def __len__(self) -> int:
        return len(_MODULE_OF.keys() | _tools.keys())


def find(name: str) -> Tool:
    """The tool of that name. Raises PlanError."""
    tools = OnDemand()
    if name not in tools:
        raise PlanError("tool", f"there is no tool {name!r}", nearest(name, tools, limit=len(tools)))
    return tools[name]


def typed(name: str, data: Any) -> BaseModel | None:
    """Plain data that was stored or came over the wire, as the result that its tool gives; None of a tool that is gone
    and of what another version answered."""
    tool = OnDemand().get(name)
    if tool is None:
        return None
    try:
        return tool.response.model_validate(data)
    except ValidationError:
        return None


def is_declared(tool: Tool) -> bool:
    """Whether another process would find the same tool by its name."""
    return tool.function is tool.maker and tool.name in _MODULE_OF and OnDemand()[tool.name] == tool


def _is_model(hint: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(hint, type) and issubclass(hint, BaseModel)
