"""A plan as something whose figures can be explained: its results by key, and the account of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from estimator.account import Accounts
from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.job import Job
from estimator.training.time_account import StepParts
from knowledge.prices.energy import Fact
from planner.asked.money import CostTerms
from planner.money.cost import bill_of
from planner.money.results import CostEstimate
from planner.result import Assumption, Evidence

COST = (
    "hours", "low_hours", "high_hours", "device_hours", "usd", "low_usd", "high_usd", "usd_total", "usd_per_hour",
    "usd_per_device_hour", "usd_per_step", "usd_per_epoch", "usd_per_month", "usd_per_million_tokens",
    "usd_per_million_output_tokens", "usd_per_million_requests", "kwh", "co2_kg", "tokens",
)  # fmt: skip
"""Figures of `estimate_cost`; some need the size of the data, or a price."""


@dataclass(frozen=True)
class Spread:
    """Half widths of an interval, as fractions, and what they come from."""

    below: float
    above: float
    runs: int
    how: str


@dataclass(frozen=True)
class Subject:
    """`values` are the numbers of the results by key; `spreads` the intervals of figures that have one."""

    kind: Literal["training", "serving"]
    job: Job | ServingJob
    asked: Plan
    plan: Plan
    assumptions: list[Assumption]
    warnings: list[str]
    evidence: list[Evidence]
    values: Mapping[str, float | bool | None]
    accounts: Accounts
    spreads: Mapping[str, Spread]
    price: str | None
    facts: Mapping[str, Fact]
    step: StepParts | None = None
    refused: Mapping[str, PlanError] = field(default_factory=dict)

    @property
    def offered(self) -> list[str]:
        """Every key that can be asked for, or whose absence has a reason."""
        return [*self.accounts, *(key for key in self.refused if key not in self.accounts)]


@dataclass(frozen=True)
class Billing:
    """What a plan costs, or why that cannot be said."""

    bill: CostEstimate | None
    refusal: PlanError | None


def billed(plan: Plan, terms: CostTerms) -> Billing:
    try:
        return Billing(bill_of(plan, terms), None)
    except PlanError as error:
        return Billing(None, error)


def bill_figures(bill: CostEstimate) -> dict[str, float | bool | None]:
    return {name: getattr(bill, name) for name in COST}


def with_price(assumptions: list[Assumption], bill: CostEstimate | None) -> list[Assumption]:
    """What the cost assumes besides what the plan does."""
    fields = {item.field for item in assumptions}
    more = [] if bill is None else bill.assumptions
    wanted = ("goal.provider", "instance", "hours")
    return [*assumptions, *(item for item in more if item.field in wanted and item.field not in fields)]


def unpriced(accounts: Accounts, refused: PlanError | None, job: Job | ServingJob) -> dict[str, PlanError]:
    """Why figures of cost are not there."""
    name = job.machine.accelerator.name
    other = PlanError("usd_per_device_hour", f"the price book has no price of {name} for this choice; give your own")
    missing = [key for key in COST if key not in accounts]
    if isinstance(job, Job):
        serving = ("usd_per_epoch", "usd_per_month", "usd_per_million_output_tokens", "usd_per_million_requests")
        missing = [key for key in missing if key not in serving]
    else:
        missing = [key for key in missing if key not in ("usd_per_step", "usd_per_epoch")]
    energy = PlanError("cluster.accelerator", f"no power limit of {name} is known")
    errors = {key: energy if key in ("kwh", "co2_kg") else other for key in missing}
    return {key: refused or error for key, error in errors.items()}
