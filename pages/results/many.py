"""Pages of several plans side by side: comparisons, sweeps, scaling, strategies, peaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from estimator.plan.schema import Plan
from estimator.units import GIB
from knowledge import figures
from knowledge.figures import NONE, plain, rate
from knowledge.prices.age import price_day
from pages.blocks import Block, Chart, Figures, Headline, Table, capitalised
from pages.results.basis import notes, tail
from pages.results.columns import Column, table, yes
from pages.results.estimate import in_words
from pages.results.fields import field_name
from pages.results.limits import doubt_words, in_doubt, untold
from pages.results.plan import plan_figures
from planner.plots import Plot, Series

if TYPE_CHECKING:  # each has the module of its own tool behind it
    from planner.compare.differences import Setting
    from planner.compare.scaling import ScalingProjection
    from planner.compare.scenarios import Comparison
    from planner.compare.sweep import Sweep
    from planner.layouts.peak import PeakRow, PeakThroughput
    from planner.layouts.strategies import AppliedStrategies, StrategyRow

_LAYOUT: Column = ("layout", "summary")
_OWN = "Each in its own best layout."
# Fields that a layout is told by.
_SPLITS = ("layout.", "workload.micro_batch", "workload.global_batch")
# Prices of these days say nothing of their age.
_OLD: Column = ("price of", lambda row: price_day(row.price_date, row.stale) if row.stale else NONE)
_TRAINED: list[Column] = ["step_s", "tokens_per_s", "mfu", "per_device_bytes", "fits"]
_SERVED: list[Column] = [
    "output_tokens_per_s", "ttft_s", "tpot_s", "per_device_bytes", "fits", "max_concurrency",
    ("limits met", lambda row: yes(row.meets_slo)), "usd_per_million_output_tokens",
    _OLD,
]  # fmt: skip
_OF_A_RUN: list[Column] = [
    "hours", "usd", "tokens_per_s", "step_s", "mfu", "per_device_bytes", "fits", "usd_per_million_tokens",
    _OLD,
]  # fmt: skip


def compare(result: Comparison) -> list[Block]:
    conclusions = list(result.conclusions)
    head = conclusions.pop(0) if conclusions else "No scenario can be estimated."
    more = " ".join(filter(None, (doubt_words(untold(result, "rate")), own_layouts(result))))
    return [
        Headline(head, _able(result), more, beware=_in_doubt(result)),
        *side_by_side(result, f"Against {result.baseline}" if result.baseline else ""),
        *notes("What matters", conclusions),
        *differences(result),
        *charts(result),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def charts(result: Comparison) -> list[Chart]:
    """The plots of a comparison, parts of memory under their names."""
    return [Chart(in_words(plot) if plot.kind == "stacked" else plot) for plot in result.plots]


def _in_doubt(result: Comparison) -> bool:
    return bool(result.warnings) or not all(row.fits for row in result.rows)


def _able(result: Comparison) -> bool | None:
    return None if any(row.fits and not row.falls_behind for row in result.rows) else False


def side_by_side(result: Comparison, title: str = "", asked: str = "") -> list[Block]:
    """A row a scenario; the fastest stands out, or where a figure was `asked` about, whose column is the first of the
    figures then, the one that has the least of it."""
    own = _OF_A_RUN if result.kind == "training" else _SERVED
    first: list[Column] = [*_changing(result.rows), *([asked] if asked else [])]
    columns: list[Column] = [("scenario", "name"), *first, "speedup", *(name for name in own if name != asked),
                             *_same(result.rows), ("why not", "error")]  # fmt: skip
    least = least_of(result, asked)[:1] if asked else []
    leader = least[0].name if least else result.leader
    strong = [place for place, row in enumerate(result.rows) if row.name == leader]
    return table(_that_run(result), columns, title, strong=strong)


# What a run that does not fit never reaches.
_REACHED = ("speedup", "hours", "usd", "tokens_per_s", "step_s", "mfu", "usd_per_million_tokens", "output_tokens_per_s",
            "ttft_s", "tpot_s", "usd_per_million_output_tokens")  # fmt: skip


def _that_run(result: Comparison) -> list[Any]:
    """The rows, without the speed and the cost of what does not fit, and how many times that speed others have."""
    base = next((row for row in result.rows if row.name == result.baseline), None)
    against = () if base is None or base.fits else ("speedup",)
    return [row.model_copy(update=dict.fromkeys(n for n in (against if row.fits else _REACHED) if hasattr(row, n)))
            for row in result.rows]  # fmt: skip


def least_of(result: Comparison, figure: str) -> list[Any]:
    """The rows that fit and have a figure, the least first."""
    rows = [row for row in result.rows if row.fits and getattr(row, figure, None) is not None]
    rows = [row for row in rows if not row.is_part] or rows
    return sorted(rows, key=lambda row: getattr(row, figure))


def differences(result: Comparison) -> list[Block]:
    """A row a setting, a column a scenario."""
    settings: list[Column] = [("setting", lambda row: f"{field_name(row.field)}{' (chosen)' if row.chosen else ''}")]
    names = [row.name for row in result.rows]
    return table(result.differences, [*settings, *map(_setting, names)], "What differs", names=names)


def _setting(scenario: str) -> Column:
    def cell(row: Setting) -> str:
        return plain(row.values[scenario]) if scenario in row.values else NONE

    return scenario, cell


# ------------------------------------------------------------------------------------------------------------ sweeps


def sweep(result: Sweep) -> list[Block]:
    sentence = "No point fits."
    if result.best:
        at = ", ".join(f"{field_name(field)} {plain(result.best.values[field])}" for field in result.fields)
        speed = _speed(result.best)
        sentence = f"Best of {len(result.points)}: {at}" + (f", {rate(speed)} tokens/s." if speed else ".")
    return [
        in_doubt(sentence, bool(result.best), result.warnings, own_layouts_of_points(result)),
        *points(result),
        *map(Chart, sweep_plots(result)),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def points(result: Sweep) -> list[Block]:
    """A row a point; over devices with what is left of the speed of each."""
    axes: list[Column] = [_swept(field) for field in result.fields]
    figures = _SERVED if _serves(result) else [*_TRAINED, "usd_per_million_tokens", _OLD]
    columns = [*_changing(result.points, result.fields), *figures]
    against: list[Column] = ["speedup", *(["scaling_efficiency"] if "cluster.count" in result.fields else [])]
    told = table(result.points, [*axes, *columns, *against, *_same(result.points), ("why not", "why")])
    # What it runs over stays however narrow it is.
    names = [field_name(field) for field in result.fields]
    return [
        replace(block, optional=[name for name in block.optional if name not in names])
        for block in told
        if isinstance(block, Table)
    ]


def _changing(rows: Sequence[Any], fields: Sequence[str] = ()) -> list[Column]:
    """The framework and the layout where they are not the same for all, and not what they are about: figures are not of
    one run then."""
    names = {name for row in rows if (name := getattr(row, "framework", None))}
    about = "workload.framework" in fields or any(
        name in str(getattr(row, "name", "")) for row in rows for name in names
    )
    return [*(["framework"] if len(names) > 1 and not about else []), *([] if _same(rows) else [_LAYOUT])]


def _same(rows: Sequence[Any]) -> list[Column]:
    """The layout where all have one."""
    return [_LAYOUT] if _layouts(rows) < 2 else []


def _layouts(rows: Sequence[Any]) -> int:
    return len({row.summary for row in rows if row.summary})


def own_layouts(result: Comparison) -> str:
    """That the scenarios differ in layouts that were left open."""
    open_ones = (row for row in result.differences if row.chosen and row.field.startswith(_SPLITS))
    return _OWN if result.kind == "training" and any(open_ones) else ""


def own_layouts_of_points(result: Sweep) -> str:
    """That the points differ in layouts that were left open."""
    fixed = _serves(result) or any(path.startswith(_SPLITS) for path in result.fields)
    return _OWN if not fixed and _layouts(result.points) > 1 else ""


def _swept(field: str) -> Column:
    return field_name(field), lambda row: plain(row.values.get(field))


def _serves(result: Sweep) -> bool:
    return any(hasattr(point, "ttft_s") for point in result.points)


def _speed(point: Any) -> float | None:
    return point.output_tokens_per_s if hasattr(point, "output_tokens_per_s") else point.tokens_per_s


def sweep_plots(result: Sweep) -> list[Plot]:
    """Speed, and memory per device, over the first field; a curve for each value of the second."""
    plots = [_over_field(result, "tokens/s", _speed, 1.0)]
    if _serves(result):
        plots.append(_over_field(result, "ms per output token", lambda point: point.tpot_s, 1e-3))
    if deadline_h := Plan.model_validate(result.plan).goal.deadline_h:
        hours = _over_field(result, "hours", lambda point: getattr(point, "hours", None), 1.0)
        plots.append(hours.model_copy(update={"limit": deadline_h, "limit_name": "deadline"}))
    memory = _over_field(result, "GiB per device", lambda point: point.per_device_bytes, GIB)
    capacities: set[float | None] = {getattr(point, "capacity_bytes", None) for point in result.points}
    if (capacity := next(iter(capacities))) is not None and len(capacities) == 1:
        memory = memory.model_copy(update={"limit": capacity / GIB, "limit_name": "usable memory"})
    return [*plots, memory]


def _over_field(result: Sweep, label: str, read: Any, unit: float) -> Plot:
    fields, along = result.fields, field_name(result.fields[0])
    curves: dict[str, list[tuple[Any, float | None]]] = {}
    for point in result.points:
        curve, value = plain(point.values[fields[1]]) if len(fields) > 1 else label, read(point)
        curves.setdefault(curve, []).append((point.values[fields[0]], None if value is None else value / unit))
    xs = [x for pairs in curves.values() for x, _ in pairs]
    numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in xs)
    series = [
        Series(name=curve, x=[x if numeric else plain(x) for x, _ in pairs], y=[y for _, y in pairs])
        for curve, pairs in curves.items()
    ]
    return Plot(
        title=f"{label} over {along}", kind="line" if numeric else "bar", x_label=along,
        y_label=label, series=series, x_log=numeric and min(xs) > 0 and max(xs) / min(xs) >= 8,
    )  # fmt: skip


# --------------------------------------------------------------------------------------- scaling, strategies, peaks


def scaling(result: ScalingProjection) -> list[Block]:
    why = list(result.why)
    return [
        in_doubt(why.pop(0) if why else f"{result.scaling} scaling", None, result.warnings),
        *plan_figures(result.plan),
        *notes("Why", why),
        *sizes(result),
        *map(Chart, result.plots),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def sizes(result: ScalingProjection) -> list[Block]:
    columns: list[Column] = [
        "nodes", "devices", "efficiency", *_OF_A_RUN, "communication_share", ("waits for", "bottleneck"), _LAYOUT,
        ("why not", "error"),
    ]  # fmt: skip
    return table(result.points, columns, f"{result.scaling.capitalize()} scaling")


def strategies(result: AppliedStrategies) -> list[Block]:
    return [
        in_doubt(f"{fastest(result)} {_fitting(result)}".strip(), _fits_at_all(result), result.warnings),
        *by_strategy(result.rows),
        meanings(result.strategies),
        *map(Chart, result.plots),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def _fits_at_all(result: AppliedStrategies) -> bool:
    return any(row.fits for row in result.rows)


def _fitting(result: AppliedStrategies) -> str:
    fits, tried = sum(row.fits for row in result.rows), len(result.rows)
    return "" if fits in (0, tried) else f"{fits} of {tried} layouts fit."


def fastest(result: AppliedStrategies) -> str:
    """Which strategy on which platform does most per device."""
    able = [row for row in result.rows if row.fits]
    if not able:
        return "No strategy fits."
    best = max(able, key=lambda row: row.tokens_per_s_per_device or 0.0)
    speed = figures.shown("tokens_per_s_per_device", best.tokens_per_s_per_device)
    leads = " is the fastest per device" if len(result.rows) > 1 else ""
    return (
        f"{capitalised(strategy_words(best.strategy))} on {best.accelerator}{leads}: {best.summary}, {speed} "
        f"tokens/s per device at {figures.shown('mfu', best.mfu)} MFU."
    )


def strategy_words(name: str) -> str:
    """A strategy's name as words; some are also names of figures."""
    return name.replace("_", " ")


