"""What the estimator says of a plan, as the heading of a launch file takes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingPrediction:
    """What the estimator says of a training plan: bytes per device and seconds per optimizer step, with intervals."""

    memory_bytes: float
    memory_low_bytes: float
    memory_high_bytes: float
    capacity_bytes: float
    step_s: float
    step_low_s: float
    step_high_s: float
    host_bytes: float | None = None
    """Of a node's host, where it is known."""


@dataclass(frozen=True)
class ServingPrediction:
    """What the estimator says of a serving plan: bytes per device, and means over requests, with intervals.

    Rates are of all replicas together. No `ttft_s` where the load is more than can be served.
    """

    memory_bytes: float
    capacity_bytes: float
    fits: bool
    ttft_s: float | None
    ttft_low_s: float | None
    ttft_high_s: float | None
    tpot_s: float
    tpot_low_s: float
    tpot_high_s: float
    output_tokens_per_s: float
    max_concurrency: int | None
