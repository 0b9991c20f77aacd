"""The how-tos are followed to the letter, in a copy of the repository: what they say to write, change and run works.

A block after a line that ends in "Write `path`:", "Add to `path`:" or "In `path`:" (a diff) goes there; every other
one is run, as `sh` or `python`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from test_floors import FLOORS

ROOT = Path(__file__).parent.parent
HOW_TO = ROOT / "docs" / "how-to"
# Followed by a test of its own, beside the rooms that it is about.
ELSEWHERE = {"add-a-launch-target.md"}
_BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
_PLACE = re.compile(r"\b(?P<verb>Write|Add to|In) `(?P<path>[^`]+)`:$")


@dataclass
class Follower:
    """A copy of the rooms in `folder`, in which a document is followed; `printed` has what each block printed."""

    folder: Path
    home: Path
    printed: list[str] = field(default_factory=list)

    def follow(self, name: str) -> None:
        for block in _BLOCK.finditer((HOW_TO / name).read_text(encoding="utf-8")):
            self._do(block["before"], block["kind"], block["text"])

    def _do(self, before: str, kind: str, text: str) -> None:
        place = _PLACE.search(before)
        path = self.folder / place["path"] if place else None
        if path and kind == "diff":
            old, new = (_lines(text, mark) for mark in "-+")
            whole = path.read_text(encoding="utf-8")
            assert whole.count(old) == 1, f"{path} no longer has {old!r}"
            path.write_text(whole.replace(old, new), encoding="utf-8")
        elif path and place and place["verb"] == "Write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif path:
            path.write_text(f"{path.read_text(encoding='utf-8')}\n{text}", encoding="utf-8")
        else:
            self.printed.append(self.run({"sh": ["bash", "-euc"], "python": [sys.executable, "-c"]}[kind], text))

    def run(self, program: list[str], text: str) -> str:
        paths = {"PYTHONPATH": str(self.folder), "PATH": f"{self.home}:{os.environ['PATH']}", "COLUMNS": "200"}
        environment = {name: value for name, value in os.environ.items() if name != "SHARDWISE_CONFIG"}
        environment |= paths | {"SHARDWISE_HOME": str(self.home)}
        done = subprocess.run([*program, text], cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, code: str) -> str:
        return self.run([sys.executable, "-c"], code)

    def tools(self, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
        """What each call of a tool gives: its result, or the sentence of its error."""
        return json.loads(self.python(_CALLS.format(calls=calls)))


_CALLS = """
import json
from estimator.errors import PlanError
from tools import call
results = []
for name, arguments in {calls!r}:
    try:
        results.append(call(name, arguments))
    except PlanError as error:
        results.append(str(error))
print(json.dumps(results))
"""


def _lines(diff: str, mark: str) -> str:
    return "\n".join(line[1:] for line in diff.splitlines() if line.startswith(mark))


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    folder, home = tmp_path / "copy", tmp_path / "home"
    home.mkdir()
    for room in FLOORS:
        shutil.copytree(ROOT / room, folder / room)
    command = home / "shardwise"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tui.cli "$@"\n')
    command.chmod(0o755)
    return Follower(folder, home)


def test_every_how_to_is_followed() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    for path in HOW_TO.glob("*.md"):
        assert path.name in ELSEWHERE or f'follow("{path.name}")' in source, path.name


def test_a_model(follower: Follower) -> None:
    follower.follow("add-a-model.md")
    own, shared = follower.printed[0], follower.printed[2]
    assert own.startswith("acme/acme-1b: 1.24B parameters")
    assert shared.startswith("acme/acme-3b: 3.21B parameters")
    assert "per device" in shared
    row = json.loads((follower.folder / "knowledge/data/models.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    (described,) = follower.tools(("describe_model", {"model": "acme-small"}))
    assert {key: described[key] for key in ("id", "parameters", "family", "source", "license")}.items() <= row.items()


def test_an_accelerator(follower: Follower) -> None:
    follower.follow("add-an-accelerator.md")
    own, like, shared, fit = follower.tools(
        ("describe_hardware", {"accelerator": "acme-h100"}),
        ("describe_hardware", {"accelerator": "h100-sxm"}),
        ("describe_hardware", {"accelerator": "ACME X1 192GB"}),
        ("check_fit", {"model": "llama-3.1-8b", "accelerator": "acme-x1", "count": 8}),
    )
    assert own["memory_bytes"] == 96 * 2**30
    assert own["peak_tflops"] == like["peak_tflops"]
    assert (shared["id"], shared["peak_tflops"]["bf16"], shared["per_node"]) == ("acme-x1", 1500, 8)
    assert shared["source"] == "https://example.org/acme-x1-datasheet.pdf"
    assert fit["fits"]


def test_a_price(follower: Follower) -> None:
    follower.follow("add-a-price.md")
    plan = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "dataset_tokens": "1B"}
    known = {"ACME Cloud": 17.6, "Zenith": 19.2}
    costs = follower.tools(*[("estimate_cost", plan | {"provider": provider}) for provider in known])
    for (provider, usd_per_hour), cost in zip(known.items(), costs, strict=True):
        (row,) = [row for row in cost["by_provider"] if row["provider"] == provider]
        assert row["usd_per_hour"] == usd_per_hour
        assert row["usd"] == pytest.approx(usd_per_hour * cost["hours"])


def test_a_framework_profile(follower: Follower) -> None:
    follower.follow("add-a-framework-profile.md")
    plan = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8}
    ours, allowed, refused = follower.tools(
        ("estimate_training", plan | {"framework": "acme-trainer"}),
        ("estimate_training", plan | {"framework": "torchtitan", "cp": 2}),
        ("estimate_training", plan | {"framework": "acme-trainer", "cp": 2}),
    )
    assert ours["plan"]["workload"]["framework"] == "acme-trainer"
    assert ours["memory"]["fits"]
    assert allowed["plan"]["layout"]["cp"] == 2
    assert refused.startswith("layout.cp: ")


def test_a_tool(follower: Follower) -> None:
    follower.follow("add-a-tool.md")
    answered, refused = follower.tools(
        ("describe_network", {"interconnect": "roce-100x4"}), ("describe_network", {"interconnect": "no such thing"})
    )
    assert answered["node_bytes_per_s"] == 50e9
    assert refused.startswith("cluster.interconnect: ")
    printed, _ = json.JSONDecoder().raw_decode(follower.printed[-1])
    assert printed == answered
    assert "describe_network" in follower.python("from tools.registry import registry; print(*registry())").split()


def test_a_measurement(follower: Follower) -> None:
    follower.follow("add-a-measurement.md")
    reason, miss = follower.printed[-1].split()
    assert reason == "None"
    assert abs(float(miss.rstrip("%"))) < 25
