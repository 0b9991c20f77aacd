"""`shardwise matrix` and `matrix-results`: a suite is written, runs leave their results, and they are read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pages.rendering import terminal as page
from pages.results.of_results import blocks_of
from tools.registry import find
from tui.cli import main

Capture = pytest.CaptureFixture[str]
SUITE = ("qwen2.5-0.5b", "--accelerators", "h100", "--count", "2", "--strategies", "balanced,memory_optimized")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["matrix", *SUITE, "--write", "suite"]) == 0
    assert capsys.readouterr().out.startswith("2 of 2 runs can be started; ")
    return tmp_path / "suite"


def test_without_results_it_says_what_is_missing(written: Path, capsys: Capture) -> None:
    assert main(["matrix-results", "suite"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("0 of 2 runs in suite have a result.")
    assert "00-balanced/h100-sxm-qwen2.5-0.5b" in out


def test_a_result_stands_beside_its_prediction(written: Path, capsys: Capture) -> None:
    manifest = json.loads((written / "matrix.json").read_text())
    cell = manifest["cells"][0]
    step_s = 1.1 * cell["predicted"]["step_s"]
    (written / cell["result"]).write_text(json.dumps({"outcome": "ran", "step_s": step_s, "steps": 40}))
    assert main(["matrix-results", "suite", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    figure = next(row for row in result["cells"][0]["figures"] if row["figure"] == "step_s")
    assert figure["error"] == pytest.approx(1 / 1.1 - 1)
    assert main(["matrix-results", "suite"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 of 2 runs in suite have a result.")
    assert "-9.1 %" in out
    assert main(["matrix-results", "suite", "--plot"]) == 0
    drawn = capsys.readouterr().out.partition("Step (s)")[2]
    assert drawn.index("00 h100-sxm measured") < drawn.index("00 h100-sxm predicted")
    assert drawn.count("█") > 20
    found = find("matrix_results").run({"folder": "suite"})
    assert max(map(len, page.render(blocks_of(found), 60).splitlines())) <= 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("matrix-results", "nowhere"), "nowhere"),
        (("matrix-results", "/etc"), "outside the working folder"),
        (("matrix-results",), "folder: is required"),
        (("matrix", *SUITE, "--write", "../up"), "outside the working folder"),
        (("matrix", *SUITE, "--overwrite"), "--overwrite: only goes with --write"),
        (("matrix", *SUITE, "--scheduler", "cron"), "scheduler: "),
        (("matrix", *SUITE, "--platforms", "b200={framework: fsdp2}"), "is no platform of the matrix"),
        (("matrix",), "model"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert said in err
    assert not list(tmp_path.iterdir())
