"""Platforms and layouts against each other: as they are estimated, rendered as runs, and measured."""

from __future__ import annotations

from typing import Any

from planner.layouts.peak import PeakRequest
from planner.layouts.strategies import StrategiesRequest
from planner.matrix.render import MatrixRequest, WriteMatrixRequest
from planner.matrix.results import MatrixQuestion
from planner.measuring.training import BenchmarkFolder, BenchmarkRequest
from planner.serving.mlperf import MlperfRequest
from tools.registry import tool


@tool(title="Apply named strategies", read_only=True, by="planner.layouts.strategies")
def apply_strategies(request: StrategiesRequest) -> Any:
    """The layout that each named strategy takes for a training plan, for every model on every accelerator, with its
    figures: maximum_performance, truly_identical (one layout that fits everywhere), memory_optimized,
    minimal_communication, balanced, and custom. Use it to compare platforms fairly ("H100 against MI300X under the same
    layout") and for benchmark suites. Layout fields of the plan are kept by every strategy."""


@tool(title="Peak training throughput", read_only=True, by="planner.layouts.peak")
def peak_throughput(request: PeakRequest) -> Any:
    """What models reach at best in training on each accelerator and precision, each with its best layout:
    tokens/s per device and in all, TFLOPS, MFU, tokens a day, and whether that is good, average or poor against
    measured runs. Use it for "how fast can it get", "tokens per day on MI300X against H100"."""


@tool(title="Project an MLPerf Inference result", read_only=True, by="planner.serving.mlperf")
def project_mlperf(request: MlperfRequest) -> Any:
    """What accelerators would score in an MLPerf Inference benchmark (Llama 2 70B, Llama 3.1 8B and 405B, Mixtral 8x7B,
    DeepSeek-R1, gpt-oss-120b): samples/s, tokens/s and whole-dataset time offline, or the highest rate within the p99
    limits of server or interactive; one node against many with scaling efficiency. Use it for "MLPerf projection",
    "tokens/s in MLPerf server"."""


@tool(title="Render a benchmark matrix", read_only=True, by="planner.matrix.render")
def render_matrix(request: MatrixRequest) -> Any:
    """All files of a benchmark matrix as text, without writing any: what benchmark_matrix would write. For the layouts
    and figures alone use apply_strategies."""


@tool(title="Write a benchmark matrix", read_only=False, preview="render_matrix", by="planner.matrix.render")
def benchmark_matrix(request: WriteMatrixRequest) -> Any:
    """Writes a benchmark suite below the working folder: every model under every named strategy or custom layout on
    every accelerator, each with its launch files, a script that runs them one after another, and a manifest with what
    is predicted. Use it to measure platforms or layouts against each other."""


@tool(title="Read a matrix's results", read_only=True, by="planner.matrix.results")
def matrix_results(request: MatrixQuestion) -> Any:
    """What was measured of a benchmark matrix (the result.json files in its folders, else what the programs' own logs
    there say) against what was predicted: errors by cell, accuracy over all, and the runs as rows for the table of
    measurements."""


@tool(title="Show the benchmark of a training plan", read_only=True, by="planner.measuring.training")
def render_benchmark(request: BenchmarkRequest) -> Any:
    """A training plan as a PyTorch program that times its steps on synthetic data, with how it is started: DDP, FSDP2
    or tensor parallel; layers scaled when asked. Nothing is run: `shardwise measure training` runs it. Use it for
    "benchmark this plan", "how would I measure it myself"."""


@tool(title="Read a benchmark that was run", read_only=True, by="planner.measuring.training")
def benchmark_result(request: BenchmarkFolder) -> Any:
    """What was measured of a training benchmark (step time with its spread, tokens/s, MFU, peak memory, power) beside
    what was predicted of it before. Use it for the folder of a `measure training` run."""
