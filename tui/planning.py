"""The planning commands: which tools each stands for, and what it takes by place.

Only names: nothing is imported before a command is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Planning:
    """A command over tools. `training` and `serving` are tools, the same where one does both.

    `places` are the fields that may be given without a flag, in order; `writes` is the tool that --write calls and
    `writes_to` its argument that --write names; `run` is the module that the command runs.
    """

    help: str
    training: str | None = None
    serving: str | None = None
    places: tuple[str, ...] = ("model", "accelerator")
    writes: str | None = None
    writes_to: str = ""
    example: str = ""
    strict: bool = False
    """Whether the command has --strict, which makes 'does not fit' the exit code 1."""
    files: bool = False
    """Whether it takes the names of files, whose texts are the tool's `files`."""
    keeps: bool = False
    """Whether it keeps a run, which may have a note and tags, instead of showing an answer."""
    run: str = "tui.commands.plan"

    @property
    def tools(self) -> tuple[str, ...]:
        """Those that it may call, each once."""
        return tuple(dict.fromkeys(tool for tool in (self.training, self.serving) if tool))


def _both(tool: str) -> dict[str, Any]:
    return {"training": tool, "serving": tool}


PLANNING: dict[str, Planning] = {
    "estimate": Planning(
        "memory, speed and hours of a run; latency and throughput of serving",
        training="estimate_training",
        serving="estimate_inference",
        example="llama-3.1-8b 8xh100 --seq-len 8192 --dataset-tokens 1B",
    ),
    "fit": Planning(
        "whether a plan fits in memory, how much is free, and what would help",
        **_both("check_fit"),
        strict=True,
        example="llama-3.1-70b 8xh100 --method lora",
    ),
    "best": Planning(
        "the best layout for training, or the best way to serve",
        training="best_parallelism",
        serving="best_serving",
        example="llama-3.1-70b 64xh100 --global-batch 512",
    ),
    "limit": Planning(
        "the longest sequence, largest batch, model or load that fits",
        **_both("find_limit"),
        places=("model", "accelerator", "goal"),
        example="llama-3.1-8b 8xh100 seq_len",
    ),
    "size": Planning(
        "how many devices serve a load within latency limits",
        serving="size_serving",
        example="llama-3.1-70b h100 --request-rate 20 --ttft-slo-ms 500",
    ),
    "cost": Planning(
        "hours, USD by provider, energy and CO2",
        **_both("estimate_cost"),
        example="llama-3.1-8b 8xh100 --dataset-tokens 1B",
    ),
    "clusters": Planning(
        "which accelerators to rent, how many and where",
        **_both("recommend_cluster"),
        places=("model",),
        example="llama-3.1-70b --dataset-tokens 1B --deadline-h 48",
    ),
    "auto": Planning(
        "a complete plan from a model and a goal",
        **_both("auto_configure"),
        example="llama-3.1-8b --dataset-tokens 100M --budget-usd 500",
    ),
    "compare": Planning(
        "scenarios side by side",
        **_both("compare"),
        example="llama-3.1-8b 8xh100 --over method=full,lora,qlora --plot",
    ),
    "sweep": Planning(
        "figures over the values of one or two fields",
        **_both("sweep"),
        places=("model", "accelerator", "field", "values"),
        example="llama-3.1-8b 8xh100 seq_len 4096,8192,16384 --plot",
    ),
    "scaling": Planning(
        "a training plan on 1 to N nodes",
        training="project_scaling",
        example="llama-3.1-70b 8xh100 --nodes 1..64 --plot",
    ),
    "strategies": Planning(
        "the layouts that named strategies take, on every platform",
        training="apply_strategies",
        example="llama-3.1-8b --accelerators h100,mi300x --count 8",
    ),
    "peak": Planning(
        "the highest training throughput of models on each accelerator",
        training="peak_throughput",
        example="llama-3.1-8b --accelerators h100,mi300x --plot",
    ),
    "mlperf": Planning(
        "what accelerators would score in MLPerf Inference",
        serving="project_mlperf",
        places=("benchmark", "accelerator"),
        example="llama2-70b h200 --scenario server",
    ),
    "explain": Planning(
        "where a figure comes from: formula, inputs, sources, nearest runs",
        **_both("explain"),
        places=("model", "accelerator", "figure"),
        example="llama-3.1-8b 8xh100 mfu",
    ),
    "advise": Planning(
        "what would make a plan faster or safer, with sources",
        **_both("advise"),
        example="llama-3.1-8b 8xh100",
    ),
    "model": Planning(
        "one model: parameters, dimensions, KV cache, the TP sizes that divide it",
        **_both("describe_model"),
        places=("model",),
        example="llama-3.1-8b",
    ),
    "accelerator": Planning(
        "one accelerator: memory, rates, links and prices",
        **_both("describe_hardware"),
        places=("accelerator",),
        example="h100-sxm",
    ),
    "playbook": Planning(
        "search the practical knowledge on training and serving",
        training="search_playbook",
        places=("query",),
        example='"nccl hangs"',
    ),
    "configs": Planning(
        "launch files of a plan: shown, or written with --write DIR",
        **_both("render_configs"),
        writes="write_configs",
        writes_to="folder",
        example="llama-3.1-8b 8xh100 --targets torchtitan,slurm --write runs/8b",
    ),
    "report": Planning(
        "a report as Markdown, or written as HTML, Markdown or PDF with --write FILE",
        **_both("render_report"),
        writes="report",
        writes_to="file",
        example="llama-3.1-8b 8xh100 --dataset-tokens 1B --write report.html",
    ),
    "check": Planning(
        "read existing configs or job scripts: do they fit, how fast",
        **_both("import_config"),
        places=(),
        files=True,
        run="tui.commands.reading",
        example="sft.yaml job.sbatch --accelerator h100 --count 8",
    ),
    "import": Planning(
        "read existing configs or job scripts into a plan, as YAML",
        **_both("import_config"),
        places=(),
        files=True,
        run="tui.commands.reading",
        example="sft.yaml --count 16 > plan.yaml",
    ),
    "matrix": Planning(
        "a benchmark suite of models, strategies and platforms: shown, or written with --write DIR",
        training="render_matrix",
        writes="benchmark_matrix",
        writes_to="folder",
        example="llama-3.1-8b --accelerators h100,mi300x --count 8 --write runs/matrix",
    ),
    "matrix-results": Planning(
        "results of a written benchmark suite: measured against predicted",
        training="matrix_results",
        places=("folder",),
        example="runs/matrix",
    ),
}

