"""Pages of decisions about money and machines: cost, clusters, a whole configuration."""

from __future__ import annotations

from pages import units
from pages.blocks import Block, Grid, Verdict
from pages.views import shared
from pages.views.shared import Column, Data


def cost(result: Data) -> list[Block]:
    """Of estimate_cost."""
    rows = [
        ("run", shared.ranged("hours", "low_hours", "high_hours", shared.hours)(result)),
        ("device-hours", shared.number("device_hours", lambda value: f"{value:,.1f}")(result)),
        ("price", _price(result)),
        ("per hour", shared.number("usd_per_hour", units.usd)(result)),
        ("per month", shared.number("usd_per_month", units.usd)(result)),
        ("per device-hour", shared.number("usd_per_device_hour", shared.cents)(result)),
        ("per step", shared.number("usd_per_step", shared.cents)(result)),
        ("per epoch", shared.number("usd_per_epoch", units.usd)(result)),
        ("per 1M tokens", shared.number("usd_per_million_tokens", shared.cents)(result)),
        ("per 1M output tokens", shared.number("usd_per_million_output_tokens", shared.cents)(result)),
        ("per 1M requests", shared.number("usd_per_million_requests", units.usd)(result)),
        ("energy", shared.number("kwh", lambda value: f"{value:,.1f} kWh")(result)),
        ("CO2", shared.number("co2_kg", lambda value: f"{value:,.1f} kg")(result)),
    ]
    parts: list[Column] = [
        ("PART", shared.text("part")),
        ("USD", shared.number("usd", units.usd)),
        ("WHAT", shared.text("what")),
    ]
    providers: list[Column] = [
        ("FROM", shared.text("provider")),
        ("MACHINES", lambda row: f"{row['instances']} x {row['instance']}"),
        ("$/H", shared.number("usd_per_hour", units.usd)),
        ("RUN", shared.number("usd", units.usd)),
        ("SPOT", shared.number("spot_usd_with_interruptions", units.usd)),
        ("RESERVED", shared.number("reserved_usd", units.usd)),
        ("PRICE OF", lambda row: f"{row['price_date'] or 'no date'}{' (old)' if row.get('stale') else ''}"),
    ]
    return [
        _cost_verdict(result),
        *shared.plan_facts(result),
        shared.known(rows, "Figures (80 % interval)"),
        *shared.grid(result.get("parts") or (), parts, ("USD",), "Made of"),
        *shared.grid(result.get("by_provider") or (), providers, ("$/H", "RUN", "SPOT", "RESERVED"), "By provider"),
        *_owned(result.get("owned")),
        *shared.notes("Not included", result.get("not_included")),
        *shared.tail(result),
    ]


def _price(result: Data) -> str:
    where = " ".join(str(result[name]) for name in ("provider", "instance") if result.get(name))
    return f"{str(result.get('price') or shared.NONE).replace('_', ' ')}{f', {where}' if where else ''}"


def _cost_verdict(result: Data) -> Verdict:
    broken = [
        what
        for name, what in (("within_budget", "over the budget"), ("within_deadline", "too late for the deadline"))
        if result.get(name) is False
    ]
    good = False if broken else True if result.get("within_budget") or result.get("within_deadline") else None
    tail = f", {' and '.join(broken)}" if broken else ""
    if result.get("usd") is not None and result.get("hours") is not None:
        span = shared.ranged("usd", "low_usd", "high_usd", units.usd)(result)
        return Verdict(f"{span} in {shared.hours(result['hours'])}{tail}.", good)
    if result.get("usd_per_hour") is not None:
        million = result.get("usd_per_million_output_tokens")
        each = f", {shared.cents(million)} per million output tokens" if million is not None else ""
        return Verdict(f"{units.usd(result['usd_per_hour'])} per hour{each}{tail}.", good)
    return Verdict(f"No price is known{tail}.", False)


