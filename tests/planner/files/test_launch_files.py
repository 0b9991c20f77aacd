"""render_configs and write_configs: the same files as text and on disk, below the working folder, all or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tool_calls import FLAT

from estimator.errors import PlanError
from tools import call

ALL = ["llamafactory", "deepspeed", "slurm"]
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8,
    "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 2816, "vocab_size": 32000,
    "max_position_embeddings": 4096,
}  # fmt: skip


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder; beside it lies what must not be touched."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rendering_writes_nothing_and_writing_writes_what_was_rendered(work: Path) -> None:
    rendered = call("render_configs", FLAT)
    assert everything(work.parent) == {}
    written = call("write_configs", FLAT | {"folder": "runs/a"})
    assert written["folder"] == "runs/a"
    assert [file["target"] for file in rendered["files"]] == [file["target"] for file in written["files"]]
    for text, file in zip(rendered["files"], written["files"], strict=True):
        assert file["path"] == f"runs/a/{text['path']}"
        assert (work / file["path"]).read_text() == text["text"]
        assert file["bytes"] == len(text["text"].encode())
    assert set(everything(work)) == {file["path"] for file in written["files"]}
    for key in ("plan", "launch_command", "needs_from_user", "assumptions"):
        assert written[key] == rendered[key]


def test_the_files_say_what_the_plan_says() -> None:
    rendered = call("render_configs", FLAT | {"targets": ALL})
    texts = {file["target"]: file["text"] for file in rendered["files"]}
    assert texts.keys() == set(ALL)
    config, plan = yaml.safe_load(texts["llamafactory"]), rendered["plan"]
    assert config["model_name_or_path"] == "meta-llama/Llama-3.1-8B"
    assert config["cutoff_len"] == 4096
    micro = config["per_device_train_batch_size"]
    assert micro == plan["workload"]["micro_batch"]
    assert micro * config["gradient_accumulation_steps"] * 8 == 64
    zero = json.loads(texts["deepspeed"])["zero_optimization"]["stage"]
    assert zero == plan["layout"]["zero_stage"]
    assert "#SBATCH" in texts["slurm"]


@pytest.mark.parametrize("spelled", ["model", "model/config.json", "./model"])
def test_a_model_on_disk_is_loaded_from_its_folder(work: Path, spelled: str) -> None:
    (work / "model").mkdir()
    (work / "model/config.json").write_text(json.dumps(CONFIG))
    rendered = call("render_configs", FLAT | {"model": spelled, "targets": ["llamafactory"]})
    config = yaml.safe_load(next(file["text"] for file in rendered["files"] if file["target"] == "llamafactory"))
    assert (work / config["model_name_or_path"] / "config.json").is_file()


def test_an_alias_is_written_as_the_name_that_loaders_know() -> None:
    rendered = call("render_configs", FLAT | {"model": "llama 3.1 8b", "targets": ["llamafactory"]})
    config = yaml.safe_load(next(file["text"] for file in rendered["files"] if file["target"] == "llamafactory"))
    assert config["model_name_or_path"] == "meta-llama/Llama-3.1-8B"


OUTSIDE = [
    "..",
    "../elsewhere",
    "/tmp/shardwise-elsewhere",
    "runs/../../elsewhere",
    "~",
    "~/runs",
    "~root/x",
    "a\x1b[31m",
    "a\u202eb",
]


@pytest.mark.parametrize("folder", [*OUTSIDE, "a\0b", "a" * 5000], ids=range(len(OUTSIDE) + 2))
def test_nothing_is_written_outside_the_working_folder(work: Path, folder: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("write_configs", FLAT | {"folder": folder})
    assert caught.value.field == "folder"
    assert len(str(caught.value)) < 300
    assert everything(work.parent) == {}
    assert not Path("/tmp/shardwise-elsewhere").exists()


def test_a_link_does_not_lead_out(work: Path) -> None:
    outside = work.parent / "outside"
    outside.mkdir()
    (work / "link").symlink_to(outside)
    with pytest.raises(PlanError, match=r"^folder: "):
        call("write_configs", FLAT | {"folder": "link/runs"})
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    "name", ["../../etc", "a/b\\c", "..", "x\ny", "~", "nul\0", " ", "A plan: with $(words) & 'quotes'", "日本語"]
)
def test_the_name_of_a_plan_is_never_a_way_out(work: Path, name: str) -> None:
    written = call("write_configs", FLAT | {"name": name})
    assert everything(work.parent).keys() == {f"work/{file['path']}" for file in written["files"]}
    assert all(file["path"].startswith("runs/") for file in written["files"])


def test_files_that_differ_are_kept_unless_overwriting_is_asked_for(work: Path) -> None:
    first = call("write_configs", FLAT | {"folder": "runs/a"})
    before = everything(work)
    assert call("write_configs", FLAT | {"folder": "runs/a"})["files"] == first["files"]
    with pytest.raises(PlanError, match=r"^folder: .*overwrite"):
        call("write_configs", FLAT | {"folder": "runs/a", "seq_len": 2048})
    assert everything(work) == before
    call("write_configs", FLAT | {"folder": "runs/a", "seq_len": 2048, "overwrite": True})
    assert everything(work).keys() == before.keys()
    assert everything(work) != before


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"targets": ["llamafactory", "nemo2"]}, "targets"),
    ({"targets": []}, "targets"),
    ({"targets": "llamafactory"}, "targets"),
    ({"model": "no-such-model"}, "model"),
    ({"tp": 3}, "layout.tp"),
    # LlamaFactory does not run on it
    ({"framework": "megatron-lm", "tp": 2, "targets": ["llamafactory"]}, "workload.framework"),
    ({"overwrite": 3}, "overwrite"),
]


@pytest.mark.parametrize(("changes", "field"), ERRORS, ids=range(len(ERRORS)))
def test_nothing_is_written_on_an_error(work: Path, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("write_configs", FLAT | {"folder": "runs/a"} | changes)
    assert caught.value.field == field
    assert list(work.iterdir()) == []


def test_a_file_in_the_way_is_named(work: Path) -> None:
    (work / "runs").write_text("a file")
    with pytest.raises(PlanError, match=r"^folder: "):
        call("write_configs", FLAT | {"folder": "runs/a"})
    assert everything(work) == {"runs": b"a file"}
