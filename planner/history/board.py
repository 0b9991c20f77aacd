"""The history as pictures: what runs reached beside what is estimated of them, their steps, and how they scale."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from estimator.units import GIB
from measure.history.run import MeasuredRun
from planner.history.results import HistoryRow
from planner.plots import Plot, Series

# So many of a picture's bars and curves are told apart, the latest of them.
_MOST_BARS, _MOST_CURVES, _POINTS = 24, 8, 200
_PERCENT = 100.0
_CURVES = (
    ("step_s", "Step time", "s", 1.0),
    ("loss", "Loss", "loss", 1.0),
    ("learning_rate", "Learning rate", "learning rate", 1.0),
    ("memory_bytes", "Memory per device", "GiB", GIB),
)


def board(runs: Sequence[MeasuredRun], rows: Sequence[HistoryRow]) -> list[Plot]:
    """Up to nine pictures and that of the estimates' error, of the runs that come last; of what no run says there is
    none."""
    shown = list(zip(runs, rows, strict=True))[-_MOST_BARS:]
    return [
        *_bars(shown, "Tokens per second and device", "tokens/s", {
            "measured": lambda run, row: row.tokens_per_s_per_device,
            "estimated": lambda run, row: row.expected_tokens_per_s_per_device,
        }),
        *_bars(shown, "TFLOP/s per device, as printed", "TFLOP/s", {
            "measured": lambda run, row: run.figure("tflops_per_device"),
        }),
        *_bars(shown, "Utilisation", "% of the peak", {"MFU": lambda run, row: _percent(row.mfu)}),
        *_bars(shown, "Peak memory per device", "GiB", {
            "measured": lambda run, row: None if row.peak_bytes is None else row.peak_bytes / GIB,
        }),
        *(plot for curve in _CURVES for plot in _curves(shown, *curve)),
        *_scaling(shown),
        *_errors(shown),
    ]  # fmt: skip


_Shown = Sequence[tuple[MeasuredRun, HistoryRow]]
_Value = Callable[[MeasuredRun, HistoryRow], float | None]


def _percent(share: float | None) -> float | None:
    return None if share is None else _PERCENT * share


def _bars(shown: _Shown, title: str, unit: str, groups: dict[str, _Value]) -> list[Plot]:
    """A bar of each group for every run that has one; none where a single run has."""
    values = {name: [value(run, row) for run, row in shown] for name, value in groups.items()}
    kept = [place for place in range(len(shown)) if any(column[place] is not None for column in values.values())]
    if len(kept) < 2:
        return []
    names: list[float | str] = [_name(shown[place][1]) for place in kept]
    series = [
        Series(name=name, x=names, y=[column[place] for place in kept])
        for name, column in values.items()
        if any(value is not None for value in column)
    ]
    return [Plot(title=title, kind="bar", x_label="run", y_label=unit, series=series)]


def _name(row: HistoryRow) -> str:
    return row.name or row.id


def _curves(shown: _Shown, column: str, title: str, label: str, unit: float) -> list[Plot]:
    """A quantity over the steps of the latest runs."""
    series: list[Series] = []
    for run, row in reversed(shown):
        steps = run.series.thinned(_POINTS)
        values = steps.column(column)
        if len(series) < _MOST_CURVES and len(steps.step) > 1 and any(value is not None for value in values):
            y = [None if value is None else value / unit for value in values]
            series.insert(0, Series(name=_name(row), x=[float(step) for step in steps.step], y=y))
    if not series:
        return []
    return [Plot(title=title, kind="line", x_label="step", y_label=label, series=series)]


def _scaling(shown: _Shown) -> list[Plot]:
    """All devices' tokens over how many there are, for a model on one kind of device, that learns or is served."""
    groups: dict[str, dict[int, float]] = defaultdict(dict)
    for run, row in shown:
        if run.devices and row.tokens_per_s_per_device and row.model:
            served = ", served" if run.kind == "serving" else ""
            group = f"{row.model} on {run.planned('cluster.accelerator')}{served}"
            total = row.tokens_per_s_per_device * run.devices
            groups[group][run.devices] = max(total, groups[group].get(run.devices, 0.0))
    series = [
        Series(name=name, x=[float(count) for count in sorted(counts)], y=[counts[count] for count in sorted(counts)])
        for name, counts in groups.items()
        if len(counts) > 1
    ]
    if not series:
        return []
    return [
        Plot(title="Scaling", kind="line", x_label="devices", y_label="tokens/s", series=series, x_log=True, y_log=True)
    ]


def _errors(shown: _Shown) -> list[Plot]:
    rows = sorted((row for _, row in shown if row.error is not None and row.date), key=lambda row: row.date or "")
    if len(rows) < 2:
        return []
    days: list[float | str] = [row.date or "" for row in rows]
    errors = [_percent(row.error) for row in rows]
    return [
        Plot(title="Error of estimates", kind="scatter", x_label="day", y_label="%",
             series=[Series(name="error", x=days, y=errors)])
    ]  # fmt: skip