def _owned(owned: Data | None) -> list[Block]:
    if not owned:
        return []
    rows = [
        ("hardware", f"{units.usd(owned['capex_usd'])} over {owned['years']:g} years, {owned['utilisation']:.0%} used"),
        ("per device-hour", shared.cents(owned["usd_per_device_hour"])),
        ("run", shared.ranged("usd", "low_usd", "high_usd", units.usd)(owned)),
        ("per year", shared.number("usd_per_year", units.usd)(owned)),
        ("parts", ", ".join(f"{name} {units.usd(usd)}" for name, usd in owned["parts"].items())),
    ]
    return [shared.known(rows, f"Owned: {owned['machine']}")]


_OPTIONS: list[Column] = [
    ("CLUSTER", lambda row: f"{row['count']} x {row['accelerator']}"),
    ("PROVIDER", shared.text("provider")),
    ("INSTANCE", shared.text("instance")),
    ("HOURS", lambda row: shared.NONE if row.get("step_s") is None else shared.hours(row["hours"])),
    ("USD", lambda row: shared.NONE if row.get("step_s") is None else shared.number("usd", units.usd)(row)),
    ("$/H", shared.number("usd_per_hour", units.usd)),
    ("TOKENS/S", lambda row: shared.number("tokens_per_s" if row.get("step_s") else "output_tokens_per_s",
                                           units.count)(row)),
    ("TTFT", shared.number("ttft_s", units.short_duration)),
    ("TPOT", shared.number("tpot_s", units.short_duration)),
    ("LAYOUT", shared.text("summary")),
    ("PARETO", lambda row: "*" if row.get("pareto") else ""),
]  # fmt: skip
_NUMBERS = ("HOURS", "USD", "$/H", "TOKENS/S", "TTFT", "TPOT")


def clusters(result: Data) -> list[Block]:
    """Of recommend_cluster."""
    options, why = result.get("options") or [], list(result.get("why") or ())
    rejected: list[Column] = [
        ("ACCELERATORS", shared.text("accelerators")),
        ("WHY", shared.text("why")),
    ]
    head = why.pop(0) if why else "No cluster does."
    return [
        Verdict(head, bool(options) and result.get("satisfied") is not False),
        *shared.notes("Why", why),
        *shared.grid(options, _OPTIONS, _NUMBERS, f"By {result.get('sort')}, best first (* nothing beats it in both)"),
        *shared.grid(result.get("rejected") or (), rejected, (), "Not among them"),
        *shared.tail(result),
    ]


def auto(result: Data) -> list[Block]:
    """Of auto_configure."""
    option = result.get("option")
    said = "Nothing meets the goal"
    if option:
        price = f", {units.usd(option['usd_per_hour'])} per hour" if option.get("usd_per_hour") is not None else ""
        said = f"{option['count']} x {option['accelerator']}{price}: {option['summary']}"
    span = shared.ranged("hours", "low_hours", "high_hours", shared.hours)(result)
    rows = [
        ("run", span if (result.get("plan") or {}).get("workload", {}).get("kind") != "inference" else shared.NONE),
        ("cost", shared.number("usd", units.usd)(result)),
        ("per hour", shared.number("usd_per_hour", units.usd)(result)),
        ("tokens/s", shared.number("tokens_per_s", units.count)(result)),
        ("per device", shared.number("per_device_bytes", units.memory)(result)),
        ("launch files", shared.value(result.get("launch_targets") or []) or shared.NONE),
    ]
    considered: list[Column] = [
        ("ALSO", shared.text("choice")),
        ("FITS", shared.yes("fits")),
        ("USD", shared.number("usd", units.usd)),
        ("HOURS", shared.number("hours", shared.hours)),
        ("WHY NOT", shared.text("why")),
    ]
    reasons = [[row["field"], shared.value(row["value"]), row["why"]] for row in result.get("reasons") or ()]
    return [
        Verdict(f"{said}.", bool(option) and result.get("satisfied") is not False),
        *shared.plan_facts(result),
        shared.known(rows, "Figures (80 % interval)"),
        *([Grid(("FIELD", "VALUE", "WHY"), reasons, (), "Decisions")] if reasons else []),
        *shared.grid(result.get("considered") or (), considered, ("USD", "HOURS"), "Considered"),
        *shared.notes("To meet the goal", [shared.value(row) for row in result.get("relax") or ()]),
        *shared.tail(result),
    ]
