"""A written matrix is run cell by cell, and a board follows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from estimator.errors import PlanError
from launchers.matrix import runnable
from planner.matrix.running import BoardRow, run_matrix
from tui.commands.queue import LineBoard, LiveBoard

FORMAT = "shardwise-matrix/1"


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    cells: list[dict[str, Any]] = [
        {"id": "00-a/x", "runs": True, "command": "echo a"},
        {"id": "00-a/y", "runs": False, "command": None, "skip_reason": "no layout"},
        {"id": "01-b/x", "runs": True, "command": "exit 4"},
    ]
    folder = tmp_path / "m"
    for cell in cells:
        (folder / cell["id"]).mkdir(parents=True)
    (folder / "matrix.json").write_text(json.dumps({"format": FORMAT, "cells": cells}))
    return folder


def test_cells_are_run_and_each_says_what_became_of_it(matrix: Path) -> None:
    boards: list[list[BoardRow]] = []
    rows = run_matrix("m", board=lambda rows: boards.append(list(rows)), cooldown_s=0)
    assert [(row.id, row.state, row.code) for row in rows] == [
        ("00-a/x", "ran", 0),
        ("00-a/y", "left out: no layout", 0),
        ("01-b/x", "failed", 4),
    ]
    assert boards[0][0].state == "running"
    assert boards[-1] == rows
    assert run_matrix("m", ["00-*"], cooldown_s=0)[0].state == "done before"
    with pytest.raises(PlanError, match="no cell"):
        run_matrix("m", ["zz"])


def test_a_board_is_drawn_anew_or_line_by_line(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_matrix("m", board=LineBoard(), cooldown_s=0)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "01-b/x" in line][-1].startswith("01-b/x · failed (4)")
    board = LiveBoard()
    board([BoardRow("00-a/x", "running", 1.0)])
    board([BoardRow("00-a/x", "ran", 2.0, predicted_s=1.1, measured_s=1.0)])
    text = capsys.readouterr().err
    assert text.count("\x1b[J") == 1
    assert "+10 %" in text


def test_a_wait_for_kubernetes_is_a_command_of_its_own() -> None:
    assert runnable("bash torchrun.sh") == "bash torchrun.sh"
    assert runnable("manifest job.yaml").startswith("manifest() {")
