"""Several runs side by side: scenarios, strategies, sizes of cluster, and the most that accelerators reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pages import figures
from pages.answers.markdown import bullets, label, table

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from planner.compare.scaling import ScalingProjection
    from planner.compare.scenarios import ComparedServing, ComparedTraining, Comparison
    from planner.layouts.peak import PeakRow, PeakThroughput
    from planner.layouts.strategies import AppliedStrategies, StrategyRow

_LED, _MOST_CONCLUSIONS = 2, 6
_MOST_STRATEGIES, _MOST_PEAKS, _MOST_PROBLEMS = 24, 16, 6


def _led(sentences: Sequence[str]) -> list[str]:
    """The sentences as one block, the first in bold."""
    first, _, rest = " ".join(sentences).partition(". ")
    return [f"**{first.rstrip('.')}.** {rest}".strip()] if sentences else []


def _fits(fits: bool) -> str:
    return "yes" if fits else "**no**"


def compared(comparison: Comparison) -> list[str]:
    estimated = [row for row in comparison.rows if not row.error]
    trained = [row for row in estimated if _is_trained(row)]
    served = [row for row in estimated if not _is_trained(row)]
    tables = [_trained(trained)] if trained else [_served(served)] if served else []
    return [
        *_led(comparison.conclusions[:_LED]),
        *tables,
        *bullets("Not estimated:", [f"{row.name}: {row.error}" for row in comparison.rows if row.error]),
        *bullets("", comparison.conclusions[_LED:_MOST_CONCLUSIONS]),
    ]


def _is_trained(row: ComparedTraining | ComparedServing) -> TypeIs[ComparedTraining]:
    return hasattr(row, "step_s")


def _trained(rows: Sequence[ComparedTraining]) -> str:
    heads = ("", "fits", "per device", "step", "tokens/s", "MFU", "run", "cost")
    cells = [
        (row.name, _fits(row.fits), row.per_device_bytes, row.step_s, row.tokens_per_s, row.mfu, row.hours, row.usd)
        for row in rows
    ]
    return table(heads, cells)


def _served(rows: Sequence[ComparedServing]) -> str:
    heads = ("", "fits", "per device", "first token", "per token", "tokens/s", "per M tokens")
    cells = [
        (row.name, _fits(row.fits), row.per_device_bytes, row.ttft_s, row.tpot_s, row.output_tokens_per_s,
         row.usd_per_million_tokens)
        for row in rows
    ]  # fmt: skip
    return table(heads, cells)


def strategies(applied: AppliedStrategies) -> list[str]:
    rows = [row for row in applied.rows if row.per_device_bytes is not None]
    able = [row for row in rows if row.fits]
    head = "**No strategy fits.**"
    if able:
        best = max(able, key=lambda row: row.tokens_per_s_per_device or 0.0)
        head = (
            f"**{label(best.strategy)}** on {best.accelerator} is the fastest per device: {best.summary}, "
            f"{figures.known(best.tokens_per_s_per_device, figures.rate)} tokens/s per device at "
            f"{figures.known(best.mfu, figures.percent)} MFU."
        )
    whys = [f"{label(row.strategy)} on {row.accelerator}: {row.why}" for row in applied.rows if row.why]
    many = len({row.model for row in rows}) > 1
    cells = [
        (label(row.strategy), f"{_model(row)}, {row.accelerator}" if many else row.accelerator, row.summary,
         _fits(row.fits), row.per_device_bytes, row.tokens_per_s_per_device, row.mfu)
        for row in rows[:_MOST_STRATEGIES]
    ]  # fmt: skip
    return [
        head,
        table(("Strategy", "on", "layout", "fits", "per device", "tokens/s per device", "MFU"), cells),
        *bullets("", whys[:_MOST_PROBLEMS]),
        *bullets("", [f"{label(name)}: {text}" for name, text in applied.strategies.items()]),
    ]


def _model(row: StrategyRow | PeakRow) -> str:
    return row.model.rpartition("/")[2]


def scaling(projection: ScalingProjection) -> list[str]:
    able = [point for point in projection.points if not point.error and point.tokens_per_s is not None]
    others = [point for point in projection.points if point not in able]
    kind = "the global batch stays" if projection.scaling == "strong" else "the batch grows with the devices"
    heads = ("Nodes", "devices", "tokens/s", "step", "efficiency", "run", "cost", "limited by")
    cells = [
        (row.nodes, row.devices, row.tokens_per_s, row.step_s, row.efficiency, row.hours, row.usd, row.bottleneck)
        for row in able
    ]
    return [
        *_led(projection.why),
        *([table(heads, cells, words=0)] if able else []),
        *bullets("", [f"{point.nodes} nodes: {point.error or 'does not fit'}" for point in others]),
        f"This is {projection.scaling} scaling: {kind}.",
    ]


def peak(throughput: PeakThroughput) -> list[str]:
    rows = [row for row in throughput.rows if not row.error and row.fits]
    failed = [f"{row.model} on {row.accelerator}: {row.error}" for row in throughput.rows if row.error]
    problems = bullets("", failed[:_MOST_PROBLEMS])
    if not rows:
        return ["**None of these runs.**", *problems]
    best = max(rows, key=lambda row: row.tokens_per_s_per_device or 0.0)
    low, high = best.low_tokens_per_s_per_device, best.high_tokens_per_s_per_device
    head = (
        f"**{best.accelerator} in {best.precision}** reaches the most for {_model(best)}: "
        f"{figures.known(best.tokens_per_s_per_device, figures.rate)} tokens/s per device "
        f"({figures.known(low, figures.rate)} to {figures.known(high, figures.rate)}), "
        f"{figures.known(best.mfu, figures.percent)} MFU."
    )
    heads = ("Model", "on", "precision", "tokens/s per device", "TFLOPS", "MFU", "tokens a day, all", "rating")
    cells = [
        (_model(row), f"{row.devices} x {row.accelerator}", row.precision, row.tokens_per_s_per_device,
         row.model_tflops_per_device, row.mfu, row.tokens_per_day, row.rating or "not measured")
        for row in rows[:_MOST_PEAKS]
    ]  # fmt: skip
    return [head, table(heads, cells), *bullets("Rated against measured runs:", _measured(rows)), *problems]


def _measured(rows: Sequence[PeakRow]) -> Iterable[str]:
    """What the measured runs reach that the ratings compare with, once each."""
    lines: dict[str, str] = {}
    for row in rows:
        if row.rated_against and row.measured_mfu_median is not None:
            lower = figures.known(row.measured_mfu_lower, figures.percent)
            upper = figures.known(row.measured_mfu_upper, figures.percent)
            middle = figures.percent(row.measured_mfu_median)
            lines[row.rated_against] = f"measured MFU is {middle} in the middle, {lower} to {upper} for half of them"
    return [f"{rated_against}: {words}" for rated_against, words in lines.items()]
