"""Pages that are mostly words: explanations, advice, the playbook, launch files, reports, scenarios."""

from __future__ import annotations

import re

from pages import units
from pages.blocks import Block, Facts, Notes, Text, Verdict
from pages.views import shared
from pages.views.shared import Column, Data

_MARKS = re.compile(r"(\*\*|`)")


def explain(result: Data) -> list[Block]:
    """Of explain: the tool's own words without their marks."""
    head, _, rest = _MARKS.sub("", result["text"]).partition("\n")
    said = [line.strip().removeprefix("- ") for line in rest.splitlines() if line.strip()]
    operators: list[Column] = [
        ("OPERATOR", shared.text("name")),
        ("TIME", shared.number("seconds", units.short_duration)),
        ("SHARE", shared.number("share", units.percent)),
        ("BOUND BY", shared.text("bound")),
    ]
    nearest: list[Column] = [
        ("MEASURED RUN", shared.text("id")),
        ("DISTANCE", shared.number("distance", lambda value: f"{value:.1f}")),
        ("DIFFERS IN", lambda row: ", ".join(row.get("differs") or {})),
        ("MISS", lambda row: ", ".join(f"{one['error']:+.0%}" for one in row.get("figures") or () if one.get("error"))),
        ("SOURCE", shared.text("source")),
    ]
    return [
        Verdict(head),
        *shared.notes("", said),
        *shared.grid(result.get("operators") or (), operators, ("TIME", "SHARE"), "Operators"),
        *shared.grid(result.get("nearest") or (), nearest, ("DISTANCE", "MISS"), "Nearest measured runs"),
        *shared.notes("Other figures to explain", [", ".join(result.get("figures") or ())]),
        *shared.tail(result),
    ]


def advise(result: Data) -> list[Block]:
    """Of advise."""
    entries = result.get("entries") or []
    together = result.get("together")
    said = f"{result.get('applying', len(entries))} entries of the playbook apply"
    if together and together.get("gain"):
        said += f"; together the settings among them give {together['gain']:+.0%}: {shared.flags(together['patch'])}"
    skipped = [f"{row['title']}: {row['why']}" for row in result.get("not_worth") or ()]
    return [
        Verdict(f"{said}.", result.get("fits")),
        *shared.plan_facts(result),
        *[_entry(row) for row in entries],
        *shared.notes("Not worth it here", skipped),
        *shared.tail(result),
    ]


def playbook(result: Data) -> list[Block]:
    """Of search_playbook."""
    entries = result.get("entries") or []
    if not entries:
        topics = [shared.value(row) for row in result.get("topics") or ()]
        return [Verdict("Nothing found." if result.get("query") else "Topics"), *shared.notes("Topics", topics)]
    return [
        Verdict(f"{len(entries)} of {result.get('matches', len(entries))} entries."),
        *[_entry(row) for row in entries],
    ]


def _entry(row: Data) -> Block:
    gain = row.get("gain")
    figure = str(row.get("objective") or "").replace("_", " ").replace(" per s", "/s")
    title = row["title"] + (f" ({gain:+.0%} {figure})" if isinstance(gain, int | float) else "")
    settings = [f"{name}: {what}" for name, what in (row.get("settings") or {}).items()]
    change = shared.flags(row.get("patch"))
    return Notes(
        title, [row["advice"], *([f"flags: {change}"] if change else []), *settings, f"source: {row['source']}"]
    )


def configs(result: Data) -> list[Block]:
    """Of render_configs, and of write_configs."""
    files = result["files"]
    written = "folder" in result
    names = [f"{file['path']}  {units.size(file['bytes'])}" for file in files] if written else []
    head = (
        f"{len(files)} files written to {result['folder']}."
        if written
        else f"{len(files)} files; --write DIR writes them."
    )
    return [
        Verdict(head, True if written else None),
        *shared.plan_facts(result),
        *shared.notes("Written", names),
        *([] if written else [Text(file["text"], f"===== {file['path']} ({file['target']})") for file in files]),
        *([Facts([("start with", result["launch_command"])])] if result.get("launch_command") else []),
        *shared.notes("You still have to fill in", result.get("needs_from_user")),
        *shared.tail(result),
    ]


def report(result: Data) -> list[Block]:
    """Of render_report, which is Markdown as it is, and of report."""
    if "markdown" in result:
        return [Text(result["markdown"])]
    said = f"{result['file']} written ({result['format']}, {units.size(result['bytes'])})."
    return [Verdict(said, True), *shared.notes("", [result["verdict"]] if result.get("verdict") else [])]


# --------------------------------------------------------------------------------------------------------- scenarios


def scenarios(result: Data) -> list[Block]:
    """Of list_scenarios."""
    columns: list[Column] = [
        ("NAME", shared.text("name")),
        ("MODEL", shared.text("model")),
        ("KIND", shared.text("what")),
        ("ON", lambda row: f"{row['count'] or '?'} x {row['accelerator']}" if row.get("accelerator") else shared.NONE),
        ("FITS", lambda row: shared.yes("fits")(row.get("figures") or {})),
        ("TOKENS/S", lambda row: _speed(row.get("figures") or {})),
        ("RUN", lambda row: shared.number("hours", shared.hours)(row.get("figures") or {})),
        ("USD", lambda row: shared.number("usd", units.usd)(row.get("figures") or {})),
        ("SAVED", lambda row: "example" if row.get("read_only") else str(row.get("saved") or shared.NONE)[:16]),
    ]
    rows = result["scenarios"]
    left = [shared.value(row) for row in result.get("left_out") or ()]
    return [
        *(shared.grid(rows, columns, ("TOKENS/S", "RUN", "USD")) or [Verdict("No plan is saved.")]),
        *shared.notes("Files that cannot be read", left),
        *shared.notes("Watch out", result.get("warnings")),
    ]


def _speed(figures: Data) -> str:
    name = "tokens_per_s" if figures.get("tokens_per_s") is not None else "output_tokens_per_s"
    return shared.number(name, units.count)(figures)


def diff(result: Data) -> list[Block]:
    """Of diff_scenarios."""
    fields: list[Column] = [("FIELD", shared.text("field")), ("A", shared.text("a")), ("B", shared.text("b"))]
    figures: list[Column] = [
        ("FIGURE", shared.text("figure")),
        ("A", lambda row: _figure(row["figure"], row.get("a"))),
        ("B", lambda row: _figure(row["figure"], row.get("b"))),
        ("B / A", lambda row: _ratio(row)),
    ]
    return [
        Verdict("The plans are the same." if result.get("same") else f"{len(result['given'])} fields differ."),
        *shared.grid(result.get("given") or (), fields, (), "As given"),
        *shared.grid(result.get("complete") or (), fields, (), "As completed"),
        *shared.grid(result.get("figures") or (), figures, ("A", "B", "B / A"), "What that does"),
        *shared.notes("Watch out", result.get("warnings")),
    ]


def _ratio(row: Data) -> str:
    a, b = row.get("a"), row.get("b")
    told = row.get("ratio", b / a if isinstance(a, int | float) and isinstance(b, int | float) and a else None)
    return f"{told:.2f}x" if isinstance(told, int | float) else shared.NONE


def _figure(name: str, value: float | None) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return shared.NONE if value is None else shared.value(value)
    for end, write in (("_bytes", units.memory), ("hours", shared.hours), ("mfu", units.percent),
                       ("tokens", shared.cents), ("per_hour", units.usd), ("usd", units.usd),
                       ("per_s", units.count), ("_s", units.short_duration)):  # fmt: skip
        if name.endswith(end):
            return write(value)
    return units.count(value)
