"""The skill that other agents install: its head is as the Agent Skills format wants it, and its commands are ours."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import yaml

from tui.cli import parsed

SKILL = Path(__file__).parent.parent / "skills" / "shardwise" / "SKILL.md"


def test_the_head_keeps_the_format() -> None:
    _, head, body = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(head)
    assert fields.keys() <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert fields["name"] == SKILL.parent.name
    assert 1 <= len(fields["description"]) <= 1024
    assert len(fields["compatibility"]) <= 500
    assert len(body.splitlines()) < 500


def test_its_commands_are_read() -> None:
    lines = [line for line in SKILL.read_text(encoding="utf-8").splitlines() if line.startswith("shardwise ")]
    assert len(lines) >= 12
    for line in lines:
        assert parsed(shlex.split(line)[1:]).run.startswith("tui.commands.")
