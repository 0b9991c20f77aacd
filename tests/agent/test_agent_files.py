"""Files that a question names are read, with those that they name, and what is asked beside that is answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from conversations import begun, turns

SFT = """model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: full
deepspeed: ds_z3.json
cutoff_len: 4096
packing: true
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
"""
LOG = """{'loss': 1.81, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': 0.01}
{'loss': 1.75, 'grad_norm': 1.1, 'learning_rate': 1e-05, 'epoch': 0.02}
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 3 has a total capacity of 79.11 GiB
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sft.yaml").write_text(SFT)
    (tmp_path / "ds_z3.json").write_text('{"bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}')
    (tmp_path / "train.log").write_text(LOG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("check sft.yaml on 8 H100", [("import_config", {"file_paths": ["sft.yaml"], "count": 8})]),
        ("does sft.yaml fit on 2 nodes of 8 h100?", [("import_config", {"file_paths": ["sft.yaml"], "count": 16})]),
        ("why did train.log crash", [("read_run", {"path": "train.log"})]),
        ("read ./train.log", [("read_run", {"path": "./train.log"})]),
        ("import sft.yaml and ds_z3.json", [("import_config", {"file_paths": ["sft.yaml", "ds_z3.json"]})]),
        (
            "check sft.yaml on 8 A100 80GB and see why train.log crashed",
            [("import_config", {"file_paths": ["sft.yaml"]}), ("read_run", {"path": "train.log", "zero_stage": 3})],
        ),
        (
            "what is the longest sequence for sft.yaml on 8 H100?",
            [("import_config", {"file_paths": ["sft.yaml"]}), ("find_limit", {"model": "meta-llama/Llama-3.1-8B"})],
        ),
    ],
)
def test_a_file_that_is_named_is_read(text: str, calls: list[tuple[str, dict[str, object]]]) -> None:
    made = turns(text)[0]["tool_calls"]
    assert [call["name"] for call in made] == [name for name, _ in calls]
    for call, (_, wanted) in zip(made, calls, strict=True):
        assert {name: call["arguments"].get(name) for name in wanted} == wanted


def test_what_they_name_is_read_too(folder: Path) -> None:
    told = turns("check sft.yaml on 8 H100")[0]
    assert "It fits" in told["answer"]
    assert told["plan"]["layout"]["zero_stage"] == 3
    (folder / "ds_z3.json").unlink()
    assert "Still needed" in turns("check sft.yaml on 8 H100")[0]["answer"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("check other.yaml on 8 H100", "there is no file 'other.yaml'"),
        ("check ../other.yaml on 8 H100", "outside the working folder"),
        ("why did train.log crash", "1.96 GiB wanted"),
    ],
)
def test_what_is_told_of_a_file(text: str, told: str) -> None:
    assert told in turns(text)[0]["answer"]


def test_a_file_that_a_run_would_have_is_not_looked_for(folder: Path) -> None:
    first = begun("fine-tune llama-3.1-8b with my train.py on 8 H100: does it fit?")
    assert [call.name for call in first.calls] == ["estimate_training"]
    assert begun("full fine-tune llama-3.1-8b on 8 h100, write it to sft.yaml").calls[0].name != "import_config"
    (folder / "train.py").write_text("import mine\n\nmine.train()\n")
    assert begun("fine-tune llama-3.1-8b with my train.py on 8 H100: does it fit?").calls == first.calls
