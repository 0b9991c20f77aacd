"""A command imports only what it uses, and `--help` nothing heavy. In processes of their own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.machines.catalogue import accelerators

HEAVY = {"pydantic", "numpy", "yaml", "langgraph", "google.genai", "fastmcp", "mcp", "textual", "rich", "asyncio"}


def run(code: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONWARNINGS": "ignore"}
    return subprocess.run([sys.executable, "-c", code], input=stdin, capture_output=True, text=True, env=env)


def modules_after(*words: str) -> set[str]:
    """Top-level and dotted names of all modules that are loaded once the command has run."""
    process = run(
        f"import sys; from tui.cli import main; code = main({list(words)!r}); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    assert process.returncode == 0, process.stderr
    return set(process.stderr.split())


@pytest.mark.parametrize("words", [["--help"], ["ask", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    assert not modules_after(*words) & HEAVY


@pytest.mark.skipif(sys.platform == "win32", reason="counts the processor time of children")
def test_help_is_quick() -> None:
    times = []
    for _ in range(3):
        before = os.times()
        run("from tui.cli import main; main(['--help'])")
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(times) < 0.3


@pytest.mark.parametrize("words", [["call"], ["models", "llama", "--json"], ["hardware", "--json"]])
def test_listing_needs_no_agent_and_no_screen(words: list[str]) -> None:
    assert not modules_after(*words) & {"langgraph", "langchain_core", "google.genai", "fastmcp", "textual", "rich"}


def test_a_call_needs_no_agent_and_no_screen() -> None:
    arguments = '{"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8, "seq_len": 4096}'
    loaded = modules_after("call", "estimate_training", arguments)
    assert "numpy" in loaded
    assert not loaded & {"langgraph", "langchain_core", "google.genai", "fastmcp", "textual", "rich"}


@pytest.mark.parametrize(
    ("words", "own"),
    [
        (["fit", "--help"], set()),
        # Whether any target writes such a run is a part of the verdict.
        (["fit", "qwen2.5-0.5b", "h100"], {"launchers"}),
        # A framework that has launch files goes before one that has none.
        (["sweep", "qwen2.5-0.5b", "h100", "seq_len", "512,1024"], {"launchers"}),
    ],
)
def test_a_planning_command_imports_its_own_tools_alone(words: list[str], own: set[str]) -> None:
    loaded = modules_after(*words)
    heavy = {"langgraph", "langchain_core", "google.genai", "fastmcp", "textual", "rich", "plotext", "shtab", "asyncio"}
    assert not loaded & heavy
    others = {
        "pages.report.report", "planner.clusters.recommend", "planner.explain.explain", "launchers", "matplotlib"
    }  # fmt: skip
    assert not loaded & (others - own)


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    """The pipe is closed before the first line is written: nothing on standard error, no traceback at exit."""
    read, write = os.pipe()
    os.close(read)
    code = "import sys; from tui.cli import main; sys.exit(main(['--help']))"
    process = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (process.returncode, process.stderr) == (0, "")


def test_output_is_valid_json_in_any_locale() -> None:
    code = "import sys; from tui.jsonout import write_json; write_json({'unit': 'µs', 'arrow': '→'})"
    env = os.environ | {"PYTHONIOENCODING": "latin-1"}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert process.stdout == '{\n  "unit": "\\u00b5s",\n  "arrow": "\\u2192"\n}\n'


def test_closed_and_full_streams_are_told_in_one_line() -> None:
    code = "import sys; from tui.cli import main; sys.exit(main(sys.argv[1:]))"

    def told(words: list[str], streams: str) -> tuple[int, str]:
        line = shlex.join([sys.executable, "-c", code, *words])
        process = subprocess.run(["sh", "-c", f"{line} {streams}"], stderr=subprocess.PIPE, text=True)
        return process.returncode, process.stderr

    code_of, said = told(["hardware", "h100"], ">&-")
    assert code_of == 0
    assert re.fullmatch(rf"6 of {len(accelerators())}\b[^\n]*\n", said)
    assert told(["hardware", "h100"], ">/dev/full") == (2, "shardwise: output: No space left on device\n")
    code_of, said = told(["call", "check_fit", "-"], "<&-")
    assert code_of == 2
    assert said.startswith("shardwise: arguments: is not valid JSON")
