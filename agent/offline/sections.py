"""The parts of an answer, each a list of Markdown blocks from one tool result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.offline import memory_answer
from agent.wire import Outcome
from pages import figures

Result = Mapping[str, Any]
FILE_TOOLS = ("write_configs", "render_configs")
_MOST_OFFERS = 5
# Assumptions whose reason is that everybody does so: their values are told together.
_USUAL = frozenset(
    f"workload.{name}"
    for name in ("precision", "optimizer", "packing", "attention", "compile", "epochs", "micro_batch", "lora.rank",
                 "lora.alpha", "lora.targets", "lora.dropout", "lora.quantisation", "lora.train_embeddings")
) | {"goal.objective"}  # fmt: skip
_LANGUAGES = {"yaml": "yaml", "yml": "yaml", "json": "json", "sbatch": "bash", "sh": "bash", "py": "python"}


def verdict(first: Result, results: Mapping[str, Result], intents: set[str]) -> str:
    """One or two sentences that answer the question."""
    model, hardware = run_words(first["plan"])
    estimate = results.get("estimate_training")
    if estimate is None:
        best = first["best"]
        return f"**{best['summary']}** is the best layout I found for {model} on {hardware}."
    memory, run = estimate["memory"], estimate["run"]
    fits = memory["fits"]
    best = results.get("best_parallelism")
    if best and "layout" in intents and fits:
        return (
            f"**{best['best']['summary']}** is the best layout I found for {model} on {hardware}. It needs about "
            f"{figures.gib(memory['per_device_bytes'])} of the "
            f"{figures.gib(memory['capacity_bytes'])} that a device can allocate."
        )
    head = "**Yes, it fits.**" if fits else "**No, it does not fit.**"
    if not intents & {"fit"} and fits:
        head = "**It fits.**"
    needs = figures.gib(memory["per_device_bytes"])
    span = figures.gib_range(memory["low_bytes"], memory["high_bytes"])
    # Where the middle of the interval fits and its end does not, the end is the reason.
    close = not fits and memory["per_device_bytes"] < memory["capacity_bytes"]
    needs += f", and by its interval up to {figures.gib(memory['high_bytes'])}," if close else f" ({span})"
    text = f"{head} {model[0].upper()}{model[1:]} on {hardware}: the fullest device needs about {needs} of the "
    text += f"{figures.gib(memory['capacity_bytes'])} it can allocate."
    if fits and (beside := memory_answer.beside(memory)):
        text += f" {beside}"
    if fits and run:
        cost = results.get("estimate_cost")
        text += f" The run takes about **{figures.hours(run['hours'])}**"
        text += f" and costs about **{figures.usd(cost['usd'])}**." if cost and cost["usd"] is not None else "."
    return text


def run_words(plan: Result) -> tuple[str, str]:
    """('full fine-tuning of Llama-3.1-8B', '8 x h100-sxm')."""
    workload, cluster = plan["workload"], plan["cluster"]
    model = plan["model"]
    name = (
        model.rpartition("/")[2]
        if isinstance(model, str) and not model.endswith(".json")
        else str(model)
        if isinstance(model, str)
        else "your model"
    )
    method, stage = workload.get("method") or "full", workload.get("stage") or "sft"
    if stage == "pretrain":
        kind = "pretraining" if method == "full" else f"continued pretraining with {_METHODS.get(method, method)}"
    elif stage == "sft":
        kind = "full fine-tuning" if method == "full" else f"{_METHODS.get(method, method)} fine-tuning"
    else:
        kind = f"{_STAGES.get(stage, stage)} training" + (
            "" if method == "full" else f" with {_METHODS.get(method, method)}"
        )
    return f"{kind} of {name}", f"{cluster.get('count') or 1} x {cluster.get('accelerator')}"


_METHODS = {"lora": "LoRA", "qlora": "QLoRA", "dora": "DoRA", "pissa": "PiSSA", "freeze": "frozen-layer"}
_STAGES = {
    "dpo": "DPO",
    "ppo": "PPO",
    "grpo": "GRPO",
    "kto": "KTO",
    "orpo": "ORPO",
    "simpo": "SimPO",
    "ipo": "IPO",
    "rm": "reward model",
}


def layout_words(plan: Result) -> str:
    """'DP 8, ZeRO-3, full recompute, micro-batch 2, global batch 128' of a complete plan."""
    layout, workload = plan["layout"], plan["workload"]
    parts = [
        f"{name.upper()} {layout[name]}"
        for name in ("tp", "pp", "vpp", "cp", "ep", "etp")
        if (layout.get(name) or 1) > 1
    ]
    parts.append(f"DP {layout.get('dp') or 1}")
    if layout.get("zero_stage"):
        parts.append(f"ZeRO-{layout['zero_stage']}")
    if layout.get("sequence_parallel") and (layout.get("tp") or 1) > 1:
        parts.append("sequence parallel")
    if layout.get("shard_group"):
        parts.append(f"shard groups of {layout['shard_group']}")
    if layout.get("recompute"):
        mode = layout["recompute"]
        parts.append("no recompute" if mode == "none" else f"{mode} recompute")
    if (layout.get("offload") or "none") != "none":
        parts.append(f"{layout['offload']} offloaded to host memory")
    if workload.get("micro_batch"):
        parts.append(f"micro-batch {workload['micro_batch']}")
    if workload.get("global_batch"):
        parts.append(f"global batch {workload['global_batch']}")
    return ", ".join(parts)


def layout(estimate: Result) -> list[str]:
    head = "**Layout** (chosen by search)" if estimate["layout_chosen"] else "**Layout** (as given)"
    framework = estimate["plan"]["workload"].get("framework")
    text = f"{head}, {framework}: {layout_words(estimate['plan'])}."
    return [" ".join([text, *(estimate["why"] if estimate["layout_chosen"] else [])])]


def layout_choice(results: Mapping[str, Result], intents: set[str]) -> list[str]:
    """The best layout with its rivals, and why those lost."""
    found = results.get("best_parallelism")
    if not found:
        return []
    blocks = [f"**Best layout**, {found['best']['framework']}: {layout_words(found['plan'])}. {' '.join(found['why'])}"]
    rivals = [found["best"], *found["alternatives"]][:4]
    if len(rivals) > 1:
        rows = ["| Layout | step | tokens/s | MFU | per device |", "| --- | ---: | ---: | ---: | ---: |"]
        rows += [
            f"| {row['summary']} | {figures.seconds(row['step_s'])} | {figures.rate(row['tokens_per_s'])} | "
            f"{figures.percent(row['mfu'])} | {figures.gib(row['per_device_bytes'])} |"
            for row in rivals
        ]
        blocks.append("\n".join(rows))
    if rejected := found["rejected"]:
        shown = rejected[:6] if "why" in intents else rejected[:3]
        blocks.append("\n".join(["Not taken:", *(f"- {row['summary']}: {row['rule']}" for row in shown)]))
    return blocks


def speed(estimate: Result, intents: set[str]) -> list[str]:
    time, rate = estimate["time"], estimate["throughput"]
    text = (
        f"**Speed**: a step takes {figures.seconds(time['step_s'])} "
        f"({figures.seconds(time['low_s'])} to {figures.seconds(time['high_s'])}), "
        f"that is {figures.rate(rate['tokens_per_s'])} tokens/s "
        f"({figures.rate(rate['tokens_per_s_per_device'])} tokens/s per device), "
        f"at {figures.percent(rate['mfu'])} MFU. What limits it: {estimate['bottleneck']}."
    )
    if run := estimate["run"]:
        text += (
            f" {figures.whole(run['tokens'])} tokens are {figures.whole(run['steps'])} steps: "
            f"{figures.hours(run['hours'])} ({figures.hour_range(run['low_hours'], run['high_hours'])})."
        )
    blocks = [text]
    if "why" in intents:
        parts = sorted(time["components"].items(), key=lambda item: -item[1])
        rows = [f"| {name.replace('_', ' ')} | {figures.seconds(value)} |" for name, value in parts if value >= 1e-4]
        blocks.append("\n".join(["| Where the step goes | time |", "| --- | ---: |", *rows]))
    return blocks


def room(fit: Result) -> list[str]:
    """How far the plan could grow, or what would make it fit."""
    if fit["fits"]:
        text = (
            f"**Headroom**: {figures.gib(fit['headroom_bytes'])} remain even at the upper end of the memory interval."
        )
        more = []
        workload = fit["plan"]["workload"]
        if (fit["largest_micro_batch"] or 0) > (workload.get("micro_batch") or 0):
            more.append(f"micro-batch {fit['largest_micro_batch']:,}")
        if (fit["largest_seq_len"] or 0) > (workload.get("seq_len") or 0):
            more.append(f"sequences of {fit['largest_seq_len']:,} tokens")
        blocks = [text + (f" The same layout would take {' or '.join(more)}." if more else "")]
        if faster := fit["relaxations"][:3]:
            lines = [
                f"- {way['what']}: {figures.gib(way['per_device_bytes'])} per device{_slower(way['slowdown'])}"
                for way in faster
            ]
            blocks.append("\n".join(["What that room could buy:", *lines]))
        return blocks
    short = f"**Short by {figures.gib(-fit['headroom_bytes'])}** at the upper end of the memory interval."
    working = [remedy for remedy in fit["remedies"] if remedy["fits"]][:4]
    if not working:
        return [f"{short} No change that I tried, and no two together, make it fit; many more or larger devices would."]
    lines = [
        f"- {remedy['what']}: {figures.gib(remedy['per_device_bytes'])} per device{_slower(remedy['slowdown'])}"
        for remedy in working
    ]
    return [short, "\n".join(["What would make it fit:", *lines])]


def _slower(slowdown: float) -> str:
    change = slowdown - 1
    if abs(change) < 0.005:
        return ", as fast"
    return f", {figures.percent(abs(change))} {'slower' if change > 0 else 'faster'}"


def cost(found: Result, budget_usd: float | None, deadline_h: float | None) -> list[str]:
    offers = [offer for offer in found["by_provider"] if offer["usd"] is not None]
    if found["usd"] is None:
        text = "**Cost**: I have no price for this hardware"
        text += "." if not offers else " at the provider you named."
    else:
        text = f"**Cost**: about {figures.usd(found['usd'])}"
        if found["low_usd"] is not None and found["high_usd"] is not None:
            text += f" ({figures.usd(found['low_usd'])} to {figures.usd(found['high_usd'])})"
        text += f" for {figures.hours(found['hours'])}, {figures.whole(found['device_hours'])} device-hours"
        if found["usd_per_million_tokens"] is not None:
            text += f", {figures.usd(found['usd_per_million_tokens'])} per million tokens"
        text += "."
    if found["within_budget"] is not None and budget_usd:
        text += (
            f" That is {'within' if found['within_budget'] else '**over**'} your budget of {figures.usd(budget_usd)}."
        )
    if found["within_deadline"] is not None and deadline_h:
        text += (
            f" It {'meets' if found['within_deadline'] else '**misses**'} your deadline of {figures.hours(deadline_h)}."
        )
    blocks = [text]
    if found["price"] == "owned" and (beside := _owned_or_rented(found, offers)):
        return [*beside, *([_energy(found)] if _energy(found) else [])]
    if offers:
        rows = ["| Provider | Instance | run | per hour | price of |", "| --- | --- | ---: | ---: | --- |"]
        for offer in offers[:_MOST_OFFERS]:
            hourly = figures.usd(offer["usd_per_hour"]) if offer["usd_per_hour"] is not None else ""
            rows.append(
                f"| {offer['provider']} | {offer['instances']} x {offer['instance']} | "
                f"{figures.usd(offer['usd'])} | {hourly} | "
                f"{offer['price_date'] or 'undated'} |"
            )
        blocks.append("\n".join(rows))
    return [*blocks, *([_energy(found)] if _energy(found) else [])]


def _energy(found: Result) -> str:
    if found["kwh"] is None or found["co2_kg"] is None:
        return ""
    return f"Energy: about {figures.rate(found['kwh'])} kWh, {figures.rate(found['co2_kg'])} kg of CO2."


def _owned_or_rented(found: Result, offers: list[Result]) -> list[str]:
    """The same run on hardware of one's own and rented, side by side; empty where one of the two has no price."""
    own, rented = found.get("owned"), min(offers, key=lambda offer: offer["usd"], default=None)
    if not own or own.get("usd") is None or rented is None:
        return []
    less = own["usd"] <= rented["usd"]
    where = f"renting from {rented['provider']}"
    head = (
        f"**{'Owning' if less else 'Renting'} is cheaper for this run**: about {figures.usd(own['usd'])} on "
        f"hardware of your own against {figures.usd(rented['usd'])} {where}, for {figures.hours(found['hours'])}."
    )
    rows = [
        "| | owned | rented |",
        "| --- | ---: | ---: |",
        f"| this run | {figures.usd(own['usd'])} | {figures.usd(rented['usd'])} |",
    ]
    if own.get("usd_per_hour") is not None and rented["usd_per_hour"] is not None:
        rows.append(f"| per hour | {figures.usd(own['usd_per_hour'])} | {figures.usd(rented['usd_per_hour'])} |")
    if own.get("capex_usd") is not None:
        rows.append(f"| to pay at once | {figures.usd(own['capex_usd'])} | nothing |")
    if own.get("usd_per_year") is not None:
        rows.append(f"| per year | {figures.usd(own['usd_per_year'])} | only the hours in use |")
    blocks = [head, "\n".join(rows)]
    if own.get("utilisation") is not None and own.get("years") is not None:
        blocks.append(
            f"Owned counts {figures.plain(own['years'])} years at {figures.percent(own['utilisation'])} use; the "
            "hardware costs the same when it stands idle, so say how much of the time it will be busy."
        )
    return blocks


