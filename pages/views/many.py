"""Pages of several plans side by side: comparisons, sweeps, scaling, strategies, peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pages import units
from pages.blocks import Block, Facts, Picture, Verdict
from pages.views import shared
from pages.views.shared import Column, Data

_TRAINED: list[Column] = [
    ("STEP", shared.number("step_s", units.duration)),
    ("TOKENS/S", shared.number("tokens_per_s", units.count)),
    ("MFU", shared.number("mfu", units.percent)),
    ("PER DEVICE", shared.number("per_device_bytes", units.memory)),
    ("FITS", shared.yes("fits")),
    ("RUN", shared.number("hours", shared.hours)),
    ("USD", shared.number("usd", units.usd)),
    ("$/1M TOK", shared.number("usd_per_million_tokens", shared.cents)),
]
_SERVED: list[Column] = [
    ("OUT TOK/S", shared.number("output_tokens_per_s", units.count)),
    ("TTFT", shared.number("ttft_s", units.short_duration)),
    ("TPOT", shared.number("tpot_s", units.short_duration)),
    ("PER DEVICE", shared.number("per_device_bytes", units.memory)),
    ("FITS", shared.yes("fits")),
    ("USERS", shared.number("max_concurrency", units.count)),
    ("LIMITS", shared.yes("meets_slo")),
    ("$/1M OUT", shared.number("usd_per_million_output_tokens", shared.cents)),
]
_END: list[Column] = [("LAYOUT", shared.text("summary")), ("WHY NOT", lambda row: _why_not(row))]
_NUMBERS = (
    "STEP", "TOKENS/S", "MFU", "PER DEVICE", "RUN", "USD", "$/1M TOK", "OUT TOK/S", "TTFT", "TPOT", "USERS", "$/1M OUT",
    "SPEED", "RELATIVE", "DEVICES", "NODES", "EFFICIENCY", "COMM", "TOKENS/DAY",
)  # fmt: skip


def _why_not(row: Data) -> str:
    return str(row.get("error") or row.get("why") or shared.NONE)


def _figures(rows: Sequence[Data]) -> list[Column]:
    return _SERVED if any("ttft_s" in row for row in rows) else _TRAINED


def compare(result: Data) -> list[Block]:
    """Of compare."""
    rows, said = result["rows"], list(result.get("conclusions") or ())
    head = said.pop(0) if said else "No scenario can be estimated."
    settings: list[Column] = [("SETTING", lambda row: f"{row['field']}{' (chosen)' if row.get('chosen') else ''}")]
    settings += [(str(row["name"]), _setting(row["name"])) for row in rows]
    columns = [
        ("SCENARIO", shared.text("name")),
        ("SPEED", shared.number("speedup", lambda factor: f"{factor:.2f}x")),
        *_figures(rows),
        *_END,
    ]
    return [
        Verdict(head),
        *shared.grid(rows, columns, _NUMBERS, f"Against {result['baseline']}" if result.get("baseline") else ""),
        *shared.notes("What matters", said),
        *shared.grid(result.get("differences") or (), settings, (), "What differs"),
        *shared.pictures(result),
        *shared.tail(result),
    ]


def _setting(name: Any) -> Any:
    return lambda row: shared.value(row["values"].get(name)) if name in row["values"] else shared.NONE


def sweep(result: Data) -> list[Block]:
    """Of sweep."""
    fields, points = result["fields"], result["points"]
    axes: list[Column] = [(field.rpartition(".")[2].upper(), _swept(field)) for field in fields]
    best = result.get("best")
    said = "No point fits."
    if best:
        at = ", ".join(f"{field.rpartition('.')[2]} {shared.value(best['values'][field])}" for field in fields)
        speed = best.get("tokens_per_s") if best.get("ttft_s") is None else best.get("output_tokens_per_s")
        said = f"Best of {len(points)}: {at}" + (f", {units.count(speed)} tokens/s." if speed else ".")
    extra: list[Column] = [("SPEED", shared.number("speedup", lambda factor: f"{factor:.2f}x"))]
    return [
        Verdict(said, bool(best)),
        *shared.grid(points, [*axes, *_figures(points), *extra, *_END], (*_NUMBERS, *(name for name, _ in axes))),
        *[Picture(plot) for plot in sweep_plots(result)],
        *shared.tail(result),
    ]


def _swept(field: str) -> Any:
    return lambda row: shared.value(row["values"].get(field))


def sweep_plots(result: Data) -> list[Data]:
    """Speed, and memory per device, over the first field; a curve for each value of the second."""
    points, fields = result["points"], result["fields"]
    served = any("ttft_s" in point for point in points)
    shown = [("output_tokens_per_s" if served else "tokens_per_s", "tokens/s", 1.0)]
    shown += [("tpot_s", "ms per output token", 1e-3)] if served else []
    shown += [("per_device_bytes", "GiB per device", 2.0**30)]
    plots: list[Data] = []
    for name, label, unit in shown:
        curves: dict[str, list[tuple[Any, float | None]]] = {}
        for point in points:
            curve = shared.value(point["values"][fields[1]]) if len(fields) > 1 else label
            value = point.get(name)
            curves.setdefault(curve, []).append((point["values"][fields[0]], None if value is None else value / unit))
        xs = [x for pairs in curves.values() for x, _ in pairs]
        number = all(isinstance(x, int | float) and not isinstance(x, bool) for x in xs)
        series = [
            {"name": curve, "x": [x if number else shared.value(x) for x, _ in pairs], "y": [y for _, y in pairs]}
            for curve, pairs in curves.items()
        ]
        wide = number and min(xs) > 0 and max(xs) / min(xs) >= 8
        plots.append(
            {"title": f"{label} over {fields[0].rpartition('.')[2]}", "kind": "line" if number else "bar",
             "x_label": fields[0].rpartition(".")[2], "y_label": label, "series": series, "x_log": wide}
        )  # fmt: skip
    return plots


def scaling(result: Data) -> list[Block]:
    """Of project_scaling."""
    why = list(result.get("why") or ())
    columns: list[Column] = [
        ("NODES", shared.number("nodes", units.count)),
        ("DEVICES", shared.number("devices", units.count)),
        ("EFFICIENCY", shared.number("efficiency", units.percent)),
        *_TRAINED,
        ("COMM", shared.number("communication_share", units.percent)),
        ("WAITS FOR", shared.text("bottleneck")),
        *_END,
    ]
    return [
        Verdict(why.pop(0) if why else f"{result['scaling']} scaling"),
        *shared.plan_facts(result),
        *shared.notes("Why", why),
        *shared.grid(result["points"], columns, _NUMBERS, f"{str(result['scaling']).capitalize()} scaling"),
        *shared.pictures(result),
        *shared.tail(result),
    ]


def strategies(result: Data) -> list[Block]:
    """Of apply_strategies."""
    rows = result["rows"]
    columns: list[Column] = [
        ("MODEL", shared.text("model")),
        ("DEVICE", shared.text("accelerator")),
        ("STRATEGY", lambda row: str(row["strategy"]).replace("_", " ")),
        ("RELATIVE", shared.number("relative_speed", lambda factor: f"{factor:.2f}x")),
        *_TRAINED,
        *_END,
    ]
    able = sum(1 for row in rows if row.get("fits"))
    return [
        Verdict(f"{able} of {len(rows)} layouts fit."),
        *shared.grid(rows, columns, _NUMBERS),
        Facts([(name, what) for name, what in (result.get("strategies") or {}).items()], "Strategies"),
        *shared.pictures(result),
        *shared.tail(result),
    ]


def peak(result: Data) -> list[Block]:
    """Of peak_throughput."""
    rows = result["rows"]
    span = shared.ranged(
        "tokens_per_s_per_device", "low_tokens_per_s_per_device", "high_tokens_per_s_per_device", units.count
    )
    columns: list[Column] = [
        ("MODEL", shared.text("model")),
        ("DEVICE", shared.text("accelerator")),
        ("DEVICES", shared.number("devices", units.count)),
        ("PRECISION", shared.text("precision")),
        ("TOKENS/S PER DEVICE", span),
        ("TOKENS/DAY", shared.number("tokens_per_day", units.count)),
        ("MFU", shared.number("mfu", units.percent)),
        ("RATED", shared.text("rating")),
        ("AGAINST", shared.text("rated_against")),
        ("LAYOUT", shared.text("summary")),
        ("WHY NOT", shared.text("error")),
    ]
    able = [row for row in rows if row.get("tokens_per_s_per_device") is not None]
    top = max(able, key=lambda row: row["tokens_per_s_per_device"], default=None)
    said = "None can be estimated."
    if top:
        where = f"{top['model']} on {top['accelerator']} in {top['precision']}"
        said = f"Fastest per device: {where}, {units.count(top['tokens_per_s_per_device'])} tokens/s."
    return [
        Verdict(said, bool(top)),
        *shared.grid(rows, columns, ("TOKENS/S PER DEVICE", *_NUMBERS)),
        *shared.pictures(result),
        *shared.tail(result),
    ]
