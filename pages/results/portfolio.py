"""The page of several runs on one cluster: a table, and when each runs as a picture."""

from __future__ import annotations

import csv
import io

from knowledge import figures
from knowledge.figures import hours, percent, usd
from pages.blocks import Block, Chart, Headline, Prose, Text
from pages.results.basis import notes, tail
from pages.results.columns import Column, table, yes
from pages.results.limits import doubt_words, untold
from planner.money.portfolio import EnoughDevices, PlacedRun, Portfolio
from planner.plots import Plot, stacked

_WIDTH = 48
_LONGEST_NAME = 24


def portfolio(result: Portfolio) -> list[Block]:
    columns: list[Column] = [
        ("run", "name"), "devices", ("begins", _begins),
        ("ends", lambda row: row.ends or _hour(row.ends_h)),
        ("at the latest", lambda row: row.latest or _hour(row.latest_h)),
        ("takes", lambda row: _hour(row.takes_h)), "usd", ("in time", lambda row: yes(row.meets_deadline)),
    ]  # fmt: skip
    return [
        _headline(result),
        *([_needed(result.enough)] if result.enough else []),
        *table(result.placed, columns, "Runs"),
        Text(gantt(result), "Timeline"),
        *[Chart(plot) for plot in timeline(result)],
        *notes("Watch out", result.warnings),
        *tail((), result.assumptions),
    ]


def gantt(result: Portfolio) -> str:
    """A line a run, as wide as the time until the last has ended: dots while it waits, blocks while it runs."""
    if not result.ends_h:
        return "nothing can run here"
    wide = max(len(row.name[:_LONGEST_NAME]) for row in result.placed)
    lines = []
    for row in result.placed:
        if row.begins_h is None or row.ends_h is None:
            lines.append(f"{row.name[:_LONGEST_NAME]:<{wide}} does not run")
            continue
        before = round(_WIDTH * row.begins_h / result.ends_h)
        during = max(1, round(_WIDTH * row.ends_h / result.ends_h) - before)
        bar = f"{'·' * before}{'█' * during}"[-_WIDTH if before + during > _WIDTH else 0 :]
        lines.append(f"{row.name[:_LONGEST_NAME]:<{wide}} {bar:<{_WIDTH}} {row.devices} devices")
    return "\n".join([*lines, f"{'':<{wide}} 0{hours(result.ends_h):>{_WIDTH - 1}}"])


def timeline(result: Portfolio) -> list[Plot]:
    parts = [
        {"waits": row.begins_h, "runs": row.takes_h} if row.begins_h is not None and row.takes_h is not None else None
        for row in result.placed
    ]
    return stacked("Timeline", "", "hours", [row.name for row in result.placed], parts)


def _headline(result: Portfolio) -> Headline:
    where = f"{result.count} x {result.accelerator}" + (f" at {result.provider}" if result.provider else "")
    if result.ends_h is None:
        return Headline(f"None of these runs fits on {where}.", False)
    cost = "" if result.usd is None else f", {usd(result.usd)} for the cluster until then"
    busy = "" if result.busy_share is None else f", {percent(result.busy_share)} busy"
    late = sum(row.meets_deadline is False and row.ends_h is not None for row in result.placed)
    unable, total = sum(row.ends_h is None for row in result.placed), len(result.placed)
    hurts = [f"{unable} of {total} runs {'do' if unable > 1 else 'does'} not fit."] if unable else []
    hurts += [f"{late} of {total} runs {'are' if late > 1 else 'is'} late."] if late else []
    good = False if hurts else True if result.in_time else None
    done = f"{'The others' if unable else 'All runs'} are done in {hours(result.ends_h)} on {where}{cost}{busy}."
    doubt = doubt_words(untold(result))
    return Headline(" ".join([*hurts, done]), good, doubt, beware=bool(doubt))


def _needed(enough: EnoughDevices) -> Prose:
    cost = "" if enough.usd is None else f", {usd(enough.usd)} for the cluster until then"
    return Prose(f"{enough.count} devices are enough for all of them in time: done in {hours(enough.ends_h)}{cost}.")


def _begins(row: PlacedRun) -> str:
    return row.begins or ("at once" if row.begins_h == 0.0 else _hour(row.begins_h))


def _hour(value: float | None) -> str:
    return figures.NONE if value is None else hours(value)


def as_csv(result: Portfolio) -> str:
    """The runs as a file for a spreadsheet."""
    columns = list(PlacedRun.model_fields)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in result.placed:
        cells = [getattr(row, name) for name in columns]
        writer.writerow(["" if cell is None else cell for cell in cells])
    return text.getvalue()
