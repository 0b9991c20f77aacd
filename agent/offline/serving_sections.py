"""The parts of an answer about one deployment, each a list of Markdown blocks from one tool result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages import figures

Result = Mapping[str, Any]
_COMPONENTS = {"kv_cache": "KV cache"}
_SMALLEST_SHOWN_BYTES = 0.005 * figures.GIB
_MOST_OFFERS = 5
# A gain of less than a percent is within what an estimate can tell apart.
_FASTER = 0.99
# Below this part of the requests that come, those that wait get more all the time.
SERVED = 0.98
_LIMITED = ("time to first token ", "time per output token ")
_NAMES = {"ttft": "time to first token", "tpot": "time per token"}


def run_words(plan: Result) -> tuple[str, str]:
    """('Llama-3.1-8B (bf16, vllm)', '8 x h100-sxm')."""
    workload, cluster, model = plan["workload"], plan["cluster"], plan["model"]
    name = model.rpartition("/")[2] if isinstance(model, str) and not model.endswith(".json") else model
    name = name if isinstance(name, str) else "your model"
    described = ", ".join(str(workload[field]) for field in ("weight_dtype", "engine") if workload.get(field))
    return f"{name} ({described})", f"{cluster.get('count') or 1} x {cluster.get('accelerator')}"


def load_words(plan: Result) -> str:
    """'64 clients at once, 2,048 tokens in and 500 out'."""
    workload = plan["workload"]
    if rate := workload.get("request_rate"):
        load = f"{figures.number(rate)} requests/s"
    elif workload.get("scenario") == "offline":
        load = f"{workload['requests']:,} requests at once" if workload.get("requests") else "all requests at once"
    elif workload.get("scenario") == "single-stream" or workload.get("concurrency") == 1:
        load = "one client"
    elif clients := workload.get("concurrency"):
        load = f"{clients:,} clients at once"
    else:
        load = "as many requests as the limits allow"
    return f"{load}, {figures.number(workload['input_len'])} tokens in and {figures.number(workload['output_len'])} out"


def verdict(estimate: Result, asked_fit: bool, e2e_limit_s: float | None) -> str:
    """Whether it fits, how fast it answers and how much it serves, in a few sentences."""
    run, hardware = run_words(estimate["plan"])
    memory, latency, rate = estimate["memory"], estimate["latency"], estimate["throughput"]
    needs, has = figures.gib(memory["per_device_bytes"]), figures.gib(memory["capacity_bytes"])
    if not memory["fits"]:
        return f"**No, it does not fit.** {run} on {hardware} needs about {needs} of the {has} a device can allocate."
    head = "**Yes, it fits.**" if asked_fit else "**It fits.**"
    too_slow = estimate["meets_slo"] is False or (e2e_limit_s and (latency["e2e_s"] or e2e_limit_s + 1) > e2e_limit_s)
    head = "**It fits, but it is too slow.**" if too_slow else head
    text = f"{head} {run} on {hardware}, with {load_words(estimate['plan'])}: "
    if estimate["plan"]["workload"].get("scenario") == "offline":
        return f"{text}about **{figures.rate(rate['output_tokens_per_s'])} output tokens/s**."
    wanted = estimate["plan"]["workload"].get("request_rate")
    if latency["ttft_s"] is None or (wanted and rate["requests_per_s"] < SERVED * wanted):
        head = "**It fits, but it cannot keep up.**"
        text = f"{head} {run} on {hardware}, with {load_words(estimate['plan'])}: requests come faster than they are "
        served = figures.rate(rate["requests_per_s"])
        return f"{text}served, so the wait grows all the time; it serves about {served} requests/s."
    text += f"the first token comes after about **{figures.seconds(latency['ttft_s'])}**, then one every "
    text += f"**{figures.seconds(latency['tpot_s'])}**"
    return f"{text}; in all **{figures.rate(rate['output_tokens_per_s'])} output tokens/s**."


def slo(estimate: Result, limits: Mapping[str, Any]) -> list[str]:
    """Each limit of latency: met or missed, by how much, and whether the interval leaves a doubt."""
    lines: list[str] = []
    for row in estimate["slo"]:
        name = f"p99 {_NAMES[row['limit']]}" if row["statistic"] == "p99" else _NAMES[row["limit"]]
        limit = figures.seconds(row["limit_s"])
        if row["value_s"] is None:
            lines.append(f"- {name}: **missed**, it grows without end (limit {limit})")
            continue
        off = abs(row["value_s"] / row["limit_s"] - 1)
        side = "below" if row["met"] else "over"
        doubt = "" if row["sure"] else "; the interval reaches to the other side, so this is not sure"
        met = "met" if row["met"] else "**missed**"
        amount = f"{figures.percent(off)} {side}" if off < 1 or row["met"] else f"{_times(row)} times"
        lines.append(f"- {name}: {met}, {figures.seconds(row['value_s'])} is {amount} the limit of {limit}{doubt}")
    whole, most = estimate["latency"]["e2e_s"], limits.get("e2e_limit_s")
    if most and whole is not None:
        met = "met" if whole <= most else "**missed**"
        lines.append(f"- whole request: {met}, {figures.seconds(whole)} against {figures.seconds(most)}")
    return ["\n".join(["Your limits:", *lines])] if lines else []


def _times(row: Result) -> str:
    times = row["value_s"] / row["limit_s"]
    return f"{times:.1f}" if times < 10 else f"{times:,.0f}"


def latency(estimate: Result) -> str:
    found = estimate["latency"]
    rows = ["| Latency | mean | interval | p99 |", "| --- | ---: | ---: | ---: |"]
    for label, name in (("time to first token", "ttft"), ("time per token", "tpot"), ("whole request", "e2e")):
        mean = found[f"{name}_s"]
        if mean is None:
            rows.append(f"| {label} | grows without end | | |")
            continue
        low, high = found[f"{name}_low_s"], found[f"{name}_high_s"]
        span = f"{figures.seconds(low)} to {figures.seconds(high)}" if low is not None and high is not None else ""
        p99 = found.get(f"{name}_p99_s")
        rows.append(f"| {label} | {figures.seconds(mean)} | {span} | {figures.seconds(p99) if p99 else ''} |")
    return "\n".join(rows)


def throughput(estimate: Result) -> str:
    found, replicas = estimate["throughput"], estimate["replicas"]
    low, high = found["output_tokens_low_per_s"], found["output_tokens_high_per_s"]
    text = f"**Throughput**: {figures.rate(found['output_tokens_per_s'])} output tokens/s"
    if high > low:
        text += f" ({figures.rate(low)} to {figures.rate(high)})"
    text += f", {figures.rate(found['total_tokens_per_s'])} tokens/s with prompts, "
    text += f"{figures.rate(found['requests_per_s'])} requests/s. "
    text += f"That is {figures.rate(found['output_tokens_per_s_per_device'])} output tokens/s per device"
    if replicas > 1:
        text += f", {figures.rate(found['output_tokens_per_s'] / replicas)} output tokens/s for each of {replicas:,} "
        text += "replicas"
    return f"{text}, and {figures.rate(found['tokens_per_s_per_user'])} tokens/s for each user."


def memory(found: Result, plan: Result) -> list[str]:
    """The fullest device by component, and how many requests it holds."""
    shown = [(name, size) for name, size in found["components"].items() if size >= _SMALLEST_SHOWN_BYTES]
    rows = ["| Memory per device | |", "| --- | ---: |"]
    rows += [
        f"| {_COMPONENTS.get(name, name.replace('_', ' '))} | {figures.gib(size)} |"
        for name, size in sorted(shown, key=lambda item: -item[1])
    ]
    rows.append(f"| **total** | **{figures.gib(found['per_device_bytes'])}** |")
    if not found["fits"]:
        return ["\n".join(rows)]
    engine = plan["workload"].get("engine") or "the engine"
    text = f"A device can allocate {figures.gib(found['capacity_bytes'])}, of which {engine} claims "
    text += f"{figures.gib(found['claimed_bytes'])}"
    text += f". **Users**: {found['max_concurrency']:,} whole requests have room at once"
    if found["kv_tokens"] is not None:
        text += f", {found['kv_tokens']:,} tokens of cache at {found['kv_bytes_per_token']:,.0f} bytes each"
    if found["longest_request"] is not None:
        text += f"; the longest that fits alone is {found['longest_request']:,} tokens"
    return ["\n".join(rows), f"{text}."]


def layout_words(plan: Result, replicas: int) -> str:
    """'4 replicas, each TP 2' or 'one replica on one device'."""
    copies = f"{replicas:,} replicas" if replicas > 1 else "one replica"
    sizes = ", ".join(
        f"{name.upper()} {plan['layout'][name]}" for name in ("tp", "pp", "ep", "dp") if _split(plan, name)
    )
    if sizes:
        return f"{copies}, each {sizes}" if replicas > 1 else f"{copies}, {sizes}"
    return f"{copies} of one device each" if replicas > 1 else f"{copies} on one device"


def _split(plan: Result, name: str) -> bool:
    return (plan["layout"].get(name) or 1) > 1


def layout(estimate: Result) -> str:
    head = "**Layout** (chosen by search)" if estimate["layout_chosen"] else "**Layout**"
    why = estimate["why"] if estimate["layout_chosen"] else []
    return " ".join([f"{head}: {layout_words(estimate['plan'], estimate['replicas'])}.", *why])


def what_limits(estimate: Result, whole: bool) -> list[str]:
    """What binds it; where that was asked for, what a step waits for."""
    text = f"**What limits it**: {estimate['bottleneck']}."
    if not whole:
        return [text]
    rows = ["| What a step waits for | time | share |", "| --- | ---: | ---: |"]
    rows += [
        f"| {row['limit']} | {figures.seconds(row['seconds'])} | {figures.percent(row['share'])} |"
        for row in estimate["limits"]
    ]
    return [text, "\n".join(rows)]


def room(fit: Result, faster: bool) -> list[str]:
    """How much room is left, or what would make it fit, or what would make what fits faster."""
    if fit["fits"] and faster:
        text = f"**Headroom**: {figures.gib(fit['headroom_bytes'])} remain for the cache beside one request."
        found = [way for way in (*fit["relaxations"], *fit["remedies"]) if way["fits"] and way["slowdown"] < _FASTER]
        ways = sorted(found, key=lambda way: way["slowdown"])[:5]
        if not ways:
            return [text, "I found no change that fits and gains more than a percent."]
        head = "What would make it faster, each by itself:"
    elif fit["fits"]:
        text = f"**Headroom**: {figures.gib(fit['headroom_bytes'])} remain for the cache beside one request."
        ways = fit["relaxations"][:3]
        head = "What that room could buy:"
    else:
        text = f"**Short by {figures.gib(-fit['headroom_bytes'])}** per device."
        ways = [remedy for remedy in fit["remedies"] if remedy["fits"]][:4]
        head = "What would make it fit:"
    if not ways:
        return [text if fit["fits"] else f"{text} No change that I tried makes it fit."]
    lines = [f"- {way['what']}: {figures.gib(way['per_device_bytes'])} per device{_gain(way, fit)}" for way in ways]
    return [text, "\n".join([head, *lines])]


def _gain(way: Result, fit: Result) -> str:
    # Of what does not fit there is no speed to compare with.
    return f", {figures.percent(1 - way['slowdown'])} less time per token served" if fit["fits"] else ""


def money(cost: Result | None, most_usd: float | None) -> list[str]:
    if cost is None:
        return ["**Cost**: I have no price for this hardware."]
    at = (
        f"{cost['provider']} {cost['instance']}, price of {cost['price_date'] or 'no date'}" if cost["provider"] else ""
    )
    text = (
        f"**Cost**: {figures.usd(cost['usd_per_hour'])} per hour, {figures.usd(cost['usd_per_month'])} per month"
        f"{f' ({at})' if at else ' at your price'}; {_usd(cost['usd_per_million_output_tokens'])} per million output "
        f"tokens, {_usd(cost['usd_per_million_tokens'])} per million tokens with prompts."
    )
    return [text + _against(cost["usd_per_million_output_tokens"], most_usd)]


def _usd(value: float) -> str:
    """Of prices of tokens, fractions of a cent matter."""
    return f"${value:,.4f}" if value < 0.1 else figures.usd(value)


def _against(usd: float | None, most_usd: float | None) -> str:
    if usd is None or not most_usd:
        return ""
    return f" That is {'within' if usd <= most_usd else '**over**'} your {_usd(most_usd)} per million output tokens."


def bill(found: Result, most_usd: float | None) -> list[str]:
    """estimate_cost of a deployment: per hour, month and million tokens, or for all requests of a run."""
    offers = [offer for offer in found["by_provider"] if offer["usd"] is not None]
    if found["usd"] is None:
        return ["**Cost**: I have no price for this hardware" + (" at the provider you named." if offers else ".")]
    text = (
        f"**Cost**: {_usd(found['usd_per_million_output_tokens'])} per million output tokens, "
        f"{_usd(found['usd_per_million_tokens'])} per million tokens with prompts, "
        f"{figures.usd(found['usd_per_million_requests'])} per million requests; "
        f"{figures.usd(found['usd_per_hour'])} per hour, {figures.usd(found['usd_per_month'])} per month."
    )
    if found["plan"]["workload"].get("requests"):
        text += f" All requests take {figures.hours(found['hours'])} and cost {figures.usd(found['usd'])}."
    text += _against(found["usd_per_million_output_tokens"], most_usd)
    goal = found["plan"]["goal"]
    if found["within_budget"] is not None and goal.get("budget_usd"):
        over = "within" if found["within_budget"] else "**over**"
        span = "" if found["plan"]["workload"].get("requests") else " for a month"
        text += f" That is {over} your budget of {figures.usd(goal['budget_usd'])}{span}."
    blocks = [text]
    if offers:
        rows = ["| Provider | Instance | per hour | price of |", "| --- | --- | ---: | --- |"]
        rows += [
            f"| {offer['provider']} | {offer['instances']} x {offer['instance']} | "
            f"{figures.usd(offer['usd_per_hour'])} | {offer['price_date'] or 'undated'} |"
            for offer in offers[:_MOST_OFFERS]
            if offer["usd_per_hour"] is not None
        ]
        blocks.append("\n".join(rows))
    return [*blocks, *_energy(found)]


def warnings(results: Mapping[str, Result]) -> list[str]:
    """Each once; those about limits of latency stand among the limits already where a deployment was estimated."""
    found = dict.fromkeys(text for result in results.values() for text in result.get("warnings", []))
    estimate = results.get("estimate_inference")
    told = (*(_LIMITED if estimate["slo"] else ()), "does not fit") if estimate else ()
    shown = [text for text in found if not text.removeprefix("p99 ").startswith(told)]
    return ["\n".join(["Beware:", *(f"- {text}" for text in shown)])] if shown else []


def _energy(found: Result) -> list[str]:
    if found["kwh"] is None or found["co2_kg"] is None:
        return []
    span = "" if found["plan"]["workload"].get("requests") else " in a month"
    return [f"Energy: about {figures.rate(found['kwh'])} kWh, {figures.rate(found['co2_kg'])} kg of CO2{span}."]


def how_sure(result: Result) -> list[str]:
    """Whose measurements the times rest on."""
    parts = [f"{row['runs']:,} runs on {row['measured']}" for row in result.get("evidence", []) if _measured(row)]
    missing = [
        row
        for row in result.get("evidence", [])
        if row["figure"] == "time" and not row["runs"] and row["part"] in _PARTS
    ]
    if not parts:
        return ["**How sure**: not sure; nothing like this was measured."]
    text = f"**How sure**: the times rest on measured runs ({', '.join(parts)})"
    return [f"{text}, but not of this engine on this kind of device." if missing else f"{text}."]


_PARTS = ("engine", "device")


def _measured(row: Result) -> bool:
    return row["figure"] == "time" and row["part"] in _PARTS and bool(row["runs"])


def assumptions(results: list[Result], notes: list[str]) -> list[str]:
    """What was not said: how words were read, then each default with its reason. The layout is told apart already; what
    stays with the engine ('auto', or as usual) is nothing to decide."""
    lines = [f"- {note}" for note in notes]
    seen: set[str] = set()
    for result in results:
        for item in result.get("assumptions", []):
            field = item["field"]
            told = field.startswith("layout.") or item["why"] == "as usual" or field == "goal.objective"
            if field in seen or told or item["value"] in ("auto", None):
                continue
            seen.add(field)
            name = field.rpartition(".")[2].replace("_", " ")
            value = item["value"]
            value = ", ".join(map(str, value)) if isinstance(value, list) else figures.plain(value)
            lines.append(f"- {name}: {value} ({item['why']})")
    return ["\n".join(["Assumed:", *lines])] if lines else []
