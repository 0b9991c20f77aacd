"""The MCP server: every tool with its schemas in both protocol eras, errors as plain text, a clean standard output."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
from fastmcp import Client
from tool_calls import FLAT, PLANNING, steady

from estimator.errors import PlanError
from tools import call
from tools.mcp_server import server
from tools.registry import registry

Mode = Literal["legacy", "auto"]
MODES: tuple[Mode, ...] = ("legacy", "auto")
READING = [name for name in PLANNING if name != "write_configs"]


@pytest.mark.parametrize("mode", MODES)
async def test_every_tool_is_listed_with_its_schemas_and_hints(mode: Mode) -> None:
    async with Client(server(), mode=mode) as client:
        listed = await client.list_tools()
    assert [entry.name for entry in listed] == list(registry())
    for entry in listed:
        tool = registry()[entry.name]
        assert entry.title == tool.title
        assert entry.description == tool.description
        assert entry.annotations is not None
        assert entry.annotations.read_only_hint == tool.read_only
        jsonschema.Draft202012Validator.check_schema(entry.input_schema)
        assert entry.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(entry.output_schema)
        for name, field in entry.input_schema["properties"].items():
            assert field.get("description"), f"{entry.name}: {name}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", READING)
async def test_a_result_is_what_the_tool_gives_and_matches_its_schema(mode: Mode, name: str) -> None:
    async with Client(server(), mode=mode) as client:
        schema = {entry.name: entry.output_schema for entry in await client.list_tools()}[name]
        answer = await client.call_tool(name, FLAT)
    assert not answer.is_error
    assert schema is not None
    jsonschema.validate(answer.structured_content, schema)
    assert answer.structured_content is not None
    assert steady(answer.structured_content) == steady(call(name, FLAT))
    assert json.loads(answer.content[0].text) == answer.structured_content  # type: ignore[union-attr]


ERRORS: list[tuple[str, dict[str, Any]]] = [
    ("estimate_training", {"model": "gpt3000", "accelerator": "h100-sxm"}),
    ("estimate_training", FLAT | {"tpp": 8}),
    ("estimate_training", FLAT | {"count": "many"}),
    ("estimate_training", FLAT | {"count": 0}),
    ("estimate_cost", FLAT | {"dataset_tokens": None}),
    ("best_parallelism", FLAT | {"tp": 3}),
    ("describe_model", {}),
    ("write_configs", FLAT | {"folder": "../elsewhere"}),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "arguments"), ERRORS, ids=range(len(ERRORS)))
async def test_an_error_is_the_same_sentence_as_everywhere(mode: Mode, name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(PlanError) as caught:
        call(name, arguments)
    async with Client(server(), mode=mode) as client:
        answer = await client.call_tool(name, arguments, raise_on_error=False)
    assert answer.is_error
    text = answer.content[0].text  # type: ignore[union-attr]
    assert text == str(caught.value)
    assert "Traceback" not in text
    assert "http" not in text


@pytest.mark.parametrize("mode", MODES)
async def test_writing_over_mcp_writes_the_files(mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with Client(server(), mode=mode) as client:
        answer = await client.call_tool("write_configs", FLAT | {"folder": "runs/a"})
    assert answer.structured_content is not None
    for file in answer.structured_content["files"]:
        assert (tmp_path / file["path"]).stat().st_size == file["bytes"]


def test_standard_output_carries_the_protocol_and_nothing_else() -> None:
    """A client's handshake, one good call and one bad one, over the real command."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
         "params": {"name": "describe_model", "arguments": {"model": "gpt2"}}},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call",
         "params": {"name": "describe_model", "arguments": {"model": "gpt3000"}}},
    ]  # fmt: skip
    code = "from tui.cli import main; raise SystemExit(main(['mcp']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        alarm = threading.Timer(60, process.kill)
        alarm.start()
        try:
            lines = []
            for message in messages:
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
                if "id" in message:
                    lines.append(process.stdout.readline())
            rest, errors = process.communicate(timeout=20)
        finally:
            alarm.cancel()
            process.kill()
    answers = {entry["id"]: entry for entry in map(json.loads, lines)}
    assert answers.keys() == {1, 2, 3, 4}
    assert answers[1]["result"]["serverInfo"]["name"] == "shardwise"
    assert len(answers[2]["result"]["tools"]) == len(registry())
    assert answers[3]["result"]["structuredContent"]["parameters"] == 124_439_808
    assert answers[4]["result"]["isError"]
    assert rest == ""
    assert "Traceback" not in errors
    assert process.returncode == 0
