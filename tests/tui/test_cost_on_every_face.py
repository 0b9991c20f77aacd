"""What a run costs is the same to the cent wherever it is asked: tool, typed function, command, MCP, conversation,
page and report."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from httpx import ASGITransport, AsyncClient

import shardwise
from knowledge import figures
from server.http.guard import Guard
from server.http.server import app
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


# Ways to pay and kinds of runs: on spot with interruptions, at a price of one's own, reserved, with failures of
# machines; the flags of the command, and how people say the same.
_RUN = "full fine-tune llama-3.1-8b on 8 h100 with 1B tokens"
WAYS: list[tuple[dict[str, Any], list[str], str]] = [
    ({"price": "spot"}, [*FLAGS, "--price", "spot"], f"{_RUN} on spot: what does it cost?"),
    ({"usd_per_device_hour": 2.37}, [*FLAGS, "--usd-per-device-hour", "2.37"],
     f"{_RUN} at $2.37 per GPU hour: what does it cost?"),
    ({"price": "reserved_3y"}, [*FLAGS, "--price", "reserved_3y"], f"{_RUN}, reserved for three years: cost?"),
    ({"count": 1024, "stage": "pretrain", "dataset_tokens": 2e12, "global_batch": 1024},
     ["llama-3.1-8b", "1024xh100", "--method", "full", "--stage", "pretrain", "--dataset-tokens", "2T",
      "--global-batch", "1024"],
     "pretrain llama-3.1-8b in full on 1024 h100 with 2T tokens, global batch 1024: what does it cost?"),
]  # fmt: skip


@pytest.mark.parametrize(("terms", "flags", "said"), WAYS, ids=["spot", "own price", "three years", "failures"])
def test_every_way_to_pay_on_every_face(
    terms: dict[str, Any], flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = PLAN | terms
    usd = call("estimate_cost", asked)["usd"]
    assert json.loads(printed(["cost", *flags, "--json"], capsys))["usd"] == usd
    assert figures.usd(usd) in printed(["cost", *flags], capsys)
    assert figures.usd(usd) in printed(["cost", *flags, "--md"], capsys)
    assert shardwise.estimate_cost(**asked).usd == usd
    served = asyncio.run(served_usd(asked))
    assert served == [pytest.approx(usd, abs=0.005), usd]
    told = json.loads(printed(["ask", "--json", said], capsys))
    (bill,) = [made for made in told["tool_calls"] if made["name"] == "estimate_cost"]
    assert call("estimate_cost", bill["arguments"])["usd"] == usd
    assert figures.usd(usd) in told["answer"]


async def served_usd(asked: dict[str, Any]) -> list[float]:
    """Over MCP, rounded as an assistant gets it, and over REST."""
    async with Client(server(Service())) as client:
        answer = await client.call_tool("estimate_cost", asked)
    transport = ASGITransport(app(Service(remote=True, full=True), Guard()))
    async with AsyncClient(transport=transport, base_url="http://localhost") as rest:
        told = (await rest.post("/v1/tools/estimate_cost", json=asked)).json()
    return [(answer.structured_content or {})["usd"], told["usd"]]


def test_a_report_and_the_clusters(usd: float) -> None:
    call("report", PLAN | {"file": "run.html"})
    assert figures.usd(usd) in Path("run.html").read_text(encoding="utf-8")
    found = call("recommend_cluster", PLAN)
    same = call("estimate_cost", {"plan": found["plan"]})
    assert same["usd"] == pytest.approx(found["options"][0]["usd"], abs=0.005)
