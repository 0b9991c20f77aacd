"""What is told of measured runs: one that was read, how good it is, and the history."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.plots import Plot
from planner.result import Assumption, Evidence, Result


class LikelyCause(Result):
    """A setting that would explain a low figure, and what the other one gives."""

    what: str
    patch: dict[str, Any] = Field(description="Of the Plan, as it may have been run.")
    explained_tokens_per_s: float = Field(description="Estimated with that setting.")
    gain: float = Field(description="Tokens/s more without it, as a fraction.")


class RunRating(Result):
    """A run's speed against what is estimated of it, and against measured runs like it."""

    plan: dict[str, Any]
    verdict: str = Field(description="good, as expected, low, or impossible: more than the devices can.")
    tokens_per_s: float = Field(description="Measured, of all devices; of serving those of answers.")
    tokens_per_s_per_device: float
    step_s: float | None = Field(default=None, description="Of training.")
    mfu: float | None = Field(default=None, description="Of training.")
    expected_tokens_per_s: float
    tokens_low_per_s: float = Field(description="Of the 80 % interval of what is expected.")
    tokens_high_per_s: float
    ratio: float = Field(description="Measured over expected.")
    percentile: float | None = Field(
        description="Of measured runs like it, the share that reach less of what is estimated of them."
    )
    alike: int = Field(description="How many runs like it that is of.")
    mfu_lower: float | None = Field(
        default=None, description="Lower quartile of what the best runs on such devices reach."
    )
    mfu_median: float | None = None
    mfu_upper: float | None = None
    reached_by: str = Field(description="The devices that these quartiles are of, and how many setups.")
    causes: list[LikelyCause]
    gains: list[LikelyCause] = Field(description="What would make it faster by estimate, the most first.")
    findings: list[str]
    warnings: list[str]
    assumptions: list[Assumption]
    evidence: list[Evidence]


class RunReading(Result):
    """A run as its log or tracker tells it."""

    id: str
    name: str
    kind: str
    source: str
    date: str | None
    outcome: str
    plan: dict[str, Any] = Field(description="The Plan as far as it is known.")
    software: dict[str, str]
    tokens_per_s_per_device: float | None
    step_s: float | None
    step_low_s: float | None = Field(description="Lower quartile of the steady steps.")
    step_high_s: float | None
    steps: int | None = Field(description="Steady steps that the figures are of.")
    start_s: float | None = Field(description="What the first steps took beyond later ones.")
    tflops_per_device: float | None = Field(description="As the program counts them.")
    mfu: float | None = Field(description="As the program counts it.")
    peak_bytes: float | None
    peak_kind: str
    last_loss: float | None
    figures: dict[str, float] = Field(description="All that was measured; of serving too.")
    missing: list[str] = Field(description="Plan fields without which it cannot be rated.")
    rating: RunRating | None
    plots: list[Plot]
    findings: list[str]
    tags: list[str]
    note: str
    runs: int = Field(description="Runs that stand where it was read; the one with the most to say is told.")


class HistoryRow(Result):
    """Of serving, tokens are those of answers."""

    id: str
    date: str | None
    name: str
    model: str | None
    platform: str
    software: str
    outcome: str
    tokens_per_s_per_device: float | None
    step_s: float | None
    peak_bytes: float | None
    mfu: float | None = Field(default=None, description="By the estimator's count where it can, else as printed.")
    expected_tokens_per_s_per_device: float | None = Field(description="Estimated now; null where not asked or open.")
    error: float | None = Field(description="Estimated over measured, less 1.")
    tags: list[str]


class Drift(Result):
    """The error of estimates of the runs on one version of software."""

    software: str
    runs: int
    bias: float = Field(description="Mean error: above 0 where too much was estimated.")
    mape: float = Field(description="Mean size of the errors.")
    first_day: str | None = Field(description="Day of the first of them.")
    last_day: str | None


class RunHistory(Result):
    runs: list[HistoryRow]
    drift: list[Drift]
    plots: list[Plot]
    file: str = Field(description="Where the history is kept.")
    warnings: list[str]
