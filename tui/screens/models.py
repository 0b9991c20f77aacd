"""The models of the catalogue: search, compare, and take one into the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from pages import units
from pages.blocks import Block, Facts, Notes, Verdict
from pages.views.many import compare
from tools.registry import find
from tui.screens import Outcome
from tui.screens.dialogs import PageScreen
from tui.screens.listing import Column, Data, Listing, number, text
from tui.screens.side_by_side import fields_of, side_by_side
from tui.screens.table_screen import TableScreen

_MOST = 500

COLUMNS = (
    Column("MODEL", lambda row: row["id"], lambda value: str(value)),
    number("PARAMETERS", "parameters", units.count),
    number("ACTIVE", "active_parameters", units.count),
    number("CONTEXT", "context_tokens", lambda value: f"{value:,}"),
    text("FAMILY", "family"),
)


class ModelsScreen(TableScreen):
    heading = "Models"
    placeholder = "Search by name or family; Enter takes it into the plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "filter('family')", "Family"),
        Binding("F", "filter('family', -1)", "Family before", show=False),
        Binding("c", "compare", "Compare"),
    ]

    def __init__(self, plan: Data) -> None:
        super().__init__(plan, Listing(COLUMNS))

    def load(self) -> Sequence[Data]:
        return find("list_catalogue")({"kind": "models", "limit": _MOST})["models"]

    def details(self, row: Data) -> Sequence[Block]:
        return described(find("describe_model")({"model": row["id"]}))

    def choose(self, row: Data) -> None:
        self.dismiss(Outcome(changes={"model": row["id"]}))

    def action_compare(self) -> None:
        ids = [str(row["id"]) for row in self.chosen_rows()]
        if len(ids) < 2:
            self.failed("Mark two or more with Space; then c compares them.")
            return
        self.app.push_screen(PageScreen(f"Models · {', '.join(ids)}", lambda: compared(ids, self.plan)))


def described(model: Data) -> list[Block]:
    """A model on a page."""
    source = [Notes("Source", [str(model["source"])], quiet=True)] if model.get("source") else []
    return [
        Verdict(str(model["id"])),
        Facts([row for row in fields_of(model) if row[0] != "source"]),
        *([Notes("Notes", model["notes"])] if model.get("notes") else []),
        *source,
    ]


def compared(ids: Sequence[str], plan: Data) -> list[Block]:
    """Models side by side, and what the plan comes to with each of them where it names a machine."""
    blocks = side_by_side(ids, [find("describe_model")({"model": id}) for id in ids])
    if not (plan.get("cluster") or {}).get("accelerator"):
        return blocks

    over = {"plan": {**plan, "model": ids[0]}, "over": {"model": list(ids)}}
    return [*compare(find("compare")(over)), *blocks]
