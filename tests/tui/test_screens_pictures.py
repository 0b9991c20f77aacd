"""How each of the other screens looks at three sizes, with facts that do not change. Accept a wanted change:
--snapshot-update."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_session import GIB, PLAN, FakeSession
from filled import filled
from pydantic import BaseModel
from screen_driving import settle
from textual.pilot import Pilot
from textual.widgets import Static

from agent.store import KeptTurn, SessionRow
from measure.history.shipped import shipped_runs
from tools.registry import find
from tui.app import ShardwiseApp
from tui.screens import SCREENS, find_screen, load_screen

HARDWARE = [
    {"id": f"card-{n}", "name": f"Card {n} SXM", "vendor": "Maker" if n % 2 else "Other", "family": "First",
     "usable_bytes": n * 10 * GIB, "memory_bandwidth_bytes_per_s": n * 1e12, "bf16_tflops": n * 100.0 or None,
     "per_node": 8, "own": False, "source": "a datasheet"}
    for n in range(1, 40)
]  # fmt: skip
MODELS = [
    {"id": f"maker/Model-{n}B", "family": "model", "parameters": n * 1e9, "active_parameters": None,
     "context_tokens": n * 1024, "own": False, "source": "its config.json"}
    for n in range(1, 40)
]  # fmt: skip
FIGURES = {"fits": True, "per_device_bytes": 61 * GIB, "tokens_per_s": 42500.0, "hours": 6.5, "usd": 130.8}
SCENARIOS = [
    {"name": name, "title": name, "model": "maker/Model-8B", "kind": "training", "what": "sft full", "count": 8,
     "accelerator": "card-8", "read_only": name == "example", "saved": None, "figures": FIGURES}
    for name in ("example", "mine", "with [brackets]")
]  # fmt: skip
OPTIONS = [
    {"accelerator": f"card-{n}", "count": 8 * n, "per_node": 8, "provider": "Cloud", "usd": 100.0 * n, "hours": 12 / n,
     "usd_per_hour": 20.0 * n, "tokens_per_s": 1e4 * n, "usd_per_million_tokens": 0.1, "headroom_bytes": GIB,
     "summary": "DP 8, ZeRO-3", "pareto": n % 2 == 1}
    for n in range(1, 6)
]  # fmt: skip
ENTRY = {"topic": "networks", "advice": "Look at the slowest rank first.", "settings": {"NCCL_DEBUG": "INFO"},
         "source": "a handbook", "score": 1.0}  # fmt: skip
ENTRIES = [{"id": f"e{n}", "title": f"The run hangs, part {n}", **ENTRY} for n in range(1, 6)]
RUNS = [
    {"id": f"balanced/card-{n}", "model": "maker/Model-8B", "platform": f"card-{n}", "strategy": "balanced",
     "outcome": "oom" if n == 3 else "ran", "fits": True, "versions": {"torch": "2.9.0"}, "problem": None,
     "figures": [] if n == 3 else [
         {"figure": "peak_bytes", "measured": n * 20.0 * GIB, "predicted": n * 21.0 * GIB, "low": n * 19.0 * GIB,
          "high": n * 23.0 * GIB, "error": 0.05, "covered": True},
         {"figure": "step_s", "measured": 2.0 * n, "predicted": None, "low": None, "high": None, "error": None,
          "covered": None}]}
    for n in range(1, 4)
]  # fmt: skip
CURVE = {"title": "Strong scaling: speed", "kind": "line", "x_label": "nodes", "y_label": "tokens/s",
         "series": [{"name": "estimate", "x": [1, 2, 4, 8], "y": [1e4, 1.9e4, 3.6e4, 6.5e4]}]}  # fmt: skip
RESULTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "list_catalogue": lambda given: {"hardware": HARDWARE, "models": MODELS},
    "describe_hardware": lambda given: {**HARDWARE[0], "memory_bytes": 80e9, "peak_tflops": {"bf16": 100.0},
                                        "prices": [{"provider": "Cloud", "instance": "big", "usd_per_hour": 2.5}],
                                        "notes": ["dense rates"]},
    "describe_model": lambda given: {**MODELS[0], "active_parameters": 1_000_000_000, "layers": 32, "hidden": 4096,
                                     "valid_tp": [1, 2, 4], "notes": []},
    "list_scenarios": lambda given: {"scenarios": SCENARIOS},
    "load_scenario": lambda given: {"name": given["name"], "read_only": False, "notes": [], "folder": "/home/you",
                                    "plan": PLAN, "files": [{"path": "a.yaml", "text": "model: maker/Model-8B\n"}]},
    "recommend_cluster": lambda given: {"options": OPTIONS, "why": ["The first is cheapest."], "satisfied": True,
                                        "rejected": [], "sort": "balanced", "priced": "2026-06-18"},
    "search_playbook": lambda given: {"topics": [{"id": "networks"}] if not given.get("topic") else [],
                                      "entries": ENTRIES if given.get("topic") or given.get("query") else []},
    "matrix_results": lambda given: {"cells": RUNS, "missing": ["fourth"], "accuracy": [
        {"figure": "peak_bytes", "runs": 2, "mape": 0.05, "coverage": 1.0}]},
    "project_scaling": lambda given: {"plots": [CURVE], "points": [], "scaling": "strong", "why": ["It scales."]},
}  # fmt: skip


class Told:
    """A tool that says what is written above."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, given: dict[str, Any]) -> BaseModel:
        return filled(find(self.name).response, RESULTS[self.name](given))


