"""`import shardwise`: every tool as a function that editors know, a page in notebooks, examples that run."""

from __future__ import annotations

import doctest
import inspect
import pydoc
from pathlib import Path
from typing import assert_type

import pytest

import shardwise
from pages.results.of_results import blocks_of
from planner.results import FitCheck, TrainingEstimate
from shardwise import stub
from shardwise.functions import needed_of, places_of
from tools.registry import registry

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path))
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path))


@pytest.fixture(scope="module")
def check() -> FitCheck:
    result = shardwise.check_fit("llama-3.1-8b", "8xh100", seq_len=4096, offload="none")
    assert_type(result, FitCheck)  # pyright reads it from the stub
    return result


def test_the_stub_is_what_the_registry_makes() -> None:
    written = (ROOT / "shardwise" / "__init__.pyi").read_text(encoding="utf-8")
    assert written == stub.text(), "run python -m shardwise.stub"


def test_every_tool_is_a_function_with_its_own_arguments_and_words() -> None:
    assert set(registry()) <= set(dir(shardwise))
    for name, tool in registry().items():
        function = getattr(shardwise, name)
        signature = inspect.signature(function)
        assert signature.parameters.keys() == tool.request.model_fields.keys()
        assert signature.return_annotation is tool.response
        assert tool.description[:40] in " ".join(pydoc.getdoc(function).split())
        assert all(f"\n    {argument}" in pydoc.getdoc(function) for argument in signature.parameters)
        assert not set(places_of(tool.request)) & set(needed_of(tool.request))


def test_the_answer_is_that_of_the_tool(check: FitCheck) -> None:
    run = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "seq_len": 4096, "offload": "none"}
    same = registry()["check_fit"].run(run)
    assert isinstance(same, FitCheck)
    assert (check.fits, check.memory) == (same.fits, same.memory)


_OF_A_RUN = [
    name for name, tool in registry().items()
    if tool.read_only and places_of(tool.request) == ["model", "accelerator"] and "count" in tool.request.model_fields
    and not needed_of(tool.request)
]  # fmt: skip


@pytest.mark.parametrize("name", _OF_A_RUN)
def test_a_name_counts_devices_for_every_tool(name: str) -> None:
    def asked(**cluster: object) -> object:
        try:
            data = registry()[name]({"model": "gpt2", **cluster})
        except shardwise.PlanError as error:
            return error.field, error.problem
        return [data.get(each) for each in ("rows", "points", "options", "best", "memory", "usd_per_hour")]

    assert asked(accelerator="4xa100-sxm-80gb") == asked(accelerator="a100-sxm-80gb", count=4)


def test_a_notebook_shows_the_page_with_its_bars() -> None:
    estimate = shardwise.estimate_training("gpt2", "h100", name="<b>")
    assert_type(estimate, TrainingEstimate)
    page = estimate._repr_html_()
    assert page is not None
    assert page.startswith('<div class="shardwise">')
    assert 'class="verdict' in page
    assert page.count("<svg") == sum(type(block).__name__ == "Chart" for block in blocks_of(estimate)) > 0
    assert "<b>" not in page
    assert "<script" not in page
    assert shardwise.describe_model("gpt2")._repr_html_()


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(AttributeError, match=r"near: .*check_fit"):
        shardwise.chek_fit  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(TypeError, match="model, accelerator by place"):
        shardwise.check_fit("gpt2", "h100", 8)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="model twice"):
        shardwise.check_fit("gpt2", model="gpt2")  # type: ignore[call-arg]
    with pytest.raises(shardwise.PlanError, match="goal") as caught:
        shardwise.find_limit("gpt2", "h100")  # type: ignore[call-arg]
    assert caught.value.field == "goal"


def test_the_types_of_results_are_known_to_checkers_of_other_packages() -> None:
    rooms = {"shardwise", "estimator", *(tool.response.__module__.split(".")[0] for tool in registry().values())}
    assert [room for room in rooms if not (ROOT / room / "py.typed").is_file()] == []


@pytest.mark.parametrize("path", [ROOT / "docs" / "python.md", ROOT / "shardwise" / "__init__.py"], ids=str)
def test_the_examples_run(path: Path) -> None:
    failed, tried = doctest.testfile(str(path), module_relative=False)
    assert tried > 1
    assert failed == 0
