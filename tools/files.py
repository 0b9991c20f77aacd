"""Launch files, benchmark matrices and reports: rendered, written, and read back."""

from __future__ import annotations

from pages.report import report as report_report
from pages.report.report import (
    RenderedReport,
    ReportFileRequest,
    ReportFiles,
    ReportRequest,
    WriteReportRequest,
    WrittenReport,
)
from planner.files import importing
from planner.files import render as files_render
from planner.files.importing import ImportedConfig, ImportRequest
from planner.files.render import RenderRequest, WriteRequest
from planner.matrix import render as matrix_render
from planner.matrix import results
from planner.matrix.render import MatrixRequest, RenderedMatrix, WriteMatrixRequest, WrittenMatrix
from planner.matrix.results import MatrixQuestion, MatrixResults
from planner.results import RenderedConfigs, WrittenConfigs
from tools.registry import tool


@tool(title="Render launch files", read_only=True)
def render_configs(request: RenderRequest) -> RenderedConfigs:
    """Launch files of a training or serving plan as text (configs of training frameworks, engine commands, Slurm,
    Kubernetes and other launchers), the command that starts them, and what the user still has to fill in. Nothing is
    written to disk. Use it for "show me the config", "the Slurm script", "which command starts it"."""
    return files_render.render_configs(request)


@tool(title="Write launch files", read_only=False, preview="render_configs")
def write_configs(request: WriteRequest) -> WrittenConfigs:
    """Writes the launch files of a plan into a folder below the working folder, all of them or none. Use it only when
    the user asked for files on disk; existing files are kept unless overwrite is set."""
    return files_render.write_configs(request)


@tool(title="Read existing configs", read_only=True)
def import_config(request: ImportRequest) -> ImportedConfig:
    """Reads existing launch files and tells whether they fit, how fast and at what cost: configs and scripts of
    LlamaFactory, Axolotl, TRL, Unsloth, torchtune, ms-swift, verl, DeepSpeed, accelerate, torchtitan, Megatron-LM,
    NeMo, Primus, MaxText; vLLM, SGLang, TensorRT-LLM, llama.cpp; sbatch, Kubernetes, SkyPilot, Compose. Use it when the
    user pastes or names a config or script. Arguments (accelerator, count …) complete the files and win over them;
    nothing is executed."""
    return importing.import_config(request)


@tool(title="Render a benchmark matrix", read_only=True)
def render_matrix(request: MatrixRequest) -> RenderedMatrix:
    """All files of a benchmark matrix as text, without writing any: what benchmark_matrix would write. For the layouts
    and figures alone use apply_strategies."""
    return matrix_render.render_matrix(request)


@tool(title="Write a benchmark matrix", read_only=False, preview="render_matrix")
def benchmark_matrix(request: WriteMatrixRequest) -> WrittenMatrix:
    """Writes a benchmark suite below the working folder: every model under every named strategy or custom layout on
    every accelerator, each with its launch files, a script that runs them one after another, and a manifest with what
    is predicted. Use it to measure platforms or layouts against each other."""
    return matrix_render.benchmark_matrix(request)


@tool(title="Read a matrix's results", read_only=True)
def matrix_results(request: MatrixQuestion) -> MatrixResults:
    """What was measured of a benchmark matrix (the result.json files in its folders, else what the programs' own logs
    there say) against what was predicted: errors by cell, accuracy over all, and the runs as rows for the table of
    measurements."""
    return results.matrix_results(request)


@tool(title="Render a report", read_only=True)
def render_report(request: ReportRequest) -> RenderedReport:
    """A report on a plan for training or serving, or on a comparison where scenarios or over are given, as Markdown
    text: memory, time, scaling, cost, advice, assumptions and evidence. Nothing is written to disk."""
    return report_report.render_report(request)


@tool(title="Preview a report's files", read_only=True)
def preview_report(request: ReportFileRequest) -> ReportFiles:
    """The files that report would write, as they would be written. What a report says is shorter in render_report."""
    return report_report.preview_report(request)


@tool(title="Write a report", read_only=False, preview="preview_report")
def report(request: WriteReportRequest) -> WrittenReport:
    """Writes a report with plots on a plan for training or serving, or on a comparison where scenarios or over are
    given, below the working folder: a self-contained HTML page, Markdown with pictures, or PDF. Use it only when the
    user asked for a report, a page or a document to hand on."""
    return report_report.report(request)