def files(
    results: Mapping[str, Result],
    errors: Mapping[str, str],
    intents: set[str],
    estimate: Result | None,
    anyway: bool,
) -> list[str]:
    """What became of the files that were asked for."""
    if not intents & {"write", "render"}:
        return []
    if made := results.get("write_configs"):
        return written(made)
    unfit = estimate is not None and not estimate["memory"]["fits"] and not anyway
    withheld = [_WITHHELD] if unfit and ("write" in intents or "render_configs" not in results) else []
    if made := results.get("render_configs"):
        return [*withheld, *rendered(made)]
    for name in FILE_TOOLS:
        if name in errors:
            head = "No files were written" if name == "write_configs" else "No files"
            return [f"**{head}**: {errors[name]}"]
    return withheld


_WITHHELD = (
    "**No files were written**, because this run would run out of memory. Say *write them anyway* if you want them as "
    "they are."
)


def written(result: Result) -> list[str]:
    lines = [f"- `{file['path']}` ({file['bytes']:,} bytes)" for file in result["files"]]
    blocks = ["\n".join([f"**Files written** to `{result['folder']}`:", *lines]), _start(result)]
    return [*blocks, *_fill_in(result)]


def rendered(result: Result) -> list[str]:
    blocks: list[str] = []
    for file in result["files"]:
        language = _LANGUAGES.get(file["path"].rpartition(".")[2], "")
        fence = "````" if "```" in file["text"] else "```"
        blocks.append(f"`{file['path']}`\n{fence}{language}\n{file['text'].rstrip()}\n{fence}")
    return [*blocks, _start(result), *_fill_in(result), "Nothing is on disk yet; say *write the files* to save them."]