SESSIONS = [
    SessionRow(
        id=f"{n}bcd1234", title=f"Does it fit on {n} cards?", created="2026-01-01T10:00:00+00:00",
        last_used=f"2026-01-0{n}T10:00:00+00:00", turns=n,
    )
    for n in range(1, 6)
]  # fmt: skip
TURNS = [
    KeptTurn(
        number=1, moment="2026-01-01T10:00:00+00:00", said="Does it fit?", state="done",
        answer="**Yes.** It needs 61 GiB.", plan=PLAN,
    )
]  # fmt: skip


@pytest.fixture(autouse=True)
def _facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("hardware", "models", "scenarios", "clusters", "playbook", "sweep", "runs"):
        monkeypatch.setattr(f"tui.screens.{name}.find", Told)
    monkeypatch.setattr("tui.screens.runs.matrices", lambda root: ["runs/suite"])
    monkeypatch.setattr("tui.screens.runs.shipped_runs", lambda: shipped_runs()[:20])
    monkeypatch.setattr("tui.screens.sessions.list_sessions", lambda query: SESSIONS)
    monkeypatch.setattr("tui.screens.sessions.transcript", lambda id: TURNS)
    monkeypatch.setattr("agent.settings.settings_file", lambda: Path("/home/you/settings.toml"))
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["small", "middle", "large"])
@pytest.mark.parametrize("name", [row.name for row in SCREENS])
def test_screen(snap_compare: Any, name: str, size: tuple[int, int]) -> None:
    _look(snap_compare, name, size)


@pytest.mark.parametrize("name", [row.name for row in SCREENS])
def test_screen_in_light(snap_compare: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_THEME", "textual-light")
    _look(snap_compare, name, (120, 40))


def _look(snap_compare: Any, name: str, size: tuple[int, int]) -> None:
    app = ShardwiseApp(opener=FakeSession, estimator=lambda plan: [])
    app.animation_level = "none"

    async def before(pilot: Pilot[Any]) -> None:
        row = find_screen(name)
        assert row is not None
        await pilot.app.push_screen(load_screen(row, PLAN))
        await settle(pilot)
        await pilot.press("down")
        await settle(pilot)
        wrong = [str(line.content) for line in pilot.app.screen.query("#state.-bad").results(Static)]
        assert not [text for text in wrong if "should not have happened" in text]

    assert snap_compare(app, terminal_size=size, run_before=before)


@pytest.mark.parametrize("theme", ["textual-light", "textual-dark"])
def test_no_colour_is_needed_to_see_the_row_at_hand(snap_compare: Any, theme: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = ShardwiseApp(opener=FakeSession, estimator=lambda plan: [])
    app.animation_level = "none"

    async def before(pilot: Pilot[Any]) -> None:
        pilot.app.theme = theme
        row = find_screen("hardware")
        assert row is not None
        await pilot.app.push_screen(load_screen(row, PLAN))
        await settle(pilot)
        await pilot.press("down", "space", "space", "down")
        await settle(pilot)

    assert snap_compare(app, terminal_size=(120, 40), run_before=before)
