"""The command line in this process: what goes to which stream, in which words, with which exit code."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_session import ANSWER

from pages.rendering.fold import folded
from tui.arguments.parser import commands_of
from tui.arguments.top import parser
from tui.cli import main
from tui.usage import GROUPS

Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys: Capture, *words: str) -> str:
    """The one line that a user's mistake gets."""
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("shardwise")
    assert "Traceback" not in err
    return err


class TestCall:
    def test_prints_json_only(self, capsys: Capture, divide: Any) -> None:
        code, out, err = run(capsys, "call", "divide", '{"above": 3, "below": 2}')
        assert (code, err) == (0, "")
        assert json.loads(out) == {"value": 1.5, "note": "µs\x9b31m"}
        assert "\x9b" not in out

    def test_reads_arguments_from_standard_input(
        self, capsys: Capture, divide: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO('{"above": 8}'))
        code, out, _ = run(capsys, "call", "divide", "-")
        assert (code, json.loads(out)["value"]) == (0, 8.0)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["divide", '{"above": 1, "below": 0}'], "below: must not be zero; valid: 1 2"),
            (["divide", '{"above": 1, "belw": 2}'], "belw: there is no such field; valid: above below"),
            (["divide"], "above: is required"),
            (["divide", "{above: 1}"], "arguments: is not valid JSON"),
            (["divide", "[1]"], "arguments: must be a JSON object"),
            (["divide", '{"above": NaN}'], "NaN is not a JSON number"),
            (["divide", '{"above": ' + "9" * 5000 + "}"], "arguments: is not usable JSON"),
            (["divide", "[" * 100_000], "arguments: is not"),
            (["multiply", "{}"], "tool: there is no tool 'multiply'; valid: divide"),
            (["multiply", "--schema"], "tool: there is no tool 'multiply'; valid: divide"),
            (["--schema"], "--schema: needs a tool's name"),
            (["--jsonl", "/nonexistent/file"], "--jsonl: /nonexistent/file cannot be read: No such file"),
            (["divide", "--jsonl", "-"], "--jsonl: takes the tools' names from the file"),
        ],
    )
    def test_says_what_is_wrong_in_one_line(self, capsys: Capture, divide: Any, words: list[str], said: str) -> None:
        assert said in refused(capsys, "call", *words)

    def test_a_bug_is_one_line_and_exit_code_1(self, capsys: Capture, divide: Any) -> None:
        code, out, err = run(capsys, "call", "divide", '{"above": 1, "below": -1}')
        assert (code, out) == (1, "")
        assert err.count("\n") == 1
        assert "internal error: RuntimeError: a bug" in err

    def test_a_bug_shows_its_traceback_when_debugging(self, divide: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHARDWISE_DEBUG", "1")
        with pytest.raises(RuntimeError, match="a bug"):
            main(["call", "divide", '{"above": 1, "below": -1}'])

    def test_lists_the_tools(self, capsys: Capture, divide: Any) -> None:
        code, out, _ = run(capsys, "call")
        assert code == 0
        assert json.loads(out) == [{"name": "divide", "title": "Divide", "description": "Divides.", "read_only": True}]

    def test_prints_the_schema(self, capsys: Capture, divide: Any) -> None:
        code, out, _ = run(capsys, "call", "divide", "--schema")
        assert code == 0
        assert json.loads(out)["properties"]["below"]["description"] == "What to divide by."

    def test_answers_every_line_of_a_file(self, capsys: Capture, divide: Any, tmp_path: Path) -> None:
        lines = [
            '{"name": "divide", "arguments": {"above": 1}}',
            "",
            '{"tool": "divide", "arguments": {"above": 1, "below": 0}}',
            "nonsense",
            '{"name": "divide", "arguments": 5}',
            '{"name": "divide", "argments": {}}',
            '{"arguments": {}}',
            '{"tool": "divide", "arguments": {"above": 4, "below": 2}}',
        ]
        file = tmp_path / "calls.jsonl"
        file.write_text("\n".join(lines))
        code, out, err = run(capsys, "call", "--jsonl", str(file))
        answers = [json.loads(line) for line in out.splitlines()]
        assert (code, err) == (2, "")
        assert [answers[0]["value"], answers[-1]["value"]] == [1.0, 2.0]
        said = [
            "below: must not",
            "line: is not valid",
            "arguments: must be",
            "argments: there is",
            "name: is required",
        ]
        assert len(answers) == len(said) + 2
        for answer, text in zip(answers[1:-1], said, strict=True):
            assert answer["error"].startswith(text)

    def test_a_file_without_failures_is_fine(self, capsys: Capture, divide: Any, tmp_path: Path) -> None:
        (tmp_path / "calls").write_text('{"name": "divide", "arguments": {"above": 1}}\n')
        assert run(capsys, "call", "--jsonl", str(tmp_path / "calls"))[0] == 0

    def test_a_bug_in_one_line_stops_no_other(self, capsys: Capture, divide: Any, tmp_path: Path) -> None:
        below = '{"name": "divide", "arguments": {"above": 1, "below": -1}}\n'
        (tmp_path / "calls").write_text(below + below.replace("-1", "1"))
        code, out, _ = run(capsys, "call", "--jsonl", str(tmp_path / "calls"))
        assert code == 1
        assert [list(json.loads(line)) for line in out.splitlines()] == [["error"], ["value", "note"]]


class TestAsk:
    def test_prints_the_answer_and_tells_the_rest_apart(self, capsys: Capture, agent: Any) -> None:
        code, out, err = run(capsys, "ask", "Does", "it", "fit?", "--offline")
        assert code == 0
        assert out == f"{folded(ANSWER).lead}\n"
        assert agent.opened[0].sent == ["Does it fit?"]
        assert agent.opened[0].model == "offline"
        assert "✓ estimate_training  model=llama-3.1-8b accelerator=h100 count=8 plan={…}  120 ms" in err
        assert 'shardwise ask --session s-123 "…"' in err

    def test_details_are_a_flag_away(self, capsys: Capture, agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        _, short, err = run(capsys, "ask", "Does it fit?")
        _, whole, quiet = run(capsys, "ask", "Does it fit?", "--why")
        assert whole.startswith(short)
        assert "optimizer" in whole
        assert "details>" not in whole
        assert "--why" in err
        assert "--why" not in quiet
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        assert "optimizer" not in run(capsys, "ask", "Does it fit?")[1]
        assert "optimizer" in run(capsys, "ask", "Does it fit?", "--why")[1]

    def test_writes_nothing_when_nobody_can_approve(self, capsys: Capture, agent: Any) -> None:
        code, out, err = run(capsys, "ask", "write it")
        assert code == 0
        assert agent.opened[0].resumed == [False]
        assert "train.yaml  1,234 bytes" in err
        assert "ask again with --yes" in err
        assert "Written" not in out

    def test_yes_approves(self, capsys: Capture, agent: Any) -> None:
        _, out, err = run(capsys, "ask", "write it", "--yes")
        assert agent.opened[0].resumed == [True]
        assert "Written:\n- runs/llama/train.yaml\n" in out
        assert "would write to runs/llama" in err

    @pytest.mark.parametrize(("typed", "approved"), [("y\n", True), ("YES\n", True), ("\n", False), ("", False)])
    def test_a_person_is_asked(
        self, capsys: Capture, agent: Any, monkeypatch: pytest.MonkeyPatch, typed: str, approved: bool
    ) -> None:
        stdin = io.StringIO(typed)
        monkeypatch.setattr(stdin, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        _, _, err = run(capsys, "ask", "write it")
        assert "Write them? [y/N" in err
        assert agent.opened[0].resumed == [approved]

    def test_json_is_one_object(self, capsys: Capture, agent: Any) -> None:
        code, out, err = run(capsys, "ask", "write", "--json", "--yes", "--now", "2026-01-05T09:00", "--output", "x")
        assert (code, err) == (0, "")
        assert json.loads(out)["session"] == "s-123"
        asked = agent.asked[0]
        assert (asked["approve"], asked["output"], asked["now"].year) == (True, "x", 2026)

    def test_continues_the_latest_session(self, capsys: Capture, agent: Any) -> None:
        run(capsys, "ask", "-c", "and on 16?")
        assert agent.opened[0].id == "new"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["  "], "question: is empty"),
            (["x", "--now", "Friday"], "--now: 'Friday' is not an ISO time"),
            (["x", "--session", "missing"], "session: there is no conversation 'missing'; valid:"),
            (["x", "--session", "a", "-c"], "not allowed with argument --session"),
            (
                ["x", "--model", "gpt"],
                "'gpt' is not one of the known values; valid: auto offline gemini openai",
            ),
        ],
    )
    def test_says_what_is_wrong_in_one_line(self, capsys: Capture, agent: Any, words: list[str], said: str) -> None:
        assert said in refused(capsys, "ask", *words)

    def test_a_bug_is_one_line(self, capsys: Capture, agent: Any) -> None:
        code, _, err = run(capsys, "ask", "explode")
        assert code == 1
        assert err.count("\n") == 1
        assert "KeyError" in err

    def test_strips_terminal_control_from_what_tools_say(self, capsys: Capture, agent: Any) -> None:
        _, out, err = run(capsys, "ask", "nasty")
        assert "✗ check_fit: model: no" in err
        assert "\x1b" not in out + err

    def test_a_terminal_gets_rendered_markdown(
        self, capsys: Capture, agent: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("TERM", "xterm-256color")
        _, out, _ = run(capsys, "ask", "Does it fit?")
        assert "**" not in out
        assert "|---|" not in out
        assert "Yes, it fits." in out


def test_lists_sessions_latest_first(capsys: Capture, agent: Any) -> None:
    code, out, _ = run(capsys, "sessions")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["ID", "new", "old"]
    assert "\x1b" not in out
    assert [row["id"] for row in json.loads(run(capsys, "sessions", "--json")[1])] == ["new", "old"]


class TestCatalogue:
    def test_models_whose_size_follows_from_their_config_have_it_as_in_the_app(self, capsys: Capture) -> None:
        from knowledge.figures import shown
        from knowledge.models.known import models
        from planner.asked.lookups import CatalogueQuestion
        from planner.records.catalogue import list_catalogue

        (name, *_) = [facts.id for facts in models() if facts.parameters is facts.published_parameters is None]
        (listed,) = list_catalogue(CatalogueQuestion.model_validate({"kind": "models", "query": name})).models
        assert f" {shown('parameters', listed.parameters)} " in run(capsys, "models", name)[1]

    def test_finds_models_whatever_the_punctuation(self, capsys: Capture) -> None:
        code, out, _ = run(capsys, "models", "llama3.1", "8b", "--json")
        rows = json.loads(out)
        assert code == 0
        assert "meta-llama/Llama-3.1-8B" in [row["id"] for row in rows]
        assert "fields" not in rows[0]

    def test_shows_the_whole_catalogue(self, capsys: Capture) -> None:
        from knowledge.machines.catalogue import accelerators
        from knowledge.models.known import models

        for command, catalogue in (("models", models()), ("hardware", accelerators())):
            code, out, err = run(capsys, command)
            assert code == 0
            assert len(out.splitlines()) == len(catalogue) + 1
            assert re.match(
                f"{len(catalogue)} of {len(catalogue)}(;|$)", err
            )  # what marks in the list mean is behind it

    def test_shows_figures_with_their_units(self, capsys: Capture) -> None:
        _, out, _ = run(capsys, "hardware", "h100-sxm")
        header, first = out.splitlines()[:2]
        assert "BF16 TFLOP/S" in header
        assert " 989 " in first

    def test_nothing_found_names_what_is_near(self, capsys: Capture) -> None:
        assert "h100-sxm" in refused(capsys, "hardware", "h1000-sxm")


@pytest.mark.parametrize("words", [[], ["chat"]])
def test_the_app_needs_a_terminal(capsys: Capture, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert "needs a terminal" in refused(capsys, *words)


def test_a_bare_question_gets_the_command_for_it(capsys: Capture) -> None:
    assert 'shardwise ask "Does it fit?"' in refused(capsys, "Does it fit?")


def test_unknown_commands_and_options_are_one_line(capsys: Capture) -> None:
    assert "there is no command 'cal': did you mean call" in refused(capsys, "cal")
    assert "--nope" in refused(capsys, "call", "--nope")


@pytest.mark.parametrize(
    "words",
    [
        ["sessions", "list", "-x", "\x1b]0;red\x07"], ["ask", "x", "--model", "\x1b[31mred"], ["\x1b[31mred"],
        ["fit", "--\x1b[31mred"], ["sessions", "list", "-x", "a" * 5000], ["mcp", "config", "--client", "a" * 5000],
    ],
)  # fmt: skip
def test_what_was_typed_is_repeated_escaped_and_shortened(words: list[str], capsys: Capture) -> None:
    told = refused(capsys, *words)
    assert told.strip().isprintable()
    assert len(told) < 1200


def test_version(capsys: Capture) -> None:
    code, out, _ = run(capsys, "--version")
    assert code == 0
    assert out.startswith("shardwise 0.")


def test_help_groups_every_command_once() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(commands_of(parser()))


def test_help_documents_the_exit_codes(capsys: Capture) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "exit codes:" in out
    for command in ("ask", "call", "chat", "mcp", "models", "hardware", "sessions"):
        assert f"\n  {command} " in out


def test_ctrl_c_is_one_line(capsys: Capture, agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHARDWISE_DEBUG", raising=False)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(agent, "open_session", interrupted)
    code, _, err = run(capsys, "ask", "x")
    assert (code, err) == (130, "shardwise: stopped\n")


def test_a_long_list_has_a_pager_where_people_read_it_and_nowhere_else(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    reader = tmp_path / "reader"
    reader.write_text(f'#!/bin/sh\necho "$LESS" > {shown}\ncat >> {shown}\n')
    reader.chmod(0o755)
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("PAGER", str(reader))
    monkeypatch.delenv("LESS", raising=False)

    def listed(*words: str) -> tuple[str, str]:
        shown.unlink(missing_ok=True)
        assert main(list(words)) == 0
        return shown.read_text() if shown.exists() else "", capfd.readouterr().out

    _, whole = listed("hardware")
    assert whole.count("\n") > 24
    assert not shown.exists()
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    told, printed = listed("hardware")
    assert (told.startswith("FRX\n"), printed) == (True, "")
    assert {line.split()[0] for line in whole.splitlines()} <= {*told.split()}
    told, printed = listed("hardware", "h100-sxm")
    assert (told, "h100-sxm" in printed) == ("", True)
    # Whoever wants none has none, nor whoever's is not there.
    for none in ("", str(tmp_path / "no-such")):
        monkeypatch.setenv("PAGER", none)
        assert "p100-pcie" in listed("hardware")[1]