def _start(result: Result) -> str:
    return f"Start it with `{result['launch_command']}`."


def _fill_in(result: Result) -> list[str]:
    needs = result["needs_from_user"]
    return ["\n".join(["You still have to fill in:", *(f"- {need}" for need in needs)])] if needs else []


def warnings(results: Mapping[str, Result]) -> list[str]:
    found = dict.fromkeys(text for result in results.values() for text in result.get("warnings", []))
    return ["\n".join(["Beware:", *(f"- {text}" for text in found)])] if found else []


_OF_SPOT = ("interruptions_per_day", "restart_minutes", "checkpoint_save_s", "checkpoint_interval_minutes")


def assumptions(results: list[Result], notes: list[str]) -> list[str]:
    """What was not said: how words were read, then each default with its reason. The layout is told apart already, and
    what stays with the framework ('auto') is nothing to decide.

    The first result comes first because its values were chosen freely; later ones carry them as given.
    """
    lines = [f"- {note}" for note in notes]
    usual: list[str] = []
    seen: set[str] = set()
    for result in results:
        for item in result.get("assumptions", []):
            searched = item["field"].startswith("layout.") and "search" in item["why"]
            # What interruptions cost is no part of another price.
            unspent = item["field"].rpartition(".")[2] in _OF_SPOT and result.get("price") != "spot"
            if item["field"] in seen or searched or unspent or item["value"] == "auto":
                continue
            seen.add(item["field"])
            name = item["field"].rpartition(".")[2].replace("_", " ")
            if item["field"] in _USUAL:
                usual.append(f"{name} {figures.plain(item['value'])}")
            else:
                lines.append(f"- {name}: {figures.plain(item['value'])} ({item['why']})")
    lines += [f"- as usual: {', '.join(usual)}"] if usual else []
    return ["\n".join(["Assumed:", *lines])] if lines else []


