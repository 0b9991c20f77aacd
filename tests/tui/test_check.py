"""`shardwise check`: files beside each other, flags, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.cli import main

YAML = """\
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: full
cutoff_len: 4096
per_device_train_batch_size: 1
bf16: true
deepspeed: configs/ds.json
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sft.yaml").write_text(YAML)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    return tmp_path


def test_it_fits_with_the_file_beside_it(folder: Path, capsys: pytest.CaptureFixture[str]):
    code = main(["check", str(folder / "sft.yaml"), "--accelerator", "h100-sxm", "--count", "8"])
    shown = capsys.readouterr().out
    assert code == 0
    assert shown.startswith("fits\n")
    assert "layout.zero_stage = 3" in shown


def test_it_does_not_fit(folder: Path, capsys: pytest.CaptureFixture[str]):
    words = [
        "check",
        str(folder / "sft.yaml"),
        "--accelerator",
        "rtx-4090",
        "--count",
        "2",
        "--json",
        "--set",
        "packing=true",
    ]
    assert main(words) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["fits"] is False
    assert result["plan"]["workload"]["packing"] is True


def test_too_little_is_known(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(folder / "sft.yaml")]) == 2
    shown = capsys.readouterr().out
    assert "give accelerator, count" in shown
    assert "workload.seq_len = 4096" in shown


@pytest.mark.parametrize(
    "words", [["nothing.yaml"], ["."], ["sft.yaml", "--count", "many"], ["sft.yaml", "--set", "x"]]
)
def test_bad_input_is_one_line(folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(folder / words[0]), *words[1:]]) == 2
    caught = capsys.readouterr()
    assert len(caught.err.strip().splitlines()) == 1
    assert not caught.out


def test_names_that_lead_out_of_the_folder_are_not_opened(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "inner").mkdir()
    (folder / "inner" / "sft.yaml").write_text(YAML.replace("configs/ds.json", "../configs/ds.json"))
    assert main(["check", str(folder / "inner" / "sft.yaml"), "--accelerator", "h100", "--count", "8"]) == 2
    assert "layout.zero_stage" in capsys.readouterr().out
