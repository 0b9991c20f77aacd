"""On what the plan could run: clusters that can be rented, with what they cost, and which nothing beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from pages.blocks import Block, Headline
from pages.results.basis import notes
from pages.results.columns import listed
from pages.results.money import CLUSTER, ORDERS, cluster_name, rejected
from planner.clusters.results import ClusterOption, RecommendedCluster, from_whom
from tools.registry import find
from tui.plan_fields import kind_of, value_at
from tui.screens import ScreenResult
from tui.screens.listing import Column, Listing, figure, text
from tui.screens.table_screen import TableScreen

Data = Mapping[str, Any]

_NAMED = (Column("CLUSTER", lambda row: cluster_name(row)), Column("*", lambda row: "*" if row.pareto else ""))
_LAST = (figure("usd_per_million_tokens"), figure("headroom_bytes"), text("LAYOUT", "summary"))
COLUMNS = (
    *_NAMED, figure("usd", bar=True), figure("hours", bar=True), text("PROVIDER", "provider"), figure("usd_per_hour"),
    figure("tokens_per_s"), *_LAST,
)  # fmt: skip
# Of what serves on and on, which has no length.
SERVING = (
    *_NAMED, figure("usd_per_hour", bar=True), figure("output_tokens_per_s", bar=True), text("PROVIDER", "provider"),
    figure("ttft_s"), figure("tpot_s"), *_LAST,
)  # fmt: skip


_OF_A_RUN = ("hours", "usd")


class PlacedOption(ClusterOption):
    """An option and its place among all, by which it is known."""

    place: int


class ClustersScreen(TableScreen):
    heading = "Clusters for the plan"
    placeholder = "Search by accelerator or provider; Enter takes it into the plan"
    key = "place"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pareto", "Pareto only"),
        Binding("v", "filter('provider')", "Provider"),
    ]

    def __init__(self, plan: Data) -> None:
        self.endless = kind_of(plan) == "inference" and value_at(plan, "workload.requests") is None
        columns = SERVING if self.endless else COLUMNS
        super().__init__(plan, Listing(columns, words=lambda row: f"{row.accelerator} {row.provider}"))
        self.clusters: RecommendedCluster | None = None

    def reload(self) -> None:
        self.tell("Trying clusters; this takes a few seconds…")
        super().reload()

    def load(self) -> Sequence[PlacedOption]:
        self.need_model()
        # The cluster is what is asked for, and the layout goes with it.
        open_plan = {key: value for key, value in self.plan.items() if key not in ("cluster", "layout")}
        clusters = find("recommend_cluster").run({"plan": open_plan})
        assert isinstance(clusters, RecommendedCluster)
        self.clusters = clusters
        return [PlacedOption.model_construct(**vars(row), place=place) for place, row in enumerate(clusters.options)]

    def state(self) -> str:
        state = super().state()
        clusters = self.clusters
        if state or not self.started or clusters is None:
            return state
        if not self.shown:
            return " ".join(clusters.why or ["No known cluster meets this."])
        if not clusters.satisfied:
            return f"! {clusters.why[0]}" if clusters.why else "! none keeps to every limit"
        return f"{ORDERS[clusters.sort]}; * none cheaper and faster; prices of {clusters.priced}"

    def details(self, row: PlacedOption) -> Sequence[Block]:
        clusters = self.clusters
        why = clusters.why if clusters else []
        return [
            Headline(cluster_name(row) + from_whom(row.provider)),
            *listed(row, [column for column in CLUSTER if not (self.endless and column in _OF_A_RUN)]),
            *notes("Watch out", row.notes),
            *notes("Why this order", why),
            *rejected(clusters.rejected if clusters else ()),
        ]

    def choose(self, row: PlacedOption) -> None:
        changes: dict[str, Any] = {
            "cluster.accelerator": row.accelerator, "cluster.count": row.count,
            "cluster.per_node": row.per_node, "cluster.interconnect": None, "goal.provider": row.provider,
        }  # fmt: skip
        # The layout of the old cluster is chosen anew.
        changes |= {f"layout.{name}": None for name in (self.plan.get("layout") or {})}
        self.dismiss(ScreenResult(changes=changes))

    def action_pareto(self) -> None:
        names = {key: value for key, value in self.listing.filters.items() if key != "pareto"}
        on = "pareto" not in self.listing.filters
        self.look(replace(self.listing, filters=names | ({"pareto": True} if on else {})))
