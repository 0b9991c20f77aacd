"""benchmark_matrix and matrix_results: from models, strategies and platforms to a folder of runs, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pace import within

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from tools import call

ASKED: dict[str, Any] = {
    "models": ["meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-7B"], "accelerators": ["h100", "mi300x"], "count": 8,
    "method": "lora", "seq_len": 4096, "global_batch": 64, "name": "duel",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_what_is_written_is_what_was_shown() -> None:
    shown = call("render_matrix", ASKED)
    written = call("benchmark_matrix", ASKED)
    assert written["folder"] == "runs/duel-matrix"
    for file, there in zip(shown["files"], written["files"], strict=True):
        assert Path(there["path"]) == Path("runs/duel-matrix", file["path"])
        assert Path(there["path"]).read_text() == file["text"]
    assert shown["cells"] == written["cells"]
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    assert call("render_matrix", ASKED) == shown


def test_cells_have_the_layouts_of_the_strategies_and_their_estimates() -> None:
    found = call("render_matrix", ASKED)
    rows = call("apply_strategies", {key: value for key, value in ASKED.items() if key != "name"} | {"steps": 50})
    expected = {(row["model"], row["strategy"], row["accelerator"]): row for row in rows["rows"]}
    assert len(found["cells"]) == len(expected) == 20
    files = {file["path"]: file["text"] for file in found["files"]}
    for cell in found["cells"]:
        row = expected[cell["model"], cell["strategy"], cell["platform"]]
        assert cell["layout"] == row["layout"]
        assert cell["predicted"]["step_s"] == row["step_s"]
        assert cell["predicted"]["peak_bytes"] == row["per_device_bytes"]
        assert cell["predicted"]["peak_bytes_by_kind"]["allocated"] < cell["predicted"]["peak_bytes"]
        plan = Plan.parse(json.loads(files[cell["plan"]]))
        alone = call("estimate_training", {"plan": plan.model_dump(mode="json")})
        assert alone["time"]["step_s"] == pytest.approx(row["step_s"])
        assert plan.training.steps == 50
        assert cell["runs"], cell["skip_reason"]
        assert f"cell {cell['id']} " in files["run_all.sh"]
    assert found["identical_in"].keys() == set(ASKED["models"])


def test_custom_layouts_are_strategies_and_heads_are_checked() -> None:
    own = {"sharded": {"zero_stage": 3}, "wide": {"tp": 8}}
    found = call("render_matrix", ASKED | {"strategies": [], "custom_layouts": own})
    assert [cell["strategy"] for cell in found["cells"]] == ["sharded"] * 4 + ["wide"] * 4
    by = {(cell["strategy"], cell["model"], cell["platform"]): cell for cell in found["cells"]}
    for platform in ("h100-sxm", "mi300x"):
        assert by["sharded", "Qwen/Qwen2.5-7B", platform]["layout"]["zero_stage"] == 3
        wide = by["wide", "Qwen/Qwen2.5-7B", platform]
        assert not wide["runs"]
        assert "28 attention heads" in wide["skip_reason"]
        assert wide["plan"] is None
        assert by["wide", "meta-llama/Llama-3.1-8B", platform]["layout"]["tp"] == 8


def test_what_does_not_fit_is_left_out_by_the_script() -> None:
    asked = {"model": "meta-llama/Llama-3.1-70B", "accelerators": ["a100-sxm-40gb", "b200"], "count": 8}
    found = call("render_matrix", asked | {"strategies": ["maximum_performance"], "framework": "deepspeed"})
    small, large = found["cells"]
    assert (small["fits"], small["runs"]) == (False, False)
    assert "nothing fits" in small["skip_reason"]
    script = next(file["text"] for file in found["files"] if file["path"] == "run_all.sh")
    assert f"skip {small['id']} " in script
    assert large["fits"]


def test_layouts_that_no_file_can_say_are_passed_over() -> None:
    """torchtune recomputes all layers or none: what strategies would take besides is named, and the next best taken."""
    asked = {"model": ASKED["models"][0], "accelerators": ["h100", "mi300x"], "count": 16, "framework": "torchtune"}
    found = call("render_matrix", asked)
    free = {(row["strategy"], row["accelerator"]): row for row in call("apply_strategies", asked)["rows"]}
    assert any(cell["passed_over"] for cell in found["cells"])
    for cell in found["cells"]:
        assert cell["runs"], cell["skip_reason"]
        assert cell["layout"]["recompute"] in ("none", "full")
        row = free[cell["strategy"], cell["platform"]]
        if cell["layout"] != row["layout"]:
            other = {field for field, value in cell["layout"].items() if value != row["layout"][field]}
            assert any(field in " ".join(cell["passed_over"]) for field in other)
            if cell["strategy"] == "maximum_performance":
                assert cell["predicted"]["step_s"] >= row["step_s"]
    shared = [cell["layout"] for cell in found["cells"] if cell["strategy"] == "truly_identical"]
    assert shared[0] == shared[1]


def test_what_is_refused_whatever_the_layout_is_said() -> None:
    asked = ASKED | {"models": ["Qwen/Qwen3-30B-A3B"], "framework": "torchtune", "strategies": ["balanced"]}
    for cell in call("render_matrix", asked)["cells"]:
        assert not cell["runs"]
        assert cell["fits"]
        assert "no launch files: model: torchtune" in cell["skip_reason"]


def test_platforms_have_settings_of_their_own() -> None:
    settings = {"h100": {"partition": "nv", "framework": "fsdp2"}, "mi300x": {"partition": "amd"}}
    asked = ASKED | {
        "models": ASKED["models"][:1],
        "strategies": ["balanced"],
        "account": "team",
        "platforms": settings,
    }
    found = call("render_matrix", asked)
    scripts = {Path(file["path"]).parent.name: file["text"] for file in found["files"] if file["target"] == "slurm"}
    for cell, partition in zip(found["cells"], ("nv", "amd"), strict=True):
        text = scripts[Path(cell["id"]).name]
        assert f"#SBATCH --partition={partition}" in text
        assert "#SBATCH --account=team" in text
    assert found["cells"][0]["framework"] == "fsdp2"
    assert found["cells"][1]["framework"] != "fsdp2"


def test_a_length_that_was_given_is_kept() -> None:
    asked = ASKED | {"strategies": ["balanced"], "dataset_tokens": "1B"}
    found = call("render_matrix", asked)
    assert found["plan"]["workload"]["steps"] is None
    assert not any(row["field"] == "workload.steps" for row in found["assumptions"])
    assert any(row["field"] == "workload.steps" for row in call("render_matrix", ASKED)["assumptions"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"scheduler": "torchx"}, "scheduler"),
        ({"strategies": ["fastest"]}, "strategies"),
        ({"strategies": []}, "strategies"),
        ({"models": ["no-such-model"]}, "model"),
        ({"accelerators": ["no-such-device"]}, "accelerators"),
        ({"accelerators": None}, "accelerators"),
        ({"platforms": {"no-such-device": {}}}, "platforms"),
        ({"platforms": {"b200": {"partition": "x"}}}, "platforms"),
        ({"platforms": {"h100": {"colour": "x"}}}, "platforms.colour"),
        ({"platforms": {"h100": {"partition": "$(x)"}}}, "partition"),
        ({"platforms": {"h100": {"framework": "vllm"}}}, "platforms"),
        ({"custom_layouts": {"../x": {"tp": 2}, "x": {"tp": 2}}}, "custom_layouts"),
        ({"custom_layouts": {"": {"tp": 2}}}, "custom_layouts"),
        ({"custom_layouts": {"balanced": {"tp": 2}}}, "custom_layouts"),
        ({"custom_layouts": {"a": {"width": 2}}}, "custom_layout.width"),
        ({"custom_layouts": {f"a{number}": {"tp": 2} for number in range(50)}}, "strategies"),
        ({"cooldown_s": -1}, "cooldown_s"),
        ({"cooldown_s": float("nan")}, "cooldown_s"),
        ({"folder": "../out"}, "folder"),
        ({"plan": {"workload": {"kind": "inference"}}}, "workload"),
    ],
)
def test_bad_arguments_are_named(changes: dict[str, Any], field: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError) as raised:
        call("benchmark_matrix", ASKED | changes)
    assert raised.value.field.startswith(field), str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_what_was_measured_is_read_back() -> None:
    written = call("benchmark_matrix", ASKED | {"strategies": ["balanced", "memory_optimized"], "folder": "m"})
    cells = written["cells"]
    for cell, factor in zip(cells[:3], (1.0, 1.25, 0.8), strict=True):
        said = {"step_s": cell["predicted"]["step_s"] * factor, "peak_bytes": 1e10, "peak_kind": "allocated"}
        Path("m", cell["result"]).write_text(json.dumps(said | {"versions": {"torch": "2.9.0"}}))
    Path("m", cells[3]["result"]).write_text('{"outcome": "oom"}')
    Path("m", cells[4]["result"]).write_text('{"step_s": "?"}')
    found = call("matrix_results", {"folder": "m"})
    errors = [next(one["error"] for one in cell["figures"] if one["figure"] == "step_s") for cell in found["cells"][:3]]
    assert errors == pytest.approx([0.0, -0.2, 0.25])
    accuracy = {row["figure"]: row for row in found["accuracy"]}
    assert accuracy["step_s"]["runs"] == 3
    assert accuracy["step_s"]["mape"] == pytest.approx(0.15)
    assert accuracy["peak_bytes"]["runs"] == 3
    assert found["missing"] == [cell["id"] for cell in cells[5:]]
    assert len(found["warnings"]) == 2
    assert "step_s" in found["warnings"][0]
    assert "ran out of memory, but was predicted to fit" in found["warnings"][1]
    assert len(found["training_csv"].splitlines()) == 1 + 3
    assert len(found["memory_csv"].splitlines()) == 1 + 4


def test_a_matrix_of_a_usual_size_takes_seconds() -> None:
    asked = ASKED | {"models": [*ASKED["models"], "Qwen/Qwen3-30B-A3B"], "accelerators": ["h100", "mi300x", "b200"]}
    with within(10):
        found = call("benchmark_matrix", asked)
    assert len(found["cells"]) == 45
