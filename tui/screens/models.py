"""The models of the catalogue: search, compare, and take one into the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from knowledge import figures
from pages.blocks import Block
from pages.results.facts import beside
from pages.results.of_results import blocks_of
from planner.records.catalogue import CatalogueList, ModelEntry
from planner.results import ModelDescription
from tools.registry import find
from tui.screens import ScreenResult
from tui.screens.dialogs import PageScreen
from tui.screens.listing import Column, Listing, figure, text
from tui.screens.table_screen import TableScreen

Data = Mapping[str, Any]
_MOST = 500
_MONTH = len("2026-06")


COLUMNS = (
    Column("MODEL", lambda row: row.id, str),
    figure("parameters"),
    Column("RELEASED", lambda row: row.released, lambda day: day[:_MONTH], right=True),
    Column("API/1M", lambda row: row.usd_per_million_output_tokens, figures.usd, right=True),
    figure("active_parameters"),
    figure("context_tokens"),
    Column("PROVIDERS", lambda row: row.api_providers or None, str, right=True),
    text("FAMILY", "family"),
)


class ModelsScreen(TableScreen):
    heading = "Models"
    placeholder = "Search by name or family; Enter takes it into the plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "filter('family')", "Family"),
        Binding("F", "filter('family', -1)", "Previous family", show=False),
        Binding("c", "compare", "Compare"),
    ]

    def __init__(self, plan: Data) -> None:
        super().__init__(plan, Listing(COLUMNS))

    def load(self) -> Sequence[ModelEntry]:
        listed = find("list_catalogue").run({"kind": "models", "limit": _MOST})
        assert isinstance(listed, CatalogueList)
        return listed.models

    def details(self, row: ModelEntry) -> Sequence[Block]:
        return blocks_of(find("describe_model").run({"model": row.id}))

    def choose(self, row: ModelEntry) -> None:
        self.dismiss(ScreenResult(changes={"model": row.id}))

    def action_compare(self) -> None:
        ids = [row.id for row in self.chosen_rows()]
        if len(ids) < 2:
            self.failed("Mark two or more with Space; then c compares them.")
            return
        self.app.push_screen(PageScreen(f"Models · {', '.join(ids)}", lambda: compared(ids, self.plan)))


def compared(ids: Sequence[str], plan: Data) -> list[Block]:
    """Models side by side, and what the plan comes to with each of them where it names a machine."""
    models = [find("describe_model").run({"model": id}) for id in ids]
    blocks = beside([model for model in models if isinstance(model, ModelDescription)])
    if not (plan.get("cluster") or {}).get("accelerator"):
        return blocks
    over = {"plan": {**plan, "model": ids[0]}, "over": {"model": list(ids)}}
    return [*blocks_of(find("compare").run(over)), *blocks]
