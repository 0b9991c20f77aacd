"""Launch files, benchmark matrices and reports: rendered, written, and read back."""

from __future__ import annotations

from typing import Any

from pages.report.request import ReportFileRequest, ReportRequest, WriteReportRequest
from planner.asked.files import ImportRequest, RenderRequest, WriteRequest
from tools.registry import tool


@tool(title="Render launch files", read_only=True, by="planner.files.render")
def render_configs(request: RenderRequest) -> Any:
    """Launch files of a training or serving plan as text (configs of training frameworks, engine commands, Slurm,
    Kubernetes and other launchers), the command that starts them, and what the user still has to fill in. Nothing is
    written to disk. Use it for "show me the config", "the Slurm script", "which command starts it"."""


@tool(title="Write launch files", read_only=False, preview="render_configs", by="planner.files.render")
def write_configs(request: WriteRequest) -> Any:
    """Writes the launch files of a plan into a folder below the working folder, all of them or none. Use it only when
    the user asked for files on disk; existing files are kept unless overwrite is set."""


@tool(title="Read existing configs", read_only=True, by="planner.files.importing")
def import_config(request: ImportRequest) -> Any:
    """Reads existing launch files and tells whether they fit, how fast and at what cost: configs and scripts of
    LlamaFactory, Axolotl, TRL, Unsloth, torchtune, ms-swift, verl, DeepSpeed, accelerate, torchtitan, Megatron-LM,
    NeMo, Primus, MaxText; vLLM, SGLang, TensorRT-LLM, llama.cpp; sbatch, Kubernetes, SkyPilot, Compose. Use it for
    a config or script that is named or pasted. Arguments (accelerator, count …) complete the files and win over them;
    nothing is executed."""


@tool(title="Render a report", read_only=True, by="pages.report.report")
def render_report(request: ReportRequest) -> Any:
    """A report on a plan for training or serving, or on a comparison where scenarios or over are given, as Markdown
    text: memory, time, scaling, cost, advice, assumptions and evidence. Nothing is written to disk."""


@tool(title="Preview a report's files", read_only=True, by="pages.report.report")
def preview_report(request: ReportFileRequest) -> Any:
    """The files that report would write, as they would be written. What a report says is shorter in render_report."""


@tool(title="Write a report", read_only=False, preview="preview_report", by="pages.report.report")
def report(request: WriteReportRequest) -> Any:
    """Writes a report with plots on a plan for training or serving, or on a comparison where scenarios or over are
    given, below the working folder: a self-contained HTML page, Markdown with pictures, or PDF. Use it only when the
    user asked for a report, a page or a document to hand on."""
