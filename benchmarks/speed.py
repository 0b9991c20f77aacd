"""How fast Shardwise answers: one estimate, a search over thousands of devices, and layouts per second as they grow.

    python benchmarks/speed.py [--quick] [--profile] [--json]

Times are the best of several runs of this process on one core (NumPy's threads play no part: there are no large matrix
products). --profile adds the functions in which a large batch spends its time.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import pstats
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates, objective_order, search, search_whole
from estimator.search.space import WHOLE, enumerated
from estimator.serving.estimates import estimate as estimate_serving
from estimator.serving.space import deployments
from estimator.training.estimates import estimate
from knowledge.jobs.serving import serving_job
from knowledge.jobs.training import job_of
from tools import call

ONE = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8, "framework": "deepspeed",
    "zero_stage": 3, "micro_batch": 1, "recompute": "none", "offload": "none",
}  # fmt: skip
NAMED = {
    "workload": {"framework": "megatron-lm", "micro_batch": 1, "global_batch": 64},
    "cluster": {"accelerator": "h100-sxm", "count": 16},
    "layout": {"tp": 2, "pp": 2, "cp": 1, "dp": 4, "vpp": 1, "zero_stage": 1, "recompute": "none", "offload": "none"},
}  # fmt: skip
SERVED = {
    "model": "meta-llama/Llama-3.1-70B", "accelerator": "h200-sxm", "count": 8, "tp": 4, "weight_dtype": "fp8",
    "input_len": 2000, "output_len": 500, "concurrency": 64,
}  # fmt: skip
SERVED_BEST = {
    "model": "meta-llama/Llama-3.1-70B", "accelerator": "h200-sxm", "count": 8, "input_len": 2000, "output_len": 500,
    "ttft_slo_ms": 1000, "tpot_slo_ms": 50, "engines": ["vllm", "sglang", "trtllm"],
}  # fmt: skip
BEST = {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 64, "framework": "megatron-lm"}
SEARCHES: dict[str, dict[str, Any]] = {
    "Llama-3.1-405B on 16384 H100": {
        "model": "meta-llama/Llama-3.1-405B",
        "workload": {"framework": "megatron-lm", "stage": "pretrain", "seq_len": 8192, "global_batch": 2048},
        "cluster": {"accelerator": "h100-sxm", "count": 16384},
    },
    "DeepSeek-V3 on 2048 H100": {
        "model": "deepseek-ai/DeepSeek-V3",
        "workload": {"framework": "megatron-lm", "stage": "pretrain", "seq_len": 4096, "global_batch": 15360},
        "cluster": {"accelerator": "h100-sxm", "count": 2048},
    },
}
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def best_s(function: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest of `runs` calls."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def command_s(*words: str, runs: int = 5) -> float:
    """Wall time of a command in a process of its own, the interpreter's start included."""
    code = f"from tui.cli import main; raise SystemExit(main({list(words)!r}))"
    return best_s(lambda: subprocess.run([sys.executable, "-c", code], capture_output=True, check=True), runs)