def meanings(strategies: Mapping[str, str]) -> Figures:
    """What each strategy makes small, by the name that it has in tables."""
    return Figures([(strategy_words(name), text) for name, text in strategies.items()], "Strategies")


def by_strategy(rows: Sequence[StrategyRow]) -> list[Block]:
    columns: list[Column] = [
        "model", ("device", "accelerator"), ("strategy", lambda row: strategy_words(row.strategy)), "relative_speed",
        *_OF_A_RUN, _LAYOUT, ("why not", "why"),
    ]  # fmt: skip
    return table(rows, columns)


def peak(result: PeakThroughput) -> list[Block]:
    able = [row for row in result.rows if row.tokens_per_s_per_device is not None]
    firsts = {row.model: row for row in reversed(able)}
    top = max(firsts.values(), key=lambda row: row.tokens_per_s_per_device or 0.0, default=None)
    sentence = "None can be estimated."
    if top:
        speed = figures.shown("tokens_per_s_per_device", top.tokens_per_s_per_device)
        sentence = f"Fastest per device: {top.model} on {top.accelerator} in {top.precision}, {speed} tokens/s."
    return [
        in_doubt(sentence, bool(top), result.warnings),
        *peaks(result.rows),
        *map(Chart, result.plots),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def peaks(rows: Sequence[PeakRow]) -> list[Block]:
    several = len({row.model for row in rows}) > 1
    columns: list[Column] = [
        *(["model"] if several else []), ("device", "accelerator"), "precision",
        (figures.label("tokens_per_s_per_device"), lambda row: figures.held(row, "tokens_per_s_per_device")),
        "mfu", "devices", "tokens_per_day", ("rated", "rating"), ("against", "rated_against"), _LAYOUT,
        ("why not", "error"),
    ]  # fmt: skip
    return table(rows, columns)
