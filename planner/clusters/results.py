"""Results of the tools that choose a cluster."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.money.purchase import OWNED
from planner.result import Assumption, Evidence, Result

Why = Literal[
    "no_framework", "no_layout", "does_not_fit", "too_slow", "past_deadline", "over_budget", "over_hourly",
    "no_price", "outdone", "not_offered", "not_tried", "filtered",
]  # fmt: skip

UNMET = "no option meets all limits"


def from_whom(provider: str | None) -> str:
    """' at Lambda', or ', bought', behind the name of a cluster."""
    return "" if provider is None else ", bought" if provider == OWNED else f" at {provider}"


class OtherOffer(Result):
    """The same devices from another provider."""

    provider: str
    instance: str
    usd_per_hour: float
    price_date: str | None


class ClusterOption(Result):
    """One way to run the plan. Figures of money are null where no price is known, hours where the plan names no data;
    those of latency are of serving, those of steps of training."""

    accelerator: str
    count: int
    per_node: int
    nodes: int
    provider: str | None
    instance: str | None
    instances: int | None
    price_date: str | None
    stale: bool | None = Field(default=None, description="Whether that is over 90 days ago, or not known.")
    size_open: bool = Field(
        default=False,
        description="Whether more nodes than anybody sells unasked, of a provider that states no largest.",
    )
    usd_per_hour: float | None
    capex_usd: float | None = Field(default=None, description="To buy them, with hosts; the budget is held to it.")
    years_usd: float | None = Field(
        default=None, description="To buy them and run them for their years of use; what is ranked by."
    )
    pays_from_hours_per_year: float | None = Field(
        default=None, description="Hours of use a year from which they cost less than the cheapest rent."
    )
    hours: float | None = Field(description="Of the whole run; of serving without a number of requests a month.")
    low_hours: float | None
    high_hours: float | None
    usd: float | None = Field(description="For these hours.")
    low_usd: float | None
    high_usd: float | None
    usd_per_million_tokens: float | None
    tokens_per_s: float
    framework: str | None = None
    engine: str | None = None
    weight_dtype: str | None = None
    layout: dict[str, Any]
    summary: str
    micro_batch: int | None = None
    global_batch: int | None = None
    replicas: int | None = None
    kw: float | None = Field(default=None, description="At the meter, devices at their limit; where power is limited.")
    step_s: float | None = None
    mfu: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    output_tokens_per_s: float | None = None
    requests_per_s: float | None = None
    meets_slo: bool | None = None
    per_device_bytes: float
    headroom_bytes: float | None = Field(description="Below the upper end of the memory's interval; of training.")
    tight: bool = Field(default=False, description="Whether so little is free that it may not fit.")
    fits_deadline: bool | None = Field(description="null where there is no deadline.")
    fits_budget: bool | None = Field(description="null where there is no budget, or no price.")
    measured: bool = Field(description="Whether measured runs on such devices are behind the time.")
    pareto: bool = Field(default=False, description="No other option costs less without taking longer.")
    balanced_score: float | None = Field(
        default=None,
        description="Geometric mean of cost and time, each over the least of all options; 1 is best in both.",
    )
    other_offers: list[OtherOffer]
    notes: list[str]
    launch_targets: list[str] = Field(
        default_factory=list,
        description="Targets of render_configs that can write this plan; of the first three, the cheapest and the "
        "quickest.",
    )
    patch: dict[str, Any] = Field(description="Plan fields that make this option the plan.")

    @property
    def spent_usd(self) -> float | None:
        """What a budget is held to: the machines where they are bought, else the run."""
        return self.usd if self.capex_usd is None else self.capex_usd


class ClusterRejected(Result):
    """Accelerators that are no option for the same reason, those that come nearest first."""

    accelerators: list[str]
    reason: Why
    why: str
    least_devices: dict[str, int] | None = Field(
        default=None, description="Of each, as far as known: fewest that would fit."
    )
    least_hours: dict[str, float] | None = Field(
        default=None, description="Of each: hours on the most devices tried, about."
    )
    least_usd: dict[str, float] | None = Field(
        default=None, description="Of each: least that the run would cost (or a million tokens) of what was estimated."
    )
    least_usd_per_hour: dict[str, float] | None = Field(
        default=None, description="Of each: the least price of an hour."
    )


class LooserLimit(Result):
    """What would be recommended with twice as much of a limit."""

    deadline_h: float | None = Field(description="Twice the deadline; null where it is the budget.")
    budget_usd: float | None
    accelerator: str
    count: int
    provider: str | None
    hours: float | None
    usd: float | None


class WinnerChange(Result):
    """What would have to be otherwise for another cluster to come first."""

    assumption: str = Field(description="price, speed, price date or measurements.")
    what: str
    winner: str
    within: bool = Field(description="Whether that is within what is not known: the interval, or a choice of yours.")


class NearPlan(Result):
    """A plan near the one that was asked for that keeps to its limits; where none does, one that misses them least."""

    what: str
    gives_up: str
    patch: dict[str, Any] = Field(description="Plan fields that make this the plan.")
    accelerator: str
    count: int
    provider: str | None
    hours: float | None
    usd: float | None
    usd_per_hour: float | None


class RecommendedCluster(Result):
    plan: dict[str, Any] | None = Field(description="The plan with the first option in it; null where there is none.")
    options: list[ClusterOption]
    rejected: list[ClusterRejected]
    sort: str
    satisfied: bool = Field(description="Whether the options keep to budget, deadline and latency limits.")
    why: list[str]
    looser: list[LooserLimit] = Field(
        default_factory=list, description="Limits that decide: with twice as much of one another cluster comes first."
    )
    knee: ClusterOption | None = Field(
        default=None, description="Of the options that nothing beats in both, from where less time costs most."
    )
    winner_changes: list[WinnerChange] = Field(default_factory=list, description="What would change the first.")
    nearest: list[NearPlan] = Field(
        default_factory=list, description="Where nothing keeps to all limits: the nearest plans that do."
    )
    sizes_tried: int = Field(description="Combinations of accelerator, node and number that were estimated.")
    priced: str | None = Field(description="Newest date of the prices used.")
    seconds: float
    assumptions: list[Assumption]
    warnings: list[str]
    evidence: list[Evidence]


class Considered(Result):
    """Another choice, and why it was not taken."""

    choice: str
    fits: bool
    usd: float | None
    hours: float | None
    why: str


class Reason(Result):
    field: str
    value: Any
    why: str


class AutoConfigured(Result):
    plan: dict[str, Any] | None = Field(description="The complete plan; the nearest to the goal where none meets it.")
    satisfied: bool = Field(description="Whether the plan fits and keeps to all limits that were given.")
    fits: bool
    hours: float | None
    low_hours: float | None
    high_hours: float | None
    usd: float | None
    usd_per_hour: float | None
    tokens_per_s: float | None
    per_device_bytes: float | None
    option: ClusterOption | None = Field(description="The cluster that was chosen, with its figures.")
    reasons: list[Reason] = Field(description="Why each field has its value, the large decisions first.")
    considered: list[Considered]
    relax: list[str] = Field(description="What limit to give up, and what would meet the others, where nothing meets.")
    launch_targets: list[str] = Field(description="Targets of render_configs that can write this plan.")
    assumptions: list[Assumption]
    warnings: list[str]
    evidence: list[Evidence]
