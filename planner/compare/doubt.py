"""How much faster one plan is than another, with its interval: errors that both share cancel in it."""

from __future__ import annotations

import math

from estimator.pairs import ratio_spread
from planner.compare.rows import ComparedServing, ComparedTraining
from planner.estimates import PlanEstimate
from planner.training.planned import Planned

Row = ComparedTraining | ComparedServing


def speed(row: Row) -> tuple[float, float, float] | None:
    """(Tokens/s, low, high) of a row; of serving, output tokens/s."""
    if isinstance(row, ComparedServing):
        if row.output_tokens_per_s is None:
            return None
        low, high = row.output_tokens_low_per_s, row.output_tokens_high_per_s
        return row.output_tokens_per_s, low or row.output_tokens_per_s, high or row.output_tokens_per_s
    if row.tokens_per_s is None or not row.step_s or not row.low_s or not row.high_s:
        return None
    tokens = row.tokens_per_s * row.step_s
    return row.tokens_per_s, tokens / row.high_s, tokens / row.low_s


def faster_by(
    row: Row, first: Row, estimate: PlanEstimate | None, behind: PlanEstimate | None
) -> tuple[float, float, float] | None:
    """(Speed of the row over that of the other, low, high); None where one has no speed."""
    mine, other = speed(row), speed(first)
    if mine is None or other is None:
        return None
    ratio = mine[0] / other[0]
    # The slower end: the faster one stops at the peak of the device.
    alone = [math.log(ends[0] / ends[1]) for ends in (mine, other)]
    width = math.hypot(*alone)
    if isinstance(estimate, Planned) and isinstance(behind, Planned) and _alike(estimate, behind):
        parts = (device_s_per_million(estimate), device_s_per_million(behind))
        width = min(width, ratio_spread(*parts, max(alone)))
    return ratio, ratio * math.exp(-width), ratio * math.exp(width)


def is_sure(ratio: tuple[float, float, float] | None) -> bool:
    """Whether the interval leaves no doubt which of the two is faster."""
    return ratio is not None and (ratio[1] > 1.0 or ratio[2] < 1.0)


def device_s_per_million(planned: Planned) -> dict[str, float]:
    """Device-seconds per million tokens by what they wait for."""
    per_token = planned.job.machine.count / planned.job.tokens_per_step * 1e6
    return {name: seconds * per_token for name, seconds in planned.diagnosis.limits.items()}


def _alike(first: Planned, other: Planned) -> bool:
    """Whether they miss alike where they do alike: one model, device and program, whose kernels are the same."""
    jobs = (first.job, other.job)
    return len({(job.architecture.id, job.machine.accelerator.id, job.framework.name) for job in jobs}) == 1
