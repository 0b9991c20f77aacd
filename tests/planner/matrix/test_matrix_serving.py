"""Cells of served models: an engine is started, measured under the plan's load, and stopped; read back beside what was
predicted."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from estimator.errors import PlanError
from planner.matrix.running import run_matrix
from tools import call

# Stands for vLLM's program: an HTTP server that answers, and a client whose result has its fields.
ENGINE = """#!{python}
import json, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import urlopen
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
if words[0] == "serve":
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
        def log_message(self, *rest):
            pass
    time.sleep(0.3)
    HTTPServer((value("--host"), int(value("--port"))), Answer).serve_forever()
assert words[:2] == ["bench", "serve"]
urlopen(f"http://{{value('--host')}}:{{value('--port')}}/health").close()
time.sleep({load_s})
open("loads", "a").write("x")
result = {{
    "date": "20261129-000000", "backend": "openai", "model_id": value("--model"),
    "max_concurrency": int(value("--max-concurrency")), "completed": 80, "failed": 0, "total_input_tokens": 80 * 128,
    "total_output_tokens": 80 * 32, "request_throughput": 20.0, "output_throughput": 640.0,
    "mean_ttft_ms": 50.0, "mean_tpot_ms": 8.0,
}}
json.dump(result, open("openai-infqps-concurrency8.json", "w"))
"""
PLAN: dict[str, Any] = {
    "plan": {"workload": {"kind": "inference", "concurrency": 8, "input_len": 128, "output_len": 32}},
    "models": ["meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-7B"],
    "accelerators": ["h100-sxm"],
    "strategies": ["vllm"],
}  # fmt: skip


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PORT", str(free.getsockname()[1]))
    _engine(tmp_path / "bin", 0.0)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return call("benchmark_matrix", PLAN | {"folder": "m"})


def _engine(folder: Path, load_s: float) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / "vllm"
    program.write_text(ENGINE.format(python=sys.executable, load_s=load_s))
    program.chmod(0o755)


def test_a_served_model_is_measured_and_stands_beside_its_prediction(written: dict[str, Any]) -> None:
    assert [cell["engine"] for cell in written["cells"]] == ["vllm", "vllm"]
    rows = run_matrix("m", cooldown_s=0)
    assert [row.state for row in rows] == ["ran", "ran"]
    results = call("matrix_results", {"folder": "m"})
    assert results["missing"] == []
    for cell, planned, row in zip(results["cells"], written["cells"], rows, strict=True):
        figures = {figure["figure"]: figure for figure in cell["figures"]}
        assert {name: figure["measured"] for name, figure in figures.items()} == {
            "ttft_s": 0.05, "tpot_s": 0.008, "output_tokens_per_s": 640.0,
        }  # fmt: skip
        assert {name: figure["predicted"] for name, figure in figures.items()} == {
            name: planned["predicted"][name] for name in figures
        }
        assert (row.predicted_s, row.measured_s) == (planned["predicted"]["tpot_s"], 0.008)
    assert {row["figure"]: row["runs"] for row in results["accuracy"]} == {
        "ttft_s": 2, "tpot_s": 2, "output_tokens_per_s": 2,
    }  # fmt: skip
    assert [row.state for row in run_matrix("m", cooldown_s=0)] == ["done before", "done before"]
    # No engine is left behind.
    with socket.socket() as gone:
        assert gone.connect_ex(("127.0.0.1", int(os.environ["PORT"]))) != 0


def test_a_runner_that_is_killed_loses_and_doubles_no_served_cell(written: dict[str, Any], tmp_path: Path) -> None:
    _engine(tmp_path / "bin", 1.0)
    code = "from planner.matrix.running import run_matrix; run_matrix('m', cooldown_s=0)"
    started = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.getcwd()}
                               | {"PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    first = tmp_path / "m" / written["cells"][0]["id"]
    while not (first / "serve.log").exists():
        time.sleep(0.05)
    started.send_signal(signal.SIGKILL)
    started.wait()
    assert [row.state for row in run_matrix("m", cooldown_s=0)] == ["ran", "ran"]
    assert [(tmp_path / "m" / cell["id"] / "loads").read_text() for cell in written["cells"]] == ["x", "x"]


def test_an_engine_that_does_not_start_fails_its_cell(written: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "bin" / "vllm").write_text("#!/bin/sh\necho no device >&2\nexit 3\n")
    assert {row.state for row in run_matrix("m", cooldown_s=0)} == {"failed"}
    log = (tmp_path / "m" / written["cells"][0]["id"] / "run.log").read_text()
    assert "no device" in log
    assert call("matrix_results", {"folder": "m"})["cells"] == []


def test_engines_and_layouts_of_ones_own_are_the_strategies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = PLAN | {"strategies": None, "accelerators": ["h100-sxm", "mi300x"], "models": PLAN["models"][:1]}
    found = call("render_matrix", asked | {"custom_layouts": {"tp2": {"tp": 2}}, "count": 2})
    assert list(found["strategies"]) == ["vllm", "sglang", "trtllm", "tp2"]
    assert len(found["cells"]) == 8
    # TensorRT-LLM is of NVIDIA's devices alone.
    assert {cell["platform"] for cell in found["cells"] if cell["strategy"] == "trtllm" and cell["runs"]} == {
        "h100-sxm"
    }
    assert {cell["layout"]["tp"] for cell in found["cells"] if cell["strategy"] == "tp2"} == {2}
    with pytest.raises(PlanError, match=r"strategies.*none of a served model"):
        call("render_matrix", asked | {"strategies": ["balanced"]})
    slurm = call("render_matrix", asked | {"strategies": ["vllm"], "scheduler": "slurm"})
    assert all("run on the machine itself" in cell["skip_reason"] for cell in slurm["cells"])
    assert json.loads(found["files"][0]["text"])["cells"][0]["engine"] == "vllm"
