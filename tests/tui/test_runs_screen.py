"""The screen of measured runs, over matrices on disk: which are found, what is shown of them, whose plan is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from screen_driving import opened

from measure.history import store
from measure.history.nearest import FILES, rows_of_file
from measure.history.run import MeasuredRun, StepSeries
from tui.screens.runs import matrices

PLAN: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "workload": {"seq_len": 4096, "global_batch": 128, "steps": 50},
    "cluster": {"accelerator": "h100-sxm", "count": 8},
}
PREDICTED = {"step_s": 8.0, "step_low_s": 7.0, "step_high_s": 9.0}


def matrix(folder: Path, results: dict[str, Any]) -> None:
    cells: list[dict[str, Any]] = []
    for id, result in results.items():
        (folder / id).mkdir(parents=True)
        (folder / id / "plan.json").write_text(json.dumps(PLAN))
        if result is not None:
            (folder / id / "result.json").write_text(json.dumps(result))
        paths = {"plan": f"{id}/plan.json", "result": f"{id}/result.json"}
        cells.append({"id": id, "model": f"model-{id}", "fits": True, "runs": True, "predicted": PREDICTED} | paths)
    (folder / "matrix.json").write_text(json.dumps({"format": "shardwise-matrix/1", "cells": cells}))


def test_matrices_are_found_below_the_folder_but_not_behind_links_or_in_hidden_folders(tmp_path: Path) -> None:
    for name in ("runs/a", ".hidden/b", "deep/er/and/deep/er/still"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "matrix.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "runs")
    assert matrices(tmp_path) == ["runs/a"]


async def test_measured_beside_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    matrix(tmp_path / "runs/one", {"good": {"step_s": 10.0}, "full": {"outcome": "oom"}, "waiting": None})
    (tmp_path / "runs/two").mkdir()
    (tmp_path / "runs/two/matrix.json").write_text("no json")
    async with opened("runs") as runs:
        assert runs.names()[:2] == ["runs/one/good", "runs/one/full"]
        assert len(runs.names()) == 2 + sum(len(rows_of_file(file)) for file in FILES)
        text = runs.text()
        assert "1 without a result yet" in text
        assert "runs/two" in text
        assert "10.00 s" in text
        assert "8.00 s" in text
        assert "-20 %" in text
        await runs.press("down", "enter")
        (outcome,) = runs.outcomes
        assert outcome is not None
        assert outcome.plan is not None
        assert outcome.plan["cluster"]["count"] == 8


async def test_without_a_run_the_way_to_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened("runs") as runs:
        assert "benchmark matrix" in runs.text()
        # Those that ship are there all the same, and their plans can be taken.
        await runs.press("down", "enter")
        (outcome,) = runs.outcomes
        assert outcome is not None
        assert outcome.plan is not None
        assert outcome.plan["cluster"]["accelerator"]


async def test_runs_of_the_history_stand_before_those_that_ship_and_show_how_good_they_are() -> None:
    plan = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm", "count": 8},
            "workload": {"kind": "training", "seq_len": 4096, "global_batch": 128}}  # fmt: skip
    steps = StepSeries(step=[1, 2, 3], step_s=[12.0, 12.0, 12.0], loss=[3.0, 2.5, 2.4])
    runs = [MeasuredRun(plan=plan, figures={"step_s": 12.0}, series=steps, name="first", date="2026-01-01"),
            MeasuredRun(figures={"step_s": 3.0}, name="second", date="2026-02-01")]  # fmt: skip
    ids = store.add(runs)
    async with opened("runs") as screen:
        assert screen.names()[:2] == [f"history/{id}" for id in reversed(ids)]
        assert "none of your own" not in screen.text()
        await screen.press("down", "enter")
        assert "no plan" in screen.text()
        await screen.press("down")
        assert "How good" in screen.text()
        await screen.press("enter")
        (outcome,) = screen.outcomes
        assert outcome is not None
        assert outcome.plan == plan
