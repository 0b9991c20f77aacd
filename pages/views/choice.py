"""Pages of searches: the best layout or deployment, limits, the size of a serving cluster, MLPerf."""

from __future__ import annotations

from pages import units
from pages.blocks import Block, Verdict
from pages.views import shared
from pages.views.estimate import memory
from pages.views.shared import Column, Data

_LAYOUTS: list[Column] = [
    ("LAYOUT", shared.text("summary")),
    ("FRAMEWORK", shared.text("framework")),
    ("STEP", shared.number("step_s", units.duration)),
    ("TOKENS/S", shared.number("tokens_per_s", units.count)),
    ("MFU", shared.number("mfu", units.percent)),
    ("PER DEVICE", shared.number("per_device_bytes", units.memory)),
    ("FREE", shared.number("headroom_bytes", units.memory)),
]
_DEPLOYMENTS: list[Column] = [
    ("DEPLOYMENT", shared.text("summary")),
    ("ACCELERATOR", shared.text("accelerator")),
    ("DEVICES", shared.number("devices", units.count)),
    ("OUT TOK/S", shared.number("output_tokens_per_s", units.count)),
    ("TTFT", shared.number("ttft_s", units.short_duration)),
    ("TPOT", shared.number("tpot_s", units.short_duration)),
    ("$/H", shared.number("usd_per_hour", units.usd)),
    ("$/1M OUT", shared.number("usd_per_million_output_tokens", shared.cents)),
    ("LIMITS", shared.yes("meets_slo")),
]
_NUMBERS = ("STEP", "TOKENS/S", "MFU", "PER DEVICE", "FREE", "DEVICES", "OUT TOK/S", "TTFT", "TPOT", "$/H", "$/1M OUT")

# Rows of a table that may be long; --json has them all.
_MOST = 8


def best(result: Data) -> list[Block]:
    """Of best_parallelism and best_serving."""
    found = result.get("best")
    columns = _DEPLOYMENTS if "goal" in result else _LAYOUTS
    rows = [row for row in [found, *(result.get("alternatives") or ())] if row]
    rejected = [
        {"summary": row.get("summary") or (row.get("choice") or {}).get("summary"), "rule": row.get("rule")}
        for row in result.get("rejected") or ()
    ]
    return [
        _best_verdict(result),
        *shared.plan_facts(result),
        *shared.notes("Why", result.get("why")),
        *shared.grid(rows, columns, _NUMBERS, "Best first"),
        *shared.grid(
            (result.get("pareto") or ())[:_MOST], columns, _NUMBERS, "Nothing is better in every way (Pareto)"
        ),
        *shared.grid(
            rejected[:_MOST],
            [("NEIGHBOUR", shared.text("summary")), ("WHY NOT", shared.text("rule"))],
            (),
            "Neighbours",
        ),
        *shared.notes("Left out", [shared.value(row) for row in result.get("skipped") or ()]),
        *shared.tail(result),
    ]


def _best_verdict(result: Data) -> Verdict:
    found = result.get("best")
    if not found:
        return Verdict("Nothing fits.", False)
    if "step_s" in found:
        speed = f"{units.count(found['tokens_per_s'])} tokens/s, MFU {units.percent(found['mfu'])}"
        return Verdict(f"{found['summary']} with {found['framework']}: {speed}.", True)
    speed = f"{units.count(found['output_tokens_per_s'])} output tokens/s"
    misses = "" if result.get("meets_slo") is not False else "; no deployment keeps the limits of latency"
    return Verdict(f"{found['summary']}: {speed}{misses}.", result.get("meets_slo") is not False)


