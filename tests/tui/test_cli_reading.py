"""`shardwise check` and `import`: files beside each other, flags, and exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from tui.cli import main

Capture = pytest.CaptureFixture[str]

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


def test_it_fits_with_the_file_beside_it(folder: Path, capsys: Capture) -> None:
    code = main(["check", str(folder / "sft.yaml"), "--accelerator", "h100-sxm", "--count", "8"])
    shown = capsys.readouterr().out
    assert code == 0
    assert shown.startswith("It fits: ")
    assert ["layout.zero_stage", "3"] in [line.split()[:2] for line in shown.splitlines()]


def test_it_does_not_fit(folder: Path, capsys: Capture) -> None:
    words = ["check", str(folder / "sft.yaml"), "--accelerator", "2xrtx-4090", "--json", "--set", "packing=true"]
    assert main(words) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["fits"] is False
    assert result["plan"]["workload"]["packing"] is True
    assert result["plan"]["cluster"] == {"accelerator": "rtx-4090", "count": 2}


def test_a_load_that_nobody_said_stands_in_the_first_line(folder: Path, capsys: Capture) -> None:
    (folder / "serve.sh").write_text("vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192\n")
    words = ["check", str(folder / "serve.sh"), "--accelerator", "h100-sxm"]
    assert main(words) == 0
    first = " ".join(capsys.readouterr().out.split("\n\n")[0].split())
    assert first.endswith("assuming prompts of 1,024 tokens, answers of 256 tokens, 32 at once.")
    assert main([*words, "--set", "input_len=512", "--set", "output_len=64", "--set", "concurrency=8"]) == 0
    assert "assuming" not in capsys.readouterr().out.split("\n\n")[0]


def test_too_little_is_known(folder: Path, capsys: Capture) -> None:
    assert main(["check", str(folder / "sft.yaml")]) == 2
    shown = capsys.readouterr().out
    assert shown.startswith("Not known: give --accelerator, --count.\n")
    assert ["workload.seq_len", "4096"] in [line.split()[:2] for line in shown.splitlines()]


@pytest.mark.parametrize("command", ["check", "import"])
@pytest.mark.parametrize(
    "words",
    [
        ["nothing.yaml"], ["."], ["sft.yaml", "--count", "many"], ["sft.yaml", "--set", "x"], ["\0"], ["x" * 5000],
        ["sft.yaml", "--plan", "nobody"], ["sft.yaml", "--nope"], ["bytes"], ["sft.yaml", "--set", "fooo=1"],
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    folder: Path, command: str, words: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "bytes").write_bytes(b"\xff\xfe\x00model")
    assert main([command, *words]) == 2
    caught = capsys.readouterr()
    assert len(caught.err.strip().splitlines()) == 1
    assert not caught.out


def test_names_that_lead_out_of_the_folder_are_not_opened(folder: Path, capsys: Capture) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "sft.yaml").write_text(YAML.replace("configs/ds.json", "../configs/ds.json"))
    assert main(["check", str(folder / "inner" / "sft.yaml"), "--accelerator", "h100", "--count", "8"]) == 2
    assert "layout.zero_stage" in capsys.readouterr().out


def test_an_imported_plan_runs_as_the_files_do(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program does unasked is part of the plan: the estimate is the one that `check` gives."""
    given = [str(folder / "sft.yaml"), "--accelerator", "8xh100-sxm"]
    assert main(["check", *given, "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert main(["import", *given]) == 0
    out, err = capsys.readouterr()
    assert yaml.safe_load(out)["layout"]["zero_stage"] == 3
    assert err.startswith("9 values read from ")
    monkeypatch.setattr(sys, "stdin", io.StringIO(out))
    assert main(["estimate", "--plan", "-", "--json"]) == 0
    estimated = json.loads(capsys.readouterr().out)
    assert estimated["memory"]["per_device_bytes"] == checked["per_device_bytes"]
    assert estimated["time"]["step_s"] == checked["step_s"]


def test_what_says_nothing_is_no_plan(folder: Path, capsys: Capture) -> None:
    (folder / "notes.txt").write_text("buy milk\n")
    assert main(["import", str(folder / "notes.txt")]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1


def test_a_job_is_followed_to_its_script_and_that_to_its_config(folder: Path, capsys: Capture) -> None:
    (folder / "job.sbatch").write_text(
        "#!/bin/bash\n#SBATCH -N 1\n#SBATCH --gres=gpu:h100:8\nsrun bash scripts/go.sh\n"
    )
    (folder / "scripts").mkdir()
    words = "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 --bf16 true --max_length 2048"
    (folder / "scripts" / "go.sh").write_text(f"torchrun --nproc_per_node 8 a.py {words} --deepspeed configs/ds.json\n")
    assert main(["check", str(folder / "job.sbatch"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["layout"]["zero_stage"] == 3


def test_the_folder_of_a_tracker_is_read_as_a_log(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "abc/metrics").mkdir(parents=True)
    (tmp_path / "abc/meta.yaml").write_text("run_id: abc\n")
    rows = (f"17000000000{step:02} 2500.0 {step}" for step in range(1, 9))
    (tmp_path / "abc/metrics/tokens_per_second_per_gpu").write_text("\n".join(rows))
    assert main(["check", str(tmp_path / "abc")]) == 0
    assert "2,500 tokens/s per device" in capsys.readouterr().out
    assert main(["check", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_a_log_is_read_as_one(tmp_path: Path, capsys: Capture) -> None:
    lines = [
        f" iteration {step}/ 100 | elapsed time per iteration (ms): 7150.0 | global batch size: 1024 | lm loss: 9.1 |"
        for step in range(1, 9)
    ]
    (tmp_path / "train.log").write_text("\n".join(lines))
    assert main(["check", str(tmp_path / "train.log")]) == 0
    assert "7.15 s a step" in capsys.readouterr().out
    # A text that is no log is what starts a run, as before.
    (tmp_path / "command.txt").write_text("llamafactory-cli train sft.yaml")
    main(["check", str(tmp_path / "command.txt")])
    assert "a step" not in capsys.readouterr().out
