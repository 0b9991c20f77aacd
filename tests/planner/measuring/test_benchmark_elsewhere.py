"""A benchmark that is handed to other machines: what is brought there, and what comes back by its output alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from estimator.errors import PlanError
from planner.measuring.training import BenchmarkRequest, TrainingMeasurement, measure_training, render_benchmark
from planner.requests import parsed

PLAN: dict[str, Any] = {
    "model": {"model_type": "llama", "name": "tiny", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 512,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "max_position_embeddings": 256},
    "accelerator": "h100-sxm", "count": 4, "per_node": 2, "seq_len": 32, "micro_batch": 2, "global_batch": 8,
    "zero_stage": 3,
}  # fmt: skip
MANIFESTS = {"kubernetes-jobset": "jobset.yaml", "kubernetes-trainjob": "trainjob.yaml",
             "kubernetes-pytorchjob": "pytorchjob.yaml"}  # fmt: skip
RESULT = {"outcome": "ran", "repeats": [[0.2, 0.3]], "losses": [6.2], "startup_s": 3.0, "first_step_s": 1.0,
          "device": "cuda", "device_name": "NVIDIA H100", "processes": 4, "versions": {"torch": "2.13"}}  # fmt: skip
# What the first process prints: it leaves no file here.
PRINTED = "".join(
    f"shardwise: {json.dumps(event)}\n"
    for event in (
        {"event": "started", "at": 1.0, "processes": 4},
        {"event": "step", "at": 2.0, "repeat": 0, "number": 0, "seconds": 0.2, "loss": 6.2},
        {"event": "step", "at": 3.0, "repeat": 0, "number": 1, "seconds": 0.3, "loss": 6.1},
        {"event": "measured", "result": RESULT},
    )
)
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do [[ $1 == -o ]] && shift; shift; done
mkdir -p "$HOMES/$1" && cd "$HOMES/$1" && exec bash -c "$2"
"""
# The log grows: what was printed before comes again with it.
KUBECTL = """#!/bin/bash
case "$*" in
  "get pods"*) printf 'pod/node-1\\npod/node-0\\n' ;;
  get*) lines=$(($(cat "$HOMES/lines" 2>/dev/null || echo 0) + 2)); echo "$lines" >"$HOMES/lines"
    ((lines < 6)) && echo Running || echo Completed ;;
  logs*node-0) head -n "$(cat "$HOMES/lines")" "$HOMES/printed" ;;
  *) true ;;
esac
"""


def measured(folder: Path, scheduler: str, events: list[dict[str, Any]]) -> TrainingMeasurement:
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (folder / "printed").write_text(PRINTED)
    torchrun = f'#!/bin/bash\n[[ "$*" == *"node_rank 0"* ]] || exit 0\ntest -e benchmark.json && cat {folder}/printed\n'
    for name, text in (("ssh", SSH), ("kubectl", KUBECTL), ("torchrun", torchrun)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOMES": str(folder), "POLL_S": "0.1"}
    request = parsed(BenchmarkRequest, PLAN | {"scheduler": scheduler, "image": "x/y:1"})
    return measure_training(request, "run", lambda event: events.append(dict(event)), environment)


def told(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


def test_hosts_of_ssh_are_filled_in_once_and_what_is_measured_there_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError, match="is not a host"):
        measured(tmp_path, "ssh", [])
    (tmp_path / "run/hosts").write_text("one\ntwo\n")
    events: list[dict[str, Any]] = []
    result = measured(tmp_path, "ssh", events)
    assert (tmp_path / "run/hosts").read_text() == "one\ntwo\n"
    assert told(events) == ["planned", "started", "step", "step"]
    assert (result.outcome, result.steps, result.devices) == ("ran", 2, 4)
    assert list((tmp_path / "one").glob("shardwise/*/train.py"))


def test_a_job_of_kubernetes_is_followed_by_its_first_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    events: list[dict[str, Any]] = []
    result = measured(tmp_path, "kubernetes-jobset", events)
    assert told(events) == ["planned", "started", "step", "step"]
    assert result.steps == 2
    # Each line once, though the log was asked for as a whole each time.
    assert (tmp_path / "run/run.log").read_text() == PRINTED


@pytest.mark.parametrize("scheduler", MANIFESTS)
def test_pods_have_our_own_program(scheduler: str) -> None:
    made = render_benchmark(parsed(BenchmarkRequest, PLAN | {"scheduler": scheduler, "image": "x/y:1"}))
    files = {file.path: file.text for file in made.files}
    (config,) = [part for part in yaml.safe_load_all(files[MANIFESTS[scheduler]]) if part["kind"] == "ConfigMap"]
    assert config["data"].keys() >= {"train.py", "benchmark.json", "torchrun.sh"}
    assert config["data"]["torchrun.sh"].rstrip().endswith("train.py")
    assert config["data"]["train.py"] == files["train.py"]
