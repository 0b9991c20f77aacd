"""The engines' own parsers read our scripts and files: vLLM, SGLang, and LoadGen for MLPerf."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.predictions import ServingPrediction
from launchers.render import render

Ask = Callable[..., list[dict[str, Any]]]
PROGRAMS = ("vllm", "python3")
TOLD = {"PORT": "8123", "NODE_RANK": "1", "MASTER_ADDR": "node1", "MASTER_PORT": "29555"}
PREDICTION = ServingPrediction(2**34, 2**36, True, 0.1, 0.05, 0.2, 0.01, 0.008, 0.012, 2560.0, 100)
DENSE, MOE = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B"

LAYOUTS: list[tuple[str, int, dict[str, int]]] = [
    (DENSE, 1, {}),
    (DENSE, 2, {"tp": 2}),
    (DENSE, 8, {"tp": 4, "pp": 2}),
    (DENSE, 16, {"tp": 8, "pp": 2}),
    (DENSE, 8, {"tp": 2}),
    (MOE, 4, {"tp": 4, "ep": 4}),
    (MOE, 8, {"tp": 1, "dp": 8, "ep": 8}),
    (MOE, 16, {"tp": 8, "dp": 2, "ep": 16}),
    (MOE, 16, {"tp": 2, "dp": 8, "ep": 16}),
    ("deepseek-ai/DeepSeek-V3", 16, {"tp": 16, "ep": 16}),
]
LOADS: list[dict[str, Any]] = [
    {"concurrency": 32},
    {"request_rate": 4.5, "input_len": 2000, "output_len": 100, "ttft_slo_ms": 500, "tpot_slo_ms": 40},
    {"scenario": "offline", "requests": 500, "max_batch": 512, "max_batched_tokens": 16384},
    {"concurrency": 8, "prefix_hit": 0.4, "weight_dtype": "fp8", "kv_dtype": "fp8", "memory_share": 0.85},
    {"concurrency": 8, "output_spread": 0.3, "speculative_tokens": 2, "cuda_graph": False},
    {"scenario": "single-stream", "weight_dtype": "awq", "max_context": 32768, "chunked_prefill": True},
    {"concurrency": 4, "weight_dtype": "fp16", "kv_dtype": "bf16", "chunked_prefill": False},
]


def plan(engine: str, model: str, count: int, layout: dict[str, int], load: dict[str, Any]) -> Plan:
    return Plan.parse(
        {
            "model": model,
            "workload": {"kind": "inference", "engine": engine, **load},
            "cluster": {"accelerator": "h100-sxm", "count": count, "per_node": 8},
            "layout": {"tp": 1, "pp": 1, **layout},
        }
    )


def plans(engine: str) -> list[Plan]:
    return [plan(engine, *layout, load) for layout, load in itertools.product(LAYOUTS, LOADS)]


def commands(folder: Path) -> dict[str, list[str]]:
    """What serve.sh and bench.sh call, as their shell hands it over."""
    stubs = folder / "stubs"
    stubs.mkdir(exist_ok=True)
    for name in PROGRAMS:
        (stubs / name).write_text('#!/bin/sh\nfor word; do printf "%s\\0" "$word"; done\n')
        (stubs / name).chmod(0o755)
    environment = {"PATH": f"{stubs}:{os.environ['PATH']}", **TOLD}
    found = {}
    for name in ("serve.sh", "bench.sh"):
        done = subprocess.run(["sh", name], cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found[name] = done.stdout.split("\0")[:-1]
    return found


def questions(engine: str, target: str, folder: Path) -> tuple[list[Plan], list[dict[str, Any]]]:
    """The plans that the target takes, and for each its two command lines."""
    taken: list[Plan] = []
    asked: list[dict[str, Any]] = []
    for number, made in enumerate(plans(engine)):
        try:
            rendered = render(made, [target], PREDICTION)
        except PlanError:
            continue
        here = folder / str(number)
        here.mkdir()
        for file in rendered.files:
            (here / file.path).write_text(file.text)
        taken.append(made)
        asked += [{"folder": str(here), "argv": argv} for argv in commands(here).values()]
    return taken, asked


def asked_with_broken(ask: Ask, program: str, asked: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """The answers, after it was seen that the program says no to broken command lines."""
    (folder / "broken.yaml").write_text("model: m\ntensor-paralel-size: 2\n")
    broken = [{"folder": str(folder), "argv": argv} for argv in BROKEN[program]]
    answers = ask("vllm", program, [*asked, *broken])
    for question, answer in zip(broken, answers[len(asked) :], strict=True):
        assert answer["error"], question
    return answers[: len(asked)]


def whole(value: float) -> int:
    return round(value)


def check_load(made: Plan, found: dict[str, Any]) -> None:
    load = made.inference
    lanes = (made.layout.tp or 1) * (made.layout.pp or 1) * (made.layout.dp or 1)
    replicas = (made.cluster.count or 0) // lanes
    assert found["error"] is None
    assert found["input"] + found["shared"] == load.input_len
    assert found["output"] == load.output_len
    assert found["shared"] == whole(load.prefix_hit * load.input_len)
    assert found["rate"] == (None if load.request_rate is None else load.request_rate / replicas)
    if load.scenario == "single-stream":
        assert found["concurrency"] == 1
    elif load.concurrency is not None:
        assert found["concurrency"] == -(-load.concurrency // replicas)
        assert found["requests"] == 10 * found["concurrency"]
    if load.requests is not None:
        assert found["requests"] == -(-load.requests // replicas)
    assert found["port"] == 8123


def test_vllm_reads_the_plan(ask: Ask, tmp_path: Path) -> None:
    taken, asked = questions("vllm", "vllm", tmp_path)
    assert len(taken) >= 60
    answers = asked_with_broken(ask, "vllm", asked, tmp_path)
    for made, found, bench in zip(taken, answers[::2], answers[1::2], strict=True):
        assert found["error"] is None, (made.given(), found["error"])
        load, layout = made.inference, made.layout
        lane = (layout.tp or 1) * (layout.pp or 1)
        devices = lane * (layout.dp or 1)
        nodes = -(-devices // 8)
        assert (found["tp"], found["pp"], found["dp"]) == (layout.tp, layout.pp, layout.dp or 1)
        assert found["ep"] == ((layout.ep or 1) > 1)
        assert found["nodes"] == nodes
        if nodes > 1:
            assert (found["rank"], found["address"], found["headless"]) == (1, ["node1", 29555], True)
        else:
            assert found["port"] == 8123
        assert found["context"] >= load.input_len + load.output_len
        assert found["context"] == (load.max_context or found["context"])
        assert (found["batch"], found["tokens"]) == (load.max_batch, load.max_batched_tokens)
        assert found["share"] == (load.memory_share or 0.92)
        assert found["kv"] == {"auto": "auto", "bf16": "bfloat16", "fp8": "fp8"}[load.kv_dtype]
        assert found["dtype"] == {"bf16": "bfloat16", "fp16": "float16"}.get(load.weight_dtype, "auto")
        online = load.weight_dtype == "fp8" and made.model != "deepseek-ai/DeepSeek-V3"
        assert found["quantization"] == ("fp8_per_channel" if online else None)
        assert found["drafted"] == load.speculative_tokens
        assert found["eager"] == (load.cuda_graph is False)
        assert found["chunked"] == (None if load.chunked_prefill == "auto" else load.chunked_prefill)
        check_load(made, bench)
        limits = {"ttft": load.ttft_slo_ms, "tpot": load.tpot_slo_ms}
        assert (bench["goodput"] or []) == [f"{name}:{value:g}" for name, value in limits.items() if value]


def test_sglang_reads_the_plan(ask: Ask, tmp_path: Path) -> None:
    taken, asked = questions("sglang", "sglang", tmp_path)
    assert len(taken) >= 60
    answers = asked_with_broken(ask, "sglang", asked, tmp_path)
    for made, found, bench in zip(taken, answers[::2], answers[1::2], strict=True):
        assert found["error"] is None, (made.given(), found["error"])
        load, layout = made.inference, made.layout
        lanes = layout.dp or 1
        moe = lanes > 1 or (layout.ep or 1) > 1
        assert found["tp"] * found["pp"] * found["dp"] == (layout.tp or 1) * (layout.pp or 1) * lanes
        assert (found["lanes"], found["ep"]) == ((lanes, layout.ep or 1) if moe else (1, 1))
        assert found["nodes"] == -(-found["tp"] * found["pp"] // 8)
        if found["nodes"] > 1:
            assert (found["rank"], found["address"]) == (1, "node1:29555")
        assert (found["port"], found["share"]) == (8123, load.memory_share)
        assert found["batch"] == (load.max_batch and load.max_batch * lanes)
        assert found["tokens"] == (load.max_batched_tokens and load.max_batched_tokens * lanes)
        assert found["kv"] == {"auto": "auto", "bf16": "bf16", "fp8": "fp8_e4m3"}[load.kv_dtype]
        assert found["mixed"] == (load.chunked_prefill is True)
        assert found["graphs"] == ("disabled" if load.cuda_graph is False else None)
        assert found["drafted"] == load.speculative_tokens
        check_load(made, bench)
        assert bench["ratio"] == 1.0


BROKEN: dict[str, list[list[str]]] = {
    "vllm": [
        ["serve", "--config", "broken.yaml"],
        ["serve", "m", "--kv-cache-dtype", "fp9"],
        ["serve", "m", "--quantization", "fp88"],
        ["serve", "m", "--speculative-config", '{"method": "guess", "num_speculative_tokens": 2}'],
        ["serve", "m", "--tensor-parallel-size", "4", "--data-parallel-size", "4", "--nnodes", "3"],
        ["bench", "serve", "--random-input-length", "5"],
    ],
    "sglang": [
        ["-m", "sglang.launch_server", "--model-path", "m", "--kv-cache-dtype", "fp16"],
        ["-m", "sglang.launch_server", "--model-path", "m", "--tp-sizes", "4"],
        ["-m", "sglang.bench_serving", "--dataset-name", "nothing"],
    ],
}


def test_loadgen_reads_the_rates(ask: Ask, tmp_path: Path) -> None:
    cases = [
        ("offline", "Offline", {}, 1, 2560.0 / 128),
        ("server", "Server", {"request_rate": 12.5}, 1, 12.5),
        ("server", "Server", {"request_rate": 12.5}, 4, 12.5 / 4),
        ("server", "Server", {}, 1, 2560.0 / 128),
        ("single-stream", "SingleStream", {}, 1, None),
    ]
    asked = []
    for number, (scenario, said, load, count, _) in enumerate(cases):
        lengths = {"input_len": 871, "output_len": 128, "scenario": scenario}
        rendered = render(plan("vllm", DENSE, count, {}, {**lengths, **load}), ["mlperf"], PREDICTION)
        path = tmp_path / f"{number}.conf"
        path.write_text(next(file.text for file in rendered.files if file.path == "user.conf"))
        model = "llama3_1-8b-edge" if said == "SingleStream" else "llama3_1-8b"
        asked.append({"path": str(path), "model": model, "scenario": said})
    broken = ["llama3_1-8b.Offline.target_qps=5\n", "llama3_1-8b.Ofline.target_qps = 5\n", "target_qps = 5\n"]
    for number, text in enumerate(broken):
        path = tmp_path / f"broken{number}.conf"
        path.write_text(text)
        asked.append({"path": str(path), "model": "llama3_1-8b", "scenario": "Offline"})
    answers = ask("mlperf", "mlperf", asked)
    for (_, said, _, _, rate), found in zip(cases, answers, strict=False):
        assert found["error"] is None
        assert found["summary"]
        assert found["duration_ms"] == 600_000
        assert rate is None or found["qps"] == pytest.approx(rate, rel=1e-4)
        if said == "Server":
            assert found["tpot_ns"] == 100_000_000
        if said == "Offline":
            assert found["queries"] == 13368
    assert all(json.dumps(found["error"]) != "null" for found in answers[len(cases) :])
