"""What apply_strategies shows of its choices: a row of figures each, and plots of platforms side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from estimator.training.estimates import Estimates
from knowledge.figures import gib
from planner.compare.rows import TrainingFigures, training_figures
from planner.plots import Plot, grouped
from planner.training.planned import Planned


@dataclass(frozen=True)
class StrategyChoice:
    """What a strategy takes for a model on an accelerator; in place of the layout why there is none."""

    model: str
    strategy: str
    accelerator: str
    outcome: Planned | str
    refused: tuple[str, ...] = ()
    """Why layouts were passed over that might have been taken."""

    @property
    def why(self) -> str | None:
        """Why it cannot be run; None where it can."""
        if isinstance(self.outcome, str):
            return " ".join(self.outcome.split())
        return None if self.outcome.fits else misfit(self.outcome.estimates)


class StrategyRow(TrainingFigures):
    model: str
    strategy: str
    accelerator: str
    why: str | None = Field(default=None, description="Why there is no layout; null where there is one.")
    relative_speed: float | None = Field(
        default=None, description="Tokens/s per device over those of the first platform under the same strategy."
    )


def misfit(estimates: Estimates) -> str:
    least, have = gib(float(estimates.high_bytes.min())), gib(estimates.job.usable_bytes)
    return f"nothing fits: the least of the layouts takes up to {least} per device of {have} usable"


def rows_of(group: Sequence[StrategyChoice], own_usd: float | None) -> list[StrategyRow]:
    """The choices of one strategy for one model on all platforms, related to the first that fits."""
    rows = [_row(choice, own_usd) for choice in group]
    first = next((row.tokens_per_s_per_device for row in rows if row.fits), None)
    for row in rows:
        if first and row.tokens_per_s_per_device is not None:
            row.relative_speed = row.tokens_per_s_per_device / first
    return rows


def plots(rows: Sequence[StrategyRow]) -> list[Plot]:
    """For each model the speed and the memory of each platform, strategies side by side."""
    drawn: list[Plot] = []
    for model in dict.fromkeys(row.model for row in rows):
        of_model = [row for row in rows if row.model == model]
        platforms = list(dict.fromkeys(row.accelerator for row in of_model))
        for name, label, unit in (
            ("tokens_per_s_per_device", "tokens/s per device", 1.0), ("per_device_bytes", "GiB per device", 2.0**30),
        ):  # fmt: skip
            groups: dict[str, list[float | None]] = {}
            for strategy in dict.fromkeys(row.strategy for row in of_model):
                at = {row.accelerator: getattr(row, name) for row in of_model if row.strategy == strategy}
                groups[strategy] = [None if at.get(platform) is None else at[platform] / unit for platform in platforms]
            drawn += grouped(f"{label} of {model}", "platform", label, platforms, groups)
    return drawn


def _row(choice: StrategyChoice, own_usd: float | None) -> StrategyRow:
    figures = {} if isinstance(choice.outcome, str) else dict(training_figures(choice.outcome, own_usd))
    return StrategyRow(
        model=choice.model, strategy=choice.strategy, accelerator=choice.accelerator, why=choice.why, **figures
    )