MEASURING: dict[str, Planning] = {
    "measure here": Planning(
        "what this machine is: devices, links, driver, processor, memory, disk, and what they are in the catalogue",
        training="describe_machine",
        places=(),
    ),
    "measure training": Planning(
        "run a training plan with synthetic data and put what is measured beside what is predicted",
        training="render_benchmark",
        example="llama-3.1-8b here --layers 4 --seq-len 2048",
        run="tui.commands.measuring",
    ),
    "measure logs": Planning(
        "read a training log, or a folder of wandb, MLflow or TensorBoard: figures of the run, and how good they are",
        training="read_run",
        places=("path",),
        run="tui.commands.runs",
        example="train.log --accelerator h100 --count 8",
    ),
    "measure add": Planning(
        "keep the runs of a log, of a tracker's folder, or of a file of measure export",
        training="read_run",
        places=("path",),
        keeps=True,
        run="tui.commands.runs",
        example="train.log --accelerator h100 --count 8 --tag first",
    ),
    "measure rate": Planning(
        "whether a measured speed is good: what is expected, runs like it, what would explain a low one",
        training="rate_run",
        example="llama-3.1-8b 8xh100 --tokens-per-s 40000",
    ),
    "measure runs": Planning(
        "your own runs beside their estimates, and how estimates drift with software",
        training="list_runs",
        places=(),
        example="--model llama --plot",
    ),
}
"""Commands below `measure`, by both their words."""
