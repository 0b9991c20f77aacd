"""What load generators leave behind is read as runs of serving, with one name for each figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from measure.history.run import MeasuredRun
from measure.logs.reading import is_log, read, read_text

VLLM: dict[str, Any] = {
    "date": "20261101-101500", "backend": "vllm", "model_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 200,
    "request_rate": "inf", "max_concurrency": 32, "duration": 100.0, "completed": 200, "total_input_tokens": 204800,
    "total_output_tokens": 51200, "request_throughput": 2.0, "output_throughput": 512.0, "mean_ttft_ms": 150.0,
    "median_ttft_ms": 140.0, "p99_ttft_ms": 400.0, "mean_tpot_ms": 20.0, "p99_tpot_ms": 25.0, "mean_itl_ms": 19.0,
    "mean_e2el_ms": 5250.0,
}  # fmt: skip
SGLANG = {name: value for name, value in VLLM.items() if name not in ("model_id", "date", "mean_e2el_ms")} | {
    "backend": "sglang", "mean_e2e_latency_ms": 5250.0, "request_rate": 4.0,
}  # fmt: skip
TRTLLM: dict[str, Any] = {
    "engine": {"model": "meta-llama/Llama-3.1-8B", "version": "1.1.0", "backend": "Pytorch"},
    "machine": {"name": "NVIDIA H100 80GB HBM3", "memory.total": 79.1},
    "world_info": {"tp_size": 2, "pp_size": 1, "ep_size": 1, "world_size": 2},
    "request_info": {"num_requests": 200, "avg_num_concurrent_requests": 31.6, "avg_input_length": 1024.0,
                     "avg_output_length": 256.0},
    "performance": {"request_throughput_req_s": 2.0, "system_output_throughput_tok_s": 512.0,
                    "output_throughput_per_gpu_tok_s": 256.0, "avg_request_latency_ms": 5250.0},
    "streaming_metrics": {"avg_ttft_ms": 150.0, "avg_tpot_ms": 20.0, "ttft_percentiles": {"p99": 400.0}},
}  # fmt: skip


def distribution(mean: float, p99: float | None = None) -> dict[str, Any]:
    part = {"mean": mean, "count": 200, "percentiles": {"p50": mean, "p99": p99 or mean}}
    return {"successful": part, "errored": part | {"mean": 1e9}, "total": part}


GUIDELLM = {
    "benchmarks": [
        {"metrics": {"requests_per_second": distribution(2.0), "output_tokens_per_second": distribution(512.0),
                     "request_latency": distribution(5.25), "time_to_first_token_ms": distribution(150.0, 400.0),
                     "inter_token_latency_ms": distribution(20.0), "time_per_output_token_ms": distribution(20.5),
                     "prompt_token_count": distribution(1024.0), "output_token_count": distribution(256.0),
                     "request_concurrency": distribution(31.6)}}
    ] * 2,
}  # fmt: skip
PRINTED = """
============ Serving Benchmark Result ============
Successful requests:                     200
Maximum request concurrency:             32
Benchmark duration (s):                  100.00
Total input tokens:                      204800
Total generated tokens:                  51200
Request throughput (req/s):              2.00
Output token throughput (tok/s):         512.00
---------------Time to First Token----------------
Mean TTFT (ms):                          150.00
P99 TTFT (ms):                           400.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          20.00
==================================================
"""
TRTLLM_PRINTED = """
===========================================================
= PYTORCH BACKEND
===========================================================
Model:\t\t\tmeta-llama/Llama-3.1-8B
===========================================================
= WORLD + RUNTIME INFORMATION
===========================================================
TP Size:                2
PP Size:                1
===========================================================
= REQUEST DETAILS
===========================================================
Number of requests:             200
Number of concurrent requests:  31.6000
Average Input Length (tokens):  1024.0000
Average Output Length (tokens): 256.0000
===========================================================
= PERFORMANCE OVERVIEW
===========================================================
Request Throughput (req/sec):                     2.0000
Total Output Throughput (tokens/sec):             512.0000
Average request latency (ms):                     5250.0000
Average time-to-first-token [TTFT] (ms):          150.0000
Average time-per-output-token [TPOT] (ms):        20.0000
"""
MLPERF = """
================================================
MLPerf Results Summary
================================================
SUT name : PySUT
Scenario : Server
Mode     : PerformanceOnly
Completed samples per second    : 2.00
Result is : INVALID
  Performance constraints satisfied : NO
  Min duration satisfied : Yes
