"""The accelerators of the catalogue: search, compare, and take one into the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from pages import units
from pages.blocks import Block, Facts, Grid, Notes, Verdict
from pages.views.many import compare
from tools.registry import find
from tui.screens import Outcome
from tui.screens.dialogs import PageScreen
from tui.screens.listing import Column, Data, Listing, number, text
from tui.screens.side_by_side import fields_of, side_by_side
from tui.screens.table_screen import TableScreen

_MOST = 500
_GB = 1e9

COLUMNS = (
    text("ID", "id"),
    number("USABLE", "usable_bytes", units.memory),
    number("BF16 TFLOP/S", "bf16_tflops", lambda value: f"{value:,.0f}"),
    number("GB/S", "memory_bandwidth_bytes_per_s", lambda value: f"{value / _GB:,.0f}"),
    Column("PER NODE", lambda row: row.get("per_node"), lambda value: f"{value:,}", right=True),
    text("VENDOR", "vendor"),
    text("FAMILY", "family"),
    text("NAME", "name"),
)


class HardwareScreen(TableScreen):
    heading = "Hardware"
    placeholder = "Search by name, vendor or family; Enter takes it into the plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "filter('vendor')", "Vendor"),
        Binding("V", "filter('vendor', -1)", "Vendor before", show=False),
        Binding("f", "filter('family')", "Family"),
        Binding("F", "filter('family', -1)", "Family before", show=False),
        Binding("c", "compare", "Compare"),
    ]

    def __init__(self, plan: Data) -> None:
        super().__init__(plan, Listing(COLUMNS))

    def load(self) -> Sequence[Data]:
        return find("list_catalogue")({"kind": "hardware", "limit": _MOST})["hardware"]

    def details(self, row: Data) -> Sequence[Block]:
        return described(find("describe_hardware")({"accelerator": row["id"]}))

    def choose(self, row: Data) -> None:
        # What belonged to the old machines goes.
        changes: dict[str, Any] = {"cluster.accelerator": row["id"]}
        changes |= {"cluster.per_node": None, "cluster.interconnect": None}
        self.dismiss(Outcome(changes=changes))

    def action_compare(self) -> None:
        ids = [str(row["id"]) for row in self.chosen_rows()]
        if len(ids) < 2:
            self.failed("Mark two or more with Space; then c compares them.")
            return
        self.app.push_screen(PageScreen(f"Hardware · {', '.join(ids)}", lambda: compared(ids, self.plan)))


def described(accelerator: Data) -> list[Block]:
    """An accelerator on a page."""
    prices = [row for row in accelerator.get("prices") or () if row.get("usd_per_hour") is not None]
    grid = [
        Grid(
            ("PROVIDER", "INSTANCE", "$/H"),
            [(str(row.get("provider") or "–"), str(row.get("instance") or "–"), units.usd(row["usd_per_hour"]))
             for row in prices],
            ("$/H",),
            f"Prices ({len(prices)})",
            ("INSTANCE",),
        )
    ] if prices else []  # fmt: skip
    return [
        Verdict(str(accelerator["name"])),
        Facts([row for row in fields_of(accelerator) if row[0] not in ("name", "source")]),
        *grid,
        *([Notes("Notes", accelerator["notes"])] if accelerator.get("notes") else []),
        Notes("Source", [str(accelerator["source"])], quiet=True),
    ]


def compared(ids: Sequence[str], plan: Data) -> list[Block]:
    """Accelerators side by side, and what the plan comes to on each of them."""
    described_each = [find("describe_hardware")({"accelerator": id}) for id in ids]
    blocks = side_by_side(ids, described_each)
    if not plan.get("model"):
        return blocks

    over = {"plan": dict(plan), "over": {"accelerator": list(ids)}}
    return [*compare(find("compare")(over)), *blocks]
