"""A training plan as a benchmark: what the program is told, what it refuses, and what is read of a run."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from estimator.errors import PlanError
from measure.fit.own import cases_of
from measure.logs.benchmark import steps_of
from measure.logs.reading import read
from measure.run.following import EVENTS, SAMPLES, Sensed, run_to_end, sampled
from pages.rendering import markdown
from pages.results.of_results import blocks_of
from planner.measuring.training import BenchmarkRequest, measure_training, render_benchmark
from planner.requests import parsed
from tools import call

TINY: dict[str, Any] = {
    "model_type": "llama", "name": "tiny", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 256,
}  # fmt: skip
RUN: dict[str, Any] = {
    "model": TINY, "accelerator": "h100-sxm", "count": 2, "seq_len": 32, "micro_batch": 2, "global_batch": 8,
}  # fmt: skip
# What a program leaves, from one that only writes.
FAKE = """
import json, time
def tell(**event):
    with open("events.jsonl", "a") as file:
        file.write(json.dumps({"at": time.time(), **event}) + "\\n")
tell(event="started", processes=2)
tell(event="repeat", number=0)
for number, seconds in enumerate([0.2, 0.3, 0.25]):
    tell(event="step", repeat=0, number=number, seconds=seconds, loss=6.0)
tell(event="repeated", number=0)
result = {"outcome": "ran", "repeats": [[0.2, 0.3, 0.25], [0.26, 0.24, 9.0]], "losses": [6.2, 6.1], "startup_s": 3.0,
          "first_step_s": 1.0, "allocated_bytes": 1e9, "reserved_bytes": 2e9, "device": "cuda",
          "device_name": "NVIDIA H100", "processes": 2, "versions": {"torch": "2.13"}}
