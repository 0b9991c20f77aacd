"""What apply_strategies shows of its choices: a row of figures each, and plots of platforms side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from planner.compare.rows import TrainingFigures, training_figures
from planner.plots import Plot, grouped

if TYPE_CHECKING:
    from planner.layouts.strategies import Choice


class StrategyRow(TrainingFigures):
    model: str
    strategy: str
    accelerator: str
    why: str | None = Field(default=None, description="Why there is no layout; null where there is one.")
    relative_speed: float | None = Field(
        default=None, description="Tokens/s per device over those of the first platform under the same strategy."
    )


def rows_of(group: Sequence[Choice], own_usd: float | None) -> list[StrategyRow]:
    """The choices of one strategy for one model on all platforms, related to the first that fits."""
    rows = [_row(choice, own_usd) for choice in group]
    first = next((row.tokens_per_s_per_device for row in rows if row.fits), None)
    for row in rows:
        if first and row.tokens_per_s_per_device is not None:
            row.relative_speed = row.tokens_per_s_per_device / first
    return rows


def plots(rows: Sequence[StrategyRow]) -> list[Plot]:
    """For each model the speed and the memory of each platform, strategies side by side."""
    found: list[Plot] = []
    for model in dict.fromkeys(row.model for row in rows):
        own = [row for row in rows if row.model == model]
        platforms = list(dict.fromkeys(row.accelerator for row in own))
        for name, label, unit in (
            ("tokens_per_s_per_device", "tokens/s per device", 1.0), ("per_device_bytes", "GiB per device", 2.0**30),
        ):  # fmt: skip
            groups: dict[str, list[float | None]] = {}
            for strategy in dict.fromkeys(row.strategy for row in own):
                at = {row.accelerator: getattr(row, name) for row in own if row.strategy == strategy}
                groups[strategy] = [None if at.get(one) is None else at[one] / unit for one in platforms]
            found += grouped(f"{label} of {model}", "platform", label, platforms, groups)
    return found


def _row(choice: Choice, own_usd: float | None) -> StrategyRow:
    figures = {} if isinstance(choice.found, str) else training_figures(choice.found, own_usd)
    return StrategyRow(
        model=choice.model, strategy=choice.strategy, accelerator=choice.accelerator, why=choice.why, **figures
    )
