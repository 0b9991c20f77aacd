"""Saved plans and ready examples with what they come to: load, save, rename, delete, compare, bring in and give out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from estimator.errors import PlanError
from knowledge.own.files import read_text, write_file
from pages import units
from pages.blocks import Block, Facts, Notes, Text, Verdict
from pages.views.many import compare
from pages.views.words import diff
from tools.registry import find
from tui.screens import Outcome
from tui.screens.dialogs import Confirm, PageScreen
from tui.screens.listing import Column, Data, Listing, text
from tui.screens.table_screen import TableScreen

_FORMATS = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}


def _figure(title: str, write: Callable[[float], str], *names: str) -> Column:
    """A column of the first of these figures that a row has."""

    def value(row: Data) -> Any:
        figures = row.get("figures") or {}
        return next((figures[name] for name in names if figures.get(name) is not None), None)

    return Column(title, value, write, right=True)


COLUMNS = (
    text("NAME", "name"),
    Column("FITS", lambda row: (row.get("figures") or {}).get("fits"), lambda fits: "yes" if fits else "NO"),
    _figure("MEMORY", units.memory, "per_device_bytes"),
    _figure("TOKENS/S", units.count, "tokens_per_s", "output_tokens_per_s"),
    _figure("RUN", lambda hours: units.duration(hours * 3600), "hours"),
    _figure("USD", units.usd, "usd"),
    _figure("$/H", units.usd, "usd_per_hour"),
    text("MODEL", "model"),
    Column(
        "ON",
        lambda row: f"{row['count'] or '?'} x {row['accelerator']}" if row.get("accelerator") else None,
    ),
    text("WHAT", "what"),
    Column("SAVED", lambda row: row.get("saved"), lambda moment: str(moment)[:16]),
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
        self.figures: dict[tuple[str, str | None], Data] = {}

    def load(self) -> Sequence[Data]:
        return find("list_scenarios")({})["scenarios"]

    def take(self, rows: Sequence[Data]) -> None:
        """The names at once; what each comes to follows, and is worked out once for each file as it stands."""
        rows = [{**row, "figures": self.figures.get((row["name"], row["saved"]))} for row in rows]
        super().take(rows)
        missing = [row for row in rows if row["figures"] is None]
        if missing:
            self.do(lambda: self._estimated(missing), lambda _: self.take(rows), "estimating", "figures")

    def _estimated(self, rows: Sequence[Data]) -> None:
        """In a thread."""
        for row in rows:
            place = (row["name"], row["saved"])
            if place not in self.figures:
                estimated = find("list_scenarios")({"query": row["name"], "figures": True})["scenarios"]
                self.figures |= {(each["name"], each["saved"]): each["figures"] or {} for each in estimated}
            # One that has gone meanwhile is not asked for again.
            self.figures.setdefault(place, {})

    def details(self, row: Data) -> Sequence[Block]:
        scenario = find("load_scenario")({"name": row["name"]})
        problem = (row.get("figures") or {}).get("problem")
        return [
            Verdict(str(scenario["name"]) + (" (ready example)" if scenario["read_only"] else "")),
            *([Verdict(str(problem), False)] if problem else []),
            *([Notes("Notes", scenario["notes"])] if scenario["notes"] else []),
            *(Text(file["text"]) for file in scenario["files"]),
            Facts([("folder", str(scenario["folder"]))]),
        ]

    def choose(self, row: Data) -> None:
        def loaded(scenario: Data) -> None:
            self.dismiss(Outcome(plan=scenario["plan"]))

        self.do(lambda: find("load_scenario")({"name": row["name"]}), loaded, "loading")

    # Changes

    def action_save(self) -> None:
        if not self.plan.get("model"):
            self.failed("There is no plan yet to save.")
            return
        self.ask("Save the plan as", str(self.plan.get("name") or ""), self._save)

    def _save(self, name: str) -> None:
        self.change(
            lambda: find("save_scenario")({"plan": self.plan, "name": name}), lambda saved: f"Saved {saved['name']}"
        )

    def action_rename(self) -> None:
        row = self._own_row()
        if row is not None:
            self.ask(f"Another name for {row['name']}", row["name"], lambda name: self._rename(row["name"], name))

    def _rename(self, old: str, new: str) -> None:
        def change() -> Data:
            file = find("load_scenario")({"name": old})["files"][0]
            kept = find("save_scenario")({"text": file["text"], "name": new})
            if kept["name"] != old:
                find("delete_scenario")({"name": old})
            return kept

        if new != old:
            self.change(change, lambda kept: f"{old} is now {kept['name']}")

    def action_delete(self) -> None:
        rows = [row for row in self.chosen_rows() if not row["read_only"]]
        if not rows:
            self.failed("Ready examples stay.")
            return
        names = [str(row["name"]) for row in rows]

        def answered(yes: bool | None) -> None:
            if yes:
                self.change(
                    lambda: [find("delete_scenario")({"name": name}) for name in names],
                    lambda _: f"Deleted {', '.join(names)}",
                )

        self.app.push_screen(Confirm(f"Delete {', '.join(names)} for good?"), answered)

    def action_bring_in(self) -> None:
        self.ask("File with a plan, YAML or JSON", "", self._bring_in)

    def _bring_in(self, typed: str) -> None:
        def change() -> Data:
            path = Path(typed).expanduser()
            if not path.is_file():
                raise PlanError("file", f"there is no file {typed!r}")
            return find("save_scenario")({"text": read_text(path), "name": path.stem})

        self.change(change, lambda kept: f"Brought in as {kept['name']}")

    def action_give_out(self) -> None:
        row = self.row
        if row is not None:
            suggested = f"{row['name']}.yaml"
            self.ask("Write it to (.yaml or .json)", suggested, lambda typed: self._give_out(row["name"], typed))

    def _give_out(self, name: str, typed: str) -> None:
        def change() -> Path:
            path = Path(typed).expanduser()
            style = _FORMATS.get(path.suffix.lower())
            if style is None:
                raise PlanError("file", f"{path.name!r} does not say how to write it", sorted(_FORMATS))
            write_file(path, find("load_scenario")({"name": name, "format": style})["files"][0]["text"], False, "file")
            return path

        self.change(change, lambda path: f"Written: {path}")

    # Comparison

    def action_compare(self) -> None:
        names = [str(row["name"]) for row in self.chosen_rows()]
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

    def _own_row(self) -> Data | None:
        row = self.row
        if row is not None and row["read_only"]:
            self.failed(f"{row['name']} is a ready example, which stays as it is.")
            return None
        return row


def compared(names: Sequence[str], plan: Data | None) -> list[Block]:
    """Saved plans side by side, with plots; of two also field by field."""
    rows: list[dict[str, Any]] = [{"name": "the plan", "plan": dict(plan)}] if plan else []
    rows += [{"name": name, "plan": find("load_scenario")({"name": name})["plan"]} for name in names]
    blocks = compare(find("compare")({"scenarios": rows}))
    if len(rows) == 2:
        blocks += diff(find("diff_scenarios")({"a": rows[0]["plan"], "b": rows[1]["plan"]}))
    return blocks