json.dump(result, open("measured.json", "w"))
"""


def request(**changes: Any) -> BenchmarkRequest:
    return parsed(BenchmarkRequest, RUN | changes)


def settings(**changes: Any) -> dict[str, Any]:
    files = {file.path: file.text for file in render_benchmark(request(**changes)).files}
    return json.loads(files["benchmark.json"])


def test_the_program_is_told_sizes_and_switches() -> None:
    told = settings(zero_stage=3, recompute="block:2", optimizer="sgd", offload="params+activations")
    assert told["model"]["pattern"] == [0] * 4
    assert told["model"]["blocks"][0]["kv_heads"] == 2
    assert told["training"]["accumulation"] == 2
    assert told["training"]["repeated_layers"] == 2
    assert told["layout"] == {
        "tp": 1, "dp": 2, "zero_stage": 3, "shard_group": 2,
        "params_to_host": True, "states_to_host": False, "activations_to_host": True,
    }  # fmt: skip


def test_adapters_and_4_bits_are_on_the_matrices_that_the_plan_has_them_on() -> None:
    told = settings(method="qlora", lora_targets="q_proj,v_proj", zero_stage=0)
    matrices = {row["name"]: row for row in told["model"]["blocks"][0]["matrices"]}
    assert {name for name, row in matrices.items() if row["adapted"]} == {"q_proj", "v_proj"}
    assert all(row["packed"] for row in matrices.values())


@pytest.mark.parametrize(
    ("model", "mixers"),
    [
        ("deepseek-ai/DeepSeek-V3", {"mla"}),
        ("deepseek-ai/DeepSeek-V4-Flash", {"mla"}),
        ("ai21labs/AI21-Jamba-1.5-Mini", {"attention", "mamba1"}),
        ("nvidia/NVIDIA-Nemotron-Nano-12B-v2", {"attention", "mamba2", "none"}),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", {"attention", "linear_attention"}),
    ],
)
def test_layers_of_every_kind_are_run(model: str, mixers: set[str]) -> None:
    made = render_benchmark(request(model=model, layers=8, zero_stage=3, tp=1))
    told = json.loads({file.path: file.text for file in made.files}["benchmark.json"])
    assert len(told["model"]["pattern"]) == 8
    assert {told["model"]["blocks"][kind]["mixer"] for kind in told["model"]["pattern"]} == mixers
    # What the program has no kernel for is told beside the prediction.
    assert any("plain PyTorch" in text for text in made.warnings) == (not mixers <= {"attention", "mla", "none"})


@pytest.mark.parametrize("model", ["llama-3.1-8b", "Qwen/Qwen3-30B-A3B", "google/gemma-2-9b", "openai/gpt-oss-20b"])
def test_layers_are_scaled_and_the_prediction_is_of_what_runs(model: str) -> None:
    made = render_benchmark(request(model=model, layers=2, zero_stage=3, tp=1))
    told = json.loads({file.path: file.text for file in made.files}["benchmark.json"])
    before = json.loads({file.path: file.text for file in made.files}["predicted.json"])
    assert len(told["model"]["pattern"]) == 2
    assert before["architecture"].endswith(" with 2 layers")
    whole = call("describe_model", {"model": model})
    assert before["parameters"] < whole["parameters"] / 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"method": "dora"}, "workload.method"),
        ({"optimizer": "muon"}, "workload.optimizer"),
        ({"precision": "fp8"}, "workload.precision"),
        ({"pp": 2, "framework": "megatron-lm"}, "layout.pp"),
        ({"zero_stage": 1, "framework": "deepspeed"}, "layout.zero_stage"),
        ({"recompute": "selective", "framework": "megatron-lm", "zero_stage": 0}, "layout.recompute"),
        ({"model": "ibm-granite/granite-4.0-h-1b", "tp": 2, "zero_stage": 3}, "layout.tp"),
        ({"layers": 5}, "layers"),
        ({"scheduler": "cron"}, "scheduler"),
    ],
)
def test_what_the_program_does_not_run_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as error:
        render_benchmark(request(**changes))
    assert error.value.field == field


def test_it_is_handed_to_slurm_with_our_own_program() -> None:
    made = render_benchmark(request(count=16, scheduler="slurm", zero_stage=3))
    files = {file.path: file.text for file in made.files}
    assert made.launch_command == "sbatch --wait job.sbatch"
    assert files["torchrun.sh"].rstrip().endswith("train.py")
    assert "SET_ME_DATASET" not in "".join(files.values())


def test_a_benchmark_whose_batch_nobody_named_takes_minutes() -> None:
    processor = {
        "model": "llama-3.2-1b",
        "accelerator": "cpu-epyc-7763",
        "count": 1,
        "global_batch": None,
        "micro_batch": None,
        "seq_len": 256,
    }
    short, long = (render_benchmark(request(**processor, repeats=repeats)) for repeats in (1, 100))
    steps = 1 + 2 + 10
    assert steps * short.predicted_step_s < 600
    assert any("sequences, for a benchmark of minutes" in text for text in short.warnings)
    assert long.predicted_step_s < short.predicted_step_s
    # A batch that was named is kept, however long it takes.
    named = render_benchmark(request(**{**processor, "global_batch": 4096}))
    assert named.plan["workload"]["global_batch"] == 4096
    assert not any("for a benchmark" in text for text in named.warnings)


def test_processes_of_a_processor_are_on_one_machine() -> None:
    made = render_benchmark(request(accelerator="cpu-epyc-7763", count=2))
    assert made.plan["cluster"]["per_node"] == 2
    assert "NODE_RANK" not in made.launch_command


def test_a_slow_step_of_another_program_does_not_count() -> None:
    steps = steps_of([[0.2, 0.3, 0.25], [0.26, 0.24, 9.0]])
    assert steps is not None
    assert (steps.seconds, steps.low_s, steps.high_s) == (0.255, 0.25, 0.26)
    assert steps_of([[], [float("nan")]]) is None


def torchrun(folder: Path, text: str = FAKE) -> dict[str, str]:
    """An environment whose torchrun runs `text`."""
    script = folder / "bin" / "torchrun"
    script.parent.mkdir(exist_ok=True)
    (folder / "fake.py").write_text(text)
    script.write_text(f"#!/bin/sh\nexec {sys.executable} {folder / 'fake.py'}\n")
    script.chmod(0o755)
    return {"PATH": f"{script.parent}:/usr/bin:/bin"}


def test_a_run_is_measured_beside_its_prediction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    events: list[Any] = []
    told = measure_training(request(), "a", events.append, torchrun(tmp_path))
    assert [event["event"] for event in events] == ["planned", "started", "repeat", "step", "step", "step", "repeated"]
    figures = {row.figure: row for row in told.figures}
    assert figures["step_s"].measured == 0.255
    assert figures["tokens_per_s_per_device"].measured == pytest.approx(8 * 32 / 2 / 0.255)
    assert figures["peak_bytes"].measured == 1e9
    assert told.startup_s == 3.0
    assert "255 ms a step" in markdown.render(blocks_of(told))
    assert json.loads((tmp_path / "a/result.json").read_text())["step_s"] == 0.255
    # What was measured is read, and nothing is run again.
    again = measure_training(request(), "a", events.append, torchrun(tmp_path, "raise SystemExit(3)"))
    assert again == told
    assert call("benchmark_result", {"folder": "a"})["figures"][0]["measured"] == 0.255


def test_a_benchmark_is_a_run_that_calibration_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = measure_training(request(), "a", environment=torchrun(tmp_path))
    runs = read(tmp_path / "a")
    assert runs == read(tmp_path / "a/measured.json")
    assert len(runs) == 1
    assert runs[0].figures["step_s"] == 0.255
    assert runs[0].predicted["step_s"] == told.figures[0].predicted
    assert runs[0].date is not None
    assert [case.observed["step_s"] for case in cases_of(runs)] == [0.255]


def test_a_run_that_fails_says_what_it_printed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError, match="no kernel image"):
        measure_training(request(), "a", environment=torchrun(tmp_path, "raise SystemExit('no kernel image')"))
    # Out of memory is a result.
    text = "import json; json.dump({'outcome': 'oom', 'problem': 'out of memory'}, open('measured.json', 'w')); exit(1)"
    told = measure_training(request(), "b", environment=torchrun(tmp_path, text))
    assert told.outcome == "oom"
    assert "out of memory" in markdown.render(blocks_of(told))


def test_what_is_started_ends_with_us(tmp_path: Path) -> None:
    """Also its children, when the person stops us."""

    def stop(event: Any) -> None:
        raise KeyboardInterrupt

    command = 'sleep 60 & echo $! > child; echo \'{"event": "started"}\' >> events.jsonl; wait'
    with pytest.raises(KeyboardInterrupt):
        run_to_end(tmp_path, command, stop, sensor=None)
    child = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{child}/stat")
    for _ in range(200):
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("the child of a run that was stopped goes on")


def test_power_counts_while_steps_count(tmp_path: Path) -> None:
    events = [{"event": "repeat", "at": 10.0}, {"event": "repeated", "at": 20.0}]
    samples = [
        {"at": 5.0, "devices": [[50.0, 2e9, 30.0, 0.0]]},
        {"at": 12.0, "devices": [[600.0, 1.7e9, 60.0, 1.0]]},
        {"at": 15.0, "devices": [[400.0, 1.5e9, None, 1.0]]},
    ]
    (tmp_path / EVENTS).write_text("\n".join(map(json.dumps, events)))
    (tmp_path / SAMPLES).write_text("\n".join(map(json.dumps, samples)) + '\n{"at": 16.0, "dev')
    assert sampled(tmp_path) == Sensed(500.0, 1.5e9, 60.0)


def test_a_run_on_a_processor_is_none_of_the_accelerator_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    measure_training(
        request(), "a", environment=torchrun(tmp_path, FAKE.replace('"device": "cuda"', '"device": "cpu"'))
    )
    (run,) = read(tmp_path / "a")
    assert run.planned("cluster.accelerator") is None
    assert any("ran on a processor" in finding for finding in run.findings)
    assert cases_of([run]) == []


def test_a_run_that_fails_says_what_failed_and_not_who_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torchrun ends where a rank has failed: its own error is the last one, and tells of another's."""
    monkeypatch.chdir(tmp_path)
    log = "[rank0]: Traceback (most recent call last):\n[rank0]: RuntimeError: no kernel image\nroot cause:\n" * 2
    tail = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + "noise\n" * 60
    with pytest.raises(PlanError) as refused:
        measure_training(request(), "a", environment=torchrun(tmp_path, f"raise SystemExit({log + tail!r})"))
    assert "RuntimeError: no kernel image" in refused.value.problem
