"""Plans that are kept, loaded and compared, and configurations that were read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pages import figures
from pages.answers.markdown import bullets, cell, label, table

if TYPE_CHECKING:
    from planner.files.importing import ImportedConfig
    from planner.records.figures import FigureChange
    from planner.records.scenarios import (
        DeletedScenario,
        FieldChange,
        LoadedScenario,
        SavedScenario,
        ScenarioDiff,
        ScenarioList,
        ScenarioRow,
    )

_MOST_ROWS, _MOST_READ = 36, 12
_MOST_CHANGES, _MOST_FOLLOWING = 4, 6
# Figures that a difference is told of, by the words of their column.
_FIGURES = {
    "per_device_bytes": "memory per device", "step_s": "step", "tokens_per_s": "tokens/s", "mfu": "MFU",
    "hours": "run", "usd": "cost", "ttft_s": "first token", "tpot_s": "per token",
    "output_tokens_per_s": "output tokens/s", "usd_per_million_tokens": "per million tokens",
}  # fmt: skip


def saved(scenario: SavedScenario) -> list[str]:
    name = scenario.name
    return [f"**Saved as {name}.** Say *load {name}*, *what changed against {name}* or name it in a question."]


def loaded(scenario: LoadedScenario) -> list[str]:
    texts = [file.text for file in scenario.files]
    text = next((file.text for file in scenario.files if file.path.endswith((".yaml", ".yml"))), "".join(texts[:1]))
    return [
        f"**{scenario.name} is loaded**; questions are about it from now on.",
        *([f"```yaml\n{text.rstrip()}\n```"] if text else []),
        *bullets("", scenario.notes),
    ]


def deleted(scenario: DeletedScenario) -> list[str]:
    return [f"**{scenario.name} is deleted.**"]


def listed(rows: ScenarioList) -> list[str]:
    own = [row for row in rows.scenarios if not row.read_only]
    head = "**You have saved none yet**; these are the ready examples. Say *save this as …* to keep a plan."
    if own:
        head = f"**You have saved {len(own)} plan{'s' if len(own) > 1 else ''}**; the others are ready examples."
    shown = [*own, *(row for row in rows.scenarios if row.read_only)][:_MOST_ROWS]
    return [
        head,
        table(("Name", "model", "what", "on", "saved"), map(_row, shown), words=5),
        *bullets("Cannot be read:", [row.path for row in rows.left_out]),
    ]


def _row(row: ScenarioRow) -> tuple[str, ...]:
    device = f"{row.count or ''} x {row.accelerator}".strip(" x") if row.accelerator else ""
    return row.name, row.model, row.what or row.kind, device, (row.saved or "example")[:10]


def differences(diff: ScenarioDiff) -> list[str]:
    one, other = diff.a.name or "the first", diff.b.name or "this plan"
    if diff.same:
        return [f"**Nothing differs** between {one} and {other}."]
    given = [row for row in diff.given if row.field not in ("name", "workload.kind")]
    shown = given or diff.complete
    what = "; ".join(f"{label(row.field)} {_change(row)}" for row in shown[:_MOST_CHANGES])
    by_name = {row.figure: row for row in diff.figures}
    rows = [
        (words, cell(words, row.a), cell(words, row.b), _moved(row))
        for name, words in _FIGURES.items()
        if (row := by_name.get(name)) and row.a is not None and row.b is not None
    ]
    told = {row.field for row in shown}
    following = [row for row in diff.complete if row.field not in told][:_MOST_FOLLOWING]
    return [
        f"**{one} → {other}**: {what}." if what else f"**{one} → {other}**",
        *([table(("", one, other, "change"), rows)] if rows else []),
        *bullets("Chosen otherwise because of that:", [f"{label(row.field)}: {_change(row)}" for row in following]),
    ]


def _change(row: FieldChange) -> str:
    return f"{_value(row.a)} → {_value(row.b)}"


def _value(value: object) -> str:
    return "not given" if value is None else figures.plain(value)


def _moved(row: FigureChange) -> str:
    inside = " (within the interval)" if row.within_interval else ""
    if row.ratio is None:
        return inside
    return f"{'+' if row.ratio > 1 else '-'}{figures.percent(abs(row.ratio - 1))}{inside}"


def imported(config: ImportedConfig) -> list[str]:
    """What was read of a pasted configuration, and whether the run in it fits."""
    if config.refused:
        return [f"**That configuration cannot be run as it stands**: {config.refused}", *_read(config)]
    if config.missing:
        wanted = ", ".join(label(row.field) for row in config.missing)
        return [f"**I have read it; to check it I still need: {wanted}.**", *_read(config)]
    if config.fits is None:
        return ["**I have read it.**", *_read(config)]
    span = ""
    if config.low_bytes is not None and config.high_bytes is not None:
        span = f" ({figures.gib(config.low_bytes)} to {figures.gib(config.high_bytes)})"
    size = figures.known(config.per_device_bytes, figures.gib)
    room = figures.known(config.capacity_bytes, figures.gib)
    parts = (
        figures.known(config.step_s, lambda step_s: f"a step takes about {figures.seconds(step_s)}"),
        figures.known(config.tokens_per_s, lambda rate: f"{figures.rate(rate)} tokens/s"),
        figures.known(config.hours, lambda hours: f"the run {figures.hours(hours)}"),
    )
    speed = ", ".join(part for part in parts if part)
    ask = "" if config.fits else "what would make it fit, "
    return [
        f"**{'It fits' if config.fits else 'It does not fit'}**: {size}{span} per device of {room} usable.",
        *([f"Speed: {speed}."] if speed else []),
        *_read(config),
        f"The plan is now this one: ask for {ask}its speed, its cost, or change it.",
    ]


def _read(config: ImportedConfig) -> list[str]:
    """The values that were read, in one line, and what was not understood."""
    values = [f"{label(row.field)} {_value(row.value)}" for row in config.read]
    more = f" and {len(values) - _MOST_READ} more" if len(values) > _MOST_READ else ""
    unread = ", ".join(row.key for row in config.not_read[:_MOST_READ])
    return [
        *([f"Read: {', '.join(values[:_MOST_READ])}{more}."] if values else []),
        *([f"Not read: {unread}."] if unread else []),
    ]
