"""Answers about choices: which cluster, which settings, which of several, how far it scales, what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pages import figures

Result = Mapping[str, Any]
_MOST_ROWS = 6
_MOST_ADVICE = 5
# A gain that is told.
_WORTH = 0.005
# What auto_configure's reasons are told of: the choices that matter most.
_CHOICES = ("workload.method", "cluster.accelerator", "cluster.count", "workload.precision", "workload.framework",
            "workload.seq_len", "workload.global_batch", "workload.engine", "workload.weight_dtype",
            "layout")  # fmt: skip


def _usd(value: float | None) -> str:
    return "" if value is None else figures.usd(value)


def _hours(value: float | None) -> str:
    return "" if value is None else figures.hours(value)


def _name(option: Result) -> str:
    return f"{option['count']} x {option['accelerator']}"


def clusters(found: Result) -> list[str]:
    options = found["options"]
    if not options:
        blocks = ["**Nothing that I know meets this.**"]
        return [*blocks, *_rejected(found)]
    first = options[0]
    where = f" at {first['provider']} ({first['instance']})" if first["provider"] else ""
    head = f"**{_name(first)}**{where}"
    if found["satisfied"]:
        text = f"{head} is what I would rent"
    else:
        text = f"**Nothing meets every limit.** The nearest is {_name(first)}{where}"
    if first["hours"] is not None:
        text += f": about {figures.hours(first['hours'])}"
        text += f" ({figures.hour_range(first['low_hours'], first['high_hours'])})"
        if first["usd"] is not None:
            text += f" for {figures.usd(first['usd'])}"
            text += f" ({figures.usd(first['low_usd'])} to {figures.usd(first['high_usd'])})"
    elif first["usd_per_hour"] is not None:
        text += f", {figures.usd(first['usd_per_hour'])} per hour"
    program = first["framework"] or first["engine"]
    blocks = [f"{text}, with {program}: {first['summary']}." if first.get("summary") else f"{text}."]
    if found["why"]:
        blocks.append(" ".join(found["why"]))
    rows = ["| Cluster | Provider | run | cost | per hour | layout |", "| --- | --- | ---: | ---: | ---: | --- |"]
    rows += [
        f"| {_name(option)} | {option['provider'] or ''} | {_hours(option['hours'])} | {_usd(option['usd'])} | "
        f"{_usd(option['usd_per_hour'])} | "
        f"{option['framework'] or option['engine'] or ''} {option['summary'] or ''} |"
        for option in options[:_MOST_ROWS]
    ]
    blocks.append("\n".join(rows))
    blocks += _rejected(found)
    if found.get("priced"):
        blocks.append(f"Prices of {found['priced']}. The next question is about the first, unless you name another.")
    return blocks


def _rejected(found: Result) -> list[str]:
    rows = [row for row in found["rejected"] if row["reason"] not in ("no_framework",)][:4]
    lines = [f"- {', '.join(row['accelerators'][:4])}: {row['why']}" for row in rows]
    return ["\n".join(["Not taken:", *lines])] if lines else []


def configured(found: Result) -> list[str]:
    plan, option = found["plan"], found["option"]
    workload, cluster = plan["workload"], plan["cluster"]
    model = str(plan["model"]).rpartition("/")[2] if isinstance(plan["model"], str) else "your model"
    training = workload["kind"] == "training"
    what = (
        f"{workload['method']} {workload['stage']}"
        if training
        else f"{workload['engine']}, {workload['weight_dtype']} weights"
    )
    head = "**Done.**" if found["satisfied"] else "**This is the nearest I can get; not every limit is met.**"
    text = f"{head} {model}: {what} on {cluster['count']} x {cluster['accelerator']}"
    if option and option.get("provider"):
        text += f" at {option['provider']}"
    if option and option.get("summary"):
        text += f", {option['summary']}"
    text += "."
    if found["hours"] is not None:
        text += (
            f" About {figures.hours(found['hours'])} ({figures.hour_range(found['low_hours'], found['high_hours'])})"
        )
        text += f" and {figures.usd(found['usd'])}." if found["usd"] is not None else "."
    elif found.get("usd_per_hour") is not None:
        text += f" {figures.usd(found['usd_per_hour'])} per hour."
    if found["per_device_bytes"]:
        text += f" The fullest device needs {figures.gib(found['per_device_bytes'])}."
    blocks = [text]
    reasons = [row for row in found["reasons"] if row["field"].startswith(_CHOICES) and row["why"]]
    if reasons:
        lines = [f"- {_label(row['field'])} {figures.plain(row['value'])}: {row['why']}" for row in reasons[:8]]
        blocks.append("\n".join(["Why:", *lines]))
    if considered := [row for row in found["considered"] if row["why"]][:4]:
        lines = [f"- {row['choice']}: {row['why']}" for row in considered]
        blocks.append("\n".join(["Also considered:", *lines]))
    if relax := found["relax"]:
        lines = [f"- {row if isinstance(row, str) else row.get('what') or row.get('why')}" for row in relax[:4]]
        blocks.append("\n".join(["What would have to give:", *lines]))
    if found["launch_targets"]:
        blocks.append(f"Say *write the files* for launch files ({', '.join(found['launch_targets'][:5])}, …).")
    return blocks


def _label(field: str) -> str:
    return field.rpartition(".")[2].replace("_", " ")


def compared(found: Result) -> list[str]:
    blocks = [" ".join(found["conclusions"][:2])] if found["conclusions"] else []
    if blocks:
        first, _, rest = blocks[0].partition(". ")
        blocks = [f"**{first.rstrip('.')}.** {rest}".strip()]
    training = found["kind"] == "training"
    if training:
        rows = [
            "| | fits | per device | step | tokens/s | MFU | run | cost |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
    else:
        rows = [
            "| | fits | per device | first token | per token | tokens/s | per M tokens |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        ]
    problems: list[str] = []
    for row in found["rows"]:
        if row["error"]:
            problems.append(f"- {row['name']}: {row['error']}")
            continue
        rows.append(_trained(row) if training else _served(row))
    if len(rows) > 2:
        blocks.append("\n".join(rows))
    if problems:
        blocks.append("\n".join(["Not estimated:", *problems]))
    if more := found["conclusions"][2:6]:
        blocks.append("\n".join(f"- {text}" for text in more))
    return blocks


def _trained(row: Result) -> str:
    return (
        f"| {row['name']} | {'yes' if row['fits'] else '**no**'} | {figures.gib(row['per_device_bytes'])} | "
        f"{figures.seconds(row['step_s'])} | {figures.rate(row['tokens_per_s'])} | {figures.percent(row['mfu'])} | "
        f"{_hours(row['hours'])} | {_usd(row['usd'])} |"
    )


def _served(row: Result) -> str:
    cells = [row["name"], "yes" if row["fits"] else "**no**", figures.gib(row["per_device_bytes"])]
    cells += [figures.seconds(row[name]) if row.get(name) is not None else "" for name in ("ttft_s", "tpot_s")]
    cells += [figures.rate(row["output_tokens_per_s"]) if row.get("output_tokens_per_s") is not None else ""]
    return f"| {' | '.join([*cells, _usd(row.get('usd_per_million_tokens'))])} |"


def strategies(found: Result) -> list[str]:
    rows = [row for row in found["rows"] if row.get("fits") is not None]
    able = [row for row in rows if row["fits"]]
    blocks = []
    if able:
        best = max(able, key=lambda row: row["tokens_per_s_per_device"])
        blocks.append(
            f"**{_label(best['strategy'])}** on {best['accelerator']} is the fastest per device: {best['summary']}, "
            f"{figures.rate(best['tokens_per_s_per_device'])} tokens/s per device at {figures.percent(best['mfu'])} "
            f"MFU."
        )
    else:
        blocks.append("**No strategy fits.**")
    table = [
        "| Strategy | on | layout | fits | per device | tokens/s per device | MFU |",
        "| --- | --- | --- | --- | ---: | ---: | ---: |",
    ]
    many = len({row["model"] for row in rows}) > 1
    for row in rows[:24]:
        on = f"{row['model'].rpartition('/')[2]}, {row['accelerator']}" if many else row["accelerator"]
        table.append(
            f"| {_label(row['strategy'])} | {on} | {row['summary']} | {'yes' if row['fits'] else '**no**'} | "
            f"{figures.gib(row['per_device_bytes'])} | {figures.rate(row['tokens_per_s_per_device'])} | "
            f"{figures.percent(row['mfu'])} |"
        )
    blocks.append("\n".join(table))
    if whys := [
        f"- {_label(row['strategy'])} on {row['accelerator']}: {row['why']}" for row in found["rows"] if row["why"]
    ]:
        blocks.append("\n".join(whys[:6]))
    blocks.append("\n".join(f"- {_label(name)}: {text}" for name, text in found["strategies"].items()))
    return blocks


def scaling(found: Result) -> list[str]:
    why: Sequence[str] = found["why"]
    blocks = [f"**{why[0].rstrip('.')}.** {' '.join(why[1:])}".strip()] if why else []
    rows = [
        "| Nodes | devices | tokens/s | step | efficiency | run | cost | limited by |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    problems = []
    for point in found["points"]:
        if point["error"] or point.get("tokens_per_s") is None:
            problems.append(f"- {point['nodes']} nodes: {point['error'] or 'does not fit'}")
            continue
        efficiency = figures.percent(point["efficiency"]) if point["efficiency"] is not None else ""
        rows.append(
            f"| {point['nodes']} | {point['devices']} | {figures.rate(point['tokens_per_s'])} | "
            f"{figures.seconds(point['step_s'])} | "
            f"{efficiency} | {_hours(point['hours'])} | {_usd(point['usd'])} | {point['bottleneck']} |"
        )
    blocks += ["\n".join(rows)] if len(rows) > 2 else []
    kind = (
        "strong scaling: the global batch stays"
        if found["scaling"] == "strong"
        else "weak scaling: the batch grows with the devices"
    )
    return [*blocks, *(["\n".join(problems)] if problems else []), f"This is {kind}."]


def peak(found: Result) -> list[str]:
    rows = [row for row in found["rows"] if not row["error"] and row["fits"]]
    blocks = []
    if rows:
        best = max(rows, key=lambda row: row["tokens_per_s_per_device"])
        blocks.append(
            f"**{best['accelerator']} in {best['precision']}** reaches the most for "
            f"{best['model'].rpartition('/')[2]}: "
            f"{figures.rate(best['tokens_per_s_per_device'])} tokens/s per device "
            f"({figures.rate(best['low_tokens_per_s_per_device'])} to "
            f"{figures.rate(best['high_tokens_per_s_per_device'])}), "
            f"{figures.percent(best['mfu'])} MFU."
        )
        table = [
            "| Model | on | precision | tokens/s per device | TFLOPS | MFU | tokens a day, all | rating |",
            "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |",
        ]
        table += [
            f"| {row['model'].rpartition('/')[2]} | {row['devices']} x {row['accelerator']} | {row['precision']} | "
            f"{figures.rate(row['tokens_per_s_per_device'])} | {figures.rate(row['model_tflops_per_device'])} | "
            f"{figures.percent(row['mfu'])} | "
            f"{figures.whole(row['tokens_per_day'])} | {row['rating'] or 'not measured'} |"
            for row in rows[:16]
        ]
        blocks.append("\n".join(table))
        seen: dict[str, str] = {}
        for row in rows:
            if row["rated_against"] and row["measured_mfu_median"] is not None:
                seen.setdefault(
                    row["rated_against"],
                    f"- {row['rated_against']}: measured MFU is {figures.percent(row['measured_mfu_median'])} in "
                    f"the middle, "
                    f"{figures.percent(row['measured_mfu_lower'])} to {figures.percent(row['measured_mfu_upper'])} "
                    f"for half of them",
                )
        blocks += ["\n".join(["Rated against measured runs:", *seen.values()])] if seen else []
    else:
        blocks.append("**None of these runs.**")
    if problems := [
        f"- {row['model']} on {row['accelerator']}: {row['error']}" for row in found["rows"] if row["error"]
    ]:
        blocks.append("\n".join(problems[:6]))
    return blocks


def advice(found: Result) -> list[str]:
    entries = found["entries"]
    if not entries:
        return [f"**I know of nothing that would help this plan.** {_bottleneck(found)}"]
    together = found["together"]
    if together and together["gain"] and len(together["ids"]) > 1:
        titles = [entry["title"] for entry in entries if entry["id"] in together["ids"]]
        head = f"**About {figures.percent(together['gain'])} {_better(together['objective'])} is in it**" + (
            f": {'; '.join(titles).lower()}." if titles else "."
        )
    else:
        head = f"**{entries[0]['title']}.**"
    blocks = [f"{head} {_bottleneck(found)}"]
    for number, entry in enumerate(entries[:_MOST_ADVICE], 1):
        gain = (
            f" ({figures.percent(entry['gain'])} {_better(entry['objective'])})"
            if entry["gain"] and entry["gain"] > _WORTH
            else ""
        )
        blocks.append(f"{number}. **{entry['title']}**{gain}: {entry['advice']}")
    if rest := found["not_worth"]:
        blocks.append(
            "\n".join(["Tried, and not worth it here:", *(f"- {row['title']}: {row['why']}" for row in rest[:3])])
        )
    return blocks


def beside(found: Result) -> list[str]:
    """Advice beside an estimate that already says what changes would bring."""
    entries = [entry for entry in found["entries"] if entry["gain"] and entry["gain"] > _WORTH][:3]
    lines = [
        f"- **{entry['title']}** ({figures.percent(entry['gain'])} {_better(entry['objective'])}): {entry['advice']}"
        for entry in entries
    ]
    return ["\n".join(["From the playbook:", *lines])] if lines else []


def _bottleneck(found: Result) -> str:
    return f"What limits it: {found['bottleneck']}." if found.get("bottleneck") else ""


def _better(objective: str | None) -> str:
    return {"tokens_per_s": "more tokens/s", "per_device_bytes": "less memory", "usd": "less cost"}.get(
        objective or "", "gain"
    )
