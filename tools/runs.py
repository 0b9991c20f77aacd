"""Runs that people made: read from logs, rated, and kept."""

from __future__ import annotations

from typing import Any

from planner.asked.runs import HistoryRequest, RateRequest, ReadRequest
from tools.registry import tool


@tool(title="Read a run's log", read_only=True, by="planner.history.reading")
def read_run(request: ReadRequest) -> Any:
    """What a training log or a tracker's folder says of a run: its plan as far as it is printed, steady step time,
    tokens/s, loss, memory, start-up and slow steps apart, out-of-memory errors, what contradicts itself; and how good
    that is. Reads Megatron, Primus, NeMo, DeepSpeed, HF Trainer, torchtitan, torchtune, MaxText, verl, MLPerf logs,
    TensorBoard, wandb, MLflow. Use it for "read this log"; plan fields fill what it lacks."""


@tool(title="Rate a measured speed", read_only=True, by="planner.history.rating")
def rate_run(request: RateRequest) -> Any:
    """Whether a measured speed of training or serving is good: what is expected, the percentile among runs like it, the
    likely cause where it is low, and what a change would give. Use it for "40,000 tokens/s, is that good?", "is 35 %
    MFU normal?", "why only 15 tok/s?"."""


@tool(title="List your own runs", read_only=True, by="planner.history.listing")
def list_runs(request: HistoryRequest) -> Any:
    """The history of the user's own measured runs, each beside what is estimated of it now, and how far estimates are
    off by version of software. Use it for "my runs"."""
