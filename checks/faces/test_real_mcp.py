"""The MCP Inspector's command line and the official TypeScript client against the server, both ways.

The Inspector gives exit code 0 even for a failed call, so its JSON is read. Its command line makes a process, and with
stdio a server, for each call; so it makes a few, and the same code in one session calls every tool.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from npm_packages import installed

from tools.brief import assistants
from tools.registry import Tool, registry

_INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"
_CLIENT = "@modelcontextprotocol/client@2.4.0"
_PLAN = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8, "dataset_tokens": 1e9}
_PRICE = {"provider": "me", "instance": "box", "usd_per_hour": 12.5}
# What a tool needs beside the plan, or instead of it.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "describe_hardware": {"accelerator": "h100-sxm"},
    "find_limit": {"goal": "seq_len"},
    "sweep": {"field": "cluster.count", "values": "8,16"},
    "size_serving": {"request_rate": 10},
    "project_mlperf": {"benchmark": "llama2-70b"},
    "compare": {"over": {"method": ["full", "lora"]}},
    "explain": {"figure": "memory"},
    "list_catalogue": {"kind": "hardware"},
    "save_scenario": {"name": "mine"},
    "render_scenario": {"name": "mine"},
    "preview_hardware": {"id": "my-gpu", "like": "h100-sxm"},
    "add_hardware": {"id": "my-gpu", "like": "h100-sxm"},
    "preview_price": _PRICE,
    "add_price": _PRICE,
}
# These say what is wrong with the arguments; with what would be right, other checks call them.
_REFUSES = frozenset({"load_scenario", "delete_scenario", "diff_scenarios", "preview_model", "add_model",
                      "import_config", "matrix_results"})  # fmt: skip


def _arguments(tool: Tool) -> dict[str, Any]:
    known = tool.request.model_fields
    return {key: value for key, value in (_PLAN | _ARGUMENTS.get(tool.name, {})).items() if key in known}


def _inspect(target: list[str], *words: str) -> dict[str, Any]:
    command = [str(installed(_INSPECTOR) / ".bin" / "mcp-inspector"), "--cli", *target, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr or done.stdout
    return json.loads(done.stdout)


def _words(tool: Tool) -> dict[str, str]:
    """The arguments as a command line gives them."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in _arguments(tool).items()}


@pytest.fixture(scope="module", params=["stdio", "http"])
def target(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """How the Inspector reaches the server."""
    command = [sys.executable, "-m", "tui.cli"]
    if request.param == "stdio":
        yield [*command, "mcp", "--full"]
        return
    with _serving([*command, "serve", "--full", "--port", "0", "--no-log"], {}) as url:
        yield [url + "/mcp", "--transport", "http"]


def test_the_inspector_lists_everything(target: list[str]) -> None:
    listed = _inspect(target, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in listed] == list(registry())
    assert _inspect(target, "--method", "resources/list")["resources"]
    assert len(_inspect(target, "--method", "resources/templates/list")["resourceTemplates"]) == 6
    assert len(_inspect(target, "--method", "prompts/list")["prompts"]) == 5


def test_the_inspector_lists_what_an_assistant_gets() -> None:
    command = [sys.executable, "-m", "tui.cli", "mcp"]
    listed = _inspect(command, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in listed] == [entry["name"] for entry in assistants(registry().values())]
    assert len(json.dumps(listed)) <= 40_000
    words = ["--tool-arg", "model=gpt2", "--tool-arg", "accelerator=h100-sxm"]
    answer = _inspect(command, "--method", "tools/call", "--tool-name", "best_parallelism", *words)
    details = _inspect(command, "--method", "resources/read", "--uri", "shardwise://plan")
    assert answer["structuredContent"]["details"].startswith("shardwise://results/")
    assert details["contents"][0]["mimeType"] == "text/markdown"


@pytest.mark.parametrize("name", ["describe_model", "estimate_training", "load_scenario"])
def test_the_inspectors_command_line_calls_a_tool(target: list[str], name: str) -> None:
    words = [word for key, value in _words(registry()[name]).items() for word in ("--tool-arg", f"{key}={value}")]
    answer = _inspect(target, "--method", "tools/call", "--tool-name", name, *words)
    assert bool(answer.get("isError")) is (name in _REFUSES), str(answer)[:500]


def test_the_inspector_calls_every_tool(target: list[str]) -> None:
    script = Path(__file__).with_name("inspector_calls.mjs")
    home = installed(_INSPECTOR) / "@modelcontextprotocol" / "inspector"
    reached = [word for word in target if word not in ("--transport", "http")]
    given = json.dumps({name: _words(tool) for name, tool in registry().items()})
    command = ["node", str(script), str(home), *reached]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert list(answers) == list(registry())
    refused = {name for name, answer in answers.items() if answer.get("isError")}
    assert refused == _REFUSES, [(name, answers[name]["content"]) for name in refused ^ _REFUSES]
    assert all("structuredContent" in answer for name, answer in answers.items() if name not in _REFUSES)


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_typescript_client_holds_a_conversation_in_either_era(era: str, transport: str, tmp_path: Path) -> None:
    own = {"SHARDWISE_TOKEN": "a-token-of-some-length", "SHARDWISE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tui.cli"]
    with ExitStack() as stack:
        reached = [*command, "mcp", "--root", str(tmp_path)]
        if transport == "http":
            words = [*command, "serve", "--root", str(tmp_path), "--port", "0", "--no-log"]
            reached = [stack.enter_context(_serving(words, own)) + "/mcp"]
        script = str(Path(__file__).with_name("typescript_client.mjs"))
        home = str(installed(_CLIENT) / "@modelcontextprotocol" / "client")
        command = ["node", script, home, era, *reached]
        env = os.environ | own
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["era"], said["fits"], said["templates"], said["prompts"]) == (era, True, 6, 5)
    assert said["tools"] == [entry["name"] for entry in assistants(registry().values())]
    assert said["details"] in ("application/json", "text/markdown")
    assert said["wrong"]["isError"]
    assert "h900" in said["wrong"]["content"][0]["text"]
    assert len(said["asked"]) == 1
    assert all((tmp_path / file["path"]).is_file() for file in said["written"]["files"])


@contextmanager
def _serving(words: list[str], own: dict[str, str]) -> Iterator[str]:
    with subprocess.Popen(words, env=os.environ | own, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = re.search(r"http://\S+", line := server.stderr.readline())
            assert found, line
            yield found[0]
        finally:
            server.terminate()
