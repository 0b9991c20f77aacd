"""Devices and machines that are added to those of a plan, or taken from them, by their name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent import scoring
from tests.agent.conversations import reading

PLAN = {
    "model": "meta-llama/Llama-3.1-8B",
    "cluster": {"accelerator": "h100-sxm", "count": 8},
    "workload": {"kind": "training", "method": "full"},
}


@pytest.fixture(autouse=True)
def at_home() -> Iterator[None]:
    with scoring.home():
        yield


@pytest.mark.parametrize(
    ("text", "field", "more"),
    [
        ("add another H100", "count", 1),
        ("2 more H100s", "count", 2),
        ("add 8 H100", "count", 8),
        ("y si añado otra H100?", "count", 1),
        ("noch eine H100 dazu", "count", 1),
        ("再加一张H100", "count", 1),
        ("another H100 node", "nodes", 1),
        ("add another node of H100", "nodes", 1),
        ("2 more H100 nodes", "nodes", 2),
        ("add 2 DGX H100", "nodes", 2),
        ("2 more nodes of 8 H100", "count", 16),
        ("2 more nodes of 4", "count", 8),
        ("take away one H100", "count", -1),
    ],
)
def test_what_is_added_is_no_new_number(text: str, field: str, more: int) -> None:
    edits = [edit for edit in reading(text, PLAN).edits if edit.field in ("count", "nodes", "per_node")]
    assert [(edit.field, edit.op, edit.value) for edit in edits] == [(field, "plus", more)]


@pytest.mark.parametrize("text", ["and with 4 H100s?", "no more than 4 H100", "take 4 H100 instead"])
def test_a_number_alone_is_the_whole(text: str) -> None:
    assert [(edit.op, edit.value) for edit in reading(text, PLAN).edits if edit.field == "count"] == [("set", 4)]


def test_machines_are_those_of_the_device_that_they_stand_at() -> None:
    turn = reading("pretrain llama 8b on 8 h100 or 4 nodes of a100")
    told = [{edit.field: edit.value for edit in option} for option in turn.options]
    assert told == [
        {"accelerator": "h100-sxm", "count": 8},
        {"accelerator": "a100-sxm-80gb", "nodes": 4},
    ]
    assert "nodes" not in {edit.field for edit in turn.edits}
