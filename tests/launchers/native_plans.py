"""Plans of the native trainers, whole and random, and what a Bash script of theirs starts."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from launch_plans import complete

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.pieces import Rendered
from launchers.render import render

DENSE, LARGE, EXPERTS = "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "mistralai/Mixtral-8x7B-v0.1"
DEVICES = {"primus": ("mi300x", 8), "maxtext": ("tpu-v5p", 4)}


def native(framework: str, model: str, layout: dict[str, Any], accumulation: int = 4, **workload: Any) -> Plan:
    """A pretraining plan whose device count and global batch follow from its layout."""
    split = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": 8, "recompute": "full", "zero_stage": 1} | layout
    count = split["tp"] * split["pp"] * split["cp"] * split["dp"]
    accelerator, per_node = DEVICES.get(framework, ("h100-sxm", 8))
    micro = workload.get("micro_batch", 1)
    batch = micro * accumulation * split["dp"]
    if framework == "torchtitan":
        # Its configs compute the loss in chunks.
        workload |= {"fused_loss": True} if workload.get("fused_loss", "auto") == "auto" else {}
    return complete(
        {
            "model": model,
            "workload": {"framework": framework, "stage": "pretrain", "global_batch": batch, **workload},
            "cluster": {"accelerator": accelerator, "count": count, "per_node": min(per_node, count)},
            "layout": split,
        }
    )


def layouts(stages: tuple[int, ...] = (0, 1)) -> st.SearchStrategy[dict[str, Any]]:
    powers = st.sampled_from([1, 1, 2, 4, 8])
    return st.fixed_dictionaries(
        {
            "tp": powers,
            "pp": st.sampled_from([1, 1, 2, 3, 4]),
            "vpp": st.sampled_from([None, None, 2, 3]),
            "cp": st.sampled_from([1, 1, 2]),
            "ep": st.sampled_from([1, 1, 4, 8]),
            "etp": st.sampled_from([None, 1, 2]),
            "dp": st.sampled_from([1, 2, 8, 16]),
            "zero_stage": st.sampled_from(stages),
            "shard_group": st.sampled_from([None, None, 2]),
            "sequence_parallel": st.sampled_from([None, None, True, False]),
            "recompute": st.sampled_from(["none", "selective", "full", "block:2"]),
            "offload": st.sampled_from(["none", "none", "optimizer", "params", "activations"]),
        }
    )


models = st.sampled_from([DENSE, LARGE, EXPERTS, "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3"])
workloads = st.fixed_dictionaries(
    {
        "micro_batch": st.sampled_from([1, 2, 3]),
        "precision": st.sampled_from(["bf16", "bf16", "fp8", "fp32", "mxfp8"]),
        "fused_loss": st.sampled_from(["auto", True, False]),
        "moe_dispatcher": st.sampled_from(["auto", "alltoall", "flex", "deepep", "hybridep"]),
        "steps": st.sampled_from([None, 7]),
    }
)
# Most combinations contradict a model or each other; one field in four is drawn, the rest is the base plan's.
hostile = st.one_of(
    st.text(min_size=1, max_size=60),
    st.sampled_from(
        ["$(touch x)", "`id`", "a' ; touch x; '", "--help", "../../x", "a=b", "1e5", "null", '"', "a b", "é\u2028"]
    ),
)


def attempt(plan: Plan, target: str, **extra: Any) -> Rendered | None:
    """The files, None where the plan is refused."""
    try:
        return render(plan, [target], **extra)
    except PlanError:
        return None


def started(script: str, folder: Path) -> list[str]:
    """The words that torchrun is given when the script is run by Bash on the second of several nodes."""
    folder.mkdir(parents=True, exist_ok=True)
    stub = folder / "torchrun"
    stub.write_text('#!/bin/bash\nprintf "%s\\0" "$CUDA_DEVICE_MAX_CONNECTIONS" "$@" > "$RECORD"\n')
    stub.chmod(0o755)
    (folder / "run.sh").write_text(script)
    record = folder / "record"
    variables = {"PATH": f"{folder}:{os.environ['PATH']}", "RECORD": str(record), "NODE_RANK": "1"}
    done = subprocess.run(
        ["bash", "run.sh"], cwd=folder, env=variables | {"MASTER_ADDR": "first", "MASTER_PORT": "29500"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["record", "run.sh", "torchrun"]
    return record.read_text().split("\0")[:-1]


def world(words: list[str]) -> int:
    """Processes that torchrun's options start."""
    value = dict(itertools.pairwise(words))
    return int(value.get("--nnodes", 1)) * int(value["--nproc_per_node"])