def limit(result: Data) -> list[Block]:
    """Of find_limit."""
    value, goal = result.get("value"), str(result["goal"]).replace("_", " ")
    shown = f"{value:,}" if isinstance(value, int) else shared.value(value)
    chosen = [result["chosen"]] if result.get("chosen") else []
    probes = [
        ("VALUE", lambda row: f"{row['value']:,}" if isinstance(row["value"], int) else shared.value(row["value"])),
        ("FITS", shared.yes("fits")),
        ("PER DEVICE", shared.number("per_device_bytes", units.memory)),
        ("WHY NOT", shared.text("why")),
    ]
    columns = _LAYOUTS if chosen and "step_s" in chosen[0] else _DEPLOYMENTS
    return [
        Verdict(f"Largest {goal}: {shown}." if value is not None else f"No {goal} fits.", value is not None),
        *shared.plan_facts(result),
        *shared.notes("Why not more", [result["why"]] if result.get("why") else []),
        *shared.grid(chosen, columns, _NUMBERS, "With"),
        *memory(result),
        *shared.grid(result.get("probes") or (), probes, ("VALUE", "PER DEVICE"), "Tried"),
        *shared.tail(result),
    ]


def size(result: Data) -> list[Block]:
    """Of size_serving."""
    found = result.get("best")
    said = "Nothing serves this load within the limits."
    if found:
        price = f", {units.usd(found['usd_per_hour'])} per hour" if found.get("usd_per_hour") is not None else ""
        devices = f"{found['devices']} x {found['accelerator']}"
        replicas = f"{found['replicas']} replica{'s' if found['replicas'] != 1 else ''}"
        said = f"{devices} in {replicas}{price}: {found['summary']}."
    columns: list[Column] = [
        *_DEPLOYMENTS[:3],
        ("REPLICAS", shared.number("replicas", units.count)),
        ("REPLICA TAKES", shared.number("replica_limit", units.count)),
        ("USED", shared.number("utilisation", lambda share: f"{share:.0%}")),
        ("LIMITED BY", shared.text("limited_by")),
        *_DEPLOYMENTS[4:8],
    ]
    numbers = (*_NUMBERS, "REPLICAS", "REPLICA TAKES", "USED")
    offers: list[Column] = [
        ("PROVIDER", shared.text("provider")),
        ("INSTANCE", shared.text("instance")),
        ("$/H", shared.number("usd_per_hour", units.usd)),
        ("PRICE OF", shared.text("price_date")),
    ]
    return [
        Verdict(said, bool(found)),
        *shared.plan_facts(result),
        *shared.notes("Why", result.get("why")),
        *shared.grid(result.get("sizes") or (), columns, numbers, "Cheapest first"),
        *shared.grid((result.get("offers") or ())[:_MOST], offers, ("$/H",), "Where to rent"),
        *shared.tail(result),
    ]


def mlperf(result: Data) -> list[Block]:
    """Of project_mlperf."""
    span = shared.ranged("samples_per_s", "samples_low_per_s", "samples_high_per_s", units.count)(result)
    rows = [
        ("samples/s", span),
        ("tokens/s", shared.number("tokens_per_s", units.count)(result)),
        ("per device", shared.number("tokens_per_s_per_device", units.count)(result)),
        ("data set", shared.number("dataset_s", units.duration)(result)),
        ("whole run", shared.number("run_s", units.duration)(result)),
        ("p99 TTFT", shared.number("ttft_p99_s", units.short_duration)(result)),
        ("p99 TPOT", shared.number("tpot_p99_s", units.short_duration)(result)),
        ("limited by", shared.text("limited_by")(result)),
    ]
    columns: list[Column] = [
        ("NODES", shared.number("nodes", units.count)),
        ("DEVICES", shared.number("devices", units.count)),
        ("SAMPLES/S", shared.number("samples_per_s", units.count)),
        ("TOKENS/S", shared.number("tokens_per_s", units.count)),
        ("EFFICIENCY", shared.number("scaling_efficiency", units.percent)),
    ]
    # Offline all samples wait from the start: how long the last one does says nothing of latency.
    deployments = [column for column in _DEPLOYMENTS if result["scenario"] != "offline" or column[0] != "TTFT"]
    where = f"{result['devices']} x {result['accelerator']}"
    return [
        Verdict(f"{result['benchmark']}, {result['scenario']}, on {where}: {span} samples/s."),
        shared.known(rows, "Figures (80 % interval)"),
        *shared.grid([result["choice"]] if result.get("choice") else [], deployments, _NUMBERS, "With"),
        *shared.grid(result.get("by_nodes") or (), columns, [name for name, _ in columns], "By nodes"),
        *shared.notes("Why", result.get("why")),
        *shared.tail(result),
    ]
