"""The accelerators of the catalogue: search, compare, and take one into the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from knowledge.figures import usd
from pages.blocks import Block
from pages.results.facts import beside
from pages.results.of_results import blocks_of
from planner.records.catalogue import CatalogueList, HardwareEntry
from planner.results import HardwareDescription
from tools.registry import find
from tui.screens import ScreenResult
from tui.screens.dialogs import PageScreen
from tui.screens.listing import Column, Listing, figure, text
from tui.screens.table_screen import TableScreen

Data = Mapping[str, Any]
_MOST = 500

COLUMNS = (
    text("ID", "id"),
    figure("usable_bytes"),
    Column("FROM/HOUR", lambda row: row.usd_per_device_hour, usd, right=True),
    Column("YEAR", lambda row: row.year, str, right=True),
    figure("bf16_tflops"),
    figure("memory_bandwidth_bytes_per_s"),
    text("VENDOR", "vendor"),
    text("FAMILY", "family"),
    text("NAME", "name"),
)


class HardwareScreen(TableScreen):
    heading = "Hardware"
    placeholder = "Search by name, vendor or family; Enter takes it into the plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "filter('vendor')", "Vendor"),
        Binding("V", "filter('vendor', -1)", "Previous vendor", show=False),
        Binding("f", "filter('family')", "Family"),
        Binding("F", "filter('family', -1)", "Previous family", show=False),
        Binding("c", "compare", "Compare"),
    ]

    def __init__(self, plan: Data) -> None:
        super().__init__(plan, Listing(COLUMNS))

    def load(self) -> Sequence[HardwareEntry]:
        listed = find("list_catalogue").run({"kind": "hardware", "limit": _MOST})
        assert isinstance(listed, CatalogueList)
        return listed.hardware

    def details(self, row: HardwareEntry) -> Sequence[Block]:
        return blocks_of(find("describe_hardware").run({"accelerator": row.id}))

    def choose(self, row: HardwareEntry) -> None:
        # What belonged to the old machines goes.
        changes: dict[str, Any] = {"cluster.accelerator": row.id}
        changes |= {"cluster.per_node": None, "cluster.interconnect": None}
        self.dismiss(ScreenResult(changes=changes))

    def action_compare(self) -> None:
        ids = [row.id for row in self.chosen_rows()]
        if len(ids) < 2:
            self.failed("Mark two or more with Space; then c compares them.")
            return
        self.app.push_screen(PageScreen(f"Hardware · {', '.join(ids)}", lambda: compared(ids, self.plan)))


def compared(ids: Sequence[str], plan: Data) -> list[Block]:
    """Accelerators side by side, and what the plan comes to on each of them."""
    devices = [find("describe_hardware").run({"accelerator": id}) for id in ids]
    blocks = beside([device for device in devices if isinstance(device, HardwareDescription)])
    if not plan.get("model"):
        return blocks
    over = {"plan": dict(plan), "over": {"accelerator": list(ids)}}
    return [*blocks_of(find("compare").run(over)), *blocks]
