"""Saved plans and ready examples with what they come to: load, save, rename, delete, compare, bring in and give out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from estimator.errors import PlanError
from knowledge.own.files import read_text, write_file
from knowledge.own.home import expanded
from pages.blocks import Block, Figures, Headline, Text
from pages.results.basis import notes
from pages.results.of_results import blocks_of
from pages.results.scenarios import machines
from planner.records.figures import PlanFigures
from planner.records.scenarios import LoadedScenario, SavedScenario, ScenarioList, ScenarioRow
from tools.registry import find
from tui.screens import ScreenResult
from tui.screens.dialogs import Confirm, PageScreen
from tui.screens.listing import Column, Listing, figure, text
from tui.screens.table_screen import TableScreen

Data = Mapping[str, Any]
_FORMATS = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}


def _figure(*keys: str) -> Column:
    """A column of the first of these figures that a row has."""

    def value(row: ScenarioRow) -> float | None:
        figures = (getattr(row.figures, key) for key in keys) if row.figures else ()
        return next((each for each in figures if each is not None), None)

    return figure(keys[0], value)


COLUMNS = (
    text("NAME", "name"),
    Column("FITS", lambda row: row.figures and row.figures.fits, lambda fits: "yes" if fits else "NO"),
    _figure("per_device_bytes"),
    _figure("tokens_per_s", "output_tokens_per_s"),
    _figure("hours"),
    _figure("usd"),
    _figure("usd_per_hour"),
    text("MODEL", "model"),
    Column("ON", lambda row: machines(row) if row.accelerator else None),
    text("WHAT", "what"),
    Column("SAVED", lambda row: row.saved, lambda moment: moment[:16]),
)


class ScenariosScreen(TableScreen):
    heading = "Scenarios"
    placeholder = "Search by name, model or accelerator; Enter loads it as the plan"
    key = "name"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "save", "Save plan"),
        Binding("n", "rename", "Rename"),
        Binding("d,delete", "delete", "Delete"),
        Binding("c", "compare", "Compare"),
        Binding("i", "bring_in", "Import"),
        Binding("e", "give_out", "Export"),
        Binding("k", "filter('kind')", "Kind", show=False),
    ]

    def __init__(self, plan: Data) -> None:
        super().__init__(plan, Listing(COLUMNS))
        self.figures: dict[tuple[str, str | None], PlanFigures] = {}

    def load(self) -> Sequence[ScenarioRow]:
        return _listed({})

    def take(self, rows: Sequence[ScenarioRow]) -> None:
        """The names at once; what each comes to follows, and is worked out once for each file as it stands."""
        rows = [row.model_copy(update={"figures": self.figures.get((row.name, row.saved))}) for row in rows]
        super().take(rows)
        missing = [row for row in rows if row.figures is None]
        if missing:
            self.do(lambda: self._estimated(missing), lambda _: self.take(rows), "estimating", "figures")

    def _estimated(self, rows: Sequence[ScenarioRow]) -> None:
        """In a thread."""
        for row in rows:
            place = (row.name, row.saved)
            if place not in self.figures:
                scenarios = _listed({"query": row.name, "figures": True})
                self.figures |= {(each.name, each.saved): each.figures for each in scenarios if each.figures}
            # One that has gone meanwhile is not asked for again.
            self.figures.setdefault(place, PlanFigures(kind=row.kind))

    def details(self, row: ScenarioRow) -> Sequence[Block]:
        scenario = _loaded(row.name)
        problem = row.figures.problem if row.figures else None
        return [
            Headline(scenario.name + (" (ready example)" if scenario.read_only else "")),
            *([Headline(problem, False)] if problem else []),
            *notes("Notes", scenario.notes),
            *(Text(file.text) for file in scenario.files),
            Figures([("folder", scenario.folder)]),
        ]

    def choose(self, row: ScenarioRow) -> None:
        def loaded(scenario: LoadedScenario) -> None:
            self.dismiss(ScreenResult(plan=scenario.plan))

        self.do(lambda: _loaded(row.name), loaded, "loading")

    # Changes

    def action_save(self) -> None:
        if not self.plan.get("model"):
            self.failed("There is no plan yet to save.")
            return
        self.ask("Save the plan as", str(self.plan.get("name") or ""), self._save)

    def _save(self, name: str) -> None:
        self.change(lambda: _saved({"plan": self.plan, "name": name}), lambda kept: f"Saved {kept.name}")

    def action_rename(self) -> None:
        row = self._own_row()
        if row is not None:
            self.ask(f"New name for {row.name}", row.name, lambda name: self._rename(row.name, name))

    def _rename(self, old: str, new: str) -> None:
        def change() -> SavedScenario:
            kept = _saved({"text": _loaded(old).files[0].text, "name": new})
            if kept.name != old:
                find("delete_scenario").run({"name": old})
            return kept

        if new != old:
            self.change(change, lambda kept: f"{old} is now {kept.name}")

    def action_delete(self) -> None:
        rows = [row for row in self.chosen_rows() if not row.read_only]
        if not rows:
            self.failed("Ready examples cannot be deleted.")
            return
        names = [row.name for row in rows]

        def answered(yes: bool | None) -> None:
            if yes:
                self.change(
                    lambda: [find("delete_scenario").run({"name": name}) for name in names],
                    lambda _: f"Deleted {', '.join(names)}",
                )

        self.app.push_screen(Confirm(f"Delete {', '.join(names)} for good?"), answered)

    def action_bring_in(self) -> None:
        self.ask("File with a plan, YAML or JSON", "", self._bring_in)

    def _bring_in(self, file: str) -> None:
        def change() -> SavedScenario:
            path = expanded(file)
            if not path.is_file():
                raise PlanError("file", f"there is no file {file!r}")
            return _saved({"text": read_text(path), "name": path.stem})

        self.change(change, lambda kept: f"Imported as {kept.name}")

    def action_give_out(self) -> None:
        row = self.row
        if row is not None:
            suggested = f"{row.name}.yaml"
            self.ask("Write it to (.yaml or .json)", suggested, lambda file: self._give_out(row.name, file))

    def _give_out(self, name: str, typed: str) -> None:
        def change() -> Path:
            path = expanded(typed)
            style = _FORMATS.get(path.suffix.lower())
            if style is None:
                raise PlanError("file", f"{path.name!r} does not say how to write it", sorted(_FORMATS))
            write_file(path, _loaded(name, style).files[0].text, False, "file")
            return path

        self.change(change, lambda path: f"Written: {path}")

    # Comparison

    def action_compare(self) -> None:
        names = [row.name for row in self.chosen_rows()]
        if len(names) == 1 and self.plan.get("model"):
            self._compare([*names], f"the plan · {names[0]}", with_plan=True)
        elif len(names) > 1:
            self._compare(names, " · ".join(names), with_plan=False)
        else:
            self.failed("Mark two or more with Space; then c compares them.")

    def _compare(self, names: list[str], heading: str, *, with_plan: bool) -> None:
        plan = dict(self.plan)
        self.app.push_screen(PageScreen(heading, lambda: compared(names, plan if with_plan else None)))

    # Underneath

    def _own_row(self) -> ScenarioRow | None:
        row = self.row
        if row is not None and row.read_only:
            self.failed(f"{row.name} is a ready example, which stays as it is.")
            return None
        return row


def compared(names: Sequence[str], plan: Data | None) -> list[Block]:
    """Saved plans side by side, with plots; of two also field by field."""
    plans = {"the plan": dict(plan)} if plan else {}
    plans |= {name: _loaded(name).plan for name in names}
    rows = [{"name": name, "plan": each} for name, each in plans.items()]
    blocks = blocks_of(find("compare").run({"scenarios": rows}))
    if len(plans) == 2:
        a, b = plans.values()
        blocks += blocks_of(find("diff_scenarios").run({"a": a, "b": b}))
    return blocks


def _listed(arguments: Data) -> list[ScenarioRow]:
    result = find("list_scenarios").run(arguments)
    assert isinstance(result, ScenarioList)
    return result.scenarios


def _loaded(name: str, style: str = "yaml") -> LoadedScenario:
    scenario = find("load_scenario").run({"name": name, "format": style})
    assert isinstance(scenario, LoadedScenario)
    return scenario


def _saved(arguments: Data) -> SavedScenario:
    kept = find("save_scenario").run(arguments)
    assert isinstance(kept, SavedScenario)
    return kept