Mean latency (ns)               : 5250000000
99.00 percentile latency (ns)   : 9000000000

Completed tokens per second                 : 512.00
Mean First Token latency (ns)               : 150000000
99.00 percentile first token latency (ns)   : 400000000
Mean Time to Output Token (ns)               : 20000000
"""
FILES = {
    "vllm.json": json.dumps(VLLM),
    "sglang.jsonl": json.dumps(SGLANG),
    "report.json": json.dumps(TRTLLM),
    "benchmarks.json": json.dumps(GUIDELLM),
    "bench.log": PRINTED,
    "trtllm.log": TRTLLM_PRINTED,
    "mlperf_log_summary.txt": MLPERF,
}


def run_of(folder: Path, name: str) -> MeasuredRun:
    (folder / name).write_text(FILES[name])
    return read(folder / name)[0]


@pytest.mark.parametrize("name", FILES)
def test_each_program_says_the_same_of_the_same_load(tmp_path: Path, name: str) -> None:
    run = run_of(tmp_path, name)
    assert (run.kind, run.outcome) == ("serving", "ran")
    wanted = {"requests_per_s": 2.0, "output_tokens_per_s": 512.0, "ttft_s": 0.15, "tpot_s": 0.02}
    assert {figure: run.figures[figure] for figure in wanted} == pytest.approx(wanted)
    if "e2e_s" in run.figures:
        assert run.figures["e2e_s"] == pytest.approx(5.25)
    if "ttft_p99_s" in run.figures:
        assert run.figures["ttft_p99_s"] == pytest.approx(0.4)
    if not name.startswith("mlperf"):
        workload = run.plan["workload"]
        assert (workload["input_len"], workload["output_len"], workload["concurrency"]) == (1024, 256, 32)
    assert is_log(FILES[name])
    assert read_text(FILES[name]).figures == run.figures


def test_what_is_known_of_the_run_is_its_plan(tmp_path: Path) -> None:
    vllm = run_of(tmp_path, "vllm.json")
    assert vllm.plan["workload"]["engine"] == "vllm"
    # An infinite rate is none: clients wait for nothing but the limit of concurrency.
    assert "request_rate" not in vllm.plan["workload"]
    assert vllm.planned("model") == "meta-llama/Llama-3.1-8B-Instruct"
    assert vllm.date == "2026-11-01"
    assert run_of(tmp_path, "sglang.jsonl").planned("workload.request_rate") == 4.0
    trtllm = run_of(tmp_path, "report.json")
    assert (trtllm.planned("cluster.accelerator"), trtllm.devices, trtllm.planned("layout.tp")) == ("h100-sxm", 2, 2)
    assert trtllm.version == "trtllm"


def test_every_benchmark_of_a_file_is_a_run(tmp_path: Path) -> None:
    run_of(tmp_path, "benchmarks.json")
    (tmp_path / "sweep.jsonl").write_text("\n".join(json.dumps(SGLANG | {"request_rate": rate}) for rate in (1, 2, 4)))
    assert len(read(tmp_path / "benchmarks.json")) == 2
    assert [run.planned("workload.request_rate") for run in read(tmp_path / "sweep.jsonl")] == [1, 2, 4]
    assert len(read(tmp_path)) == 2


def test_a_result_that_is_not_valid_says_so(tmp_path: Path) -> None:
    findings = " ".join(run_of(tmp_path, "mlperf_log_summary.txt").findings)
    assert "INVALID" in findings
    assert "performance constraints" in findings


@pytest.mark.parametrize("name", FILES)
def test_what_was_cut_off_stops_nothing(tmp_path: Path, name: str) -> None:
    text = FILES[name]
    for part in range(1, 10):
        is_log(text[: len(text) * part // 10])


def test_a_load_of_which_no_request_was_answered_has_no_figures() -> None:
    """vLLM writes zeros for the latencies of none."""
    text = json.dumps({"completed": 0, "failed": 8, "output_throughput": 0.0, "total_output_tokens": 0,
                       "mean_ttft_ms": 0.0, "request_throughput": 0.0, "backend": "vllm"})  # fmt: skip
    run = read_text(text)
    assert (run.outcome, run.figures, run.findings) == ("failed", {}, ["8 requests failed"])


def test_a_summary_that_stands_in_a_document_is_read(tmp_path: Path) -> None:
    """Of TensorRT-LLM with its percentiles, in a README."""
    (tmp_path / "README.md").write_text(
        "# Results\n```\nTensorRT-LLM Version: 1.1.0\n= PERFORMANCE OVERVIEW \n"
        "Request Throughput (req/sec):                     7.3411\nAverage request latency (ms):  53522.9\n"
        "[Latency] P50    : 54486.1\n[Latency] P99    : 68887.7\n[TTFT] P99    : 887.7\n```\n"
    )
    (run,) = read(tmp_path / "README.md")
    figures = {"requests_per_s": 7.3411, "e2e_s": 53.5229, "e2e_p50_s": 54.4861, "e2e_p99_s": 68.8877}
    assert {name: run.figures[name] for name in figures} == pytest.approx(figures)
    assert run.figures["ttft_p99_s"] == pytest.approx(0.8877)
    assert run.software["tensorrt-llm"] == "1.1.0"


def test_the_commands_above_a_summary_tell_the_deployment_and_its_load() -> None:
    """Two summaries below their commands, one with the label that SGLang misspells."""
    figures = "Successful requests: 10\nRequest throughput (req/s): 3.5\nOutput token throughput (tok/s): 450\n"
    title = "============ Serving Benchmark Result ============\n"
    first, second = (
        read_text(text)
        for text in (
            "python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-32B-Instruct --tp 2 \\\n  --port 3000\n"
            f"{title}Backend: sglang\nMax reqeuest concurrency: 512\n{figures}",
            f"vllm bench serve --model=Llama-2-7b-chat-hf/ --request-rate 3 --backend vllm\n{title}{figures}",
        )
    )
    assert first.plan["model"] == "Qwen/Qwen2.5-32B-Instruct"
    assert first.plan["layout"] == {"tp": 2}
    assert (first.plan["workload"]["concurrency"], first.plan["workload"]["engine"]) == (512, "sglang")
    assert second.plan["model"] == "meta-llama/Llama-2-7b-chat-hf"
    assert (second.plan["workload"]["request_rate"], second.plan["workload"]["engine"]) == (3.0, "vllm")


def test_newer_reports_of_guidellm_keep_their_settings_in_parts() -> None:
    """Fields of GuideLLM 0.8.1, from a run of its own mock server."""
    counted = {"successful": {"mean": 238.0, "percentiles": {"p99": 300.0}}}
    run = read_text(json.dumps({
        "config": {"spec": {"backend": {"kind": "openai_http", "model": "meta-llama/Llama-3.1-8B"}}},
        "benchmarks": [{"config": {}, "metrics": {"output_tokens_per_second": counted,
                                                  "request_totals": {"successful": 39, "errored": 1}}}],
    }))  # fmt: skip
    assert run.plan["model"] == "meta-llama/Llama-3.1-8B"
    assert run.findings == ["1 request failed"]
