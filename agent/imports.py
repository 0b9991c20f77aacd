"""Importing LangGraph fast: it is most of what a first answer waits for."""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from tools.deferral import built_when_used

# Packages whose __init__ imports far more than LangGraph takes from them: hundreds of response models for one alias,
# and an HTTP client for one type. Their modules are found without running it.
_HEAVY_INITS = ("langsmith.types", "langgraph_sdk")
_FIRST = "langgraph.graph.state"
# What it imports only once a graph runs.
_LATER = ("langsmith.run_helpers", "langchain_core.tracers.stdout", "langgraph.checkpoint.sqlite.aio")


@contextmanager
def quick_imports() -> Iterator[None]:
    """LangGraph is there on entry; imports inside run without the garbage collector, whose walks over the growing heap
    take a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        _load_langgraph()
        yield
    finally:
        if was_on:
            gc.enable()
            gc.freeze()


def _load_langgraph() -> None:
    """Imports LangGraph with bare stand-ins for the heavy packages, which are gone again afterwards."""
    if _FIRST in sys.modules:
        return
    held = [name for name in _HEAVY_INITS if _stand_in(name)]
    try:
        with built_when_used():
            for name in (_FIRST, *_LATER):
                importlib.import_module(name)
    except ImportError:
        # A release that takes more from them than this one does: import it the plain way, below.
        pass
    finally:
        for name in held:
            sys.modules.pop(name, None)
    importlib.import_module(_FIRST)


def _stand_in(name: str) -> bool:
    """Puts an empty package in the place of `name`, so that its modules can be imported without it."""
    if name in sys.modules:
        return False
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        return False
    if spec is None or spec.submodule_search_locations is None:
        return False
    package = ModuleType(name)
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    sys.modules[name] = package
    return True
