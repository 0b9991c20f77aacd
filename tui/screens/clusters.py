"""On what the plan could run: clusters that can be rented, with what they cost, and which nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from estimator.errors import PlanError
from pages import units
from pages.blocks import Block, Facts, Notes, Verdict
from tools.registry import find
from tui.screens import Outcome
from tui.screens.listing import Column, Data, Listing, number, text
from tui.screens.side_by_side import fields_of
from tui.screens.table_screen import TableScreen

COLUMNS = (
    Column("CLUSTER", lambda row: f"{row['count']} x {row['accelerator']}"),
    Column("PARETO", lambda row: row.get("pareto") or None, lambda _: "*"),
    text("PROVIDER", "provider"),
    number("USD", "usd", units.usd),
    number("HOURS", "hours", lambda hours: units.duration(hours * 3600)),
    number("$/H", "usd_per_hour", units.usd),
    Column(
        "TOKENS/S",
        lambda row: row.get("tokens_per_s") or row.get("output_tokens_per_s"),
        units.count,
        right=True,
    ),
    number("$/1M TOK", "usd_per_million_tokens", lambda usd: f"${usd:.3g}"),
    number("FREE", "headroom_bytes", units.memory),
    text("LAYOUT", "summary"),
)
# Of an option, what its page says in other words.
_LEFT_OUT = ("layout", "pareto", "balanced_score", "patch", "place")


class ClustersScreen(TableScreen):
    heading = "Clusters for the plan"
    placeholder = "Search by accelerator or provider; Enter takes it into the plan"
    key = "place"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pareto", "Pareto only"),
        Binding("v", "filter('provider')", "Provider"),
    ]

    def __init__(self, plan: Data) -> None:
        super().__init__(plan, Listing(COLUMNS, words=lambda row: f"{row['accelerator']} {row['provider']}"))
        self.recommended: Data = {}

    def reload(self) -> None:
        self.tell("Trying clusters; this takes a few seconds…")
        super().reload()

    def load(self) -> Sequence[Data]:
        if not self.plan.get("model"):
            raise PlanError("plan", "there is none yet; choose a model first", ["/plan", "/models"])
        # The cluster is what is asked for, and the layout goes with it.
        open_plan = {key: value for key, value in self.plan.items() if key not in ("cluster", "layout")}
        self.recommended = find("recommend_cluster")({"plan": open_plan})
        return [row | {"place": place} for place, row in enumerate(self.recommended["options"])]

    def state(self) -> str:
        busy = super().state()
        if busy or not self.started:
            return busy
        if not self.shown:
            return " ".join(self.recommended.get("why") or ["No cluster does."])
        sort, priced = self.recommended.get("sort"), self.recommended.get("priced")
        return f"by {sort}; * nothing is both cheaper and faster; prices of {priced}"

    def details(self, row: Data) -> Sequence[Block]:
        why = self.recommended.get("why") or ()
        rejected = [
            f"{', '.join(each['accelerators'])}: {each['why']}" for each in self.recommended.get("rejected") or ()
        ]
        return [
            Verdict(f"{row['count']} x {row['accelerator']}" + (f" at {row['provider']}" if row["provider"] else "")),
            Facts(fields_of({name: value for name, value in row.items() if name not in _LEFT_OUT})),
            *([Notes("Why this order", why)] if why else []),
            *([Notes("Not among them", rejected, quiet=True)] if rejected else []),
        ]  # fmt: skip

    def choose(self, row: Data) -> None:
        changes: dict[str, Any] = {
            "cluster.accelerator": row["accelerator"], "cluster.count": row["count"],
            "cluster.per_node": row["per_node"], "cluster.interconnect": None, "goal.provider": row["provider"],
        }  # fmt: skip
        # The layout of the old cluster is chosen anew.
        changes |= {f"layout.{name}": None for name in (self.plan.get("layout") or {})}
        self.dismiss(Outcome(changes=changes))

    def action_pareto(self) -> None:
        names = {key: value for key, value in self.listing.filters.items() if key != "pareto"}
        on = "pareto" not in self.listing.filters
        self.look(replace(self.listing, filters=names | ({"pareto": True} if on else {})))
