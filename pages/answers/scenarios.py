"""Plans that are kept, loaded and compared, and configurations that were read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from estimator.plan.schema import Training
from knowledge import figures
from knowledge.figure_facts import figures as figure_facts
from pages.answers.plan import complete, hardware_words, layout_words, run_words
from pages.blocks import Block, Folded, Prose, Text, capitalised
from pages.results.basis import notes
from pages.results.reading import estimated, verdict
from pages.results.scenarios import changes, kept

if TYPE_CHECKING:
    from planner.files.importing import ImportedConfig
    from planner.records.scenarios import (
        DeletedScenario,
        FieldChange,
        LoadedScenario,
        SavedScenario,
        ScenarioDiff,
        ScenarioList,
    )

_MOST_ROWS, _MOST_READ = 36, 12
_MOST_CHANGES, _MOST_FOLLOWING, _MOST_FIRST = 4, 6, 2
# What every run needs: that it is not said is reason enough.
_PLAIN = ("model", "cluster.accelerator", "cluster.count")


def saved(scenario: SavedScenario) -> list[Block]:
    name = scenario.name
    return [Prose(f"**Saved as {name}.** Say *load {name}*, *what changed against {name}* or name it in a question.")]


def loaded(scenario: LoadedScenario) -> list[Block]:
    files = sorted(scenario.files, key=lambda file: not file.path.endswith((".yaml", ".yml")))
    return [
        Prose(f"**{scenario.name} is loaded**; questions are about it from now on."),
        *(Text(file.text) for file in files[:1]),
        *notes("", scenario.notes),
    ]


def deleted(scenario: DeletedScenario) -> list[Block]:
    return [Prose(f"**{scenario.name} is deleted.**")]


def listed(rows: ScenarioList) -> list[Block]:
    own = [row for row in rows.scenarios if not row.read_only]
    head = "**You have saved no plans yet**; these are ready examples. Say *save this as …* to keep a plan."
    if own:
        head = f"**You have saved {len(own)} plan{'s' if len(own) > 1 else ''}**; the others are ready examples."
    shown = [*own, *(row for row in rows.scenarios if row.read_only)][:_MOST_ROWS]
    return [Prose(head), *kept(shown), *notes("Files that cannot be read", [row.path for row in rows.left_out])]


def differences(diff: ScenarioDiff) -> list[Block]:
    one, other = diff.a.name or "before", diff.b.name or "now"
    if diff.same:
        return [Prose(f"**Nothing differs** between {one} and {other}.")]
    given = [row for row in diff.given if row.field not in ("name", "workload.kind")]
    shown = given or diff.complete
    what = "; ".join(f"{_name(row)} {_change(row)}" for row in shown[:_MOST_CHANGES])
    told = {row.field for row in shown}
    chosen = [row for row in diff.complete if row.field not in told]
    following = [f"{_name(row)} {_change(row)}" for row in chosen[:_MOST_FOLLOWING]]
    first = f"**{one} → {other}**{f': {what}' if what else ''}."
    if following:
        first += f" The search then chose: {'; '.join(following[:_MOST_FIRST])}."
    return [
        Prose(first),
        *changes(diff.figures, one, other),
        *notes("The search also changed", following[_MOST_FIRST:]),
    ]


def _name(row: FieldChange) -> str:
    """Of a layout its own word: 'recompute' is the name of a figure too."""
    own = row.field.startswith("layout.") and row.field not in figure_facts()
    return row.field.rpartition(".")[2].replace("_", " ") if own else figures.label(row.field)


def _change(row: FieldChange) -> str:
    return f"{_value(row.a)} → {_value(row.b)}"


def _value(value: object) -> str:
    return "not given" if value is None else figures.plain(value)


def imported(config: ImportedConfig) -> list[Block]:
    """What was read of a pasted configuration, and whether the run in it fits."""
    if config.refused:
        return [Prose(f"**That configuration cannot be run as it stands**: {config.refused}"), *_read(config)]
    if config.missing:
        wanted = ", ".join(figures.label(row.field) for row in config.missing)
        reasons = [row.why for row in config.missing if row.field not in _PLAIN]
        head = f"**I have read it. Still needed to check it: {wanted}.**"
        if config.plan.keys() == {"model"}:
            head = "**I have read the model.**"
        return [Prose(" ".join([head, *(f"{reason}." for reason in reasons)])), *_read(config)]
    if config.fits is None:
        return [Prose("**I have read it.**"), *_read(config)]
    return [replace(verdict(config), more=_run(config)), Folded([*estimated(config), *_read(config)])]


def _run(config: ImportedConfig) -> str:
    """What is run on what, how fast, how long and for how much."""
    plan = complete(config.complete_plan or {})
    rate = " tokens/s" if isinstance(plan.workload, Training) else " output tokens/s"
    speed = [("step_s", " per step"), ("tokens_per_s", rate), ("hours", ""), ("usd", "")]
    told = [figures.shown(key, value) + words for key, words in speed if (value := getattr(config, key)) is not None]
    if config.usd is None and config.usd_per_hour is not None:
        told.append(f"{figures.usd(config.usd_per_hour)} per hour")
    what = f"{run_words(plan)} on {hardware_words(plan)}"
    head = f"{capitalised(what)}{': ' if told else ''}{', '.join(told)}."
    if isinstance(plan.workload, Training):
        return f"{head} Layout: {plan.workload.framework}, {layout_words(plan)}."
    return head


def _read(config: ImportedConfig) -> list[Block]:
    """The values that were read, in one line, and what was not understood."""
    values = [f"{figures.label(row.field)} {_value(row.value)}" for row in config.read]
    more = f" and {len(values) - _MOST_READ} more" if len(values) > _MOST_READ else ""
    unread = ", ".join(row.key for row in config.not_read[:_MOST_READ])
    read = f"Read: {', '.join(values[:_MOST_READ])}{more}." if values else ""
    return [Prose(read), Prose(f"Not read: {unread}." if unread else "")]
