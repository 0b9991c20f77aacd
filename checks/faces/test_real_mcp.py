"""The MCP Inspector's command line and the official TypeScript client against the server, over standard input and HTTP.

The Inspector makes a process, and with stdio a server, for each call; so it makes a few, and the client every tool's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from npm_packages import installed

from tools.brief import assistants
from tools.registry import Tool, registry

_INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
_CLIENT = "@modelcontextprotocol/client@2.4.0"
_COMMAND = [sys.executable, "-m", "tui.cli"]
_TOKEN = "a-token-of-some-length"
_PLAN = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8, "dataset_tokens": 1e9}
_PRICE = {"provider": "me", "instance": "box", "usd_per_hour": 12.5}
# What a tool needs beside the plan, or instead of it.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "describe_hardware": {"accelerator": "h100-sxm"},
    "find_limit": {"goal": "seq_len"},
    "rate_run": {"tokens_per_s": 10_000},
    "sweep": {"field": "cluster.count", "values": "8,16"},
    "size_serving": {"request_rate": 10},
    "project_mlperf": {"benchmark": "llama2-70b"},
    "compare": {"over": {"method": ["full", "lora"]}},
    "schedule_runs": {"runs": [{"name": "a", "plan": {"model": "gpt2", "workload": {"dataset_tokens": 1e9}}}]},
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
_REFUSES = frozenset({
    "load_scenario", "delete_scenario", "diff_scenarios", "preview_model", "add_model", "import_config",
    "matrix_results", "read_run", "benchmark_result",
})  # fmt: skip


def _arguments(tool: Tool) -> dict[str, Any]:
    known = tool.request.model_fields
    return {key: value for key, value in (_PLAN | _ARGUMENTS.get(tool.name, {})).items() if key in known}


def _inspect(target: list[str], *words: str, fails: bool = False) -> dict[str, Any]:
    program = str(installed(_INSPECTOR) / ".bin" / "mcp-inspector")
    command = [program, "--cli", "--connect-timeout", "60000", *target, *words]
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"MCP_CATALOG_PATH": f"{folder}/catalog.json", "SHARDWISE_HOME": folder}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode != 0) is fails, done.stderr or done.stdout
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=["stdio", "http"])
def target(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """How the Inspector reaches the server."""
    if request.param == "stdio":
        yield [*_COMMAND, "mcp", "--full"]
        return
    with _serving("--full") as url:
        yield [url, "--transport", "http", "--header", f"Authorization: Bearer {_TOKEN}"]


def test_the_inspector_lists_everything(target: list[str]) -> None:
    listed = _inspect(target, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in listed] == list(registry())
    assert _inspect(target, "--method", "resources/list")["resources"]
    assert len(_inspect(target, "--method", "resources/templates/list")["resourceTemplates"]) == 5
    assert len(_inspect(target, "--method", "prompts/list")["prompts"]) == 5


def test_the_inspector_finds_no_schema_that_clients_stumble_on() -> None:
    listed = _inspect([*_COMMAND, "mcp"], "--method", "tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in listed] == [entry["name"] for entry in assistants(registry())]
    assert len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode()) <= 40_000


@pytest.mark.parametrize("name", ["describe_model", "estimate_training", "load_scenario"])
def test_the_inspector_calls_a_tool(target: list[str], name: str) -> None:
    given = _arguments(registry()[name])
    words = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in given.items()]
    flags = [word for each in words for word in ("--tool-arg", each)]
    answer = _inspect(target, "--method", "tools/call", "--tool-name", name, *flags, fails=name in _REFUSES)
    assert bool(answer.get("isError")) is (name in _REFUSES), str(answer)[:500]


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_typescript_client_holds_a_conversation_in_either_era(era: str, transport: str, tmp_path: Path) -> None:
    if transport == "stdio":
        said = _conversation(era, [*_COMMAND, "mcp", "--root", str(tmp_path)], tmp_path, {})
    else:
        with _serving("--root", str(tmp_path)) as url:
            said = _conversation(era, [url], tmp_path, {})
    assert (said["era"], said["fits"], said["templates"], said["prompts"]) == (era, True, 6, 5)
    assert said["tools"] == [entry["name"] for entry in assistants(registry())]
    assert said["details"] in ("application/json", "text/markdown")
    assert said["wrong"]["isError"]
    assert "h900" in said["wrong"]["content"][0]["text"]
    assert len(said["asked"]) == 1
    assert all((tmp_path / file["path"]).is_file() for file in said["written"]["files"])


def test_the_typescript_client_calls_every_tool(tmp_path: Path) -> None:
    calls = {name: _arguments(tool) for name, tool in registry().items()}
    answers = _conversation("2026-07-28", [*_COMMAND, "mcp", "--full", "--root", str(tmp_path)], tmp_path, calls)[
        "called"
    ]
    assert list(answers) == list(registry())
    refused = {name for name, answer in answers.items() if answer.get("isError")}
    assert refused == _REFUSES, [(name, answers[name]["content"]) for name in refused ^ _REFUSES]
    assert all("structuredContent" in answer for name, answer in answers.items() if name not in _REFUSES)


def _conversation(era: str, reached: list[str], home: Path, calls: dict[str, dict[str, Any]]) -> dict[str, Any]:
    script = str(Path(__file__).with_name("typescript_client.mjs"))
    package = str(installed(_CLIENT) / "@modelcontextprotocol" / "client")
    env = os.environ | {"SHARDWISE_TOKEN": _TOKEN, "SHARDWISE_HOME": str(home)}
    command = ["node", script, package, era, *reached]
    done = subprocess.run(
        command, env=env, input=json.dumps(calls), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def _serving(*words: str) -> Iterator[str]:
    """The address of MCP at a server of one token."""
    command = [*_COMMAND, "serve", "--port", "0", "--no-log", *words]
    with subprocess.Popen(
        command, env=os.environ | {"SHARDWISE_TOKEN": _TOKEN}, stderr=subprocess.PIPE, text=True
    ) as server:  # fmt: skip
        try:
            assert server.stderr is not None
            found = re.search(r"http://[\d.:]+", line := server.stderr.readline())
            assert found, line
            yield found[0] + "/mcp"
        finally:
            server.terminate()
