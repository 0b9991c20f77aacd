"""LangGraph is imported without what it does not use, and whoever wants the whole packages later still gets them."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_langgraph_comes_without_its_http_client() -> None:
    code = """
import sys
from agent.imports import quick_imports
with quick_imports():
    from langgraph.graph.state import StateGraph
print([name for name in ("langgraph_sdk.client", "langsmith.types.run", "langsmith.types") if name in sys.modules])
"""
    assert run(code) == "[]"


def test_the_whole_packages_can_be_imported_afterwards() -> None:
    code = """
from agent.imports import quick_imports
with quick_imports():
    pass
import langgraph_sdk, langsmith, langsmith.types
from langchain_core.messages import AIMessage
from pydantic import BaseModel
print(callable(langgraph_sdk.get_client), langsmith.types.Run.__name__)
print(langsmith.RunTree(name="x", run_type="chain").name, AIMessage("y").content, dict(BaseModel.model_config))
"""
    assert run(code).splitlines() == ["True Run", "x y {}"]


def test_an_answer_imports_no_tools_but_those_that_it_calls() -> None:
    code = """
import sys
from tui.cli import main
assert main(["ask", "--offline", "how many parameters has gpt2?"]) == 0
unused = ("planner.compare.sweep", "pages.report.report", "planner.clusters.recommend", "planner.records.scenarios",
"google.genai", "textual", "fastmcp")
print([name for name in unused if name in sys.modules])
"""
    assert run(code).splitlines()[-1] == "[]"


def test_a_langgraph_that_is_already_there_is_left_alone() -> None:
    code = """
import sys
import langgraph.graph.state as before
from agent.imports import quick_imports
with quick_imports():
    pass
print(sys.modules["langgraph.graph.state"] is before, "langgraph_sdk.client" in sys.modules)
"""
    assert run(code) == "True True"
