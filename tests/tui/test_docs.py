"""docs/ says what the program has: commands, keys, settings, exit codes, files, and nothing that it has not."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from agent.settings import SETTINGS
from tools.registry import registry
from tui.actions import ACTIONS
from tui.arguments.parser import commands_of
from tui.arguments.top import parser
from tui.flags import arguments_of, normal
from tui.planning import PLANNING

ROOT = Path(__file__).parents[2]
DOCS = {path.name: path.read_text(encoding="utf-8") for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]}


def lines_of(text: str) -> list[list[str]]:
    """The command lines that it shows, without comments, redirections and what comes after them."""
    shown = re.findall(r"^    (?:[^|\n]*&& )?(?:\$ )?shardwise (.+)$", text, re.MULTILINE)
    cut = [re.split(r" [|>] | && |   *#", line)[0] for line in shown]
    return [shlex.split(line, comments=True) for line in cut]


def test_every_planning_command_has_its_row_with_its_tools() -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (`.*?`) \|", DOCS["cli.md"], re.MULTILINE))
    assert set(rows) == set(PLANNING)
    for name, planning in PLANNING.items():
        tools = set(planning.tools)
        assert set(re.findall(r"`(\w+)`", rows[name])) == tools


@pytest.mark.parametrize("name", DOCS)
def test_every_command_line_can_be_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = parser(every_flag=True)
    known = commands_of(made)
    for words in lines_of(DOCS[name]):
        command = words[0]
        assert command in known, words
        if command in PLANNING:
            planning = PLANNING[command]
            found, left = known[command].parse_known_intermixed_args(normal(words[1:], planning))
            assert not left, words
            if "--plan" not in words:
                arguments_of(found, planning)
        else:
            made.parse_args(words)


def test_every_tool_that_is_named_exists() -> None:
    known = set(registry())
    named = re.findall(r"`([a-z]+(?:_[a-z]+)+)`", DOCS["cli.md"] + DOCS["README.md"])
    assert {
        name for name in named if name.startswith(("estimate_", "render_", "benchmark_", "add_", "matrix_"))
    } <= known


def test_every_key_of_the_app_is_told() -> None:
    told = set(re.findall(r"^\| ((?:Ctrl\+)?[A-Z][a-z0-9]*) \|", DOCS["app.md"], re.MULTILINE))
    keys = [key.key for row in ACTIONS for key in row.keys]
    assert told == {_shown(key) for key in [*keys, "enter"]}


def _shown(key: str) -> str:
    return {"escape": "Esc"}.get(key, key.title() if "+" in key else key.capitalize())


def test_every_slash_command_is_told() -> None:
    part = DOCS["app.md"].partition("## Slash commands")[2].partition("Each takes")[0]
    assert set(re.findall(r"`/([a-z]+)`", part)) == {action.name for action in ACTIONS}


def test_every_setting_is_told() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|([^|]*)\|", DOCS["settings.md"], re.MULTILINE)
    assert [(key, variable, default.strip()) for key, variable, default in rows] == [
        (setting.key, setting.variable, str(setting.default)) for setting in SETTINGS
    ]


def test_the_exit_codes_are_those_of_the_help() -> None:
    told = re.findall(r"^\| (\d+) \|", DOCS["cli.md"], re.MULTILINE)
    assert told == re.findall(r"^  (\d+)  ", parser().format_help(), re.MULTILINE)


@pytest.mark.parametrize("name", DOCS)
def test_files_that_are_linked_exist(name: str) -> None:
    folder = ROOT if name == "README.md" else ROOT / "docs"
    for target in re.findall(r"\]\(([^)#:]+)\)", DOCS[name]):
        assert (folder / target).exists(), target