def alternatives(
    variants: Sequence[Mapping[str, Any]], outcomes: list[Outcome]
) -> tuple[list[str], list[tuple[float, str, Result]], list[Result], list[str]]:
    """The rows of a table; (tokens/s, name, result) of those that fit; all results; and why others have none."""
    rows = [
        "| | fits | per device | step | tokens/s | MFU | run | cost |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    problems: list[str] = []
    fitting: list[tuple[float, str, Result]] = []
    results: list[Result] = []
    for variant in variants:
        name = alternative(variant)
        mine = {o.call.name: o for o in outcomes if variant.items() <= o.call.arguments.items()}
        estimate, price = mine.get("estimate_training"), mine.get("estimate_cost")
        if estimate is None or estimate.error:
            problems.append(f"{name}: {estimate.error if estimate else 'was not estimated'}")
            continue
        found = estimate.response
        results.append(found)
        memory, run = found["memory"], found["run"]
        usd = price.response["usd"] if price and not price.error else None
        start = f"| {name} | {'yes' if memory['fits'] else 'no'} | {figures.gib(memory['per_device_bytes'])} |"
        if not memory["fits"]:
            rows.append(f"{start} | | | | |")
            continue
        fitting.append((found["throughput"]["tokens_per_s"], name, found))
        rows.append(
            f"{start} {figures.seconds(found['time']['step_s'])} | "
            f"{figures.rate(found['throughput']['tokens_per_s'])} | {figures.percent(found['throughput']['mfu'])} | "
            f"{figures.hours(run['hours']) if run else ''} | "
            f"{figures.usd(usd) if usd is not None else ''} |"
        )
    return rows, fitting, results, problems


def alternative(variant: Mapping[str, Any]) -> str:
    """'h100-sxm', '4 x l40s', 'Qwen/Qwen2.5-7B' or '8 devices'."""
    count = variant.get("count")
    name = variant.get("accelerator") or variant.get("model")
    if name:
        return f"{count} x {name}" if count else str(name)
    return "1 device" if count == 1 else f"{count} devices"
