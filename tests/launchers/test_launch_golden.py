"""Three whole sets, letter for letter, so that a change to any file shows in review.

SHARDWISE_UPDATE_GOLDEN=1 writes them anew; look at the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from launch_plans import PREDICTION, complete, devices

from launchers.render import render

GOLDEN = Path(__file__).parent / "golden"

SETS = {
    "llama70b-full-16": (
        ["slurm"],
        {
            "name": "Llama 70B SFT, 16 x H100",
            "model": "meta-llama/Llama-3.1-70B",
            **devices(16),
            "layout": {"dp": 16, "zero_stage": 3, "offload": "optimizer"},
            "workload": {"seq_len": 8192, "micro_batch": 1, "global_batch": 128, "fused_loss": True},
            "goal": {"deadline_h": 36},
        },
    ),
    "qwen7b-qlora-1": (
        ["llamafactory"],
        {
            "model": "Qwen/Qwen2.5-7B",
            **devices(1, 1),
            "cluster.accelerator": "rtx-4090",
            "layout": {"dp": 1, "zero_stage": 0},
            "workload": {
                "method": "qlora",
                "optimizer": "paged_adamw_8bit",
                "micro_batch": 2,
                "global_batch": 16,
                "lora": {"rank": 32, "alpha": 64, "targets": "attention"},
            },
        },
    ),
    "mistral7b-dpo-8": (
        ["llamafactory", "deepspeed", "slurm"],
        {
            "model": "mistralai/Mistral-7B-v0.1",
            "layout": {"recompute": "none"},
            "workload": {"stage": "dpo", "precision": "fp16", "attention": "sdpa", "packing": False},
        },
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_golden(name: str):
    targets, changes = SETS[name]
    rendered = render(complete(changes), targets, PREDICTION)
    for file in rendered.files:
        golden = GOLDEN / f"{name}.{Path(file.path).name.removeprefix('job.')}"
        if os.environ.get("SHARDWISE_UPDATE_GOLDEN"):
            golden.write_text(file.text)
        assert file.text == golden.read_text(), golden.name
