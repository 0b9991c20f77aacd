"""What launch files name and lies beside them is read with them, on every face by the same path, and within bounds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from estimator.errors import PlanError
from planner.files import beside
from planner.files.beside import texts_of, with_named
from planner.files.importing import imported
from tools import call

_SCRIPT = "torchrun --nproc_per_node 8 src/train.py --model_name_or_path Qwen/Qwen3-8B --learning_rate 1e-5\n"
_SOURCE = """\
from transformers import AutoModelForCausalLM, HfArgumentParser
from trl import SFTConfig, SFTTrainer
from settings.args import Arguments
from model import adapters

arguments = HfArgumentParser(Arguments).parse_args_into_dataclasses()[0]
config = SFTConfig(
    per_device_train_batch_size=arguments.rows, gradient_accumulation_steps=2, max_length=arguments.longest,
    bf16=True, packing=True, gradient_checkpointing=True,
)
model = AutoModelForCausalLM.from_pretrained(arguments.model_name_or_path)
SFTTrainer(model=model, args=config, peft_config=adapters()).train()
"""
_ARGUMENTS = """\
from dataclasses import dataclass

LONGEST = 4096


@dataclass
class Arguments:
    model_name_or_path: str = "gpt2"
    rows: int = 4
    longest: int = LONGEST
"""
_MODEL = "from peft import LoraConfig\n\n\ndef adapters():\n    return LoraConfig(r=64, lora_alpha=128)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "run.sh": _SCRIPT,
        "src/train.py": _SOURCE,
        "src/settings/args.py": _ARGUMENTS,
        "src/model.py": _MODEL,
        "src/unused.py": "x = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_source_and_what_it_imports_are_read_with_the_script(project: Path):
    texts = texts_of(["run.sh"], {})
    assert {*texts} == {"run.sh", "src/train.py", "src/settings/args.py", "src/model.py"}
    workload = imported(texts, {}).plan["workload"]
    assert (workload["micro_batch"], workload["seq_len"], workload["global_batch"]) == (4, 4096, 64)
    assert (workload["method"], workload["lora"]["rank"]) == ("lora", 64)


def test_a_tool_reads_what_the_terminal_reads(project: Path):
    by_paths = call("import_config", {"file_paths": ["run.sh"], "accelerator": "h100-sxm"})
    by_texts = call("import_config", {"files": texts_of(["run.sh"], {}), "accelerator": "h100-sxm"})
    assert by_paths == by_texts
    assert by_paths["fits"] is True


def test_a_script_below_is_started_from_above(project: Path):
    (project / "scripts").mkdir()
    (project / "run.sh").rename(project / "scripts" / "run.sh")
    assert "src/train.py" in texts_of(["scripts/run.sh"], {})


@pytest.mark.parametrize("name", ["/etc/train.py", "../../train.py", "a\\0.py", "x" * 300 + ".py"])
def test_nothing_is_read_from_elsewhere(project: Path, name: str):
    (project / "run.sh").write_text(f"python '{name}' --model_name_or_path gpt2 --per_device_train_batch_size 1\n")
    assert [*texts_of(["run.sh"], {})] == ["run.sh"]


def test_what_is_no_regular_file_or_no_text_is_left(project: Path):
    train = project / "src" / "train.py"
    for make in (lambda: os.mkfifo(train), train.mkdir, lambda: train.write_bytes(b"\xff\xfe\x00"), train.touch):
        train.unlink() if train.is_file() or train.is_fifo() else train.rmdir()
        make()
        assert [*texts_of(["run.sh"], {})] == ["run.sh"]


def test_how_much_is_read_is_bounded(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(beside, "_MOST", 2)
    assert len(texts_of(["run.sh"], {})) == 2
    monkeypatch.setattr(beside, "_LARGEST_SOURCE", 10)
    assert len(texts_of(["run.sh"], {})) == 1


def test_sources_that_import_each_other_end(project: Path):
    (project / "src" / "model.py").write_text(f"from settings.args import adapters\n{_MODEL}")
    (project / "src" / "settings" / "args.py").write_text(f"from model import Arguments\n{_ARGUMENTS}")
    assert imported(texts_of(["run.sh"], {}), {}).plan["workload"]["lora"]["rank"] == 64


def test_what_cannot_be_parsed_says_nothing(project: Path):
    (project / "src" / "model.py").write_text("def adapters(:\n")
    result = imported(texts_of(["run.sh"], {}), {"cluster.accelerator": "h100-sxm"})
    assert result.fits is None
    assert "workload.lora.rank" not in {row.field for row in result.read}


def test_a_folder_that_is_known_only_where_it_runs_is_below_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("conf").mkdir()
    Path("conf/sft.yaml").write_text("model: Qwen/Qwen3-8B\nmax_length: 2048\nper_device_train_batch_size: 1\n")
    Path("run.sh").write_text('ROOT=$(cd "$(dirname "$0")" && pwd)\nswift sft --config "$ROOT/conf/sft.yaml"\n')
    assert "conf/sft.yaml" in texts_of(["run.sh"], {})


def test_a_tree_that_refuses_a_named_config_says_so():
    class Refusing:
        def is_file(self, path: Path) -> bool:
            return path.name == "ds.json"

        def text(self, path: Path) -> str:
            raise PlanError("files", f"{path} is not readable")

    script = "deepspeed train.py --deepspeed ds.json --model_name_or_path gpt2 --per_device_train_batch_size 1\n"
    with pytest.raises(PlanError, match=r"ds.json is not readable"):
        with_named({"run.sh": script}, {}, Refusing())
