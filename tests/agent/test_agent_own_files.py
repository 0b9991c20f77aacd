"""What is kept in the user's own folders is approved like launch files: shown first, and good for those bytes only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.approval import carry_out, propose
from agent.wire import Call
from estimator.errors import PlanError
from tools.registry import registry

RUN: dict[str, Any] = {"model": "gpt2", "accelerator": "h100-sxm", "name": "mine"}
CALLS = [
    ("save_scenario", RUN, "scenarios/mine.yaml"),
    ("add_hardware", {"id": "twin", "like": "h100-sxm"}, "hardware/twin.yaml"),
]


@pytest.mark.parametrize(("name", "arguments", "place"), CALLS, ids=[name for name, _, _ in CALLS])
def test_a_file_of_the_users_own_is_shown_approved_and_written(
    name: str, arguments: dict[str, Any], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    tools, path = registry(), tmp_path / "home" / place
    proposal = propose(Call("1", name, arguments), tools, tmp_path / "root")
    assert proposal.question.preview.folder == str(path.parent)
    assert [file.path for file in proposal.question.preview.files] == [path.name]
    with pytest.raises(PlanError, match="approval"):
        carry_out(proposal, "another digest", tools, tmp_path / "root")
    assert not path.exists()
    carry_out(proposal, proposal.digest, tools, tmp_path / "root")
    assert path.read_text() == proposal.files[0][1]
    assert not (tmp_path / "root").exists()


def test_deleting_shows_the_file_that_would_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    tools = registry()
    tools["save_scenario"](RUN)
    proposal = propose(Call("1", "delete_scenario", {"name": "Mine"}), tools, tmp_path)
    assert [path for path, _ in proposal.files] == ["mine.yaml"]
    carry_out(proposal, proposal.digest, tools, tmp_path)
    assert not list((tmp_path / "home" / "scenarios").iterdir())


def test_what_the_tool_would_refuse_is_refused_before_anyone_is_asked(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no such field"):
        propose(Call("1", "save_scenario", {**RUN, "overwrite": True, "colour": "red"}), registry(), tmp_path)
