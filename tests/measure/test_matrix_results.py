"""What is read back of a benchmark matrix: results against predictions, and rows for the table of measurements."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from measure.history.training import Kind, case_of, columns_of
from measure.run.matrix import FORMAT, CellResult, read, summaries, table

PLAN: dict[str, Any] = {
    "name": "a",
    "model": "llama-3.1-8b",
    "workload": {
        "framework": "megatron-bridge", "stage": "pretrain", "seq_len": 4096, "micro_batch": 1, "global_batch": 128,
        "steps": 50,
    },
    "cluster": {"accelerator": "h100-sxm", "count": 8, "per_node": 8},
    "layout": {"tp": 2, "pp": 1, "cp": 1, "ep": 1, "dp": 4, "zero_stage": 1, "recompute": "block:3", "vpp": 1},
}  # fmt: skip
# 4096 x 128 / 8 tokens per device and step.
TOKENS = 65536
PREDICTED: dict[str, Any] = {
    "step_s": 8.0, "step_low_s": 7.0, "step_high_s": 9.0,
    "tokens_per_s_per_device": TOKENS / 8, "tokens_low_per_s_per_device": TOKENS / 9,
    "tokens_high_per_s_per_device": TOKENS / 7,
    "peak_bytes": 60e9, "peak_low_bytes": 54e9, "peak_high_bytes": 66e9,
    "peak_bytes_by_kind": {"allocated": 50e9, "reserved": 55e9},
}  # fmt: skip


def matrix(folder: Path, results: dict[str, Any], plan: dict[str, Any] = PLAN, **changes: Any) -> Path:
    """The manifest of a matrix with a cell for each result (None where there is none yet)."""
    cells: list[dict[str, Any]] = []
    for id, result in results.items():
        (folder / id).mkdir(parents=True, exist_ok=True)
        (folder / id / "plan.json").write_text(json.dumps(plan))
        if result is not None:
            text = result if isinstance(result, str) else json.dumps(result)
            (folder / id / "result.json").write_text(text)
        cell = {"id": id, "fits": True, "runs": True, "predicted": PREDICTED}
        cells.append(cell | {"plan": f"{id}/plan.json", "result": f"{id}/result.json"} | changes)
    (folder / "matrix.json").write_text(json.dumps({"format": FORMAT, "cells": cells}))
    return folder / "matrix.json"


def rows(text: str) -> list[dict[str, str]]:
    return [{key: value for key, value in row.items() if value} for row in csv.DictReader(io.StringIO(text))]


# What the programs print, with what is meant: seconds of a step after the first fifth of the lines.
LOGS = {
    "megatron": (
        "\n".join(
            f" [2026-01-01] iteration {10 * n:8d}/50 | consumed samples: 1280 | elapsed time per iteration (ms): "
            f"{ms:.1f} | throughput per GPU (TFLOP/s/GPU): 400.1 |"
            for n, ms in enumerate([20000.0, 8100.0, 8000.0, 7900.0, 8000.0], 1)
        ),
        {"step_s": 8.0},
    ),
    "maxtext": (
        "completed step: 0, seconds: 61.203, TFLOP/s/device: 3.1, Tokens/s/device: 1071.2, loss: 10.8\n"
        "completed step: 1, seconds: 8.000, TFLOP/s/device: 400.2, Tokens/s/device: 8192.0, loss: 10.7\n",
        {"step_s": 8.0},
    ),
    "torchtitan": (
        "[rank0]: \x1b[31mstep:  1  \x1b[32mloss: 12.25  \x1b[34mgrad_norm:  1.2  \x1b[36mmemory: 40.50GiB(51.2%)"
        "  \x1b[34mtps: 700  \x1b[35mtflops: 30.1\n"
        "[rank0]:[titan] - step: 10  loss:  9.1  grad_norm:  1.2  memory: 48.00GiB(60.2%)  tps: 8,192  tflops: 380.1\n"
        "[rank0]:[titan] - validate step: 10  loss:  9.1  memory: 70.00GiB(60.2%)  tps: 9\n",
        {"step_s": 8.0, "tokens_per_s_per_device": 8192.0, "peak_bytes": 48 * 2**30},
    ),
    "trainer": ("{'loss': '1.2'}\n{'train_runtime': '400', 'train_steps_per_second': '0.125'}\n", {"step_s": 8.0}),
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("place", ["run.log", "slurm-12.out", "logs/0-0.log"])
def test_without_a_result_the_programs_own_log_is_read(tmp_path: Path, name: str, place: str) -> None:
    text, expected = LOGS[name]
    manifest = matrix(tmp_path, {"a": None})
    log = tmp_path / "a" / place
    log.parent.mkdir(exist_ok=True)
    log.write_text(text)
    # A run that has not ended well has no speed yet.
    assert read(manifest)[0].result is None
    (tmp_path / "a" / "done").touch()
    (found,) = read(manifest)
    assert found.problem is None
    assert {key: found.values[key] for key in expected} == pytest.approx(expected, rel=1e-3)
    assert found.file == f"a/{place}"
    assert rows(table([found], "training"))[0]["source_ref"] == f"a/{place}"
    # What is put there by hand comes first.
    (tmp_path / "a" / "result.json").write_text(json.dumps({"step_s": 5.0}))
    assert read(manifest)[0].values["step_s"] == 5.0


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "oom"),
        ("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory", "oom"),
        ("Traceback: a bug", None),
        ("", None),
    ],
)
def test_a_log_says_that_memory_ran_out(tmp_path: Path, text: str, outcome: str | None) -> None:
    manifest = matrix(tmp_path, {"a": None})
    (tmp_path / "a" / "run.log").write_text(text)
    (found,) = read(manifest)
    assert (found.result and found.result.outcome) == outcome


@pytest.mark.parametrize(
    "text", ["elapsed time per iteration (ms): 0.0", "'train_runtime': 0", "tps: 1", "\0\xff" * 99]
)
def test_logs_of_no_use_are_no_result(tmp_path: Path, text: str) -> None:
    manifest = matrix(tmp_path, {"a": None})
    (tmp_path / "a" / "run.log").write_bytes(text.encode("latin-1"))
    (tmp_path / "a" / "done").touch()
    assert read(manifest)[0].result is None
    # Nor is a log outside, or one of another plan.
    (tmp_path / "elsewhere").write_text(LOGS["maxtext"][0])
    (tmp_path / "a" / "run.log").unlink()
    (tmp_path / "a" / "run.log").symlink_to(tmp_path / "elsewhere")
    assert read(manifest)[0].result is None


def test_a_log_of_an_older_plan_is_no_result(tmp_path: Path) -> None:
    manifest = matrix(tmp_path, {"a": None})
    (tmp_path / "a" / "run.log").write_text(LOGS["maxtext"][0])
    (tmp_path / "a" / "done").touch()
    os.utime(tmp_path / "a" / "done", (1, 1))
    assert read(manifest)[0].result is None


def test_results_are_set_against_predictions(tmp_path: Path) -> None:
    found = read(matrix(tmp_path, {"00-a/x": {"step_s": 10.0}, "00-a/y": {"tokens_per_s_per_device": TOKENS / 8.5}}))
    first, second = found
    assert first.values == {"step_s": 10.0, "tokens_per_s_per_device": TOKENS / 10}
    assert first.scores["step_s"].error == pytest.approx(-0.2)
    assert first.scores["tokens_per_s_per_device"].error == pytest.approx(0.25)
    assert not first.scores["step_s"].covered
    assert second.values["step_s"] == pytest.approx(8.5)
    assert second.scores["step_s"].covered
    summary = summaries(found)["step_s"]
    assert (summary.runs, summary.coverage) == (2, 0.5)
    assert summary.mape == pytest.approx((0.2 + 0.5 / 8.5) / 2)
    assert "peak_bytes" not in summaries(found)


@pytest.mark.parametrize(("kind", "expected"), [("allocated", 50e9), ("reserved", 55e9), ("unknown", 60e9)])
def test_a_peak_is_compared_as_its_counter_shows_it(kind: str, expected: float, tmp_path: Path) -> None:
    (one,) = read(matrix(tmp_path, {"a/x": {"peak_bytes": 52e9, "peak_kind": kind}}))
    score = one.scores["peak_bytes"]
    assert score.prediction.value == pytest.approx(expected)
    assert score.prediction.high == pytest.approx(1.1 * expected)
    assert score.error == pytest.approx(expected / 52e9 - 1)


def test_rows_are_read_as_measured_runs_of_the_same_plan(tmp_path: Path) -> None:
    result = {"step_s": 8.2, "peak_bytes": 5.5e10, "peak_kind": "reserved", "date": "2026-11-21"}
    found = read(matrix(tmp_path, {"00-a/x": result | {"versions": {"torch": "2.9.0", "megatron-core": "0.19"}}}))
    kinds: tuple[Kind, ...] = ("training", "memory")
    for kind in kinds:
        text = table(found, kind)
        assert tuple(text.splitlines()[0].split(",")) == columns_of(kind)
        (row,) = rows(text)
        case = case_of(row, kind)
        assert case.reason_unscored is None
        assert case.plan is not None
        assert case.plan.model == "meta-llama/Llama-3.1-8B"
        assert case.plan.layout == Plan.parse(PLAN).layout
        assert case.plan.cluster == Plan.parse(PLAN).cluster
        for name in ("framework", "stage", "method", "seq_len", "micro_batch", "global_batch", "precision"):
            assert getattr(case.plan.training, name) == getattr(Plan.parse(PLAN).training, name)
        assert (row["source"], row["source_ref"]) == ("own-matrix", "00-a/x/result.json")
        assert row["software_version"] == "torch 2.9.0, megatron-core 0.19"
        assert case.date == "2026-11-21"
    assert case_of(rows(table(found, "training"))[0], "training").observed["step_s"] == 8.2
    assert case_of(rows(table(found, "memory"))[0], "memory").observed["peak_bytes"] == 5.5e10


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_plan_comes_back_from_its_row(data: st.DataObject, tmp_path: Path) -> None:
    method = data.draw(st.sampled_from(["full", "lora", "qlora", "dora", "freeze"]))
    dp = data.draw(st.sampled_from([1, 2, 4]))
    tp = data.draw(st.sampled_from([1, 2, 4]))
    workload = {
        "method": method,
        "micro_batch": data.draw(st.integers(1, 3)),
        "fused_loss": data.draw(st.sampled_from([True, False, "auto"])),
        "packing": data.draw(st.booleans()),
        "compile": data.draw(st.booleans()),
        "precision": data.draw(st.sampled_from(["bf16", "fp8", "fp32"])),
        "weights": data.draw(st.sampled_from(["auto", "bf16", "fp32"])),
        "optimizer": data.draw(st.sampled_from(["adamw", "lion", "adamw_8bit"])),
        "lora": {"rank": data.draw(st.integers(1, 256)), "targets": "attention", "dropout": 0.05},
    }
    workload["global_batch"] = workload["micro_batch"] * dp * data.draw(st.integers(1, 5))
    layout = {"dp": dp, "tp": tp, "sequence_parallel": tp > 1, "zero_stage": data.draw(st.integers(0, 3))}
    changes = {"workload": workload, "layout": layout, "cluster.count": dp * tp}
    plan = Plan.parse(PLAN).patch(changes)
    text = json.loads(json.dumps(plan.model_dump(mode="json")))
    found = read(matrix(tmp_path, {"a/x": {"peak_bytes": 1e10, "step_s": 1.5}}, plan=text))
    case = case_of(rows(table(found, "memory"))[0], "memory")
    assert case.reason_unscored is None
    assert case.plan is not None
    assert case.plan.layout == plan.layout
    same = ("method", "micro_batch", "global_batch", "fused_loss", "packing", "compile", "precision", "optimizer")
    assert [getattr(case.plan.training, name) for name in same] == [getattr(plan.training, name) for name in same]
    assert case.plan.training.weights == plan.training.weights
    if method in ("lora", "qlora", "dora"):
        assert case.plan.training.lora == plan.training.lora


def test_what_ran_out_of_memory_has_no_figures(tmp_path: Path) -> None:
    found = read(matrix(tmp_path, {"a/x": {"outcome": "oom"}, "a/y": {"outcome": "failed"}, "a/z": None}))
    assert [one.scores for one in found] == [{}, {}, {}]
    assert table(found, "training") == ""
    (row,) = rows(table(found, "memory"))
    assert case_of(row, "memory").observed["out_of_memory"]


def test_figures_that_contradict_each_other_do_not_count(tmp_path: Path) -> None:
    wrong = {"step_s": 10.0, "tokens_per_s_per_device": 8 * TOKENS / 10}
    (one,) = read(matrix(tmp_path, {"a/x": wrong}))
    assert one.doubt
    assert "factor of 8" in one.doubt
    assert one.scores == {}
    assert "factor of 8" in rows(table([one], "training"))[0]["doubt"]
    fine = {"step_s": 10.0, "tokens_per_s_per_device": 1.01 * TOKENS / 10}
    assert read(matrix(tmp_path, {"a/x": fine}))[0].doubt is None


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "result"),
        ('{"step_s": NaN}', "step_s"),
        ('{"step_s": 1e999}', "step_s"),
        ({}, "at least one of"),
        ({"step_s": -1}, "step_s"),
        ({"step_s": "fast"}, "step_s"),
        ({"steps_s": 1.0}, "steps_s"),
        ({"outcome": "ok", "step_s": 1.0}, "outcome"),
        ({"date": "yesterday", "step_s": 1.0}, "date"),
        ({"versions": {"torch": 2}, "step_s": 1.0}, "versions.torch"),
    ],
)
def test_a_bad_result_costs_its_own_cell_only(bad: Any, says: str, tmp_path: Path) -> None:
    broken, fine = read(matrix(tmp_path, {"a/bad": bad, "a/good": {"step_s": 8.0}}))
    assert broken.problem
    assert says in broken.problem
    assert broken.scores == {}
    assert fine.scores["step_s"].error == 0


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "a/../../secret.json", "x" * 5000, "a\0b", 7])
def test_nothing_outside_the_matrix_is_read(name: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"step_s": 1.0}')
    (tmp_path / "m").mkdir()
    (one,) = read(matrix(tmp_path / "m", {"a/x": None}, result=name))
    assert one.problem == "a file of the cell is outside the matrix"
    (tmp_path / "m" / "link.json").symlink_to(tmp_path / "secret.json")
    (one,) = read(matrix(tmp_path / "m", {"a/x": None}, result="link.json"))
    assert one.problem == "a file of the cell is outside the matrix"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "x", "cells": []}', f'{{"format": "{FORMAT}", "cells": [1]}}', "\0", None]
)
def test_another_folder_is_no_matrix(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "matrix.json").write_text(text)
    with pytest.raises(PlanError) as raised:
        read(tmp_path / "matrix.json")
    assert raised.value.field == "folder"


def test_the_schema_is_of_what_is_read() -> None:
    schema = CellResult.model_json_schema()
    assert schema["properties"].keys() == CellResult.model_fields.keys()
    assert not schema["additionalProperties"]
    assert all("description" in field for field in schema["properties"].values())
