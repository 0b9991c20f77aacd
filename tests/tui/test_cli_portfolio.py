"""`shardwise portfolio`: a queue of runs kept as a page and as a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.cli import main

_RUNS = {
    "accelerator": "h100-sxm",
    "count": 8,
    "runs": [
        {"name": "first", "plan": {"model": "pythia-410m", "workload": {"dataset_tokens": 1e8}}},
        {"name": "urgent <b>", "priority": 9, "plan": {"model": "pythia-160m", "workload": {"dataset_tokens": 1e8}}},
    ],
}


def test_the_timeline_is_kept_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked, page = tmp_path / "runs.json", tmp_path / "queue.html"
    asked.write_text(json.dumps(_RUNS))
    assert main(["portfolio", str(asked), "--html", str(page)]) in (0, None)
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 1
    assert "urgent &lt;b&gt;" in text
    assert "<b>" not in text
    assert text.index("urgent") < text.index(">first<")
    told = capsys.readouterr().out.splitlines()[0]
    assert told[:30] in text
    assert main(["portfolio", str(asked), "--html", str(page)]) == 2
    assert "--html" in capsys.readouterr().err


def test_the_timeline_is_kept_as_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked, picture = tmp_path / "runs.json", tmp_path / "queue.svg"
    asked.write_text(json.dumps(_RUNS))
    assert main(["portfolio", str(asked), "--svg", str(picture)]) in (0, None)
    assert "<svg" in picture.read_text(encoding="utf-8")
    assert main(["portfolio", str(asked), "--svg", str(picture)]) == 2
    big = {"name": "big", "plan": {"model": "llama-3.1-405b", "workload": {"dataset_tokens": 1e8}}}
    asked.write_text(json.dumps({**_RUNS, "count": 1, "runs": [big]}))
    capsys.readouterr()
    assert main(["portfolio", str(asked), "--svg", str(tmp_path / "none.svg")]) == 2
    assert "nothing to draw" in capsys.readouterr().err
