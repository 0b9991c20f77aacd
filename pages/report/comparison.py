"""The sections of a report on a comparison, from what `compare` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages import figures
from pages.report.page import Card, Section, Table
from pages.report.shared import Told, assumed, evidence, plan_code, result_of
from planner.compare.scenarios import CompareRequest, compare
from planner.plots import Plot

# Figure -> (its name in the table, how it is written), as far as a row has it.
_TRAINING = {
    "per_device_bytes": ("Memory per device", figures.gib),
    "step_s": ("Step", figures.seconds),
    "tokens_per_s": ("Tokens/s", figures.rate),
    "mfu": ("MFU", figures.percent),
    "hours": ("Run", figures.hours),
    "usd": ("Cost", figures.usd),
    "usd_per_million_tokens": ("Per million tokens", figures.usd),
    "kwh": ("kWh", figures.rate),
}
_SERVING = {
    "per_device_bytes": ("Memory per device", figures.gib),
    "ttft_s": ("First token", figures.seconds),
    "tpot_s": ("Per token", figures.seconds),
    "output_tokens_per_s": ("Output tokens/s", figures.rate),
    "requests_per_s": ("Requests/s", figures.rate),
    "max_concurrency": ("Requests at once", figures.whole),
    "usd_per_million_output_tokens": ("Per million output tokens", figures.usd),
}


def comparison(arguments: Mapping[str, Any]) -> Told:
    """What `compare` says of the scenarios in `arguments`, as a report's parts. Raises PlanError as it does."""
    found = result_of(compare, CompareRequest, arguments)
    rows = found["rows"]
    fit = sum(bool(row["fits"]) for row in rows)
    best = {goal: name for goal, name in found["best"].items() if name}
    verdict = f"{fit} of {len(rows)} fit"
    if best:
        verdict += "; best by " + ", by ".join(f"{goal}: {name}" for goal, name in best.items())
    return Told(
        subject=f"Comparison of {', '.join(row['name'] for row in rows[:4])}{' …' if len(rows) > 4 else ''}",
        verdict=f"{verdict}.",
        good=fit > 0,
        cards=[Card(f"Best by {goal}", name) for goal, name in best.items()],
        warnings=found["warnings"],
        sections=[
            Section("Side by side", found["conclusions"], [Plot.model_validate(plot) for plot in found["plots"]], [
                _table(found)
            ]),
            *_differences(found),
            assumed(found["assumptions"]),
            evidence(found["evidence"]),
            *([plan_code(arguments, found["plan"])] if found["plan"] else []),
        ],
    )  # fmt: skip


def _table(found: Mapping[str, Any]) -> Table:
    columns = _TRAINING if found["kind"] == "training" else _SERVING
    rows = found["rows"]
    told = {name: how for name, how in columns.items() if any(row.get(name) is not None for row in rows)}
    body = []
    for row in rows:
        if row["error"]:
            body.append([row["name"], row["error"], *[""] * (len(told) + 1)])
            continue
        written = [how(row[name]) if row[name] is not None else "" for name, (_, how) in told.items()]
        speedup = "" if row["speedup"] is None else f"{row['speedup']:.2f} x"
        body.append([row["name"], "yes" if row["fits"] else "no", *written, speedup])
    head = ["Scenario", "Fits", *[name for name, _ in told.values()], "Speed"]
    strong = [number for number, row in enumerate(rows) if row["name"] == found["baseline"]]
    return Table(head, body, numbers=range(2, len(head)), strong=strong)


def _differences(found: Mapping[str, Any]) -> list[Section]:
    names = [row["name"] for row in found["rows"]]
    if not found["differences"]:
        return []
    rows = [
        [setting["field"], *[_plain(setting["values"].get(name)) for name in names]] for setting in found["differences"]
    ]
    return [Section("Settings that differ", (), (), [Table(["Field", *names], rows)])]


def _plain(value: Any) -> str:
    return "" if value is None else figures.plain(value)
