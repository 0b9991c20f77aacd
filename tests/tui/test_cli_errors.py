"""Every error of a missing or a wrong argument says what is taken there: of every command, and of every tool."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError, create_model

from estimator.errors import PlanError
from estimator.plan.choices import valid_values
from estimator.plan.schema import plan_error
from tools.registry import registry
from tui.arguments.top import parser
from tui.cli import main
from tui.planning import MEASURING, PLANNING

# The valid values, an example of one, or what it is in words.
SAYS = re.compile(r"; valid: \S|e\.g\. \S|is required(, and so (is|are) [\w\-, ]+)?: \w")
# They need nothing.
READY = ("playbook", "measure runs", "measure here")


def leaves(made: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command by its words, with its parser."""
    below = [action for action in made._actions if isinstance(action, argparse._SubParsersAction)]
    if words and (not below or below[0].required):
        yield words, made
    for action in below:
        for name, inner in action.choices.items():
            yield from leaves(inner, (*words, name))


COMMANDS = dict(leaves(parser(every_flag=True)))
NEEDING = [
    words for words, made in COMMANDS.items()
    if any(action.required and action.nargs != "*" for action in made._actions)
]  # fmt: skip
MISSING = [(name, field) for name, tool in registry().items() for field, info in tool.request.model_fields.items()
           if info.is_required()]  # fmt: skip
# Each field with its values once: many tools take the same.
CHOSEN = {
    (field, *values): name for name, tool in registry().items() for field, info in tool.request.model_fields.items()
    if {*(values := valid_values(info.annotation))} - {"true", "false"}
}  # fmt: skip


@pytest.mark.parametrize("words", NEEDING, ids=" ".join)
def test_a_missing_word_of_a_command_is_told_with_what_it_takes(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        COMMANDS[words].parse_args([])
    told = capsys.readouterr().err
    assert stopped.value.code == 2
    assert told.count("\n") == 1
    missing = next(action for action in COMMANDS[words]._actions if action.required)
    assert SAYS.search(told), told
    assert all(str(value) in told for value in missing.choices or ()), told


@pytest.mark.parametrize("command", [name for name in (PLANNING | MEASURING) if name not in READY])
def test_a_planning_command_without_arguments_says_what_it_takes(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(command.split()) == 2
    told = capsys.readouterr().err
    assert SAYS.search(told), told


@pytest.mark.parametrize(("tool", "field"), MISSING)
def test_a_missing_argument_of_a_tool_is_told_with_what_it_takes(tool: str, field: str) -> None:
    """Alone: of several that are missing the first is told."""
    info = registry()[tool].request.model_fields[field]
    missing = create_model("Missing", **{field: (info.annotation, info)})  # type: ignore[call-overload]
    with pytest.raises(ValidationError) as refused:
        missing.model_validate({})
    told = plan_error(refused.value, missing)
    assert SAYS.search(str(told)), str(told)
    assert {*told.valid} >= {*valid_values(info.annotation)}


@pytest.mark.parametrize(("tool", "field", "values"), [(tool, key[0], key[1:]) for key, tool in CHOSEN.items()])
def test_a_wrong_word_is_told_with_those_that_are_known(tool: str, field: str, values: tuple[str, ...]) -> None:
    with pytest.raises(PlanError) as refused:
        registry()[tool].parse({field: "no such word"})
    assert field in refused.value.field
    assert refused.value.valid, str(refused.value)
    assert {*refused.value.valid} <= {*values}
