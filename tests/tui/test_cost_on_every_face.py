"""What a run costs is the same to the cent wherever it is asked: tool, typed function, command, MCP, conversation,
page and report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client

import shardwise
from knowledge import figures
from server.mcp.server import server
from server.service import Service
from tools import call
from tui.cli import main

PLAN: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "method": "full",
                        "stage": "sft", "dataset_tokens": 1e9}  # fmt: skip
FLAGS = ["llama-3.1-8b", "8xh100", "--method", "full", "--stage", "sft", "--dataset-tokens", "1B"]
SAID = "full fine-tune llama-3.1-8b on 8 h100 with 1B tokens: what does it cost?"


@pytest.fixture(scope="module")
def usd() -> float:
    return call("estimate_cost", PLAN)["usd"]


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path))


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) in (0, None)
    return capsys.readouterr().out


def test_the_command_and_the_typed_function(usd: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(["cost", *FLAGS, "--json"], capsys))["usd"] == usd
    assert shardwise.estimate_cost(**PLAN).usd == usd
    assert figures.usd(usd) in printed(["cost", *FLAGS], capsys)
    assert figures.usd(usd) in printed(["cost", *FLAGS, "--md"], capsys)


async def test_mcp(usd: float) -> None:
    for full in (True, False):
        async with Client(server(Service(full=full))) as client:
            answer = await client.call_tool("estimate_cost", PLAN)
        found = answer.structured_content or {}
        assert found["usd"] == pytest.approx(usd, abs=0.005)


def test_a_conversation(usd: float, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(printed(["ask", "--json", SAID], capsys))
    (bill,) = [made for made in told["tool_calls"] if made["name"] == "estimate_cost"]
    assert call("estimate_cost", bill["arguments"])["usd"] == usd
    assert figures.usd(usd) in told["answer"]


def test_a_report_and_the_clusters(usd: float) -> None:
    call("report", PLAN | {"file": "run.html"})
    assert figures.usd(usd) in Path("run.html").read_text(encoding="utf-8")
    found = call("recommend_cluster", PLAN)
    same = call("estimate_cost", {"plan": found["plan"]})
    assert same["usd"] == pytest.approx(found["options"][0]["usd"], abs=0.005)