def peak_rss_mib() -> float:
    """The most memory this process ever held. On Linux as its memory map has it, in KiB: the figure of getrusage begins
    with that of the process that it was started from (macOS counts in bytes)."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def answers() -> dict[str, float]:
    """Seconds of single answers: in this process once it is warm, and as commands."""
    call("estimate_training", ONE)
    named = job_of(Plan.parse({"model": ONE["model"], **NAMED}))
    served = serving_job(
        Plan.parse(
            {
                "model": SERVED["model"],
                "workload": {"kind": "inference", "concurrency": 64, "weight_dtype": "fp8"},
                "cluster": {"accelerator": "h200-sxm", "count": 8},
                "layout": {"tp": 4},
            }
        )
    )
    return {
        "candidates of a layout named whole": best_s(lambda: candidates(named), 200),
        "estimate of a layout named whole": best_s(lambda: estimate(named, candidates(named)), 50),
        "estimate_training, warm": best_s(lambda: call("estimate_training", ONE), 20),
        "check_fit, warm": best_s(lambda: call("check_fit", ONE), 5),
        "best_parallelism, warm": best_s(lambda: call("best_parallelism", BEST), 3),
        "estimate of a deployment": best_s(lambda: estimate_serving(served, deployments(served)), 50),
        "estimate_inference, warm": best_s(lambda: call("estimate_inference", SERVED), 20),
        "best_serving, warm": best_s(lambda: call("best_serving", SERVED_BEST), 3),
        "shardwise --help": command_s("--help"),
        "shardwise call estimate_training": command_s("call", "estimate_training", json.dumps(ONE), runs=3),
    }


def search_rows() -> list[dict[str, Any]]:
    """One row a search: of the usual settings with every candidate estimated, and of the whole space."""
    rows = []
    for name, plan in SEARCHES.items():
        job = job_of(Plan.parse(plan))
        layouts = candidates(job)
        found = search_whole(job)
        rows.append(
            {
                "search": name,
                "usual_layouts": len(layouts),
                "usual_s": best_s(lambda job=job: search(job), 3),
                "layouts": found.valid,
                "estimated": len(found.estimates.layouts),
                "feasible": int(found.estimates.fits.sum()),
                "enumerate_s": best_s(lambda job=job: enumerated(job, WHOLE), 3),
                "whole_s": best_s(lambda job=job: search_whole(job), 3),
                "order_s": best_s(lambda found=found: objective_order(found.estimates), 3),
            }
        )
    return rows


def scaling_rows(job: Job, sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """Layouts per second of batches of growing size: the candidates of `job`, repeated."""
    layouts = candidates(job)
    rows = []
    for size in sizes:
        batch = layouts.take(np.resize(np.arange(len(layouts)), size))
        seconds = best_s(lambda batch=batch: estimate(job, batch), 3 if size < 1_000_000 else 1)
        rows.append(
            {"layouts": size, "seconds": seconds, "layouts_per_s": size / seconds, "peak_rss_mib": peak_rss_mib()}
        )
    return rows


def profile(job: Job, size: int) -> str:
    """The functions that one large batch spends most of its time in."""
    layouts = candidates(job)
    batch = layouts.take(np.resize(np.arange(len(layouts)), size))
    profiler = cProfile.Profile()
    profiler.runcall(estimate, job, batch)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(12)
    return text.getvalue()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How fast Shardwise answers.")
    parser.add_argument("--quick", action="store_true", help="batches of at most 10,000 layouts")
    parser.add_argument("--profile", action="store_true", help="where a batch of 100,000 layouts spends its time")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    chosen = parser.parse_args(arguments)
    sizes = tuple(size for size in SIZES if size <= 10_000 or not chosen.quick)
    single = answers()
    searches = search_rows()
    dense, experts = (job_of(Plan.parse(plan)) for plan in SEARCHES.values())
    scaling = {"dense": scaling_rows(dense, sizes), "mixture of experts": scaling_rows(experts, sizes)}
    if chosen.json:
        print(json.dumps({"seconds": single, "searches": searches, "scaling": scaling}, indent=2))
        return 0
    for name, seconds in single.items():
        print(f"{name:<36}{1000 * seconds:10.1f} ms")
    print(f"\n{'search':<29}{'usual':>8}{'time':>10}{'whole':>10}{'estimated':>11}{'enumerate':>11}{'in all':>10}")
    for row in searches:
        print(f"{row['search']:<29}{row['usual_layouts']:>8,}{1000 * row['usual_s']:>7.0f} ms", end="")
        print(f"{row['layouts']:>10,}{row['estimated']:>11,}{1000 * row['enumerate_s']:>8.0f} ms", end="")
        print(f"{1000 * row['whole_s']:>7.0f} ms")
    for name, rows in scaling.items():
        print(f"\n{name:<32}{'layouts':>9}{'seconds':>12}{'layouts/s':>12}{'peak MiB':>12}")
        for row in rows:
            print(f"{'':<32}{row['layouts']:>9,}{row['seconds']:>12.3f}", end="")
            print(f"{row['layouts_per_s']:>12,.0f}{row['peak_rss_mib']:>12,.0f}")
    if chosen.profile:
        for name, job in (("dense", dense), ("mixture of experts", experts)):
            print(f"\n{name}\n{profile(job, 100_000)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
