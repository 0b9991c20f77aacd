"""Answers about what is kept or written down: scenarios, playbook, catalogue, reports, and where figures come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages import figures

Result = Mapping[str, Any]
_MOST = 12
_MOST_READ = 12
# Figures of a scenario that a difference is told of: name, words, how it is printed.
_FIGURES = (
    ("per_device_bytes", "memory per device", figures.gib),
    ("step_s", "step", figures.seconds),
    ("tokens_per_s", "tokens/s", figures.rate),
    ("mfu", "MFU", figures.percent),
    ("hours", "run", figures.hours),
    ("usd", "cost", figures.usd),
    ("ttft_s", "first token", figures.seconds),
    ("tpot_s", "per token", figures.seconds),
    ("output_tokens_per_s", "output tokens/s", figures.rate),
    ("usd_per_million_tokens", "per million tokens", figures.usd),
)


def playbook(found: Result) -> list[str]:
    entries = found["entries"]
    if not entries:
        topics = ", ".join(str(topic["id"] if isinstance(topic, Mapping) else topic) for topic in found["topics"])
        return [f"The playbook has nothing on {found['query']!r}.", *([f"Its topics: {topics}."] if topics else [])]
    blocks = []
    for number, entry in enumerate(entries[:3]):
        title = f"**{entry['title']}.**" if number == 0 else f"**{entry['title']}**:"
        lines = [f"{title} {entry['advice']}"]
        lines += [f"- `{name}`: {value}" for name, value in list(entry["settings"].items())[:6]]
        lines.append(f"- Source: {entry['source']}")
        blocks.append("\n".join(lines))
    if others := [entry["title"] for entry in entries[3:7]]:
        blocks.append("\n".join(["More in the playbook:", *(f"- {title}" for title in others)]))
    return blocks


def explained(found: Result) -> list[str]:
    return [found["text"]]


def saved(found: Result) -> list[str]:
    return [
        f"**Saved as {found['name']}.** Say *load {found['name']}*, *what changed against {found['name']}* or name "
        f"it in a question."
    ]


def loaded(found: Result) -> list[str]:
    text = next((file["text"] for file in found["files"] if file["path"].endswith((".yaml", ".yml"))), None)
    text = text or next((file["text"] for file in found["files"]), "")
    blocks = [f"**{found['name']} is loaded**; questions are about it from now on."]
    blocks += [f"```yaml\n{text.rstrip()}\n```"] if text else []
    return blocks + (["\n".join(f"- {note}" for note in found["notes"])] if found["notes"] else [])


def listed(found: Result) -> list[str]:
    rows = found["scenarios"]
    own = [row for row in rows if not row["read_only"]]
    head = (
        f"**You have saved {len(own)} plan{'s' if len(own) > 1 else ''}**; the others are ready examples."
        if own
        else "**You have saved none yet**; these are the ready examples. Say *save this as …* to keep a plan."
    )
    table = ["| Name | model | what | on | saved |", "| --- | --- | --- | --- | --- |"]
    for row in [*own, *(row for row in rows if row["read_only"])][: 3 * _MOST]:
        device = f"{row['count'] or ''} x {row['accelerator']}".strip(" x") if row["accelerator"] else ""
        table.append(
            f"| {row['name']} | {row['model'] or ''} | {row['what'] or row['kind']} | {device} | "
            f"{(row['saved'] or 'example')[:10]} |"
        )
    blocks = [head, "\n".join(table)]
    if found["left_out"]:
        blocks.append(
            "\n".join(
                [
                    "Cannot be read:",
                    *(f"- {row['path'] if isinstance(row, Mapping) else row}" for row in found["left_out"]),
                ]
            )
        )
    return blocks


def deleted(found: Result) -> list[str]:
    return [f"**{found['name']} is deleted.**"]


def differences(found: Result) -> list[str]:
    one, other = (found[side]["name"] or ("the first", "this plan")[side == "b"] for side in ("a", "b"))
    if found["same"]:
        return [f"**Nothing differs** between {one} and {other}."]
    given = [row for row in found["given"] if row["field"] not in ("name", "workload.kind")]
    shown = given or found["complete"]
    what = "; ".join(f"{_label(row['field'])} {_value(row['a'])} → {_value(row['b'])}" for row in shown[:4])
    blocks = [f"**{one} → {other}**: {what}." if what else f"**{one} → {other}**"]
    rows = [f"| | {one} | {other} | change |", "| --- | ---: | ---: | ---: |"]
    by_name = {row["figure"]: row for row in found["figures"]}
    for name, words, shown_as in _FIGURES:
        row = by_name.get(name)
        if row is None or row["a"] is None or row["b"] is None:
            continue
        change = figures.percent(abs(row["ratio"] - 1)) if row["ratio"] is not None else ""
        sign = "" if not change else "+" if row["ratio"] > 1 else "-"
        inside = " (within the interval)" if row["within_interval"] else ""
        rows.append(f"| {words} | {shown_as(row['a'])} | {shown_as(row['b'])} | {sign}{change}{inside} |")
    blocks += ["\n".join(rows)] if len(rows) > 2 else []
    if follow := [row for row in found["complete"] if row["field"] not in {r["field"] for r in shown}][:6]:
        blocks.append(
            "\n".join(
                [
                    "Chosen otherwise because of that:",
                    *(f"- {_label(row['field'])}: {_value(row['a'])} → {_value(row['b'])}" for row in follow),
                ]
            )
        )
    return blocks


def catalogue(found: Result) -> list[str]:
    kind = next((kind for kind in ("hardware", "models", "prices") if found[kind]), None)
    if kind is None:
        return ["**The catalogue has none of that name.** `shardwise models` and `shardwise hardware` list everything."]
    rows = found[kind]
    head = (
        f"**{found['total']} in the catalogue**"
        + (f", of which these are {len(rows)}" if len(rows) < found["total"] else "")
        + ":"
    )
    if kind == "hardware":
        table = ["| Id | name | memory | bandwidth |", "| --- | --- | ---: | ---: |"]
        table += [
            f"| {row['id']} | {row['name']} | {figures.gib(row['usable_bytes'])} | "
            f"{row['memory_bandwidth_bytes_per_s'] / 1e9:,.0f} GB/s |"
            for row in rows
        ]
    elif kind == "models":
        table = ["| Id | parameters |", "| --- | ---: |"]
        table += [
            f"| {row['id']} | {figures.whole(row['parameters']) if row.get('parameters') else ''} |" for row in rows
        ]
    else:
        table = ["| Provider | instance | devices | per hour |", "| --- | --- | --- | ---: |"]
        table += [
            f"| {row['provider']} | {row['instance']} | {row.get('count') or ''} x {row.get('accelerator') or ''} | "
            f"{figures.usd(row['usd_per_hour']) if row.get('usd_per_hour') is not None else ''} |"
            for row in rows
        ]
    return [head, "\n".join(table)]


def report(found: Result) -> list[str]:
    lines = [f"- `{file['path']}` ({file['bytes']:,} bytes)" for file in found.get("files", [])]
    head = f"**The report is written**: {found['title']}." if found.get("title") else "**The report is written.**"
    verdict = [found["verdict"]] if found.get("verdict") else []
    return [head, *verdict, *(["\n".join(lines)] if lines else [])]


def imported(found: Result) -> list[str]:
    """What was read of a pasted configuration, and whether the run in it fits."""
    if found.get("refused"):
        return [f"**That configuration cannot be run as it stands**: {found['refused']}", *_read(found)]
    if found.get("missing"):
        wanted = ", ".join(_label(field if isinstance(field, str) else field["field"]) for field in found["missing"])
        return [f"**I have read it; to check it I still need: {wanted}.**", *_read(found)]
    if found.get("fits") is None:
        return ["**I have read it.**", *_read(found)]
    size, room = figures.gib(found["per_device_bytes"]), figures.gib(found["capacity_bytes"])
    span = ""
    if found.get("low_bytes") is not None and found.get("high_bytes") is not None:
        span = f" ({figures.gib(found['low_bytes'])} to {figures.gib(found['high_bytes'])})"
    head = f"**{'It fits' if found['fits'] else 'It does not fit'}**: {size}{span} per device of {room} usable."
    rest = []
    if found.get("step_s") is not None:
        rest.append(f"a step takes about {figures.seconds(found['step_s'])}")
    if found.get("tokens_per_s") is not None:
        rest.append(f"{figures.rate(found['tokens_per_s'])} tokens/s")
    if found.get("hours") is not None:
        rest.append(f"the run {figures.hours(found['hours'])}")
    speed = [f"Speed: {', '.join(rest)}."] if rest else []
    last = "The plan is now this one: ask for what would make it fit, its speed, its cost, or change it."
    return [head, *speed, *_read(found), last if not found["fits"] else last.replace("what would make it fit, ", "")]


def _read(found: Result) -> list[str]:
    """The values that were read, in one line, and what was not understood."""
    rows = [row for row in found.get("read") or [] if isinstance(row, Mapping)]
    blocks = []
    if rows:
        what = ", ".join(f"{_label(str(row['field']))} {_value(row['value'])}" for row in rows[:_MOST_READ])
        more = f" and {len(rows) - _MOST_READ} more" if len(rows) > _MOST_READ else ""
        blocks.append(f"Read: {what}{more}.")
    unread = [
        str(row.get("name") or row.get("key") or row.get("field")) if isinstance(row, Mapping) else str(row)
        for row in found.get("not_read") or []
    ]
    return [*blocks, *([f"Not read: {', '.join(unread[:_MOST_READ])}."] if unread else [])]


def matrix(found: Result) -> list[str]:
    """What the benchmark matrix holds and where it was written."""
    cells = found["cells"]
    head = f"**A matrix of {len(cells)} cell{'' if len(cells) == 1 else 's'} is written**"
    blocks = [head + (f" to `{found['folder']}`." if found.get("folder") else ".")]
    table = ["| Strategy | model | on | layout | step |", "| --- | --- | --- | --- | ---: |"]
    for cell in cells[:_MOST]:
        predicted = cell.get("predicted") or {}
        step = predicted.get("step_s") if isinstance(predicted, Mapping) else None
        shown = figures.seconds(step) if step is not None else "does not fit" if cell.get("fits") is False else ""
        model, on = str(cell["model"]).rpartition("/")[2], f"{cell['devices']} x {cell['platform']}"
        table.append(
            f"| {cell['strategy']} | {model} | {on} | "
            f"{cell['summary'] if isinstance(cell.get('summary'), str) else ''} | {shown} |"
        )
    if len(cells) > _MOST:
        table.append(f"\nand {len(cells) - _MOST} more.")
    blocks += ["\n".join(table)] if cells else []
    blocks += [f"Start it with `{found['launch_command']}`."] if found.get("launch_command") else []
    if wanted := found.get("needs_from_user"):
        named = [
            str(one.get("what") or one.get("name") or one) if isinstance(one, Mapping) else str(one) for one in wanted
        ]
        blocks.append("\n".join(["It needs from you:", *(f"- {one}" for one in named[:_MOST])]))
    return blocks


def measured(found: Result) -> list[str]:
    """What the runs of a matrix gave against what was estimated."""
    cells, missing = found.get("cells") or [], found.get("missing") or []
    blocks = [
        f"**{len(cells)} cells of `{found['folder']}` have results**"
        + (f", {len(missing)} have none." if missing else ".")
    ]
    accuracy = found.get("accuracy")
    rows = accuracy if isinstance(accuracy, list) else [accuracy] if accuracy else []
    lines = [
        "- " + ", ".join(f"{_label(str(name))} {_value(value)}" for name, value in row.items() if value is not None)
        for row in rows
        if isinstance(row, Mapping)
    ]
    return [*blocks, *(["\n".join(["Measured against estimated:", *lines])] if lines else [])]


def plain(found: Result) -> list[str]:
    """What a tool without an answer of its own says: its sentences."""
    said = [found[name] for name in ("summary", "verdict", "text") if isinstance(found.get(name), str)]
    said += [
        text for name in ("why", "notes", "conclusions") for text in found.get(name) or [] if isinstance(text, str)
    ]
    files = [f"- `{file['path']}`" for file in found.get("files") or [] if isinstance(file, Mapping)]
    return [*(said or ["Done."]), *(["\n".join(files)] if files else [])]


def _label(field: str) -> str:
    return field.rpartition(".")[2].replace("_", " ")


def _value(value: Any) -> str:
    return "not given" if value is None else figures.plain(value)
